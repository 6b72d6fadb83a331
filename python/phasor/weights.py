"""The weights of a model, by phasor's names and under those of TransformerLens."""

from __future__ import annotations

import types
from typing import Any, Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from . import _library as c

FloatArray = npt.NDArray[np.float32]

# TransformerLens' weights of a block, phasor's names of them, and their shapes.
_BLOCK = """
attn.W_Q attn.q.weight HCD
attn.W_K attn.k.weight HCD
attn.W_V attn.v.weight HCD
attn.b_Q attn.q.bias HD
attn.b_K attn.k.bias HD
attn.b_V attn.v.bias HD
attn.W_O attn.out.weight HDC
attn.b_O attn.out.bias C
mlp.W_in mlp.up.weight CF
mlp.b_in mlp.up.bias F
mlp.W_gate mlp.gate.weight CF
mlp.b_gate mlp.gate.bias F
mlp.W_out mlp.down.weight FC
mlp.b_out mlp.down.bias C
ln1.w attn_norm.weight C
ln1.b attn_norm.bias C
ln2.w mlp_norm.weight C
ln2.b mlp_norm.bias C
"""


class Weights(Mapping[str, FloatArray]):
    """Every tensor that a model uses, by phasor's name (``weights["blocks.0.attn.q.weight"]``), as read-only arrays
    of float32. One that is float32 in the file is a view of it, also where the file stacks several; of others
    (float16, bfloat16, float64) every access makes a copy. They stay valid when the Encoder is closed."""

    def __init__(self, model: Any) -> None:
        self._result = c.Result()  # keeps the model
        c.check(c.lib.model_tensors(model.handle, self._result.pointer()))
        self._names = self._result.names()

    def __getitem__(self, name: str) -> FloatArray:
        if name not in self._names:
            raise KeyError(name)
        tensor = self._result.array(name)
        if tensor.dtype == np.uint16:  # bfloat16, the upper halves of float32
            tensor = (tensor.astype(np.uint32) << 16).view(np.float32)
        floats: FloatArray = tensor.astype(np.float32, copy=False)
        floats.flags.writeable = False
        return floats

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


class Blocks(Sequence[types.SimpleNamespace]):
    """See :attr:`phasor.Encoder.blocks`."""

    def __init__(self, weights: Weights, sizes: Mapping[str, int]) -> None:
        self.weights, self._sizes = weights, sizes

    def __len__(self) -> int:
        return self._sizes["layers"]

    def name(self, layer: int, part: str) -> str:
        """phasor's name of a block's part; ALBERT's blocks share their weights in groups."""
        return f"blocks.{layer * self._sizes.get('layer_groups', len(self)) // len(self)}.{part}"

    def __getitem__(self, layer: Any) -> Any:
        if isinstance(layer, slice):
            return [self[l] for l in range(len(self))[layer]]
        layer, d = range(len(self))[layer], self._sizes["head_dim"]
        parts: dict[str, dict[str, FloatArray]] = {"attn": {}, "mlp": {}, "ln1": {}, "ln2": {}}
        for line in _BLOCK.strip().split("\n"):
            name, own, shape = line.split()
            tensor = self.weights.get(self.name(layer, own))
            if tensor is not None:
                part, leaf = name.split(".")
                parts[part][leaf] = _turned(tensor, shape, d)
        return types.SimpleNamespace(**{part: types.SimpleNamespace(**found) for part, found in parts.items()})


def _turned(tensor: FloatArray, shape: str, d: int) -> FloatArray:
    """A view in TransformerLens' shape of what phasor has as [out, in]."""
    if shape == "HCD":
        return tensor.reshape(-1, d, tensor.shape[1]).transpose(0, 2, 1)
    if shape == "HDC":
        return tensor.reshape(len(tensor), -1, d).transpose(1, 2, 0)
    return tensor.reshape(-1, d) if shape == "HD" else tensor.T
