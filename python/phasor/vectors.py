"""Vectors of texts."""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import sys
import time
from typing import Any, Callable, Iterable, Optional, Sequence, Union, cast

import numpy as np
import numpy.typing as npt

from . import _library as c
from ._calls import Call, call_progress, no_progress
from ._library import InvalidArgument, address, check, floats, integer, lib
from .observed import Strings, strings
from .run_options import PositionsLike, RunPositions, choice
from .settings import SMALLER, Settable, on_cpu, smaller_vectors, tensor
from .weights import FloatArray

_DISTANCES = {"euclidean": 2, "manhattan": 1}  # the order of the norm
_CHUNK = 16384  # texts that are handed over together, so that memory stays flat


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


class Vectors(Settable):
    """See :class:`phasor.Encoder`."""

    __slots__ = ()

    def encode(
        self,
        sentences: Union[None, str, Iterable[str]] = None,
        prompt_name: Optional[str] = None,
        prompt: Optional[str] = None,
        batch_size: int = 32,
        show_progress_bar: Optional[bool] = None,
        output_value: Optional[str] = "sentence_embedding",
        *,
        normalize_embeddings: bool = False,
        truncate_dim: Optional[int] = None,
        out: Optional[npt.NDArray[np.float32]] = None,
        pooling: Optional[str] = None,
        max_tokens: int = 0,
        overflow: Optional[str] = None,
        parse_special: bool = False,
        positions: PositionsLike = None,
        edit: Union[str, Sequence[str]] = (),
        precision: str = "float32",
        convert_to_numpy: bool = True,
        convert_to_tensor: bool = False,
        inputs: Union[None, str, Iterable[str]] = None,
        device: Any = None,
        chunk_size: Optional[int] = None,
        pool: None = None,
    ) -> Any:
        """Vectors of texts, as ``SentenceTransformer.encode`` makes them: [W] of one text, [B, W]
        of several, float32. ``inputs`` is another name of ``sentences``.

        ``prompt_name`` picks one of the model's prompts, ``prompt`` is put before every text;
        without either the model's default is used. ``batch_size`` is accepted and has no effect:
        phasor packs texts by their lengths; so are ``chunk_size`` and the ``device`` "cpu".
        ``output_value="token_embeddings"`` gives a list of hidden states [T, C] instead (see
        :meth:`encode_states`), and None a dict of both for each text. ``normalize_embeddings`` makes vectors of
        length 1, also where the model's files do not ask for it; ``truncate_dim`` keeps the first
        numbers. ``precision`` "int8", "uint8", "binary" or "ubinary" makes the vectors smaller, as
        ``sentence_transformers.quantize_embeddings`` does. ``out``
        [B, W] receives the vectors, such as a ``numpy.memmap``; then ``sentences`` may be any
        iterable, of which 16384 texts are in memory at a time. ``pooling``, ``max_tokens`` and
        ``overflow`` ("truncate", "error", "window", "clamp", "interpolate") replace what the
        model's files say. ``parse_special`` reads special tokens written in a text ("[SEP]") as
        such, as ``SentenceTransformer`` does; without it they are plain text, and count only in a
        prompt. ``positions`` and ``edit`` are those of :meth:`run_with_cache`. With
        ``convert_to_numpy=False`` several texts give a list of vectors, and with
        ``convert_to_tensor=True`` torch's tensors, where it is installed.
        """
        self._open()
        on_cpu(device)
        if pool is not None:
            raise InvalidArgument("pool: threads share an Encoder; Encoder(threads=N) uses N")
        if (sentences is None) == (inputs is None):
            raise TypeError("encode() takes the texts once, as sentences or as inputs")
        sentences = cast(Union[str, Iterable[str]], inputs if sentences is None else sentences)
        if output_value in (None, "token_embeddings"):
            others = [normalize_embeddings, edit, convert_to_tensor, precision != "float32"]
            others += [x is not None for x in (truncate_dim, out, pooling, positions)]
            if any(others):
                raise InvalidArgument(
                    f"output_value={output_value!r} takes a prompt, max_tokens, overflow and "
                    "parse_special, no other options; run_with_cache() has those of positions"
                )
            given = strings(cast(Strings, sentences), "sentences")
            result = self._states(
                given, self._prompt(prompt_name, prompt), max_tokens, overflow, parse_special,
                show_progress_bar, output_value is None,
            )
            states, offsets = result.array("state_vectors"), result.numbers("state_offsets")
            found: list[Any] = [states[a:b] for a, b in zip(offsets, offsets[1:])]
            if output_value is None:
                whole = result.array("dense")[:, : self._settings.truncate_dim]
                names = "token_embeddings", "sentence_embedding"
                found = [dict(zip(names, both)) for both in zip(found, whole)]
            return found[0] if isinstance(sentences, str) else found
        if not isinstance(output_value, str) or output_value != "sentence_embedding":
            raise InvalidArgument(
                f"output_value is {str(output_value)[:40]!r}; it may be 'sentence_embedding', "
                "'token_embeddings' or None"
            )
        smaller = choice("precision of vectors", precision, SMALLER)
        options, held = c.TextOptions(), None
        if positions is not None or edit:
            held = RunPositions(positions, edit)
            options.positions = held.pointer
        width = self._width(pooling)
        # A truncated vector is normalised after that, as sentence-transformers does.
        if truncate_dim is None:
            truncate_dim = self._settings.truncate_dim
        keep = width if truncate_dim is None else integer("truncate_dim", truncate_dim)
        if not 0 < keep <= width:
            raise InvalidArgument(f"truncate_dim is {keep}; the vectors have {width} numbers")
        settings = c.Settings(
            max_tokens=str(integer("max_tokens", max_tokens) or self._settings.max_tokens),
            parse_special=c.flag(parse_special),
            overflow=overflow,
            pooling=pooling,
            prompt=self._prompt(prompt_name, prompt),
            normalize=c.flag(normalize_embeddings and keep == width),
        )
        options.settings = settings.pointer
        one = isinstance(sentences, str)
        if one and out is None:
            vectors: npt.NDArray[np.float32] = np.empty((1, width), np.float32)
            self._embed([cast(str, sentences)], options, vectors, ProgressBar(False))
        else:
            texts = [cast(str, sentences)] if one else sentences
            vectors = self._embed_all(texts, options, width, keep, out, show_progress_bar)
        vectors = vectors[:, :keep]
        if normalize_embeddings and keep < width and out is None:
            _normalize(vectors)
        made: npt.NDArray[Any] = smaller_vectors(vectors, precision) if smaller else vectors
        if convert_to_tensor:
            return tensor(made[0] if one else made)
        if one:
            return made[0]
        return made if convert_to_numpy else list(made)

    def _embed_all(
        self,
        sentences: Iterable[str],
        options: c.TextOptions,
        width: int,
        keep: int,
        out: Optional[npt.NDArray[np.float32]],
        show_progress_bar: Optional[bool],
    ) -> npt.NDArray[np.float32]:
        if out is None:
            sentences = c.strs(sentences, "sentences")
            out = np.empty((len(sentences), width), np.float32)
        elif keep < width:
            raise InvalidArgument("out receives whole vectors; leave out truncate_dim")
        if not isinstance(out, np.ndarray):
            raise TypeError(f"out must be a numpy.ndarray, not {type(out).__name__}")
        if out.ndim != 2 or out.shape[1] != width or out.dtype != np.float32:
            raise InvalidArgument(
                f"out has shape {out.shape} and type {out.dtype}; it must be [texts, {width}], "
                "float32"
            )
        if not out.flags.carray:
            raise InvalidArgument("out must be C-contiguous, aligned and writeable")
        left = c.ordered(sentences, "sentences", once=True)
        done = 0
        with contextlib.closing(ProgressBar(show_progress_bar, len(out))) as bar:
            while chunk := list(itertools.islice(left, _CHUNK)):
                if done + len(chunk) > len(out):
                    raise InvalidArgument(f"there are more than the {len(out)} texts of out")
                self._embed(chunk, options, out[done : done + len(chunk)], bar, done)
                done += len(chunk)
                chunk.clear()  # before the next texts are made
        if done < len(out):
            raise InvalidArgument(f"out has room for {len(out)} texts, and there were {done}")
        return out

    def _embed(
        self,
        texts: Sequence[str],
        options: c.TextOptions,
        vectors: npt.NDArray[np.float32],
        bar: ProgressBar,
        before: int = 0,
    ) -> None:
        if not texts:
            return
        options.output, options.output_size = address(vectors), vectors.size
        borrowed = c.BorrowedTexts(texts)
        arguments = (borrowed.pointer, ctypes.byref(options), None)
        if len(texts) == 1 and not bar.shown:
            with self._encoder() as encoder:
                check(lib.embed(encoder, *arguments))
            return
        call = Call(self._open(), bar.shower(before))
        call.keep = (borrowed, options, vectors)
        options.stop, options.user = call.stop, id(call)
        options.progress = call_progress if bar.shown else no_progress
        try:
            call.run(lambda encoder: int(lib.embed(encoder, *arguments)))
        finally:  # another chunk may follow
            options.stop, options.user, options.progress = None, None, no_progress

    def _states(
        self,
        texts: list[str],
        prompt: str,
        max_tokens: int,
        overflow: Optional[str],
        parse_special: bool,
        show_progress_bar: Optional[bool] = None,
        dense: bool = False,
    ) -> c.Result:
        """The hidden states of each text, as :meth:`encode` runs it, and its vector."""
        return self._call(
            lib.embed, [texts], show_progress_bar, parse_special, integer("max_tokens", max_tokens),
            kinds="dense,states" if dense else "states", prompt=prompt, overflow=overflow,
            offset_unit="characters",
        )

    def _call(
        self,
        function: Callable[..., int],
        texts: list[Optional[list[str]]],
        show_progress_bar: Optional[bool],
        parse_special: bool,
        max_tokens: int = 0,
        **settings: Optional[str],
    ) -> c.Result:
        """A call with phasor_text_options."""
        borrowed = [None if each is None else c.BorrowedTexts(each) for each in texts]
        pointers = [None if each is None else each.pointer for each in borrowed]
        held = c.Settings(
            max_tokens=str(max_tokens or self._settings.max_tokens),
            parse_special=c.flag(parse_special),
            **settings,
        )
        result = c.Result()
        bar = ProgressBar(show_progress_bar)
        call = Call(self._open(), bar.shower())
        options = c.TextOptions(settings=held.pointer, stop=call.stop, user=id(call))
        if bar.shown:
            options.progress = call_progress
        call.keep = (*borrowed, held, options, result)
        with contextlib.closing(bar):
            call.run(lambda e: function(e, *pointers, ctypes.byref(options), result.pointer()))
        return result

    def encode_query(
        self,
        sentences: Union[None, str, Iterable[str]] = None,
        prompt_name: Optional[str] = None,
        prompt: Optional[str] = None,
        *arguments: Any,
        **options: Any,
    ) -> Any:
        """:meth:`encode` with the prompt "query", if there is one."""
        if prompt is None and prompt_name is None:
            prompt = self.prompts.get("query")
        return self.encode(sentences, prompt_name, prompt, *arguments, **options)

    def encode_document(
        self,
        sentences: Union[None, str, Iterable[str]] = None,
        prompt_name: Optional[str] = None,
        prompt: Optional[str] = None,
        *arguments: Any,
        **options: Any,
    ) -> Any:
        """:meth:`encode` with the prompt "document", "passage" or "corpus", if there is one."""
        if prompt is None and prompt_name is None:
            found = [self.prompts.get(name) for name in ("document", "passage", "corpus")]
            prompt = next(filter(None, found), found[0])
        return self.encode(sentences, prompt_name, prompt, *arguments, **options)

    def similarity(self, a: npt.ArrayLike, b: npt.ArrayLike) -> FloatArray:
        """How similar the vectors ``a`` [n, W] and ``b`` [m, W] are: [n, m]. Cosines, or what
        :attr:`similarity_fn_name` says: ``dot``, or ``euclidean`` or ``manhattan``, which are minus
        the distances."""
        kind, first, second = self.similarity_fn_name, self._rows(a), self._rows(b)
        if first.shape[1] != second.shape[1]:
            raise InvalidArgument(
                f"vectors of shapes {first.shape} and {second.shape} cannot be compared"
            )
        if kind in _DISTANCES:
            rows = [-np.linalg.norm(second - row, _DISTANCES[kind], axis=1) for row in first]
            return np.array(rows, np.float32).reshape(len(first), len(second))
        return cast(FloatArray, first @ second.T)

    def similarity_pairwise(self, a: npt.ArrayLike, b: npt.ArrayLike) -> FloatArray:
        """:meth:`similarity` of each row of ``a`` [n, W] and the same row of ``b``: [n]."""
        kind, first, second = self.similarity_fn_name, self._rows(a), self._rows(b)
        if first.shape != second.shape:
            raise InvalidArgument(
                f"vectors of shapes {first.shape} and {second.shape} are no pairs of rows"
            )
        if kind in _DISTANCES:
            return cast(FloatArray, -np.linalg.norm(first - second, _DISTANCES[kind], axis=1))
        return cast(FloatArray, np.einsum("ij,ij->i", first, second))

    def _rows(self, vectors: npt.ArrayLike) -> FloatArray:
        """A copy to compare, [n, W]."""
        rows = np.array(floats("vectors", vectors), ndmin=2)
        if rows.ndim > 2:
            raise InvalidArgument(f"vectors of shape {rows.shape} cannot be compared")
        return _normalize(rows) if self.similarity_fn_name == "cosine" else rows


def _normalize(vectors: FloatArray) -> FloatArray:
    """To length 1, in place."""
    vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    return vectors
