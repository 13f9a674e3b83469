"""The prompts of the oracle, made from haystack.txt: nine that are shown, nine held out."""
import os

from data import Generator, render

HERE = os.path.dirname(os.path.abspath(__file__))
HELLO = (
    "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n<|im_start|>user\nHello<|im_end|>\n"
    "<|im_start|>assistant\n<think>\n\n</think>\n\n"
)
HELD_OUT = [
    ("needle", 3000), ("needle", 6000), ("vt", 600), ("vt", 5000), ("tool", 0), ("tool", 0), ("chat", 0),
    ("chat", 0), ("needle", 11000),
]  # fmt: skip


def haystack():
    with open(f"{HERE}/haystack.txt") as file:
        return file.read().split("\n")


def up_to_answer(dialogue):
    """The text before the last thing that the model says."""
    pieces = render(dialogue)
    last = max(i for i, (_, said) in enumerate(pieces) if said)
    return "".join(text for text, _ in pieces[:last])


def shown_prompts():
    g = Generator(haystack(), 4242)
    return {
        "hello": HELLO,
        "one_token": "VAR",
        "unicode": "Grüße, мир! 你好 👋🏽 \u0301e\n\n  tabs\tand   spaces 12345",
        "needle_short": up_to_answer(g.needle(500)),
        "needle_long": up_to_answer(g.needle(9000)),
        "vt": up_to_answer(g.vt(2500)),
        "tool": up_to_answer(g.tool(0)),
        "chat": up_to_answer(g.chat(0)),
        "raw": "\n".join(g.filler(3000)),
    }


def held_out_prompts():
    g = Generator(haystack(), 992)
    return {f"h{i}_{kind}": up_to_answer(getattr(g, kind)(size)) for i, (kind, size) in enumerate(HELD_OUT)}
