"""Greedy answers under an approximate prefill: query row i of a prefilled range attends key j when j <= i and
(j < SINK or j > i - WINDOW); the last rows of a range and all decoded rows attend everything."""
import torch
import torch.nn.functional as F

from decoding import greedy, padded
from model import Attention, causal_attention

SINK, WINDOW = 64, 128
TAIL, TAIL_CONTINUING = 32, 16
PROMPTS = {"needle_long": 1, "vt": 2, "raw": 1}  # name: number of prefilled ranges


def mask(rows, epochs):
    """[rows, rows] of bool. epochs: (begin, end, tail) of each prefilled range."""
    i, j = torch.arange(rows)[:, None], torch.arange(rows)[None]
    dense = j <= i
    near = (j < SINK) | (j > i - WINDOW)
    allowed = dense.clone()
    for begin, end, tail in epochs:
        approximate = (i >= begin) & (i < max(begin, end - tail))
        allowed = torch.where(approximate, dense & near, allowed)
    return allowed.cuda()


def epochs_of(tokens, ranges):
    if ranges == 1:
        return [(0, tokens, TAIL)]
    return [(0, tokens // 2, TAIL), (tokens // 2, tokens, TAIL_CONTINUING)]


def masked_logits(net, ids, epochs):
    rows = padded(ids)
    allowed = mask(rows.shape[1], epochs)
    Attention.attend = staticmethod(
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, attn_mask=allowed, enable_gqa=True)
    )
    try:
        hidden = net(rows)[0]
    finally:
        Attention.attend = staticmethod(causal_attention)
    return net.logits(hidden)[0, : len(ids)]


@torch.no_grad()
def run(oracle, net, prompts, tag):
    document, kept = {}, {}
    for name, ranges in PROMPTS.items():
        ids = oracle.ids_of(prompts[name])
        epochs = epochs_of(len(ids), ranges)
        first = masked_logits(net, ids, epochs).cpu()
        answer = greedy(lambda seen: int(masked_logits(net, seen, epochs)[-1].argmax()), ids, oracle.end_ids)
        document[name] = dict(
            sink=SINK, window=WINDOW, epochs=epochs, ids_len=len(ids), argmax=first.argmax(-1).tolist(),
            greedy=answer, greedy_text=oracle.decode(answer),
        )  # fmt: skip
        kept[f"{name}.logits_last"] = first[-1]
        print("policy", name, epochs, repr(document[name]["greedy_text"][:140]), flush=True)
    oracle.write(f"approx-{tag}", document)
    oracle.write_tensors(f"approx-{tag}", kept)
