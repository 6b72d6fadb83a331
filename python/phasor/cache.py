"""What a run recorded, and the hooks that may change it."""

from __future__ import annotations

import copy
import ctypes
import dataclasses
import difflib
from typing import Any, Callable, Iterable, Iterator, Mapping, Optional, Sequence, TypeVar

import numpy as np
import numpy.typing as npt

from ._library import HookEvent, InvalidArgument, Result, floats
from .names import HookNames, NamesFilter, told
from .weights import Blocks, FloatArray

Self = TypeVar("Self", bound="Cache")


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


def is_called(path: str, name: str) -> bool:
    """Whether a name means the hook: its path, or the end of it. This is the rule of find_hooks(),
    which the C interface does not have."""
    return path == name or path.endswith((f".{name}", f"hook_{name}"))


def hook_caller(function: HookFunction, called: set[str], alias: Optional[str]) -> Callable[[HookEvent], None]:
    """Calls a function with a copy of what passes, which it may keep, and writes back what it
    leaves. Notes the hooks at which it was called; the function is told the name by which it asked."""
    if not callable(function):
        raise TypeError(f"a hook is a function of a value and a HookPoint, not {function!r}")

    def call(event: HookEvent) -> None:
        shape = (1, *event.array.shape[: event.array.num_dims])
        memory = (ctypes.c_float * int(np.prod(shape))).from_address(event.changeable)
        passing: FloatArray = np.asarray(memory).reshape(shape)
        value = passing.copy()
        path = event.name.decode()
        point = HookPoint(told(path, alias), event.text, event.first_token)
        called.add(path)
        changed = function(value, point)
        if changed is None:
            changed = value
        changed = floats(f"what the hook at {point.name} returns", changed)
        if changed.shape not in (shape, shape[1:]):
            raise InvalidArgument(f"the hook at {point.name} returned shape {changed.shape}; the value has {shape}")
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
        return f"<phasor.Encoding of {len(self)} text(s), {len(self.hidden)} tokens>"


class Cache(Mapping[str, FloatArray]):
    """Recorded values by TransformerLens' names, as read-only NumPy arrays without copies.

    ``cache["blocks.3.attn.hook_pattern"]`` or, for short, ``cache["pattern", 3]`` has a leading
    batch dimension. phasor does not pad: of texts with different lengths, ``cache.text(i)`` is the
    cache of text i, whose values have no batch dimension. A cache keeps the model in memory.
    """

    def __init__(
        self, result: Result, texts: Sequence[int], names: HookNames, blocks: Blocks, batch_dim: bool = True,
    ) -> None:
        self._result = result
        self._texts = texts
        self._batch_dim = batch_dim
        self._all_names, self._blocks, self._info = names, blocks, names.info
        order = {own: i for i, own in enumerate(result.names())}
        recorded = [(name, own) for name, own in names.every.items() if own in order]
        #: phasor's name of each recorded value, in the order of the run.
        self._names = dict(sorted(recorded, key=lambda names: order[names[1]]))

    def text(self: Self, i: int) -> Self:
        """The values of text i, without a batch dimension: [T, C], [T, H, D] or [H, T, T]."""
        if not -len(self._texts) <= i < len(self._texts):
            raise IndexError(f"there is no text {i}; there are 0 to {len(self._texts) - 1}")
        one = copy.copy(self)
        one._texts, one._batch_dim = [self._texts[i]], False
        return one

    def _full_name(self, key: Any) -> str:
        """phasor's, also of ("pattern", 3), ("k", 0, "attn"), ("resid_post", -1) or "embed"."""
        parts = key if isinstance(key, tuple) and key else (key,)
        layers = {int(name.split(".")[1]) for name in self._names if name.startswith("blocks.")}
        if len(parts) > 1 and isinstance(parts[1], (int, np.integer)) and layers:
            layer = int(parts[1]) if parts[1] >= 0 else max(layers) + 1 + int(parts[1])
            begin = ".".join(["blocks", str(layer), *map(str, parts[2:])]) + "."
            for short in (parts[0], f"hook_{parts[0]}"):
                own = self._all_names.own(f"{begin}{short}")
                if own in self._names.values():
                    return own
            ends = (f".hook_{parts[0]}", f".{parts[0]}")
            for name in self._names:
                if name.startswith(begin) and name.endswith(ends):
                    return self._names[name]
        elif len(parts) == 1 and isinstance(parts[0], str):
            for name in (self._all_names.own(parts[0]), f"hook_{parts[0]}"):
                if name in self._names.values():
                    return name
        near = difflib.get_close_matches(str(parts[0]), self._short_names(), 3, 0.5)
        blocks = f", of the blocks {min(layers)} to {max(layers)}" if layers else ""
        raise KeyError(f"{key!r} was not recorded; there are {', '.join(near or self._short_names())}{blocks}")

    def _short_names(self) -> list[str]:
        """The last part of every name, once."""
        return list(dict.fromkeys(name.split("hook_")[-1] for name in self._names))

    def __getitem__(self, key: Any) -> FloatArray:
        return self._value(self._full_name(key), key)

    def _value(self, name: str, key: Any = None) -> FloatArray:
        """Of phasor's name; a message has the key that was asked for."""
        if name not in self._names.values():
            raise KeyError(f"{name} was not recorded")
        values = [self._result.array(name, i) for i in self._texts]
        if len(values) == 1:
            return values[0][None] if self._batch_dim else values[0]
        if len({value.shape for value in values}) > 1:
            raise InvalidArgument(
                "the texts have different numbers of tokens, and phasor does not pad; take "
                f"cache.text(i)[{name if key is None else key!r}] of text i"
            )
        return np.stack(values)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __contains__(self, key: object) -> bool:
        try:
            self._full_name(key)
        except KeyError:
            return False
        return True

    def __repr__(self) -> str:
        names = ", ".join(self._short_names())
        return f"<phasor.ActivationCache of {len(self._texts)} text(s): {names}>"


FwdHooks = Iterable[tuple[NamesFilter, HookFunction]]
