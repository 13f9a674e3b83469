"""Greedy decoding without a cache: plain, slow and easy to trust."""
import torch

GREEDY_TOKENS = 80


def padded(ids):
    """ids as one row whose length is a multiple of 64."""
    return torch.tensor([ids + [0] * ((len(ids) + 63) // 64 * 64 - len(ids))]).cuda()


def greedy(next_token, ids, end_ids):
    """Up to 80 tokens after ids. next_token: from a list of ids to the next one."""
    out = list(ids)
    for _ in range(GREEDY_TOKENS):
        out.append(next_token(out))
        if out[-1] in end_ids:
            break
    return out[len(ids) :]
