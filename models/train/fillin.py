"""Asks exported twins for the missing words of fillin.json and counts plausible answers.

    python3 models/train/fillin.py models/sinusoidal models/learned models/none
"""

import argparse
import json
import os

import torch

import tokenizer as tok
from export import load_folder

SENTENCES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "fillin.json")


@torch.no_grad()
def fill_in(model, tokenizer, text, count=5):
    """The `count` likeliest pieces for the one [MASK] in the text, words without their space."""
    token_ids = torch.tensor([tok.encode_fill_in(tokenizer, text)])  # [1, T]
    row = int((token_ids[0] == tok.MASK).nonzero())
    logits = model.mlm_logits(model(token_ids)[0, row : row + 1])[0]  # [V]
    best = logits.topk(count).indices.tolist()
    return [tokenizer.id_to_piece(i).replace("\u2581", "") for i in best]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="+", help="exported models")
    parser.add_argument("-v", "--verbose", action="store_true", help="print every answer")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    with open(SENTENCES, encoding="utf-8") as source:
        sentences = json.load(source)
    for folder in arguments.folders:
        model, tokenizer = load_folder(folder)
        top1 = top5 = 0
        for item in sentences:
            words = fill_in(model, tokenizer, item["text"])
            top1 += words[0] in item["plausible"]
            top5 += any(word in item["plausible"] for word in words)
            if arguments.verbose:
                print(f"{item['text']}\t{' '.join(words)}")
        print(f"{folder}: {top1} of {len(sentences)} first answers plausible, {top5} in the top 5")


if __name__ == "__main__":
    main()
