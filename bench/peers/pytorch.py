"""PyTorch's side of the comparison: a plain BERT, run eagerly as most users run one.

    python3 pytorch.py FOLDER --threads 1 --precision f32|bf16

Requests and answers are those of onnxruntime.mjs, and sequences are padded as there. In bf16 the
whole model is in bfloat16; if oneDNN cannot run that here, the first line is {"skipped": "why"}.
"""

import argparse
import json
import os
import re
import sys
import time

import torch
import torch.nn.functional as F

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../models/train"))
import safetensors_io  # noqa: E402


def peak_bytes():
    with open("/proc/self/status", encoding="utf-8") as source:
        return 1024 * int(re.search(r"VmHWM:\s+(\d+)", source.read()).group(1))


def softmax_attention(q, k, v, attn_mask):
    scores = q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5
    return torch.softmax(scores if attn_mask is None else scores + attn_mask, -1) @ v


attention = getattr(F, "scaled_dot_product_attention", softmax_attention)  # since PyTorch 2.0


class Bert:
    def __init__(self, folder, dtype):
        with open(os.path.join(folder, "config.json"), encoding="utf-8") as source:
            self.config = json.load(source)
        arrays, _ = safetensors_io.load(os.path.join(folder, "model.safetensors"))
        self.dtype = dtype
        self.weights = {name: torch.tensor(array, dtype=dtype) for name, array in arrays.items()}
        for layer in range(self.config["num_hidden_layers"]):
            self._stack_qkv(f"encoder.layer.{layer}.attention.self.")

    def _stack_qkv(self, name):
        for kind in ("weight", "bias"):
            parts = [self.weights.pop(f"{name}{part}.{kind}") for part in ("query", "key", "value")]
            self.weights[f"{name}qkv.{kind}"] = torch.cat(parts)

    def _linear(self, x, name):
        return F.linear(x, self.weights[name + ".weight"], self.weights[name + ".bias"])

    def _norm(self, x, name):
        weight, bias = self.weights[name + ".weight"], self.weights[name + ".bias"]
        return F.layer_norm(x, weight.shape, weight, bias, self.config["layer_norm_eps"])

    def _embed(self, ids):
        word, position, token_type = (
            self.weights[f"embeddings.{kind}_embeddings.weight"]
            for kind in ("word", "position", "token_type")
        )
        x = F.embedding(ids, word) + position[: ids.shape[1]] + token_type[0]
        return self._norm(x, "embeddings.LayerNorm")

    def _block(self, x, mask, name):
        batch, tokens, width = x.shape
        qkv = self._linear(x, name + "attention.self.qkv")
        heads = qkv.view(batch, tokens, 3, self.config["num_attention_heads"], -1)
        q, k, v = heads.permute(2, 0, 3, 1, 4)  # [B, H, T, D] each
        z = attention(q, k, v, attn_mask=mask).transpose(1, 2).reshape(batch, tokens, width)
        out = self._linear(z, name + "attention.output.dense")
        x = self._norm(out + x, name + "attention.output.LayerNorm")
        active = F.gelu(self._linear(x, name + "intermediate.dense"))
        down = self._linear(active, name + "output.dense")
        return self._norm(down + x, name + "output.LayerNorm")

    def __call__(self, ids, mask):
        """ids [B, T], mask [B, 1, 1, T] or None -> the last hidden states, [B, T, C]."""
        x = self._embed(ids)
        for layer in range(self.config["num_hidden_layers"]):
            x = self._block(x, mask, f"encoder.layer.{layer}.")
        return x


def padded(sequences, dtype):
    """(ids [B, T], what is added to the scores of keys: 0 or, for padding, -inf)."""
    lengths = torch.tensor([len(sequence) for sequence in sequences])
    width = int(lengths.max())
    ids = torch.tensor([sequence + [0] * (width - len(sequence)) for sequence in sequences])
    padding = torch.arange(width) >= lengths[:, None]  # [B, T]
    if not padding.any():
        return ids, None
    mask = torch.zeros(padding.shape, dtype=dtype).masked_fill(padding, float("-inf"))
    return ids, mask[:, None, None]


def measure(model, inputs, seconds):
    """The first run finds cold caches: it counts only if it is alone."""
    times = []
    end = time.perf_counter() + seconds
    while not times or time.perf_counter() < end:
        start = time.perf_counter()
        model(*inputs)
        times.append(1e3 * (time.perf_counter() - start))
    times = sorted(times[1:] or times)
    mean = sum(times) / len(times)
    return {"median_ms": times[len(times) // 2], "mean_ms": mean, "min_ms": times[0]}


def answer(model, batch, seconds=0, hidden=None):
    inputs = padded(batch, model.dtype)
    if hidden:
        real = [states[: len(ids)] for states, ids in zip(model(*inputs), batch)]
        torch.cat(real).float().numpy().tofile(hidden)
    result = measure(model, inputs, seconds) if seconds else {}
    return {**result, "peak_bytes": peak_bytes()}


def bf16_problem():
    """Why oneDNN cannot multiply bfloat16 matrices here, or nothing."""
    one = torch.ones(1, 1, dtype=torch.bfloat16).to_mkldnn()
    try:
        torch._C._nn.mkldnn_linear(one, one)
    except RuntimeError as error:
        return f"80 times slower without oneDNN: {error}"
    return ""


def say(**values):
    print(json.dumps(values), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--precision", choices=("f32", "bf16"), default="f32")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    base = peak_bytes()
    dtype = {"f32": torch.float32, "bf16": torch.bfloat16}[arguments.precision]
    if arguments.precision == "bf16" and (problem := bf16_problem()):
        say(skipped=problem)
        return
    model = Bert(arguments.folder, dtype)
    say(version=f"PyTorch {torch.__version__}", base_bytes=base)
    for line in sys.stdin:
        say(**answer(model, **json.loads(line)))


if __name__ == "__main__":
    with torch.inference_mode():
        main()
