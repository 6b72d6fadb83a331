"""Writes the model card (README.md) of an exported twin from its training log.

    python3 models/train/card.py WORK/sinusoidal.csv models/sinusoidal
"""

import argparse
import csv
import math
import os

import safetensors_io
from export import load_folder
from model import BASE, MAX_DISTANCE, NUM_BUCKETS, POSITIONS

POSITION = {
    "sinusoidal": "the sinusoidal table of *Attention Is All You Need* (not trained), "
    "added to the token embedding",
    "learned": "a learned table of {max_positions} rows, added to the token embedding",
    "none": "nothing: it cannot tell one word order from another",
    "rotary": f"the rotation of queries and keys by their position (RoPE, base {BASE}, whole heads)",
    "relative": f"a number added to attention scores: T5's, learned for each head and each of "
    f"{NUM_BUCKETS} buckets of offsets\nup to {MAX_DISTANCE}, the same in all layers",
    "alibi": "a number subtracted from attention scores: the distance times a fixed slope for each "
    "head (ALiBi),\non both sides alike",
}

CARD = """# {kind}

One of the twin encoders {twins}
that differ in one thing: what tells the model its tokens' places. Here it is
{position}.
Data, their order, masks, initial values of all shared parameters and schedule are the same.

| | |
|---|---|
| kind | masked language model, English, {norm_order}-norm Transformer encoder |
| size | {num_layers} layers, d_model {d_model}, {num_heads} heads, d_ff {d_ff}, vocabulary {vocab_size}, {parameters:.2f} M parameters |
| longest training input | {max_positions} tokens, `[CLS]` and `[SEP]` included |
| trained on | {tokens:.1f} M tokens of English prose in the public domain (books published up to 1929) |
| seed | {seed} |
| validation | {accuracy:.1f} % of masked tokens right, perplexity {perplexity:.1f} (loss {loss:.3f}) |

Files: `config.json`, `model.safetensors` (float16), `tokenizer.model` (SentencePiece Unigram, NFKC),
and `golden.json` with `golden.safetensors`: hidden states and attention as PyTorch computes them in
float32 from these weights, for checking an implementation.

It is small and was trained briefly, on purpose: it shows how position travels through an encoder.
It writes like its books, with their views and their prejudices, knows nothing later than 1929, and
is not fit for decisions about people. How it was made: [`models/train`](../train/README.md).
"""


def last_validation(log):
    with open(log, newline="", encoding="utf-8") as rows:
        return [row for row in csv.DictReader(rows) if row["valid_loss"]][-1]


def write_card(log, folder):
    model, _ = load_folder(folder)
    config = model.config
    _, metadata = safetensors_io.load(os.path.join(folder, "model.safetensors"))
    row = last_validation(log)
    if row["tokens"] != metadata["tokens"]:
        raise ValueError(f"{log} ends at {row['tokens']} tokens, the model at {metadata['tokens']}")
    sizes = ("d_model", "d_ff", "num_layers", "num_heads", "vocab_size", "max_positions")
    card = CARD.format(
        kind=config.position,
        norm_order=config.norm_order,
        twins=", ".join(f"`{position}`" for position in POSITIONS),
        position=POSITION[config.position].format(max_positions=config.max_positions),
        parameters=sum(p.numel() for p in model.parameters()) / 1e6,
        tokens=int(metadata["tokens"]) / 1e6,
        seed=metadata["seed"],
        loss=float(row["valid_loss"]),
        perplexity=math.exp(float(row["valid_loss"])),
        accuracy=100 * float(row["valid_accuracy"]),
        **{name: getattr(config, name) for name in sizes},
    )
    with open(os.path.join(folder, "README.md"), "w", encoding="utf-8") as out:
        out.write(card)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("log", help="the .csv that train.py wrote")
    parser.add_argument("folder", help="the exported model")
    arguments = parser.parse_args()
    write_card(arguments.log, arguments.folder)
