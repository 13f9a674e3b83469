"""The 4-bit form of MLX: affine groups of 64, norms stored as 1 + w, conv1d as [C,4,1]."""
import json
import struct

import torch

BITS, GROUP = 4, 64
TOP = 2**BITS - 1


def quantise(w):
    """Packed codes (int32 words), scales and biases (bf16) of a matrix, and what they stand for (float32)."""
    groups = w.float().reshape(-1, GROUP)
    high, low = groups.max(1, keepdim=True).values, groups.min(1, keepdim=True).values
    negative = low.abs() > high.abs()
    scale = ((high - low) / TOP).clamp(min=1e-7)
    scale = torch.where(negative, scale, -scale)
    edge = torch.where(negative, low, high)
    at_edge = torch.round(edge / scale)
    exact = at_edge != 0
    scale = torch.where(exact, edge / at_edge, scale)
    bias = torch.where(exact, edge, torch.zeros_like(edge))
    scale, bias = scale.bfloat16().float(), bias.bfloat16().float()
    codes = torch.round((groups - bias) / scale).clamp(0, TOP).to(torch.int64)
    meaning = (codes * scale + bias).reshape(w.shape)

    rows = w.shape[0]
    words = (codes.reshape(rows, -1, 32 // BITS) << torch.arange(0, 32, BITS)).sum(-1).to(torch.int64)
    words = torch.where(words >= 2**31, words - 2**32, words).to(torch.int32)
    return words, scale.reshape(rows, -1).bfloat16(), bias.reshape(rows, -1).bfloat16(), meaning


def is_plus_one_norm(name):
    norm = name.endswith(("norm.weight", "layernorm.weight")) or "pre_fc_norm" in name
    return norm and "linear_attn.norm" not in name


def convert(tensors):
    """The tensors in MLX's form, and the same in Hugging Face's form as the 4-bit codes have them."""
    stored, dequantised = {}, {}
    for name, w in tensors.items():
        if w.ndim == 2 and w.shape[1] % GROUP == 0:
            base = name[: -len(".weight")]
            words, scales, biases, dequantised[name] = quantise(w)
            stored[base + ".weight"], stored[base + ".scales"], stored[base + ".biases"] = words, scales, biases
            continue
        stored[name] = dequantised[name] = w
        if name.endswith("conv1d.weight"):
            stored[name] = w.transpose(1, 2).contiguous()
        if is_plus_one_norm(name):
            stored[name] = (w.float() + 1).bfloat16()
            dequantised[name] = stored[name].float() - 1
    return stored, dequantised


def save(tensors, path):
    """A safetensors file with U32 codes, which the usual writer does not know."""
    kinds = {torch.int32: "U32", torch.bfloat16: "BF16", torch.float32: "F32"}
    header, data = {"__metadata__": {"format": "mlx"}}, b""
    for name in sorted(tensors):
        t = tensors[name].contiguous()
        raw = t.view(torch.int16 if t.dtype == torch.bfloat16 else torch.uint8).numpy().tobytes()
        offsets = [len(data), len(data) + len(raw)]
        header[name] = {"dtype": kinds[t.dtype], "shape": list(t.shape), "data_offsets": offsets}
        data += raw
    text = json.dumps(header).encode()
    text += b" " * ((8 - len(text) % 8) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)
