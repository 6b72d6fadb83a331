"""Vectors of texts, and the calls on texts that may take long."""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import sys
import time
from typing import TYPE_CHECKING, Any, Callable, Iterable, Optional, Sequence, TypedDict, Union, cast

import numpy as np
import numpy.typing as npt

from . import _library as c
from ._calls import Call, call_progress, no_progress
from ._library import InvalidArgument, address, check, floats, integer, lib
from .observed import Strings, strings
from .run_options import PositionsLike, RunPositions
from .weights import FloatArray

if TYPE_CHECKING:
    from .encoder import Encoder

_DISTANCES = {"euclidean": 2, "manhattan": 1}  # the order of the norm
_CHUNK = 16384  # texts that are handed over together, so that memory stays flat
#: The precisions of vectors that are not float32.
SMALLER = {"float32": 0, "int8": 1, "uint8": 1, "binary": 1, "ubinary": 1}


class VectorOptions(TypedDict, total=False):
    """Of :meth:`Encoder.encode`, by name alone, and which change no type."""

    normalize_embeddings: bool
    truncate_dim: Optional[int]
    out: Optional[FloatArray]
    pooling: Optional[str]
    max_tokens: int
    overflow: Optional[str]
    parse_special: bool
    positions: PositionsLike
    edit: Strings
    inputs: Union[None, str, Iterable[str]]
    device: object
    chunk_size: Optional[int]
    pool: None


class EncodeOptions(VectorOptions, total=False):
    """With those that have a place, too."""

    prompt_name: Optional[str]
    prompt: Optional[str]
    batch_size: int
    show_progress_bar: Optional[bool]


class ProgressBar:
    """tqdm's bar where it is installed, otherwise a line of our own; nothing if not to be shown."""

    def __init__(self, show: Optional[bool], total: Optional[int] = None) -> None:
        self.shown, self._total = bool(show), total
        self._done, self._when, self._bar = 0, 0.0, None
        with contextlib.suppress(ImportError):
            if show:
                from tqdm.auto import tqdm

                self._bar = tqdm(total=total, desc="texts", unit="text")

    def shower(self, before: int = 0) -> Optional[Callable[[int, int], None]]:
        """The progress function of a call for the texts after the first `before`."""
        return (lambda done, _: self.show(before + done)) if self.shown else None

    def show(self, done: int) -> None:
        if self._bar is not None:
            self._bar.update(done - self._done)
        self._done = done
        if self._bar is None and time.monotonic() - self._when > 0.1:
            self._when = time.monotonic()
            of = f" of {self._total}" if self._total is not None else ""
            print(f"\r{done}{of} texts", end="", file=sys.stderr, flush=True)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()
        elif self.shown:
            print(f"\r{self._done} texts" + " " * 20, file=sys.stderr)


def width_of(encoder: Encoder, pooling: Optional[str] = None) -> int:
    """Of the vectors of a pooling, or of the model's own."""
    if pooling not in encoder._widths:
        settings, nothing, result = c.settings(pooling=pooling), c.BorrowedTexts([]), c.Result()
        options = c.TextOptions(settings.pointer)
        how = (nothing.pointer, ctypes.byref(options), result.pointer())
        check(lib.embed(encoder._open().encoder, *how))
        encoder._widths[pooling] = result.array("dense").shape[1]
    return encoder._widths[pooling]


def call(
    encoder: Encoder, function: Callable[..., int], texts: list[Optional[list[str]]],
    show_progress_bar: Optional[bool], parse_special: bool, max_tokens: int = 0, **settings: Optional[str],
) -> c.Result:
    """A call of the library with phasor_text_options."""
    borrowed = [None if each is None else c.BorrowedTexts(each) for each in texts]
    pointers = [None if each is None else each.pointer for each in borrowed]
    tokens = str(integer("max_tokens", max_tokens) or encoder._settings.max_tokens)
    held = c.settings(max_tokens=tokens, parse_special=c.flag(parse_special), **settings)
    result, options = c.Result(), c.TextOptions(held.pointer)
    arguments = (*pointers, ctypes.byref(options), result.pointer())
    with contextlib.closing(ProgressBar(show_progress_bar)) as bar:
        _run(encoder, function, arguments, options, bar, (borrowed, held, result))
    return result


def _run(
    encoder: Encoder, function: Callable[..., int], arguments: Sequence[Any], options: c.TextOptions,
    bar: ProgressBar, borrowed: Any, before: int = 0, long: bool = True,
) -> None:
    running = Call(encoder._open(), bar.shower(before))
    running.keep = (borrowed, options)
    options.stop, options.user = running.stop, id(running)
    options.progress = call_progress if bar.shown else no_progress
    running.run(lambda e: int(function(e, *arguments)), long)


def embedded(
    encoder: Encoder, sentences: Union[str, Iterable[str]], prompt: str, show_progress_bar: Optional[bool],
    normalize: bool, truncate_dim: Optional[int], out: Optional[FloatArray], max_tokens: int,
    positions: PositionsLike, edit: Strings, parse_special: bool, **settings: Optional[str],
) -> FloatArray:
    """[B, W], also of one text."""
    width = width_of(encoder, settings["pooling"])
    if truncate_dim is None:
        truncate_dim = encoder._settings.truncate_dim
    keep = width if truncate_dim is None else integer("truncate_dim", truncate_dim)
    if not 0 < keep <= width:
        raise InvalidArgument(f"truncate_dim is {keep}; the vectors have {width} numbers")
    # A truncated vector is normalised after that if this was asked for, as sentence-transformers does.
    columns = keep if normalize and out is None else width
    held = c.settings(
        max_tokens=str(integer("max_tokens", max_tokens) or encoder._settings.max_tokens),
        parse_special=c.flag(parse_special), prompt=prompt, normalize=c.flag(normalize),
        dimensions=str(columns) if columns < width else None, **settings,
    )
    options = c.TextOptions(held.pointer)
    places = RunPositions(positions, edit) if positions is not None or edit else None
    if places is not None:
        options.positions = places.pointer
    if isinstance(sentences, str) and out is None:
        vectors, text = np.empty((1, columns), np.float32), c.BorrowedTexts([sentences])
        options.output, options.output_size = address(vectors), columns
        encoder._open().ask(lib.embed, text.pointer, ctypes.byref(options), None)
        return vectors[:, :keep]
    texts = [sentences] if isinstance(sentences, str) else sentences
    if out is None:
        texts = c.strs(texts, "sentences")
        out = np.empty((len(texts), columns), np.float32)
    elif keep < width:
        raise InvalidArgument("out receives whole vectors; leave out truncate_dim")
    if not isinstance(out, np.ndarray):
        raise TypeError(f"out must be a numpy.ndarray, not {type(out).__name__}")
    if out.ndim != 2 or out.shape[1] != columns or out.dtype != np.float32:
        raise InvalidArgument(f"out has shape {out.shape} and type {out.dtype}; it must be [texts, {width}], float32")
    if not out.flags.carray:
        raise InvalidArgument("out must be C-contiguous, aligned and writeable")
    left = c.ordered(texts, "sentences", once=True)
    done = 0
    with contextlib.closing(ProgressBar(show_progress_bar, len(out))) as bar:
        while chunk := list(itertools.islice(left, _CHUNK)):
            part, count = out[done : done + len(chunk)], len(chunk)
            if count > len(part):
                raise InvalidArgument(f"there are more than the {len(out)} texts of out")
            options.output, options.output_size = address(part), part.size
            borrowed = c.BorrowedTexts(chunk)
            chunk.clear()  # before the next texts are made
            arguments = (borrowed.pointer, ctypes.byref(options), None)
            kept = (borrowed, held, places, part)
            _run(encoder, lib.embed, arguments, options, bar, kept, done, count > 1 or bar.shown)
            del borrowed, arguments, kept
            done += count
    if done < len(out):
        raise InvalidArgument(f"out has room for {len(out)} texts, and there were {done}")
    return out[:, :keep]


def states_of(
    encoder: Encoder, sentences: Strings, output_value: Optional[str], show_progress_bar: Optional[bool],
    max_tokens: int, parse_special: bool, prompt: str, overflow: Optional[str],
) -> Any:
    """What :meth:`Encoder.encode` gives for the other two values of output_value."""
    if output_value not in (None, "token_embeddings"):
        raise InvalidArgument(
            f"output_value is {str(output_value)[:40]!r}; it may be 'sentence_embedding', "
            "'token_embeddings' or None"
        )
    kinds = "states" if output_value else "dense,states"
    result = call(
        encoder, lib.embed, [strings(sentences, "sentences")], show_progress_bar, parse_special,
        max_tokens, kinds=kinds, prompt=prompt, overflow=overflow,
    )
    states, offsets = result.array("state_vectors"), result.numbers("state_offsets")
    found: list[Any] = [states[a:b] for a, b in zip(offsets, offsets[1:])]
    if output_value is None:
        whole = result.array("dense")[:, : encoder._settings.truncate_dim]
        names = "token_embeddings", "sentence_embedding"
        found = [dict(zip(names, both)) for both in zip(found, whole)]
    return found[0] if isinstance(sentences, str) else found


def smaller_vectors(vectors: FloatArray, precision: str) -> npt.NDArray[Any]:
    """As ``sentence_transformers.quantize_embeddings`` makes them, without further vectors to
    calibrate: a bit for each number that says whether it is above 0, eight in a byte; or one of
    256 steps from the least of a column's numbers to its largest."""
    count, width = vectors.shape
    are_bits = precision.endswith("binary")
    if count == 1 and not are_bits:
        raise InvalidArgument(f"{precision} takes its steps from several vectors, and there is one")
    columns = (width + 7) // 8 if are_bits else width
    made = np.empty((count, columns), np.uint8 if precision.startswith("u") else np.int8)
    if count > 0:
        vectors = np.ascontiguousarray(vectors)
        ranges = [vectors.min(axis=0), vectors.max(axis=0)]  # of bits they have no effect
        given = (address(vectors), count, width, precision.encode(), *map(address, ranges))
        check(lib.quantize(*given, address(made), made.nbytes))
    return made


def similarity(kind: str, a: npt.ArrayLike, b: npt.ArrayLike) -> FloatArray:
    first, second = _rows(kind, a), _rows(kind, b)
    if first.shape[1] != second.shape[1]:
        raise InvalidArgument(f"vectors of shapes {first.shape} and {second.shape} cannot be compared")
    if kind in _DISTANCES:
        rows = [-np.linalg.norm(second - row, _DISTANCES[kind], axis=1) for row in first]
        return np.array(rows, np.float32).reshape(len(first), len(second))
    return cast(FloatArray, first @ second.T)


def similarity_pairwise(kind: str, a: npt.ArrayLike, b: npt.ArrayLike) -> FloatArray:
    first, second = _rows(kind, a), _rows(kind, b)
    if first.shape != second.shape:
        raise InvalidArgument(f"vectors of shapes {first.shape} and {second.shape} are no pairs of rows")
    if kind in _DISTANCES:
        return cast(FloatArray, -np.linalg.norm(first - second, _DISTANCES[kind], axis=1))
    return cast(FloatArray, np.einsum("ij,ij->i", first, second))


def _rows(kind: str, vectors: npt.ArrayLike) -> FloatArray:
    """A copy to compare, [n, W]: of length 1 for cosines."""
    rows = np.array(floats("vectors", vectors), ndmin=2)
    if rows.ndim > 2:
        raise InvalidArgument(f"vectors of shape {rows.shape} cannot be compared")
    if kind == "cosine":
        rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
    return rows
