"""What is measured: models, batches of token ids, and the programs that run them."""

import os
import shutil
import subprocess
import sys

import numpy as np

import make_graph
import make_model
from programs import Program

HERE = os.path.dirname(os.path.abspath(__file__))
SHAPES = {"minilm": "384/6/12/1536", "bert-base": "768/12/12/3072"}
UNIFORM = ("1x16", "1x128", "32x32", "32x128", "8x512")
RAGGED = "ragged:4-60x64"


class Skip(Exception):
    """The peer cannot be run here, and why."""


def say(text):
    print(f"peers: {text}", file=sys.stderr, flush=True)


def batches():
    """{name: token ids of each sequence}, the same at every call; no id is padding's."""
    rng = np.random.default_rng(2)
    lengths = {}
    for name in UNIFORM:
        sequences, tokens = map(int, name.split("x"))
        lengths[name] = [tokens] * sequences
    lengths[RAGGED] = rng.integers(4, 60, size=64, endpoint=True)
    first, last = len(make_model.SPECIAL), len(make_model.VOCABULARY)
    return {
        name: [rng.integers(first, last, size=length).tolist() for length in sizes]
        for name, sizes in lengths.items()
    }


def install_onnxruntime(folder):
    """The current onnxruntime-node, which brings its libraries along; kept once it is there."""
    if not shutil.which("node") or not shutil.which("npm"):
        raise Skip("there is no node or no npm here")
    if os.path.exists(os.path.join(folder, "node_modules/onnxruntime-node/package.json")):
        return
    say("installing onnxruntime-node")
    command = ["npm", "install", "--prefix", folder, "--ignore-scripts", "--no-save", "--no-audit"]
    command += ["--no-fund", "--fetch-retries=0", "--loglevel=error", "onnxruntime-node"]
    os.makedirs(folder, exist_ok=True)
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode:
        reason = " ".join(result.stderr.split()[:40])
        raise Skip(f"npm cannot install onnxruntime-node: {reason}")


class Model:
    """A checkpoint, its graphs, and what runs them."""

    def __init__(self, name, scratch, build):
        self.name, self.scratch, self.build = name, scratch, build
        self.shape = SHAPES.get(name, name)
        self.d_model = int(self.shape.split("/")[0])
        self.folder = os.path.join(scratch, name.replace("/", "-"))
        weights = self._made("model.safetensors", make_model.__file__)
        if weights:
            say(f"writing {self.folder}")
            make_model.write(self.shape, self.folder)
        for int8 in (False, True):
            if self._made(os.path.basename(self.graph(int8)), make_graph.__file__) or weights:
                make_graph.write(self.folder, self.graph(int8), int8)

    def _made(self, name, source):
        """Whether the file must be made, since it is not there or its maker has changed."""
        file = os.path.join(self.folder, name)
        return not os.path.exists(file) or os.path.getmtime(file) < os.path.getmtime(source)

    def graph(self, int8):
        return os.path.join(self.folder, "int8.onnx" if int8 else "f32.onnx")

    def program(self, name):
        return os.path.join(self.build, "bin", name)

    def phasor(self, threads, precision):
        # As infer starts itself for long work.
        command = ["env", "GOMP_SPINCOUNT=10000", self.program("phasor_peer"), self.folder]
        return [*command, "--threads", str(threads), "--precision", precision]

    def onnxruntime(self, threads, precision):
        script = os.path.join(HERE, "onnxruntime.mjs")
        return ["node", script, self.graph(precision == "int8"), "--threads", str(threads)]

    def start_phasor(self, threads, precision):
        return Program(self.phasor(threads, precision))

    def start_onnxruntime(self, threads, precision):
        return Program(self.onnxruntime(threads, precision), self.scratch)
