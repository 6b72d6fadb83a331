"""Vectors of texts, and what classification heads say of them."""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import itertools
import sys
import time
from typing import Any, Callable, Iterable, NamedTuple, Optional, Sequence, Union, cast

import numpy as np
import numpy.typing as npt

from . import _library as c
from ._calls import Call, call_progress, no_progress
from ._library import InvalidArgument, address, check, floats, integer, lib
from .observed import Strings, strings
from .run_options import PositionsLike, RunPositions, choice, overflow_policy
from .settings import SMALLER, Settable, on_cpu, smaller_vectors, tensor
from .weights import FloatArray

_AGGREGATIONS = {"simple": 0, "none": 1, "first": 2, "average": 3, "max": 4}
_DISTANCES = {"euclidean": 2, "manhattan": 1}  # the order of the norm
_CHUNK = 16384  # texts that are handed over together, so that memory stays flat


@dataclasses.dataclass(frozen=True)
class Classification:
    """What a classification head says of B texts."""

    labels: list[str]
    logits: FloatArray  # [B, labels]
    probabilities: FloatArray  # [B, labels]


class _ProgressBar:
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
        ``output_value="token_embeddings"`` gives a list of hidden states [T, C] instead, and None a
        dict of both for each text. ``normalize_embeddings`` makes vectors of
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
            others += [x is not None for x in (truncate_dim, out, pooling, overflow, positions)]
            if any(others):
                raise InvalidArgument(
                    f"output_value={output_value!r} takes a prompt, max_tokens and parse_special, no "
                    "other options; run_with_cache() has those of positions"
                )
            given = strings(cast(Strings, sentences), "sentences")
            found = self._states(given, self._prompt(prompt_name, prompt), max_tokens, parse_special)
            if output_value is None:
                rest: Any = {"max_tokens": max_tokens, "parse_special": parse_special}
                whole = self.encode(given, prompt_name, prompt, **rest)
                names = "token_embeddings", "sentence_embedding"
                found = [dict(zip(names, both)) for both in zip(found, whole)]
            return found[0] if isinstance(sentences, str) else found
        if not isinstance(output_value, str) or output_value != "sentence_embedding":
            raise InvalidArgument(
                f"output_value is {str(output_value)[:40]!r}; it may be 'sentence_embedding', "
                "'token_embeddings' or None"
            )
        smaller = choice("precision of vectors", precision, SMALLER)
        options = c.EmbedOptions(
            max_tokens=integer("max_tokens", max_tokens) or self._settings.max_tokens,
            parse_special=bool(parse_special),
        )
        if overflow is not None:
            options.overflow = overflow_policy(overflow)
        if pooling is not None:
            options.pooling = c.c_string(pooling)
        encoded = c.utf8(self._prompt(prompt_name, prompt))
        options.prompt, options.prompt_size = encoded, len(encoded)
        held = None
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
        options.normalize = 1 if normalize_embeddings and keep == width else 0
        one = isinstance(sentences, str)
        if one and out is None:
            vectors: npt.NDArray[np.float32] = np.empty((1, width), np.float32)
            self._embed([cast(str, sentences)], options, vectors, _ProgressBar(False))
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
        options: c.EmbedOptions,
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
        left = c.ordered(sentences, "sentences")
        done = 0
        with contextlib.closing(_ProgressBar(show_progress_bar, len(out))) as bar:
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
        options: c.EmbedOptions,
        vectors: npt.NDArray[np.float32],
        bar: _ProgressBar,
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

    def _states(self, texts: list[str], prompt: str, max_tokens: int, parse_special: bool) -> list[Any]:
        """The hidden states of each text, of as many tokens as :meth:`encode` reads."""
        options = c.TokenizeOptions(
            parse_special=bool(parse_special),
            max_tokens=self._longest(max_tokens),
            prompt_bytes=len(c.utf8(prompt)),
            no_special_tokens=not self._text().get("special_tokens", True),
        )
        states: list[FloatArray] = []
        for start in range(0, len(texts), 1024):
            chunk = [prompt + text for text in texts[start : start + 1024]]
            states += self.forward([tokens.ids for tokens in self._tokenize(chunk, None, options)])
        return states

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

    def rank(
        self,
        query: str,
        documents: Sequence[str],
        top_k: Optional[int] = None,
        return_documents: bool = False,
        show_progress_bar: Optional[bool] = None,
        *,
        parse_special: bool = False,
        batch_size: int = 32,
    ) -> list[dict[str, Any]]:
        """Documents by relevance, best first, as ``CrossEncoder.rank`` gives them: dicts with
        ``corpus_id``, ``score`` and, on request, ``text``. A reranker reads query and document
        together; of other models the score is the :meth:`similarity` of their vectors, or
        :func:`maxsim` where they have a vector of each token and none of a text.
        ``parse_special`` and ``batch_size`` are those of :meth:`encode`."""
        self._open()
        if top_k is not None and integer("top_k", top_k) < 0:
            raise InvalidArgument(f"top_k is {top_k}; it must be 0 or more")
        texts = c.strs(documents, "documents")
        if not texts:
            return []
        head = self.info["classifier"]
        by_tokens = self.info["token_vectors"] and "pooling" not in self.info["sentence"]
        if by_tokens or (head and head.get("of") != "tokens"):
            result = self._head_call(lib.rank, [[query], texts], show_progress_bar, parse_special)
            order, scores = result.array("order"), result.array("scores")
        else:
            vectors = self.encode_document(
                texts, show_progress_bar=show_progress_bar, parse_special=parse_special
            )
            wanted = self.encode_query([query], parse_special=parse_special)
            scores = self.similarity(wanted, vectors)[0]
            order = np.argsort(-scores, kind="stable").astype(np.int32)
        ranking: list[dict[str, Any]] = []
        for i in cast(list[int], order[:top_k].tolist()):
            ranking.append({"corpus_id": i, "score": float(scores[i])})
            if return_documents:
                ranking[-1]["text"] = texts[i]
        return ranking

    def classify(
        self,
        texts: Union[str, Sequence[str]],
        text_pairs: Union[None, str, Sequence[str]] = None,
        show_progress_bar: Optional[bool] = None,
        *,
        parse_special: bool = False,
    ) -> Classification:
        """What the model's classification head says of texts, or of pairs. ``parse_special`` is
        that of :meth:`encode`."""
        second = None if text_pairs is None else strings(text_pairs, "text_pairs")
        first = strings(texts, "texts")
        result = self._head_call(lib.classify, [first, second], show_progress_bar, parse_special)
        return Classification(
            result.strings("labels"), result.array("logits"), result.array("probabilities")
        )

    def predict(
        self,
        sentences: Union[tuple[str, str], Sequence[tuple[str, str]], Sequence[Sequence[str]]],
        batch_size: int = 32,
        show_progress_bar: Optional[bool] = None,
        *,
        apply_softmax: bool = False,
        convert_to_numpy: bool = True,
        convert_to_tensor: bool = False,
    ) -> Any:
        """What a cross-encoder says of pairs of texts, as ``CrossEncoder.predict`` gives it:
        [B], the scores of a model with one label, or [B, labels], the logits of another
        (probabilities with ``apply_softmax``); of one pair [] or [labels]. ``batch_size`` and the
        conversions are those of :meth:`encode`."""
        one = len(sentences) == 2 and all(isinstance(text, str) for text in sentences)
        pairs = cast(list[tuple[str, str]], [sentences] if one else list(sentences))
        for pair in pairs:
            if isinstance(pair, str) or len(pair) != 2:
                raise InvalidArgument("predict() takes pairs of texts, like [(query, text)]")
        said = self.classify([a for a, _ in pairs], [b for _, b in pairs], show_progress_bar)
        scores: Any = said.logits
        if len(said.labels) == 1:
            scores = said.probabilities[:, 0]
        elif apply_softmax:
            powers = np.exp(scores - scores.max(axis=1, keepdims=True))
            scores = powers / powers.sum(axis=1, keepdims=True)
        if convert_to_tensor:
            return tensor(scores)[0] if one else tensor(scores)
        if one:
            return scores[0]
        return scores if convert_to_numpy else list(scores)

    def encode_sparse(
        self,
        texts: Union[str, Sequence[str]],
        show_progress_bar: Optional[bool] = None,
        *,
        is_query: bool = False,
        prompt: Optional[str] = None,
        parse_special: bool = False,
    ) -> SparseVectors:
        """A weight for each piece of the vocabulary, of which few are not 0, by SPLADE's or bge-m3's
        formula. ``is_query`` looks texts up where the model has weights for queries, and puts the
        model's prompt for them before each; ``prompt`` stands in its place."""
        how = self._retrieval(is_query, prompt)
        result = self._head_call(
            lib.embed_sparse, [strings(texts, "texts")], show_progress_bar, parse_special,
            c.RetrievalOptions, **how,
        )
        return self._sparse(result)

    def encode_tokens(
        self,
        texts: Union[str, Sequence[str]],
        show_progress_bar: Optional[bool] = None,
        *,
        is_query: bool = False,
        prompt: Optional[str] = None,
        parse_special: bool = False,
    ) -> TokenVectors:
        """A vector of each token, of ColBERT's kind and bge-m3's, for late interaction: see
        :func:`maxsim`. ``is_query`` runs texts as the model runs queries, with its prompt, marker
        and expansion for them; ``prompt`` stands in the prompt's place."""
        how = {**self._retrieval(is_query, prompt), "offset_unit": c.IN_CHARACTERS}
        result = self._head_call(
            lib.embed_tokens, [strings(texts, "texts")], show_progress_bar, parse_special,
            c.RetrievalOptions, **how,
        )
        return TokenVectors(*map(result.array, ("vectors", "offsets", "token_ids", "spans")))

    def encode_all(
        self,
        texts: Union[str, Sequence[str]],
        show_progress_bar: Optional[bool] = None,
        *,
        dense: bool = True,
        sparse: bool = True,
        tokens: bool = True,
        is_query: bool = False,
        prompt: Optional[str] = None,
        parse_special: bool = False,
    ) -> AllVectors:
        """What :meth:`encode`, :meth:`encode_sparse` and :meth:`encode_tokens` give, from one run of
        each text (bge-m3)."""
        how = {**self._retrieval(is_query, prompt), "offset_unit": c.IN_CHARACTERS}
        kinds = (1 if dense else 0) + (2 if sparse else 0) + (4 if tokens else 0)
        result = self._head_call(
            lambda encoder, *rest: lib.embed_all(encoder, rest[0], kinds, *rest[1:]),
            [strings(texts, "texts")], show_progress_bar, parse_special, c.RetrievalOptions, **how,
        )
        names = ("token_vectors", "token_offsets", "token_ids", "token_spans")
        return AllVectors(
            result.array("vectors") if dense else None,
            self._sparse(result, "sparse_") if sparse else None,
            TokenVectors(*map(result.array, names)) if tokens else None,
        )

    def encode_chunks(
        self,
        texts: Union[str, Sequence[str]],
        chunks: Union[str, int, Sequence[Sequence[tuple[int, int]]]] = "sentences",
        show_progress_bar: Optional[bool] = None,
        *,
        pooling: Optional[str] = None,
        normalize_embeddings: bool = False,
        overflow: str = "window",
        prompt: Optional[str] = None,
        parse_special: bool = False,
    ) -> ChunkVectors:
        """A vector of each sentence, or of each ``chunks`` tokens, pooled in one run of the whole
        text (late chunking). ``chunks`` may also list the chunks of each text, from their first
        character to before their last; the vector of one without tokens is zeros. A text that is
        too long runs in windows, unless ``overflow`` is another policy; the pooling must not be
        "cls"."""
        number, spans, span_offsets = _chunks(chunks)
        how: dict[str, Any] = {**self._retrieval(False, prompt), "overflow": overflow_policy(overflow)}
        del how["is_query"]
        if pooling is not None:
            how["pooling"] = c.c_string(pooling)
        listed = strings(texts, "texts")
        if span_offsets is not None and len(span_offsets) != len(listed) + 1:
            raise InvalidArgument(
                f"there are {len(listed)} texts, and the chunks of {len(span_offsets) - 1}"
            )
        places = [None if each is None else each.ctypes.data for each in (spans, span_offsets)]
        result = self._head_call(
            lambda e, *rest: lib.embed_chunks(
                e, rest[0], number, *places, c.IN_CHARACTERS, *rest[1:]
            ),
            [listed], show_progress_bar, parse_special, c.EmbedOptions,
            normalize=1 if normalize_embeddings else 0, **how,
        )
        return ChunkVectors(*map(result.array, ("vectors", "offsets", "spans")))

    def _sparse(self, result: c.Result, prefix: str = "") -> SparseVectors:
        indptr, indices, values = (
            result.array(prefix + name) for name in ("offsets", "indices", "values")
        )
        vocabulary = self.info["sizes"]["vocabulary"]
        return SparseVectors(indptr, indices, values, (len(indptr) - 1, vocabulary))

    def _retrieval(self, is_query: bool, prompt: Optional[str]) -> dict[str, Any]:
        if prompt is None:
            names = ("query",) if is_query else ("document", "passage", "corpus")
            prompt = next((self.prompts[name] for name in names if self.prompts.get(name)), None)
        before = None if prompt is None else c.utf8(prompt, "prompt")
        return {"is_query": bool(is_query), "prompt": before, "prompt_size": len(before or b"")}

    def label_tokens(
        self,
        texts: Union[str, Sequence[str]],
        aggregation_strategy: str = "simple",
        show_progress_bar: Optional[bool] = None,
        *,
        parse_special: bool = False,
    ) -> Any:
        """The spans that a token classifier finds, as Transformers' token-classification pipeline
        gives them (of BIOES labels those of the most probable legal sequence): of one text a list of ``{"entity_group", "score", "word", "start", "end"}``,
        of several a list of such lists. ``word`` is the text from character ``start`` to before
        ``end``; with the strategy "none" each token is one, with ``entity`` and ``index``."""
        aggregation = choice("aggregation_strategy", aggregation_strategy, _AGGREGATIONS)
        how = {"aggregation": aggregation, "offset_unit": c.IN_CHARACTERS}
        given = strings(texts, "texts")
        result = self._head_call(
            lib.label_tokens, [given], show_progress_bar, parse_special, c.LabelOptions, **how
        )
        labels, scores = result.strings("labels"), result.numbers("scores")
        spans, tokens, offsets = map(result.numbers, ("spans", "tokens", "offsets"))
        found: list[list[dict[str, Any]]] = []
        for text, begin, end in zip(given, offsets, offsets[1:]):
            found.append([])
            for i in range(begin, end):
                kind = "entity" if aggregation_strategy == "none" else "entity_group"
                entity = {kind: labels[i], "score": scores[i]}
                if kind == "entity":
                    entity["index"] = tokens[i][0]
                entity["word"] = text[spans[i][0] : spans[i][1]]
                entity["start"], entity["end"] = spans[i]
                found[-1].append(entity)
        return found[0] if isinstance(texts, str) else found

    def _head_call(
        self,
        function: Callable[..., int],
        texts: list[Optional[list[str]]],
        show_progress_bar: Optional[bool],
        parse_special: bool,
        kind: Any = c.ClassifyOptions,
        **more: Any,
    ) -> c.Result:
        borrowed = [None if each is None else c.BorrowedTexts(each) for each in texts]
        pointers = [None if each is None else each.pointer for each in borrowed]
        result = c.Result()
        bar = _ProgressBar(show_progress_bar)
        call = Call(self._open(), bar.shower())
        options = kind(
            stop=call.stop,
            user=id(call),
            parse_special=bool(parse_special),
            max_tokens=self._settings.max_tokens,
            **more,
        )
        if bar.shown:
            options.progress = call_progress
        call.keep = (*borrowed, options, result)
        with contextlib.closing(bar):
            call.run(lambda e: function(e, *pointers, ctypes.byref(options), result.pointer()))
        return result


class SparseVectors(NamedTuple):
    """The rows of a matrix [B, V] without their zeros (CSR): row i has ``values[indptr[i] :
    indptr[i + 1]]`` in the columns ``indices[indptr[i] : indptr[i + 1]]``, which are token ids."""

    indptr: npt.NDArray[np.int64]  #: [B + 1]
    indices: npt.NDArray[np.int32]
    values: FloatArray
    shape: tuple[int, int]  #: (B, V)

    def to_scipy(self) -> Any:
        """The same as a ``scipy.sparse.csr_matrix``: ``a @ b.T`` has the dot products."""
        import scipy.sparse

        return scipy.sparse.csr_matrix((self.values, self.indices, self.indptr), self.shape)


class TokenVectors(NamedTuple):
    """A vector of each token, those of one text behind those of the other."""

    vectors: FloatArray  #: [N, E]
    offsets: npt.NDArray[np.int64]  #: [B + 1]; text i has vectors[offsets[i] : offsets[i + 1]]
    token_ids: npt.NDArray[np.int32]  #: [N]
    spans: npt.NDArray[np.int64]  #: [N, 2], in characters of the text; [0, 0] of what was added

    def texts(self) -> list[FloatArray]:
        """The vectors of each text, [n, E], without copies."""
        return [self.vectors[a:b] for a, b in zip(self.offsets, self.offsets[1:])]


class AllVectors(NamedTuple):
    """Vectors of :meth:`Encoder.encode_all`; None of a kind that was not asked for."""

    dense: Optional[FloatArray]  #: [B, W]
    sparse: Optional[SparseVectors]
    tokens: Optional[TokenVectors]


class ChunkVectors(NamedTuple):
    """A vector of each chunk, those of one text behind those of the other."""

    vectors: FloatArray  #: [N, W]
    offsets: npt.NDArray[np.int64]  #: [B + 1]; text i has vectors[offsets[i] : offsets[i + 1]]
    spans: npt.NDArray[np.int64]  #: [N, 2], in characters of the text

    def texts(self) -> list[FloatArray]:
        """The vectors of each text, [n, W], without copies."""
        return [self.vectors[a:b] for a, b in zip(self.offsets, self.offsets[1:])]


_Numbers = npt.NDArray[np.int64]


def _chunks(chunks: Any) -> tuple[int, Optional[_Numbers], Optional[_Numbers]]:
    """The number of tokens, 0 for none; or spans [N, 2] and the offsets of each text's, [B + 1]."""
    if isinstance(chunks, str) and chunks == "sentences":
        return 0, None, None
    if isinstance(chunks, int) and chunks is not True and chunks > 0:
        return chunks, None, None
    try:
        if isinstance(chunks, (str, int)):
            raise TypeError
        of_texts = [np.array(spans, np.int64).reshape(len(spans), 2) for spans in chunks]
    except (TypeError, ValueError):
        raise InvalidArgument(
            f"chunks is {chunks!r}; it may be 'sentences', a number above 0, or the (begin, end) "
            "of the chunks of each text"
        ) from None
    counts = [len(spans) for spans in of_texts]
    return 0, np.concatenate([np.empty((0, 2), np.int64), *of_texts]), np.cumsum([0, *counts])


def maxsim(queries: TokenVectors, documents: TokenVectors) -> FloatArray:
    """``[q, d]``: of each vector of query q the largest dot product with one of document d, summed;
    0 where one of them has no vector. :meth:`Encoder.rank` does it on all threads, and divides by
    the number of the query's vectors where the model's files say so (bge-m3)."""
    widths = queries.vectors.shape[1], documents.vectors.shape[1]
    if widths[0] != widths[1]:
        raise InvalidArgument(f"vectors of widths {widths[0]} and {widths[1]} cannot be compared")
    return np.array(
        [
            [(a @ b.T).max(axis=1).sum() if len(a) and len(b) else 0.0 for b in documents.texts()]
            for a in queries.texts()
        ],
        dtype=np.float32,
    )


def _normalize(vectors: FloatArray) -> FloatArray:
    """To length 1, in place."""
    vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    return vectors
