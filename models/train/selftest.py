"""Checks the training code in seconds, on prose that it makes up itself.

    python3 models/train/selftest.py
"""

import dataclasses
import os
import random
import signal
import subprocess
import sys
import tempfile
import time

import numpy as np
import torch

import data
import export
import safetensors_io
import tokenizer as tok
from model import POSITIONS, Config, Encoder, alibi_table, bucket_table, rotate, rotation_table
from train import Recipe, Run

SIZES = {"d_model": 16, "d_ff": 32, "num_layers": 2, "num_heads": 2, "max_positions": 64}
VARIANTS = {
    "": {},
    "pre": {"norm_order": "pre"},
    "every": {"added_before": (1, 2)},
    "late": {"added_before": (2,)},
    "normed": {"embedding_norm": True},
}
KINDS = (*POSITIONS, "sinusoidal-pre", "sinusoidal-every", "learned-late", "learned-normed")
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
        if not os.path.exists(self.tokenizer_file):
            make_prose(self.path("corpus.txt"))
            tok.train(self.path("corpus.txt"), self.tokenizer_file, vocab_size=120, num_threads=1)
        self.tokenizer = tok.load(self.tokenizer_file)
        with open(self.path("corpus.txt"), encoding="utf-8") as lines:
            self.corpus = data.Corpus.encode(self.tokenizer, lines)
        self.corpus.save(self.path("train.npz"))

    def path(self, name):
        return os.path.join(self.folder, name)

    def config(self, kind):
        """Of a position, or of one and a key of VARIANTS."""
        position, _, variant = kind.partition("-")
        changes = SIZES | VARIANTS[variant]
        return Config(position=position, vocab_size=self.tokenizer.get_piece_size(), **changes)

    def train(self, name, kind, recipe=RECIPE, kill_at=None):
        """Trains WORK/<name>; with `kill_at`, killed after its first checkpoint past that token."""
        run_type = Run if kill_at is None else KilledRun
        files = self.path(name + ".pt"), self.path(name + ".csv")
        run = run_type(self.config(kind), recipe, *files)
        run.kill_at = kill_at
        run.train(self.corpus, self.corpus, log_every=5, valid_every=10, save_seconds=0)
        return run.model.state_dict()


    def train_through_signals(self, name, kind):
        """The same in processes that signals end at random times; how many it took."""
        code = "import sys, selftest; selftest.Work(sys.argv[1]).train(*sys.argv[2:])"
        command = [sys.executable, "-c", code, self.folder, name, kind]
        rng, number, status = random.Random(kind), 0, None
        while status != 0:
            number += 1
            with subprocess.Popen(command, cwd=os.path.dirname(os.path.abspath(__file__))) as child:
                time.sleep(rng.uniform(0, 2 * 1.1**number))  # more each time, until it is enough
                child.send_signal(rng.choice([signal.SIGKILL, signal.SIGTERM, signal.SIGINT]))
                status = child.wait()
        return number


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
    def start(kind, seed=7):
        return Encoder(work.config(kind), seed).state_dict()

    own = {
        "learned": {"position_embedding.weight": (64, 16)},
        "relative": {"relative_bias.weight": (32, 2)},
        "sinusoidal-pre": {"final_norm.weight": (16,), "final_norm.bias": (16,)},
        "learned-late": {"position_embedding.weight": (64, 16)},
        "learned-normed": {
            "position_embedding.weight": (64, 16),
            "embedding_norm.weight": (16,),
            "embedding_norm.bias": (16,),
        },
    }
    shared = start("none")
    for kind in KINDS:
        values = start(kind)
        shapes = {name: tuple(values.pop(name).shape) for name in values.keys() - shared.keys()}
        check(shapes == own.get(kind, {}), f"{kind}: its own parameters")
        check(same(values, shared), f"{kind}: the same initial values of the shared parameters")
    other = start("learned", seed=8)
    alike = [name for name, value in start("learned").items() if torch.equal(value, other[name])]
    constant = all(name.endswith(("bias", "norm.weight")) for name in alike)
    check(constant, "another seed draws all parameters anew")


def check_positions(work):
    table = rotation_table(40, 8)
    q, k = torch.randn(2, 8, generator=torch.Generator().manual_seed(7)).double()
    rows = torch.arange(40)[:, None].double() * 10000 ** (-torch.arange(0, 8, 2).double() / 8)
    turned = torch.complex(q[:4], q[4:]) * torch.polar(torch.ones_like(rows), rows)
    wanted = torch.cat([turned.real, turned.imag], dim=1)
    rotated = rotate(q.expand(40, 8), table)
    check(torch.allclose(rotated, wanted, atol=1e-5), "rotary: pairs of columns turn")
    scores = rotated @ rotate(k.expand(40, 8), table).T
    shifted = torch.allclose(scores[1:, 1:], scores[:-1, :-1], atol=1e-5)
    check(shifted, "rotary: scores depend on offsets alone")

    buckets = bucket_table(129)
    distances = [0, 1, 7, 8, 11, 12, 15, 16, 22, 23, 31, 32, 45, 46, 63, 64, 90, 91, 128]
    wanted = [0, 1, 7, 8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 13, 13, 14, 14, 15, 15]
    check(buckets[distances, 0].tolist() == wanted, "relative: T5's buckets to the left")
    right = [bucket + 16 for bucket in wanted[1:]]
    check(buckets[0, distances[1:]].tolist() == right, "relative: and to the right")

    bias = alibi_table(3, 4)
    check(bias[:, 0, 1].tolist() == [-1 / 4, -1 / 16, -1 / 64, -1 / 256], "alibi: slopes")
    check(bias[0].tolist() == [[0, -0.25, -0.5], [-0.25, 0, -0.25], [-0.5, -0.25, 0]], "alibi: bias")


def check_added_before(work):
    token_ids = torch.tensor([[2, 9, 8, 7, 3]])
    states = {}
    for kind in ("none", "sinusoidal", "sinusoidal-every", "sinusoidal-late"):
        trace = {"hidden_states": [], "attentions": []}
        Encoder(work.config(kind), seed=7)(token_ids, trace=trace)
        states[kind] = trace["hidden_states"]
    added = [states["sinusoidal"][0], states["sinusoidal-late"][1]]
    table = [a - b for a, b in zip(added, states["none"])]
    check(torch.allclose(*table, atol=1e-5), "late: positions are added before block 2")
    check(torch.equal(states["sinusoidal-late"][0], states["none"][0]), "late: and not before block 1")
    both = [(states["sinusoidal-every"][l] - states["sinusoidal"][l]) for l in (0, 1)]
    check(not both[0].any() and torch.allclose(both[1], table[0], atol=1e-5), "every: before both")


def check_training(work):
    for kind in ("learned", "rotary", "relative", "alibi", "learned-pre", "learned-late", "learned-normed"):
        whole = work.train(f"{kind}-whole", kind)
        check(same(whole, work.train(f"{kind}-again", kind)), f"{kind}: training is deterministic")
        first = Encoder(work.config(kind), seed=7).state_dict()
        moved = all(not torch.equal(whole[name], first[name]) for name in whole)
        check(moved, f"{kind}: training trains every parameter")

        cut, log = f"{kind}-cut", work.path(f"{kind}-whole.csv")
        try:
            work.train(cut, kind, kill_at=2500)
        except Killed:
            pass
        check(len(read(work.path(cut + ".csv"))) < len(read(log)), f"{kind}: a run can be cut")
        with open(work.path(cut + ".csv"), "a", encoding="utf-8") as cut_log:
            cut_log.write("999,1,1,1,,,1\n")  # logged after the checkpoint, before the kill
        check(same(whole, work.train(cut, kind)), f"{kind}: a resumed run equals an uninterrupted one")
        check(read(work.path(cut + ".csv")) == read(log), f"{kind}: and so does its log")
    processes = work.train_through_signals("learned-signals", "learned")
    check(processes > 1, f"a run in {processes} processes, of which signals ended all but one")
    whole, last = work.path("learned-whole"), work.path("learned-signals")
    states = [torch.load(file + ".pt")["model"] for file in (whole, last)]
    check(same(*states), "equals an uninterrupted one")
    check(read(whole + ".csv") == read(last + ".csv"), "and so does its log")
    other = dataclasses.replace(RECIPE, seed=8)
    try:
        work.train("learned-cut", "learned", other)
    except ValueError:
        print("ok: a run of one seed does not go on with another")
    else:
        raise AssertionError("a run of one seed goes on with another")


def check_rounds(work):
    work.train("rounds", "learned", dataclasses.replace(RECIPE, tokens=3000))
    seen = torch.load(work.path("rounds.pt"))["tokens"]
    second = dataclasses.replace(RECIPE, round_start=seen)
    check(second.learning_rate_at(seen) == 0, "a second round begins with a warm-up")
    check(second.learning_rate_at(seen + 1000) == RECIPE.learning_rate, "up to the full rate")
    check(second.learning_rate_at(RECIPE.tokens) == 0, "and ends with a decay")
    work.train("rounds", "learned", second)
    check(torch.load(work.path("rounds.pt"))["tokens"] >= RECIPE.tokens, "a finished run goes on")

    held = dataclasses.replace(RECIPE, tokens=3000, decay=0.0)
    check(held.learning_rate_at(2999) == RECIPE.learning_rate, "without decay the rate is held")


def check_export(work):
    for kind in KINDS:
        work.train(kind, kind, dataclasses.replace(RECIPE, tokens=600))
        folder = work.path("export-" + kind)
        export.export(work.path(kind + ".pt"), work.tokenizer_file, folder)
        tensors, _ = safetensors_io.load(os.path.join(folder, "model.safetensors"))
        check(all(t.dtype == np.float16 for t in tensors.values()), f"{kind}: float16 export")
        golden, _ = safetensors_io.load(os.path.join(folder, "golden.safetensors"))
        last = SIZES["num_layers"]
        agree = np.array_equal(golden[f"0.hidden_states.{last}"], golden["0.last_hidden_state"])
        rows = golden["0.attentions.0"].sum(-1)
        check(agree and np.allclose(rows, 1, atol=1e-5), f"{kind}: golden activations")


def check_padding(work):
    for kind in KINDS:
        model = Encoder(work.config(kind), seed=7)
        token_ids = torch.tensor([[2, 9, 8, 3, 0, 0], [2, 9, 8, 7, 6, 3]])
        h = model(token_ids, token_ids == tok.PAD)
        alone = model(token_ids[:1, :4])
        check(torch.allclose(h[:1, :4], alone, atol=1e-5), f"{kind}: padding changes nothing")


def main():
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        work = Work(folder)
        for part in (check_data, check_tokenizer, check_twins, check_positions, check_added_before, check_padding):
            part(work)
        for part in (check_training, check_rounds, check_export):
            part(work)
    print("all good")


if __name__ == "__main__":
    try:
        main()
    except AssertionError as failure:
        sys.exit(f"FAILED: {failure}")
