"""Reference outputs of the draft in float32: oracle.py FOLDER (with model.safetensors), for the prompts of Pocket's oracle."""
import json
import os
import sys

import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer

from dflash2 import Config, DFlash2
from target import HERE, POCKET, Target, pocket_data

OUT, FOLDER = os.environ["OUT"], sys.argv[1]
LIMIT = 80
QUANTISED = ("fc.", "_proj.", "kernel_projection.")
torch.backends.cuda.matmul.allow_tf32 = False
torch.set_float32_matmul_precision("highest")


def affine4(w, group=64):
    """MLX's 4-bit affine form and back, float32."""
    rows = w.float().reshape(-1, group)
    high, low = rows.max(1, keepdim=True).values, rows.min(1, keepdim=True).values
    negative = low.abs() > high.abs()
    scale = ((high - low) / 15).clamp(min=1e-7)
    scale = torch.where(negative, scale, -scale)
    edge = torch.where(negative, low, high)
    at_edge = torch.round(edge / scale)
    scale = torch.where(at_edge != 0, edge / at_edge, scale)
    bias = torch.where(at_edge != 0, edge, torch.zeros_like(edge))
    scale, bias = scale.bfloat16().float(), bias.bfloat16().float()
    codes = torch.round((rows - bias) / scale).clamp(0, 15)
    return (codes * scale + bias).reshape(w.shape)


def quantised(tensors):
    return {k: affine4(v) if any(q in k for q in QUANTISED) and "hidden_projection" not in k else v.float()
            for k, v in tensors.items()}


@torch.no_grad()
def propose(draft, target, taps, anchor, block):
    """Drafted tokens after the anchor, with what led to them."""
    c, start = draft.c, taps.shape[1]
    ids = torch.tensor([[[anchor] + [c.mask_token_id] * (block - 1)]], device=taps.device)
    context = draft.context(taps)
    starts = torch.tensor([[start]], device=taps.device)
    hidden = draft(context, F.embedding(ids, target.embedding), starts)[0, 0, 1:]
    logits = target.logits(hidden)
    best = logits.topk(c.selector_top_k, -1)
    before, chosen, scores = anchor, [], []
    for row in range(block - 1):
        score = draft.candidate_selector.scores(hidden[row], best.values[row], best.indices[row], torch.tensor(before, device=taps.device))
        before = int(best.indices[row][score.argmax()])
        chosen.append(before)
        scores.append(score)
    return chosen, context, hidden, best, torch.stack(scores)


@torch.no_grad()
def decode(draft, target, ids, ends, block, keep=None):
    """Greedy decoding with the draft: the steps, and the text's tokens."""
    committed, steps, out = list(ids), [], []
    hidden, taps = target.run_padded(committed)
    anchor = int(target.logits(hidden[0, -1]).argmax())
    while True:
        out.append(anchor)
        if anchor in ends or len(out) >= LIMIT:
            return steps, out
        drafted, context, rows, best, scores = propose(draft, target, taps, anchor, block)
        if keep is not None and not steps:
            gap = scores.sort(-1, descending=True).values
            keep["first"] = dict(candidates=best.indices.tolist(), logits=[[round(x, 5) for x in r] for r in best.values.tolist()],
                                 scores=[[round(x, 5) for x in r] for r in scores.tolist()],
                                 gap=[round(x, 5) for x in (gap[:, 0] - gap[:, 1]).tolist()])
            keep["context_last"], keep["rows"] = context[0, -4:].cpu(), rows.cpu()
        trial = committed + [anchor] + drafted
        hidden, taps_all = target.run_padded(trial)
        answer = target.logits(hidden[0, len(committed):]).argmax(-1).tolist()
        accepted = 0
        while accepted < len(drafted) and drafted[accepted] == answer[accepted] and len(out) < LIMIT:
            accepted += 1
            out.append(drafted[accepted - 1])
            if out[-1] in ends:
                break
        steps.append(dict(start=len(committed), anchor=anchor, drafted=drafted, accepted=accepted))
        if out[-1] in ends or len(out) >= LIMIT:
            return steps, out
        committed = committed + [anchor] + drafted[:accepted]
        taps = taps_all[:, :len(committed)]
        anchor = answer[accepted]


def main():
    tokenizer = Tokenizer.from_file(os.path.join(POCKET, "tokenizer.json"))
    ends = [tokenizer.token_to_id("<|im_end|>"), tokenizer.token_to_id("<|endoftext|>")]
    shown = json.load(open(os.path.join(HERE, "../../../../engine/model/testdata/oracle/oracle-q4.json")))
    target, weights = Target(Config.target_layer_ids), load_file(os.path.join(FOLDER, "model.safetensors"))
    lists = {"": {k: v["ids"] for k, v in shown.items()}}
    if os.path.exists(os.path.join(HERE, "held.json")):
        lists["held-"] = json.load(open(os.path.join(HERE, "held.json")))
    for form, tensors in (("bf16", {k: v.float() for k, v in weights.items()}), ("q4", quantised(weights))):
        draft = DFlash2()
        draft.load_state_dict(tensors)
        draft = draft.cuda().eval()
        for prefix, prompts in lists.items():
            result, kept_tensors = {}, {}
            for name, ids in prompts.items():
                keep = {}
                steps, out = decode(draft, target, ids, ends, Config.block_size, keep)
                short, _ = decode(draft, target, ids, ends, 4)
                result[name] = dict(ids=ids, steps=steps, tokens=out, text=tokenizer.decode(out, skip_special_tokens=False),
                                    first=keep["first"], steps_block_4=short)
                kept_tensors[f"{name}.context_last"], kept_tensors[f"{name}.rows"] = keep["context_last"], keep["rows"]
                rate = len(out) / (len(steps) + 1)
                same = "" if prefix or out == shown[name]["greedy"] else " DIFFERS"
                print(form, prefix, name, len(ids), f"tokens {len(out)} passes {len(steps)} a pass {rate:.2f} block 4 {len(out) / (len(short) + 1):.2f}{same}",
                      min(keep["first"]["gap"]), flush=True)
            json.dump(result, open(f"{OUT}/{prefix}draft-{form}.json", "w"))
            if not prefix:
                save_file({k: v.contiguous() for k, v in kept_tensors.items()}, f"{OUT}/draft-{form}.safetensors")


if __name__ == "__main__":
    main()
