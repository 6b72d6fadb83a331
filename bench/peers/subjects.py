"""What is measured: models, batches of token ids, and texts."""

import os
import subprocess

import numpy as np

import engines
import make_model
from programs import say

REPO = os.path.dirname(os.path.dirname(engines.HERE))
SHAPES = {"minilm": "384/6/12/1536", "bert-base": "768/12/12/3072"}
REAL = ("minilm",)  # of tests/real/fetch
UNIFORM = ("1x16", "1x128", "32x32", "32x128", "8x512")
RAGGED = "ragged:4-256x64"
TEXTS = "texts"


def batches():
    """{name: token ids of each sequence}, the same at every call."""
    rng = np.random.default_rng(2)
    lengths = {}
    for name in UNIFORM:
        sequences, tokens = map(int, name.split("x"))
        lengths[name] = [tokens] * sequences
    lengths[RAGGED] = rng.integers(4, 256, size=64, endpoint=True)
    first, last = 1000, len(make_model.VOCABULARY)  # the first of BERT's are no words
    return {
        name: [rng.integers(first, last, size=length).tolist() for length in sizes]
        for name, sizes in lengths.items()
    }


def requests(model):
    """{name: what the engines are asked to run}; texts of real models alone."""
    found = {name: {"batch": sequences} for name, sequences in batches().items()}
    if model.real:
        with open(os.path.join(REPO, "examples/sentences.txt"), encoding="utf-8") as source:
            found[TEXTS] = {"texts": [line.strip() for line in source if line.strip()]}
    return found


def fetched(name):
    """The folder of the real checkpoint, or nothing where it cannot be had."""
    command = [os.path.join(REPO, "tests/real/fetch"), name]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    return done.stdout.strip() if done.returncode == 0 else None


class Model:
    """A checkpoint, with random weights unless it is `real`, and a folder for what is made of it."""

    def __init__(self, name, build):
        self.name, self.build = name, build
        self.shape = SHAPES.get(name, name)
        self.d_model = int(self.shape.split("/")[0])
        real = fetched(name) if name in REAL else None
        self.real = real is not None
        kind = name if self.real or name not in REAL else f"{name}-random"
        self.folder = os.path.join(build, "peers", kind.replace("/", "-"))
        self.checkpoint = os.path.join(self.folder, "checkpoint")
        if not os.path.exists(self.checkpoint):
            say(f"writing {self.folder}")
            os.makedirs(self.folder, exist_ok=True)
            if os.path.islink(self.checkpoint):  # to a model that has gone
                os.unlink(self.checkpoint)
            if self.real:
                os.symlink(real, self.checkpoint)
            else:
                make_model.write(self.shape, self.checkpoint + ".new")
                os.rename(self.checkpoint + ".new", self.checkpoint)

    def convert(self, converter):
        """What the peer loads; made once, and anew when convert.py has changed."""
        script = os.path.join(engines.HERE, "convert.py")
        done = os.path.join(self.folder, f"{converter}.done")
        if not converter or os.path.exists(done) and os.path.getmtime(done) > os.path.getmtime(script):
            return
        say(f"converting {self.name} for {converter}")
        engines.python(script, converter, self.folder)
        with open(done, "w", encoding="utf-8"):
            pass
