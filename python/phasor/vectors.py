"""Vectors of texts, and the calls on texts that may take long."""

from __future__ import annotations

import contextlib
import ctypes
import difflib
import functools
import itertools
import sys
import time
from typing import TYPE_CHECKING, Any, Callable, Iterable, Optional, Sequence, TypedDict, Union
from typing import cast, get_args, get_type_hints

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


class TextOptions(TypedDict, total=False):
    """Options that the methods on texts take by name, such as :meth:`Encoder.encode`, and refuse where they do not use
    them. What is not given is as the model's files say.

    ``parse_special`` reads special tokens written in a text ("[SEP]") as such, as ``SentenceTransformer`` does; without
    it they are plain text, and count only in a prompt. ``max_tokens`` is the length of a text, special tokens included,
    in :meth:`Encoder.label_tokens` that of a window. ``overflow`` says what becomes of a longer text: "truncate",
    "error", "window", "clamp" or "interpolate", and ``truncation_side`` where it is cut: "left" or "right". ``pooling``
    makes a vector of the states: "cls", "mean,max". About ``batch_tokens`` run at once: fewer take less memory."""

    parse_special: bool
    max_tokens: int
    overflow: Optional[str]
    truncation_side: Optional[str]
    pooling: Optional[str]
    batch_tokens: int


_TYPES = {name: (*get_args(kind), kind)[0] for name, kind in get_type_hints(TextOptions).items()}  # without None
_settings = functools.lru_cache(maxsize=64)(c.Settings)  # which never change


class VectorOptions(TextOptions, total=False):
    """Of :meth:`Encoder.encode`, by name alone, and which change no type."""

    normalize_embeddings: bool
    truncate_dim: Optional[int]
    out: Optional[FloatArray]
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
    key = repr(pooling)  # what is no str is refused below
    if key not in encoder._widths:
        options, nothing, result = told(encoder, {"pooling": pooling}), c.BorrowedTexts([]), c.Result()
        check(lib.embed(encoder._open().encoder, nothing.pointer, ctypes.byref(options), result.pointer()))
        encoder._widths[key] = result.array("dense").shape[1]
    return encoder._widths[key]


def told(encoder: Encoder, options: TextOptions, **others: Optional[str]) -> c.TextOptions:
    """The options as the library reads them, and others by the library's names."""
    others["max_tokens"] = str(encoder._settings.max_tokens)
    for name, value in options.items():
        if name not in _TYPES:
            near = "".join(f"; did you mean {each}?" for each in difflib.get_close_matches(name, _TYPES, 1))
            raise TypeError(f"unexpected argument {name!r}; of TextOptions there are: {', '.join(_TYPES)}{near}")
        kind = _TYPES[name]
        said: Any = integer(name, value) or None if kind is int else value  # 0 is the default
        if said is not None:
            others[name] = said if kind is str else str(kind(said)).lower()
    try:
        return c.TextOptions(_settings(**others))
    except TypeError:  # what cannot be looked up; Settings says what is wrong with it
        return c.TextOptions(c.Settings(**others))


def call(
    encoder: Encoder, function: Callable[..., int], texts: list[Optional[list[str]]], show: Optional[bool],
    given: TextOptions, **others: Optional[str],
) -> c.Result:
    """A call of the library with phasor_text_options."""
    borrowed = [None if each is None else c.BorrowedTexts(each) for each in texts]
    pointers = [None if each is None else each.pointer for each in borrowed]
    options, result = told(encoder, given, **others), c.Result()
    arguments = (*pointers, ctypes.byref(options), result.pointer())
    with contextlib.closing(ProgressBar(show)) as bar:
        _run(encoder, function, arguments, options, bar, (borrowed, result))
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
    encoder: Encoder, sentences: Union[str, Iterable[str]], prompt: str, show: Optional[bool], normalize: bool,
    truncate_dim: Optional[int], out: Optional[FloatArray], positions: PositionsLike, edit: Strings, given: TextOptions,
) -> FloatArray:
    """[B, W], also of one text."""
    width = width_of(encoder, given.get("pooling"))
    if truncate_dim is None:
        truncate_dim = encoder._settings.truncate_dim
    keep = width if truncate_dim is None else integer("truncate_dim", truncate_dim)
    if not 0 < keep <= width:
        raise InvalidArgument(f"truncate_dim is {keep}; the vectors have {width} numbers")
    # A truncated vector is normalised after that if this was asked for, as sentence-transformers does.
    columns = keep if normalize and out is None else width
    dimensions = str(columns) if columns < width else None
    options = told(encoder, given, prompt=prompt, normalize="true" if normalize else None, dimensions=dimensions)
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
    with contextlib.closing(ProgressBar(show, len(out))) as bar:
        while chunk := list(itertools.islice(left, _CHUNK)):
            part, count = out[done : done + len(chunk)], len(chunk)
            if count > len(part):
                raise InvalidArgument(f"there are more than the {len(out)} texts of out")
            options.output, options.output_size = address(part), part.size
            borrowed = c.BorrowedTexts(chunk)
            chunk.clear()  # before the next texts are made
            arguments = (borrowed.pointer, ctypes.byref(options), None)
            kept = (borrowed, places, part)
            _run(encoder, lib.embed, arguments, options, bar, kept, done, count > 1 or bar.shown)
            del borrowed, arguments, kept
            done += count
    if done < len(out):
        raise InvalidArgument(f"out has room for {len(out)} texts, and there were {done}")
    return out[:, :keep]


def states_of(
    encoder: Encoder, sentences: Strings, output_value: Optional[str], show: Optional[bool], prompt: str,
    given: TextOptions,
) -> Any:
    """What :meth:`Encoder.encode` gives for the other two values of output_value."""
    if output_value not in (None, "token_embeddings"):
        raise InvalidArgument(
            f"output_value is {str(output_value)[:40]!r}; it may be 'sentence_embedding', "
            "'token_embeddings' or None"
        )
    kinds, texts = "states" if output_value else "dense,states", strings(sentences, "sentences")
    result = call(encoder, lib.embed, [texts], show, given, kinds=kinds, prompt=prompt)
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
