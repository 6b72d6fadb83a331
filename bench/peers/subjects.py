"""What is measured: models and batches of token ids."""

import os

import numpy as np

import make_graph
import make_model
from programs import say

SHAPES = {"minilm": "384/6/12/1536", "bert-base": "768/12/12/3072"}
UNIFORM = ("1x16", "1x128", "32x32", "32x128", "8x512")
RAGGED = "ragged:4-60x64"


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


class Model:
    """A checkpoint and its graphs, and the folders of all that runs them."""

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
