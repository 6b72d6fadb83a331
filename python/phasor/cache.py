"""What a run recorded, and the hooks that may change it."""

from __future__ import annotations

import ctypes
import dataclasses
from typing import (
    Any,
    Callable,
    Iterable,
    Iterator,
    List,
    Mapping,
    Optional,
    Sequence,
    Tuple,
    Union,
)

import numpy as np
import numpy.typing as npt

from ._library import HookEvent, InvalidArgument, Result, floats

FloatArray = npt.NDArray[np.float32]


@dataclasses.dataclass(frozen=True)
class HookPoint:
    """Where a value passes; the second argument of a hook function."""

    #: TransformerLens' name: ``blocks.3.attn.hook_pattern``.
    name: str
    #: The number of the text in the batch.
    text: int = 0
    #: The text's token in the first row: above 0 in the later windows of a long text.
    first_token: int = 0

    def layer(self) -> int:
        """The number of the block, from 0; -1 outside blocks."""
        parts = self.name.split(".")
        return int(parts[1]) if parts[0] == "blocks" else -1


#: Gets a value with a leading batch dimension of 1, as TransformerLens' hooks do, and may change it
#: in place or return another one of the same shape.
HookFunction = Callable[[FloatArray, HookPoint], Optional[npt.ArrayLike]]
#: A name, several, or a function of a name that says whether it is meant.
NamesFilter = Union[None, str, Sequence[str], Callable[[str], bool]]


def pick_names(names: NamesFilter, every: Sequence[str]) -> List[str]:
    """What a filter picks of all hooks of a model. ``attn.hook_pattern`` and ``pattern`` stand for
    the hooks of all blocks."""
    if names is None:
        return ["all"]
    if isinstance(names, str):
        return [names]
    if callable(names):
        return [name for name in every if names(name)]
    return list(names)


def hook_caller(function: HookFunction) -> Callable[[HookEvent], None]:
    """Calls a function with a copy of what passes, which it may keep, and writes back what it
    leaves."""
    if not callable(function):
        raise TypeError(f"a hook is a function of a value and a HookPoint, not {function!r}")

    def call(event: HookEvent) -> None:
        shape = (1, *event.array.shape[: event.array.num_dims])
        memory = (ctypes.c_float * int(np.prod(shape))).from_address(event.changeable)
        passing: FloatArray = np.asarray(memory).reshape(shape)
        value = passing.copy()
        point = HookPoint(event.name.decode(), event.text, event.first_token)
        changed = function(value, point)
        if changed is None:
            changed = value
        changed = floats(f"what the hook at {point.name} returns", changed)
        if changed.shape not in (shape, shape[1:]):
            raise InvalidArgument(
                f"the hook at {point.name} returned shape {changed.shape}; the value has {shape}"
            )
        passing[...] = changed

    return call


class Encoding:
    """The hidden states of B texts with N tokens in all. Arrays are read-only views."""

    def __init__(self, result: Result) -> None:
        #: The last hidden states of all texts, [N, C].
        self.hidden: FloatArray = result.array("hidden")
        #: Text i has the rows offsets[i] to offsets[i + 1] of all arrays, [B + 1].
        self.offsets: npt.NDArray[np.int64] = result.array("offsets")
        #: The ids that were run, special tokens included, [N].
        self.token_ids: npt.NDArray[np.int32] = result.array("token_ids")
        #: The position that each token was given, [N].
        self.positions: FloatArray = result.array("positions")

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def rows(self, i: int) -> slice:
        """The rows of text i."""
        if not -len(self) <= i < len(self):
            raise IndexError(f"there is no text {i}; there are {len(self)}")
        i %= len(self)
        return slice(int(self.offsets[i]), int(self.offsets[i + 1]))

    def __getitem__(self, i: int) -> FloatArray:
        """The hidden states of text i, [T, C]."""
        return self.hidden[self.rows(i)]

    def __iter__(self) -> Iterator[FloatArray]:
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        return f"<phasor.Encoding of {len(self)} texts, {len(self.hidden)} tokens>"


class ActivationCache(Mapping[str, FloatArray]):
    """Recorded values by TransformerLens' names, as read-only NumPy arrays without copies.

    ``cache[name]`` has a leading batch dimension, ``cache[name, i]`` is that of text i. Since
    phasor does not pad, texts of different lengths have only the latter.
    """

    def __init__(self, result: Result, num_texts: int, batch_dim: bool = True) -> None:
        self._result = result
        self._num_texts = num_texts
        self._batch_dim = batch_dim
        fixed = ("hidden", "offsets", "token_ids", "positions")
        self._names = [name for name in result.names() if name not in fixed]

    def _full_name(self, name: Any) -> str:
        """TransformerLens' short forms, too: ("pattern", 3), ("k", 0, "attn"), ("embed")."""
        if isinstance(name, tuple) and len(name) > 1:
            part, layer = name[0], name[1]
            ends = (f".hook_{part}", f".{part}")
            for full in self._names:
                if full.startswith(f"blocks.{layer}.") and full.endswith(ends):
                    return full
            name = f"blocks.{layer}.…{part}"
        elif name not in self._names and f"hook_{name}" in self._names:
            return f"hook_{name}"
        if name not in self._names:
            raise KeyError(f"{name} was not recorded; there are: {', '.join(self._names)}")
        return str(name)

    def __getitem__(self, name: Any) -> FloatArray:
        if isinstance(name, tuple) and len(name) == 2 and name[0] in self._names:
            return self.of_text(*name)
        full = self._full_name(name)
        if self._num_texts == 1:
            value = self.of_text(full, 0)
            return value[None] if self._batch_dim else value
        values = [self.of_text(full, i) for i in range(self._num_texts)]
        if len({value.shape for value in values}) > 1:
            raise InvalidArgument(
                "the texts have different numbers of tokens, and phasor does not pad; take "
                f"cache[{full!r}, i] of text i"
            )
        return np.stack(values)

    def of_text(self, name: str, i: int) -> FloatArray:
        """The value of text i: [T, C], [T, H, D] or [H, T, T]."""
        if not 0 <= i < self._num_texts:
            raise IndexError(f"there is no text {i}; there are {self._num_texts}")
        return self._result.array(name, i)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __contains__(self, name: object) -> bool:
        try:
            if isinstance(name, tuple) and len(name) == 2 and name[0] in self._names:
                return name[1] in range(self._num_texts)
            self._full_name(name)
        except KeyError:
            return False
        return True

    def __repr__(self) -> str:
        return f"<phasor.ActivationCache of {self._num_texts} texts: {', '.join(self._names)}>"


FwdHooks = Iterable[Tuple[NamesFilter, HookFunction]]
