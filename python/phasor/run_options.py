"""The options of a run, as the C interface takes them."""

from __future__ import annotations

import ctypes
from typing import Any, Iterable, Sequence, TypedDict, Union, cast

import numpy as np
import numpy.typing as npt

from . import _library as c
from ._library import InvalidArgument, address, floats, integer, strs

#: Positions of a run: a name ("none", "sinusoidal:marian", "learned", "rotary:10000", "alibi"), a
#: table [rows, E] of float, or the position of each token [T] of int.
PositionsLike = Union[None, str, npt.ArrayLike]
#: A layer from 0 (both of its residual connections), or "blocks.0.attn", "blocks.0.mlp".
Cut = Union[int, str]


class RunKeywords(TypedDict, total=False):
    """Of :meth:`Encoder.run_with_cache` and :meth:`Encoder.run_with_hooks`."""

    positions: PositionsLike
    edit: Union[str, Sequence[str]]
    cut_residual: Union[Cut, Iterable[Cut]]
    overflow: str


def choice(what: str, name: Any, names: dict[Any, int]) -> int:
    if not isinstance(name, (str, type(None))):
        raise TypeError(f"the {what} is a str, not {type(name).__name__}")
    if name not in names:
        known = ", ".join(str(known) for known in names if known is not None)
        raise InvalidArgument(f"unknown {what} {name!r}; there are: {known}")
    return names[name]


class RunPositions:
    """phasor_positions of a run, or a null pointer."""

    def __init__(self, positions: PositionsLike, edit: Union[str, Sequence[str]]) -> None:
        edits = [edit] if isinstance(edit, str) else strs(edit, "edit")
        self._names = c.BorrowedNames(edits)
        self._options = c.Positions(edits=self._names.pointer, num_edits=self._names.count)
        if isinstance(positions, str):
            self._options.kind = c.c_string(positions)
        elif positions is not None:
            try:
                array = np.asarray(positions)
            except ValueError:  # ragged
                raise InvalidArgument("the rows of positions have different lengths") from None
            self._take(array)
        given = positions is not None or edits
        self.pointer = ctypes.addressof(self._options) if given else None

    def _take(self, array: npt.NDArray[Any]) -> None:
        if array.ndim == 2 and np.issubdtype(array.dtype, np.floating):
            self._array = np.ascontiguousarray(floats("positions", array))
            self._options.table = address(self._array)
            self._options.table_rows, self._options.table_width = array.shape
        elif array.ndim == 1 and np.issubdtype(array.dtype, np.integer) and len(array) > 0:
            self._array = int32(array, "positions")
            self._options.ids, self._options.num_ids = address(self._array), len(array)
        else:
            raise InvalidArgument(
                f"positions are a name, a table [rows, width] of float, or one int for each token, "
                f"not an array of shape {array.shape} and type {array.dtype}"
            )


class RunOptions:
    """phasor_run_options of a run, and what they borrow."""

    def __init__(
        self, positions: PositionsLike, edit: Union[str, Sequence[str]], cuts: list[tuple[int, bytes]], overflow: str,
        parse_special: bool = False,
    ) -> None:
        self._positions = RunPositions(positions, edit)
        self._cuts = (c.ResidualCut * len(cuts))(*[c.ResidualCut(*cut) for cut in cuts])
        self.options = c.RunOptions(
            positions=self._positions.pointer, overflow=c.word(overflow, "overflow"),
            cut_residuals=ctypes.addressof(self._cuts), num_cut_residuals=len(cuts),
            parse_special=bool(parse_special),
        )


def int32(array: npt.NDArray[Any], what: str) -> npt.NDArray[Any]:
    info = np.iinfo(np.int32)
    if array.size and array.dtype.kind not in "iu":
        raise InvalidArgument(f"{what} must be integers, not {array.dtype}")
    if array.size and (array.min() < info.min or array.max() > info.max):
        raise InvalidArgument(f"{what} must be 32-bit integers")
    return np.ascontiguousarray(array, np.int32)


def residual_cuts(cut_residual: Union[Cut, Iterable[Cut]]) -> list[tuple[int, bytes]]:
    """(layer, site) of each."""
    one = isinstance(cut_residual, (int, np.integer, str))
    cuts: list[Any] = [cut_residual] if one else list(cast(Iterable[Cut], cut_residual))
    found = []
    for cut in cuts:
        if isinstance(cut, str):
            parts = cut.split(".")
            if parts[0] == "blocks" and len(parts) == 3 and parts[1].isdecimal():
                if parts[2] in ("attn", "mlp"):
                    found.append((int(parts[1]), parts[2].encode()))
                    continue
            raise InvalidArgument(
                f"{cut!r} is no residual connection; write a layer from 0, "
                '"blocks.0.attn" or "blocks.0.mlp"'
            )
        found.append((integer("a layer of cut_residual", cut), b"both"))
    return found
