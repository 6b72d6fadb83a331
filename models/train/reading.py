"""Measures in which layers stacked models read added positions: losses of runs that show them to some layers alone.

    python3 models/train/reading.py WORK OUT RUN/once-16M.safetensors RUN/every-16M.safetensors …

WORK holds valid.npz, each file is stacked.py's. OUT gets an .npz for each file, with the summed loss of each text's
masks under each condition. docs/data/reading-depth.md defines the runs and what is made of them. This is written from the definitions, apart from phasor.
"""

import argparse
import os

import numpy as np
import torch
import torch.nn.functional as F

import data
import stacked
import tokenizer as tok
from train import VALIDATION_SEED, Recipe

LATER = 3  # "visible to attentions l+1, l+2, … only" is measured for l up to this
SENTENCES, SEQUENCES = 1280, 320


class Texts:
    """Texts of a row each, 15 % of whose tokens are replaced by [MASK]."""

    def __init__(self, sequences, device):
        rng = np.random.default_rng((VALIDATION_SEED, data.MASKS))
        T = -(-max(map(len, sequences)) // 8) * 8
        ids = np.full((len(sequences), T), tok.PAD)
        for row, sequence in zip(ids, sequences):
            row[: len(sequence)] = sequence
        asked = ((ids == tok.UNK) | (ids > tok.MASK)) & (rng.random(ids.shape) < data.MASK_PROBABILITY)
        self.text, _ = np.nonzero(asked)  # of each mask
        self.masks = asked.sum(1)

        def tensor(array):
            return torch.from_numpy(array).to(device)

        self.targets, self.where = tensor(ids[asked]), tensor(np.flatnonzero(asked))
        self.ids = tensor(np.where(asked, tok.MASK, ids))  # [N, T]
        self.words = (self.ids != tok.PAD) & (self.ids != tok.CLS) & (self.ids != tok.SEP)
        self.bias = stacked.same_text(self.ids == tok.PAD)  # [N, 1, T, T]
        self.text = tensor(self.text)


def evenly(items, count):
    return [items[i] for i in np.linspace(0, len(items) - 1, min(count, len(items))).astype(int)]


def held_out(corpus, device):
    """Two sets of texts: sentences alone, and sequences of up to 128 tokens."""
    cuts = corpus.sentences
    sentences = [tuple(corpus.token_ids[a:b]) for a, b in zip(cuts, cuts[1:]) if 10 <= b - a <= 62]
    sentences = evenly(list(dict.fromkeys(sentences)), SENTENCES)
    sequences = [s for s in data.pack(corpus, 128, VALIDATION_SEED, 0) if len(s) >= 64]
    return {
        "sentences": Texts([[tok.CLS, *s, tok.SEP] for s in sentences], device),
        "sequences": Texts(evenly(sequences, SEQUENCES), device),
    }


def along(norm, x, vector):
    """The vector behind a LayerNorm of x whose mean and scale are frozen."""
    width = (x.var(-1, unbiased=False, keepdim=True) + norm.eps).sqrt()
    weight = norm.weight.view(len(x), *(1,) * (x.dim() - 2), -1)
    return (vector - vector.mean(-1, keepdim=True)) / width * weight


def losses(model, texts, visible, switch=0):
    """Summed loss of each text's masks [M, N]; what is visible at first changes after attention `switch`."""
    config, M = model.config, len(model.mlm.bias)
    N, T = texts.ids.shape
    ids = texts.ids.expand(M, N, T)
    bias = texts.bias.expand(M, *texts.bias.shape)
    places = model.positions(torch.arange(T, device=ids.device).expand(M, 1, T))  # [M, 1, T, C]
    words = texts.words[..., None]  # [N, T, 1]
    mean = (places * words).sum(-2, keepdim=True) / words.sum(-2, keepdim=True)
    vector = (places - mean) * words  # [M, N, T, C]
    without = places - vector
    x = config.embedding_scale * model.token_embedding(ids)
    path = torch.zeros_like(x)  # of all vectors added so far: what of them is in x if they are visible
    for number, block in enumerate(model.blocks, 1):
        if number in config.added_before:
            x, path = x + (places if visible else without), path + vector
        if number == 1 and config.embedding_norm:
            x, path = model.embedding_norm(x), along(model.embedding_norm, x, path)
        pre = block.pre_norm
        x = x + block.attn(block.attn_norm(x) if pre else x, bias, None, None)
        if number == switch:
            x = x - path if visible else x + path
            visible = not visible
        if not pre:
            x, path = block.attn_norm(x), along(block.attn_norm, x, path)
        x = x + block.mlp(block.mlp_norm(x) if pre else x)
        if not pre:
            x, path = block.mlp_norm(x), along(block.mlp_norm, x, path)
    if config.norm_order == "pre":
        x = model.final_norm(x)
    logits = model.mlm_logits(x.flatten(1, 2)[:, texts.where])  # [M, K, V]
    targets = texts.targets.expand(M, -1)
    each = F.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="none").view(M, -1)
    return torch.zeros(M, N, device=ids.device).index_add_(1, texts.text, each)


def conditions(num_layers):
    """Names, and what losses() takes."""
    yield "with", (True,)
    yield "without", (False,)
    for l in range(1, num_layers + 1):
        yield f"to {l}", (True, l)
    for l in range(1, LATER + 1):
        yield f"after {l}", (False, l)


def validation_loss(model, batches):
    """train.py's validation loss of each model."""
    total = count = 0
    for batch in batches:
        targets = batch["targets"]
        ids, positions = (batch[n].expand(len(model.mlm.bias), -1, -1) for n in ("ids", "positions"))
        bias = stacked.same_text(batch["texts"]).expand(len(ids), -1, -1, -1, -1)
        h = model.run(ids, positions, bias).flatten(1, 2)
        logits = model.mlm_logits(h[:, batch["where"]])
        total = total + torch.stack([F.cross_entropy(l, targets, reduction="sum") for l in logits])
        count += len(targets)
    return total / count


def validation_batches(corpus, config, device):
    sequences = data.pack(corpus, config.max_positions, VALIDATION_SEED, 0)
    together = data.batch_sequences(sequences, Recipe.batch_tokens, VALIDATION_SEED, 0)
    for index, batch in enumerate(together):
        masked = data.mask(batch, config.vocab_size, VALIDATION_SEED, 0, index)
        arrays = stacked.in_rows(*masked, config.max_positions)
        count = (arrays["targets"] != data.IGNORE).sum()
        for name in ("where", "targets"):
            arrays[name] = arrays[name][:count]
        for name in ("ids", "positions", "texts"):
            arrays[name] = arrays[name][: arrays["rows"]]
        rows = arrays.pop("rows")
        yield {name: torch.from_numpy(a.astype(np.int64)).to(device) for name, a in arrays.items()}


@torch.no_grad()
def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("work", help="the folder with valid.npz")
    parser.add_argument("out", help="the folder to write")
    parser.add_argument("files", nargs="+", help="what stacked.py wrote")
    arguments = parser.parse_args()

    device = "cuda" if torch.cuda.is_available() else "cpu"
    corpus = data.Corpus.load(os.path.join(arguments.work, "valid.npz"))
    texts = held_out(corpus, device)
    valid = list(validation_batches(corpus, stacked.config_of("once"), device))
    for file in arguments.files:
        model, kind, seeds = stacked.load(file, device)
        names, options = zip(*conditions(model.config.num_layers))
        arrays = {"kind": kind, "seeds": seeds, "conditions": names}
        arrays["valid"] = validation_loss(model, valid).cpu().numpy()
        for name, some in texts.items():
            measured = torch.stack([losses(model, some, *given) for given in options], 1)
            arrays[name] = measured.cpu().numpy()  # [M, conditions, N]
            arrays[name + " masks"] = some.masks
        out = os.path.join(arguments.out, os.path.basename(file).replace("safetensors", "npz"))
        np.savez(out, **arrays)
        print(file, arrays["valid"].round(3), flush=True)


if __name__ == "__main__":
    main()
