"""Checks the training code in seconds, on prose that it makes up itself.

    python3 models/train/selftest.py
"""

import dataclasses
import os
import random
import sys
import tempfile

import numpy as np
import torch

import data
import export
import safetensors_io
import tokenizer as tok
from model import POSITIONS, Config, Encoder
from train import Recipe, Run

SIZES = {"d_model": 16, "d_ff": 32, "num_layers": 2, "num_heads": 2, "max_positions": 64}
RECIPE = Recipe(seed=7, tokens=6000, batch_tokens=256, warmup_tokens=1000)


def check(condition, what):
    if not condition:
        raise AssertionError(what)
    print(f"ok: {what}")


def make_prose(file, lines=400):
    rng = random.Random(7)
    words = ["".join(rng.choices("aeioulmnrst", k=rng.randint(2, 6))) for _ in range(200)]
    with open(file, "w", encoding="utf-8") as out:
        for _ in range(lines):
            for _ in range(rng.randint(1, 4)):
                sentence = " ".join(rng.choices(words, k=rng.randint(1, 12)))
                out.write(sentence.capitalize() + rng.choice(".?!") + " ")
            out.write("\n")


def same(a, b):
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


def read(file):
    with open(file, encoding="utf-8") as source:
        return [line.rsplit(",", 1)[0] for line in source]  # without the seconds


class Work:
    """A folder with a tokenizer and a corpus, where tiny twins are trained."""

    def __init__(self, folder):
        self.folder = folder
        self.tokenizer_file = self.path("tokenizer.model")
        make_prose(self.path("corpus.txt"))
        tok.train(self.path("corpus.txt"), self.tokenizer_file, vocab_size=120, num_threads=1)
        self.tokenizer = tok.load(self.tokenizer_file)
        with open(self.path("corpus.txt"), encoding="utf-8") as lines:
            self.corpus = data.Corpus.encode(self.tokenizer, lines)
        self.corpus.save(self.path("train.npz"))

    def path(self, name):
        return os.path.join(self.folder, name)

    def config(self, position):
        return Config(position=position, vocab_size=self.tokenizer.get_piece_size(), **SIZES)

    def train(self, name, position, recipe=RECIPE, kill_at=None):
        """Trains WORK/<name>; with `kill_at`, killed after its first checkpoint past that token."""
        kind = Run if kill_at is None else KilledRun
        run = kind(self.config(position), recipe, self.path(name + ".pt"), self.path(name + ".csv"))
        run.kill_at = kill_at
        run.train(self.corpus, self.corpus, log_every=5, valid_every=10, save_seconds=0)
        return run.model.state_dict()


class Killed(Exception):
    pass


class KilledRun(Run):
    def save(self):
        super().save()
        if self.tokens > self.kill_at:
            raise Killed


def check_data(work):
    text = 'Mr. J. Smith said "No!" Then he left. Why?'
    sentences = ['Mr. J. Smith said "No!"', "Then he left.", "Why?"]
    check(data.split_sentences(text) == sentences, "sentences end at sentence ends")

    sequences = data.pack(work.corpus, 32, seed=1, epoch=0)
    lengths = [len(s) for s in sequences]
    check(max(lengths) <= 32 and min(lengths) >= 3, "sequences have 3 to max_positions tokens")
    count = len(work.corpus.token_ids) + 2 * len(sequences)
    check(sum(lengths) <= count, "packing invents no tokens")
    ends = all(s[0] == tok.CLS and s[-1] == tok.SEP for s in sequences)
    check(ends, "every sequence is [CLS] … [SEP]")

    vocab_size = work.tokenizer.get_piece_size()
    batches = data.batch_sequences(sequences, 1024, 1, 0)
    masked = hidden = total = 0
    ordinary = True
    for index, batch in enumerate(batches):
        token_ids, targets = data.mask(batch, vocab_size, 1, 0, index)
        asked = targets != data.IGNORE
        ordinary &= bool(((targets[asked] > tok.MASK) | (targets[asked] == tok.UNK)).all())
        masked += asked.sum()
        hidden += (token_ids == tok.MASK).sum()
        total += sum(len(s) - 2 for s in batch)
    check(ordinary, "no special token is masked")
    check(0.13 < masked / total < 0.17, "about 15 % of the tokens are masked")
    check(0.75 < hidden / masked < 0.85, "about 80 % of these become [MASK]")


def check_tokenizer(work):
    plain = tok.encode(work.tokenizer, "a [MASK] b")
    check(plain.count(tok.MASK) == 0, "[MASK] in a text is plain text")
    asked = tok.encode_fill_in(work.tokenizer, "a [MASK].")
    check(asked[:-2] == tok.encode(work.tokenizer, "a")[:-1] + [tok.MASK], "fill-in asks for one")


def check_twins(work):
    first, second, none = (Encoder(work.config(p), seed=7).state_dict() for p in POSITIONS)
    table = second.pop("position_embedding.weight")
    check(same(first, none) and same(second, none), "twins share all parameters but positions")
    check(tuple(table.shape) == (64, 16), "the learned table has a row for every position")


def check_training(work):
    whole = work.train("whole", "learned")
    check(same(whole, work.train("again", "learned")), "training is deterministic")
    first = Encoder(work.config("learned"), seed=7).state_dict()
    check(not torch.equal(whole["mlm.bias"], first["mlm.bias"]), "training trains")

    try:
        work.train("cut", "learned", kill_at=2500)
    except Killed:
        pass
    check(len(read(work.path("cut.csv"))) < len(read(work.path("whole.csv"))), "a run can be cut")
    with open(work.path("cut.csv"), "a", encoding="utf-8") as log:
        log.write("999,1,1,1,,,1\n")  # logged after the checkpoint, before the kill
    check(same(whole, work.train("cut", "learned")), "a resumed run equals an uninterrupted one")
    check(read(work.path("cut.csv")) == read(work.path("whole.csv")), "and so does its log")


def check_rounds(work):
    work.train("rounds", "learned", dataclasses.replace(RECIPE, tokens=3000))
    seen = torch.load(work.path("rounds.pt"))["tokens"]
    second = dataclasses.replace(RECIPE, round_start=seen)
    check(second.learning_rate_at(seen) == 0, "a second round begins with a warm-up")
    check(second.learning_rate_at(seen + 1000) == RECIPE.learning_rate, "up to the full rate")
    check(second.learning_rate_at(RECIPE.tokens) == 0, "and ends with a decay")
    work.train("rounds", "learned", second)
    check(torch.load(work.path("rounds.pt"))["tokens"] >= RECIPE.tokens, "a finished run goes on")


def check_export(work):
    for position in POSITIONS:
        work.train(position, position, dataclasses.replace(RECIPE, tokens=600))
        folder = work.path("export-" + position)
        export.export(work.path(position + ".pt"), work.tokenizer_file, folder)
        tensors, _ = safetensors_io.load(os.path.join(folder, "model.safetensors"))
        check(all(t.dtype == np.float16 for t in tensors.values()), f"{position}: float16 export")
        golden, _ = safetensors_io.load(os.path.join(folder, "golden.safetensors"))
        last = SIZES["num_layers"]
        agree = np.array_equal(golden[f"0.hidden_states.{last}"], golden["0.last_hidden_state"])
        rows = golden["0.attentions.0"].sum(-1)
        check(agree and np.allclose(rows, 1, atol=1e-5), f"{position}: golden activations")


def check_padding(work):
    model = Encoder(work.config("sinusoidal"), seed=7)
    token_ids = torch.tensor([[2, 9, 8, 3, 0, 0], [2, 9, 8, 7, 6, 3]])
    h = model(token_ids, token_ids == tok.PAD)
    alone = model(token_ids[:1, :4])
    check(torch.allclose(h[:1, :4], alone, atol=1e-5), "padding changes nothing")


def main():
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        work = Work(folder)
        for part in (check_data, check_tokenizer, check_twins, check_padding):
            part(work)
        for part in (check_training, check_rounds, check_export):
            part(work)
    print("all good")


if __name__ == "__main__":
    try:
        main()
    except AssertionError as failure:
        sys.exit(f"FAILED: {failure}")
