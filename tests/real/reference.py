#!/usr/bin/env python3
"""Compares real checkpoints in phasor with transformers and sentence-transformers.

    python3 tests/real/reference.py             compares all checkpoints of tests/real/fetch
    python3 tests/real/reference.py --record    writes what the others make of the texts in
                                                minilm.jsonl into that file; needs no phasor

Needs sentence-transformers (minilm.jsonl was recorded with 6.2, transformers 5.24), and the package
that ./dev python builds.

A line of minilm.jsonl has a text; its ids where special tokens written in it are plain text; its
ids where they are special tokens, if those differ; and every 12th number of its vector, made from
the first ids. The first such number in line i is number i mod 12.
"""

import json
import pathlib
import subprocess
import sys

import numpy as np
import torch
import transformers
from sentence_transformers import SentenceTransformer

HERE = pathlib.Path(__file__).resolve().parent
FILE = HERE / "minilm.jsonl"
STEP = 12
sys.path.insert(0, str(HERE.parents[1] / "build" / "python"))


torch.set_num_threads(1)  # its threads wait for each other for minutes where other programs run


def fetch(name):
    done = subprocess.run([HERE / "fetch", name], check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout.strip()


def ids(folder, texts, special):
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    return [tokenizer(text, split_special_tokens=not special)["input_ids"] for text in texts]


def vectors(folder, texts):
    """Of the plain reading, one text at a time: without padding."""
    plain = {"split_special_tokens": True}
    model = SentenceTransformer(folder, device="cpu", processor_kwargs=plain)
    return model.encode(texts, batch_size=1)


def record(folder, texts):
    plain, special = (ids(folder, texts, special) for special in (False, True))
    lines = []
    for i, vector in enumerate(vectors(folder, texts)):
        line = {"text": texts[i], "ids": plain[i]}
        if special[i] != plain[i]:
            line["special_ids"] = special[i]
        line["vector"] = [round(float(x), 8) for x in vector[i % STEP :: STEP]]
        lines.append(json.dumps(line, separators=(",", ":")) + "\n")
    FILE.write_text("".join(lines), "ascii")


def compare_ids(name, folder, texts):
    import phasor

    with phasor.Encoder(folder) as encoder:
        for special in (False, True):
            found = encoder.tokenize(texts, parse_special=special)
            wanted = ids(folder, texts, special)
            other = [text for text, a, b in zip(texts, found, wanted) if a.ids.tolist() != b]
            print(f"{name}: parse_special={special}: ids of {len(other)} texts differ", *other)


def compare_vectors(name, folder, texts):
    import phasor

    wanted = vectors(folder, texts)
    for precision in ("f32", "bf16", "int8"):
        with phasor.Encoder(folder, precision=precision) as encoder:
            found = encoder.encode(texts)
        cosines = np.sum(found * wanted, 1)  # both have length 1
        print(f"{name}: vectors in {precision}: max|d| {np.abs(found - wanted).max():.2g}, "
              f"cosine mean {cosines.mean():.6f}, lowest {cosines.min():.6f}")


def compare_logits(name, folder, texts):
    """Of the model's masked-language head, at every token of every text."""
    import phasor

    model = transformers.AutoModelForMaskedLM.from_pretrained(folder).eval()
    for precision in ("f32", "bf16", "int8"):
        worst, largest, same, count = 0.0, 0.0, 0, 0
        with phasor.Encoder(folder, precision=precision) as encoder, torch.no_grad():
            for text in texts:
                token_ids = encoder.tokenize(text, parse_special=True, max_tokens=512).ids
                states, _ = encoder.run_with_cache([token_ids], [])
                found = encoder.mlm_logits(states[0])
                wanted = model(torch.tensor([token_ids.tolist()])).logits[0].numpy()
                worst = max(worst, np.abs(found - wanted).max())
                largest = max(largest, np.abs(wanted).max())
                same += np.sum(found.argmax(1) == wanted.argmax(1))
                count += len(token_ids)
        print(f"{name}: logits in {precision}: max|d| {worst:.2g} of {largest:.3g}, "
              f"the likeliest piece is the same for {same} of {count} tokens")


def main():
    lines = FILE.read_text("ascii").splitlines()
    texts = [json.loads(line)["text"] for line in lines]
    if sys.argv[1:] == ["--record"]:
        record(fetch("minilm"), texts)
        return
    checkpoints = {"minilm": compare_vectors, "mpnet": compare_vectors, "splade": compare_logits}
    for name, compare in checkpoints.items():
        folder = fetch(name)
        compare_ids(name, folder, texts)
        compare(name, folder, texts)


main()
