"""A BERT checkpoint with random weights, as a hub would have it: config, weights and vocabulary.

Speed depends on shapes alone, and agreement is checked on the same weights.
"""

import json
import os
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../models/train"))
import safetensors_io  # noqa: E402

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
VOCABULARY = SPECIAL + [f"w{i}" for i in range(len(SPECIAL), 30522)]


def tensors(d_model, num_layers, d_ff, max_positions, rng):
    def draw(*shape, scale):
        return (scale * rng.standard_normal(shape, dtype=np.float32)).astype(np.float32)

    def linear(name, rows, columns):
        yield f"{name}.weight", draw(rows, columns, scale=columns**-0.5)
        yield f"{name}.bias", draw(rows, scale=0.1)

    def norm(name):
        yield f"{name}.weight", 1 + draw(d_model, scale=0.1)
        yield f"{name}.bias", draw(d_model, scale=0.1)

    for name, rows in (("word", len(VOCABULARY)), ("position", max_positions), ("token_type", 2)):
        yield f"embeddings.{name}_embeddings.weight", draw(rows, d_model, scale=0.5)
    yield from norm("embeddings.LayerNorm")
    for layer in range(num_layers):
        block = f"encoder.layer.{layer}."
        for matrix in ("query", "key", "value"):
            yield from linear(f"{block}attention.self.{matrix}", d_model, d_model)
        yield from linear(f"{block}attention.output.dense", d_model, d_model)
        yield from norm(f"{block}attention.output.LayerNorm")
        yield from linear(f"{block}intermediate.dense", d_ff, d_model)
        yield from linear(f"{block}output.dense", d_model, d_ff)
        yield from norm(f"{block}output.LayerNorm")


def write(shape, folder, max_positions=512):
    """`shape`: d_model/num_layers/num_heads/d_ff, like 384/6/12/1536. The same at every call."""
    d_model, num_layers, num_heads, d_ff = map(int, shape.split("/"))
    os.makedirs(folder, exist_ok=True)
    config = {
        "model_type": "bert",
        "hidden_size": d_model,
        "num_hidden_layers": num_layers,
        "num_attention_heads": num_heads,
        "intermediate_size": d_ff,
        "vocab_size": len(VOCABULARY),
        "max_position_embeddings": max_positions,
        "type_vocab_size": 2,
        "hidden_act": "gelu",
        "layer_norm_eps": 1e-12,
        "position_embedding_type": "absolute",  # which CTranslate2's converter asks for
    }
    texts = {
        "config.json": json.dumps(config, indent=1),
        "tokenizer_config.json": json.dumps({"tokenizer_class": "BertTokenizer"}),
        "vocab.txt": "\n".join(VOCABULARY) + "\n",
    }
    for name, text in texts.items():
        with open(os.path.join(folder, name), "w", encoding="utf-8") as out:
            out.write(text)
    weights = dict(tensors(d_model, num_layers, d_ff, max_positions, np.random.default_rng(1)))
    safetensors_io.save(os.path.join(folder, "model.safetensors"), weights)
