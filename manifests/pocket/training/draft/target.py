"""Pocket as the target: its 4-bit weights dequantised, its layer outputs as taps."""
import importlib.util
import json
import os
import struct

import torch
import torch.nn.functional as F

HERE = os.path.dirname(os.path.abspath(__file__))
POCKET = os.path.join(HERE, "../..")


def _load(name, path):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


pocket_model = _load("pocket_model", os.path.join(POCKET, "training/model.py"))
pocket_data = _load("pocket_data", os.path.join(POCKET, "training/data.py"))


def dequantised():
    """The tensors of the 4-bit model in Hugging Face form, float32."""
    raw = open(os.path.join(POCKET, "model.safetensors"), "rb").read()
    size = struct.unpack("<Q", raw[:8])[0]
    header = json.loads(raw[8:8 + size])
    kinds = {"U32": torch.int32, "BF16": torch.bfloat16, "F32": torch.float32}

    def get(name):
        entry = header[name]
        begin, end = entry["data_offsets"]
        data = bytearray(raw[8 + size + begin:8 + size + end])
        return torch.frombuffer(data, dtype=kinds[entry["dtype"]]).reshape(entry["shape"])

    out = {}
    for name in header:
        if name == "__metadata__" or name.endswith((".scales", ".biases")):
            continue
        base = name[:-len(".weight")] if name.endswith(".weight") else None
        if base and base + ".scales" in header:
            words = get(name).to(torch.int64) & 0xFFFFFFFF
            codes = ((words[..., None] >> torch.arange(0, 32, 4)) & 15).reshape(words.shape[0], -1).float()
            scales = get(base + ".scales").float().repeat_interleave(64, -1)
            biases = get(base + ".biases").float().repeat_interleave(64, -1)
            out[name] = codes * scales + biases
            continue
        value = get(name).float()
        if name.endswith("conv1d.weight"):
            value = value.transpose(1, 2).contiguous()
        if (name.endswith("norm.weight") or "pre_fc_norm" in name) and "linear_attn.norm" not in name:
            value = value - 1
        out[name] = value
    return out


class Target:
    def __init__(self, layer_ids, device="cuda"):
        self.net = pocket_model.Pocket(pocket_model.Cfg())
        self.net.load_state_dict(dequantised())
        self.net = self.net.to(device).eval()
        self.layer_ids = layer_ids
        self.embedding = self.net.model.embed_tokens.weight.detach()

    @torch.no_grad()
    def run(self, ids):
        """ids [batch, rows], rows a multiple of 64: final normed rows and the taps, side by side."""
        x = self.net.model.embed_tokens(ids)
        cos, sin = self.net.rope(ids.shape[1], ids.device)
        taps = []
        for i, layer in enumerate(self.net.model.layers):
            x = layer(x, cos, sin)
            if i in self.layer_ids:
                taps.append(x)
        return self.net.model.norm(x), torch.cat(taps, -1)

    def logits(self, hidden):
        return F.linear(hidden, self.embedding)

    @torch.no_grad()
    def run_padded(self, ids):
        """ids a list: as run, for a prompt of any length."""
        rows = (len(ids) + 63) // 64 * 64
        padded = torch.tensor([ids + [0] * (rows - len(ids))], device=self.embedding.device)
        hidden, taps = self.run(padded)
        return hidden[:, :len(ids)], taps[:, :len(ids)]
