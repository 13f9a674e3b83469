"""How many whole answers Pocket gives right, by kind of dialogue and length, with the true text before each token."""
import json

import torch
import torch.nn.functional as F

from data import Generator, render

LENGTHS = {"needle": (1000, 4000, 12000), "vt": (1000, 4000, 12000), "tool": (1000,), "chat": (1000,)}
DIALOGUES = 60


@torch.no_grad()
def evaluate(net, tokenizer, corpus, code):
    """Prints, for KIND@CHARACTERS: the share of right answers, their number, and the mean tokens of a dialogue."""
    net.eval()
    generator, result = Generator(corpus, 777, code), {}
    for kind, lengths in LENGTHS.items():
        for characters in lengths:
            right = answers = tokens = 0
            for _ in range(DIALOGUES):
                ids, said = tokens_of(tokenizer, getattr(generator, kind)(characters))
                spans = answer_spans(said)
                predicted = predict(net, ids)
                right += sum(predicted[begin - 1 : end - 1] == ids[begin:end] for begin, end in spans)
                answers += len(spans)
                tokens += len(ids)
            result[f"{kind}@{characters}"] = (round(right / answers, 3), answers, tokens // DIALOGUES)
    print(json.dumps(result), flush=True)


def tokens_of(tokenizer, dialogue):
    ids, said = [tokenizer.token_to_id("<|endoftext|>")], [False]
    for text, by_model in render(dialogue):
        piece = tokenizer.encode(text, add_special_tokens=False).ids
        ids += piece
        said += [by_model] * len(piece)
    return ids, said


def answer_spans(said):
    """The runs of tokens that the model says, as (begin, end)."""
    spans, at = [], 1
    while at < len(said):
        if not said[at]:
            at += 1
            continue
        end = at
        while end < len(said) and said[end]:
            end += 1
        spans.append((at, end))
        at = end
    return spans


def predict(net, ids):
    """The greedy next token after every position but the last."""
    rows = (len(ids) + 63) // 64 * 64
    padded = torch.tensor([ids + [0] * (rows - len(ids))]).cuda()
    with torch.autocast("cuda", torch.bfloat16):
        logits = F.linear(net(padded)[0], net.model.embed_tokens.weight)
    return logits.argmax(-1)[0, : len(ids) - 1].tolist()
