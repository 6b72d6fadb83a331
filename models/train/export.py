"""Writes a trained twin as a folder that phasor loads, with activations to check it by.

    python3 models/train/export.py WORK/sinusoidal.pt WORK/tokenizer.model models/sinusoidal

The folder gets config.json, model.safetensors (float16), tokenizer.model, golden.json and
golden.safetensors: what PyTorch computes in float32 from the very float16 weights in the file.
README.md, the model card, is written by card.py.
"""

import argparse
import json
import os
import shutil

import numpy as np
import torch

import safetensors_io
import tokenizer as tok
from model import BASE, MAX_DISTANCE, NUM_BUCKETS, Config, Encoder

GOLDEN_TEXTS = [
    "Tom bit a dog.",
    "A dog bit Tom.",
    "Hello",
    "It rained. We stayed at home! Nobody came?",
    "Françoise’s café — naïve, ½ ﬁnal.",
    'He wrote "[MASK]" twice.',
]
GOLDEN_LIMIT = 400_000  # bytes
MODEL_LIMIT = 6_000_000


POSITION_KEYS = {
    "sinusoidal": {"kind": "sinusoidal", "layout": "paper", "base": BASE, "first_position": 0},
    "learned": {"kind": "learned", "first_position": 0},
    "none": {"kind": "none"},
    "rotary": {"kind": "none", "rotary": {"base": BASE, "interleaved": False}},
    "relative": {
        "kind": "none",
        "bias": "buckets",
        "num_buckets": NUM_BUCKETS,
        "max_distance": MAX_DISTANCE,
    },
    "alibi": {"kind": "none", "bias": "alibi"},
}


def position_keys(config):
    """Positions that phasor cannot add get a kind that it refuses; a key that it does not know it only notes."""
    keys = POSITION_KEYS[config.position]
    if config.added_before == Config.added_before:
        return keys
    return {"kind": "added", "before": config.added_before, "what": keys}


def config_json(config):
    return {
        "model_type": "phasor",
        "d_model": config.d_model,
        "d_ff": config.d_ff,
        "num_layers": config.num_layers,
        "num_heads": config.num_heads,
        "vocab_size": config.vocab_size,
        "max_positions": config.max_positions,
        "norm_order": config.norm_order,
        "layer_norm_eps": config.layer_norm_eps,
        "activation": "gelu",
        "embedding_scale": config.embedding_scale,
        "embedding_norm": config.embedding_norm,
        "final_norm": config.norm_order == "pre",
        "position": position_keys(config),
        "mlm_head": True,
        "tokenizer": {
            "type": "sentencepiece",
            "file": "tokenizer.model",
            "prefix": ["[CLS]"],
            "suffix": ["[SEP]"],
            "mask": "[MASK]",
            "pad": "<pad>",
            "unk": "<unk>",
        },
    }


def load_folder(folder):
    """The model of an exported folder in float32, ready to run, and its tokenizer."""
    with open(os.path.join(folder, "config.json"), encoding="utf-8") as source:
        entries = json.load(source)
    wanted, before = entries["position"], Config.added_before
    if wanted["kind"] == "added":
        wanted, before = wanted["what"], tuple(wanted["before"])
    (position,) = (p for p, keys in POSITION_KEYS.items() if keys == wanted)
    names = ("d_model", "d_ff", "num_layers", "num_heads", "vocab_size", "max_positions")
    values = {name: entries[name] for name in (*names, "norm_order", "embedding_norm")}
    model = Encoder(Config(position=position, added_before=before, **values), seed=1)
    tensors, _ = safetensors_io.load(os.path.join(folder, "model.safetensors"))
    model.load_state_dict({k: torch.from_numpy(v.astype(np.float32)) for k, v in tensors.items()})
    return model.eval(), tok.load(os.path.join(folder, "tokenizer.model"))


def write_json(file, value):
    with open(file, "w", encoding="utf-8") as out:
        json.dump(value, out, indent=1, ensure_ascii=False)
        out.write("\n")


@torch.no_grad()
def write_golden(folder):
    model, tokenizer = load_folder(folder)
    items, tensors = [], {}
    for i, text in enumerate(GOLDEN_TEXTS):
        ids = tok.encode(tokenizer, text)
        items.append({"text": text, "ids": ids, "pieces": [tokenizer.id_to_piece(n) for n in ids]})
        trace = {"hidden_states": [], "attentions": []}
        hidden = model(torch.tensor([ids]), trace=trace)[0]  # [T, C]
        for kind, layers in trace.items():
            for l, values in enumerate(layers):
                tensors[f"{i}.{kind}.{l}"] = values[0].contiguous().numpy()
        tensors[f"{i}.last_hidden_state"] = hidden.numpy()
        if i == 0:  # one row: all of them would be larger than everything else together
            tensors["0.mlm_logits"] = model.mlm_logits(hidden[1:2]).numpy()  # [1, V]
    metadata = {"format": "pt", "mlm_logits": "row 1 of item 0"}
    file = os.path.join(folder, "golden.safetensors")
    safetensors_io.save(file, tensors, metadata)
    check_size(file, GOLDEN_LIMIT)
    golden = {
        "family": "phasor",
        "made_with": f"torch {torch.__version__}",
        "atol": 1e-4,
        "rtol": 1e-4,
        "items": items,
    }
    write_json(os.path.join(folder, "golden.json"), golden)


def check_size(file, limit):
    if os.path.getsize(file) > limit:
        raise ValueError(f"{file} has {os.path.getsize(file)} bytes, more than {limit}")


def export(checkpoint, tokenizer_model, folder):
    state = torch.load(checkpoint)
    config = Config(**state["config"])
    os.makedirs(folder, exist_ok=True)
    write_json(os.path.join(folder, "config.json"), config_json(config))
    shutil.copyfile(tokenizer_model, os.path.join(folder, "tokenizer.model"))
    file = os.path.join(folder, "model.safetensors")
    safetensors_io.save(
        file,
        {name: value.half().numpy() for name, value in state["model"].items()},
        {
            "format": "pt",
            "model": f"phasor {config.position}",
            "seed": state["recipe"]["seed"],
            "tokens": state["tokens"],
        },
    )
    check_size(file, MODEL_LIMIT)
    write_golden(folder)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkpoint", help="the .pt that train.py wrote")
    parser.add_argument("tokenizer", help="tokenizer.model")
    parser.add_argument("folder", help="the folder to write")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    export(arguments.checkpoint, arguments.tokenizer, arguments.folder)
