"""The encoder: texts in, vectors, hidden states and everything between out."""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import itertools
import json
import os
import sys
import time
from typing import (
    Any,
    Callable,
    Dict,
    Iterable,
    Iterator,
    List,
    NoReturn,
    Optional,
    Sequence,
    Tuple,
    Union,
    cast,
    overload,
)

import numpy as np
import numpy.typing as npt

from . import _library as c
from ._calls import Callbacks, HookUser, Pool, call_hook, call_progress
from ._library import InvalidArgument, address, check, floats, integer, lib
from .cache import (
    ActivationCache,
    Encoding,
    FloatArray,
    FwdHooks,
    NamesFilter,
    hook_caller,
    pick_names,
)
from .observed import Observed, compare, observe, strings
from .run_options import (
    OVERFLOWS,
    Cut,
    PositionsLike,
    RunPositions,
    choice,
    int32,
    residual_cuts,
)

#: Texts, or token ids of one sequence or of several.
TextsOrIds = Union[
    str,
    Sequence[str],
    Sequence[int],
    Sequence[Sequence[int]],
    Sequence[npt.NDArray[Any]],
    npt.NDArray[Any],
]

_PRECISIONS = {"f32": 0, "float32": 0, "bf16": 1, "bfloat16": 1, "int8": 2, "auto": 3}
_PRECISION_NAMES = ("f32", "bf16", "int8")
_CHUNK = 16384  # texts that are handed over together, so that memory stays flat


@dataclasses.dataclass(frozen=True)
class Tokens:
    """How one text was tokenized."""

    #: The ids, special tokens included, [T].
    ids: npt.NDArray[np.int32]
    #: A string for each id.
    pieces: List[str]
    #: Of a pair: the token type of each id, [T]; otherwise None.
    token_types: Optional[npt.NDArray[np.int32]]
    #: How many text tokens were cut off.
    dropped: int
    #: How many bytes were not UTF-8 (lone surrogates), read as U+FFFD.
    invalid_bytes: int


@dataclasses.dataclass(frozen=True)
class Classification:
    """What a classification head says of B texts."""

    labels: List[str]
    logits: FloatArray  # [B, labels]
    probabilities: FloatArray  # [B, labels]


class _Model:
    """A phasor_model; a call that uses it keeps it, whoever closes the Encoder."""

    def __init__(self, folder_or_name: Union[str, "os.PathLike[str]"], options: c.LoadOptions):
        self.handle = ctypes.c_void_p()
        name = c.path(folder_or_name)
        check(lib.model_load(name, ctypes.byref(options), ctypes.byref(self.handle)))

    def __del__(self) -> None:
        if self.handle:
            lib.model_free(self.handle)


def _ids(texts: TextsOrIds) -> Optional[List[npt.NDArray[Any]]]:
    """The sequences, if these are ids; None if they are texts."""
    if isinstance(texts, str):
        return None
    given = list(c.ordered(texts, "texts"))
    if given and isinstance(given[0], str):
        return None
    several = not given or not isinstance(given[0], (int, np.integer))
    sequences = []
    for sequence in given if several else [given]:
        try:
            array = np.asarray(sequence)
        except ValueError:  # ragged
            array = np.empty(())
        if array.ndim != 1 or array.dtype.kind not in "iu" and array.size:
            raise TypeError(
                "texts are str or sequences of str; token ids are sequences of 32-bit int, or several"
            )
        sequences.append(int32(array, "token ids"))
    return sequences


class _ProgressBar:
    """tqdm's bar where it is installed, otherwise a line of our own."""

    def __init__(self, total: Optional[int]) -> None:
        self._total = total
        self._done = 0
        self._shown = 0.0
        try:
            from tqdm.auto import tqdm

            self._bar: Any = tqdm(total=total, desc="texts", unit="text")
        except ImportError:
            self._bar = None

    def show(self, done: int) -> None:
        if self._bar is not None:
            self._bar.update(done - self._done)
        self._done = done
        if self._bar is None and time.monotonic() - self._shown > 0.1:
            self._shown = time.monotonic()
            of = f" of {self._total}" if self._total is not None else ""
            print(f"\r{done}{of} texts", end="", file=sys.stderr, flush=True)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()
        else:
            print(f"\r{self._done} texts" + " " * 20, file=sys.stderr)


class Encoder:
    """Runs a model.

    ``folder_or_name`` is a model folder (``config.json``, ``model.safetensors``, tokenizer files)
    or the name of a bundled model: ``sinusoidal``, ``learned`` or ``none``. ``threads`` share each
    run; 0 stands for one for each core. ``precision`` is ``f32``, ``bf16``, ``int8`` or ``auto``.
    ``language`` is for tokenizers whose texts carry one. ``copy`` reads the weights into memory
    instead of mapping their files.

    Any number of Python threads may use one Encoder: as many calls run at once as their threads fit
    on the cores, and others wait. It works in a child after ``os.fork()``, unless another thread
    ran phasor at that moment; then calls raise :class:`phasor.Busy`.

    Shape letters: B texts, N tokens of all texts, T tokens of one text, C width of the states, H
    heads, D width of a head, V vocabulary, W width of the vectors.
    """

    def __init__(
        self,
        folder_or_name: Union[str, "os.PathLike[str]"] = "sinusoidal",
        *,
        threads: int = 0,
        precision: str = "f32",
        language: Optional[str] = None,
        copy: bool = False,
    ) -> None:
        self._pool: Optional[Pool] = None
        options = c.EncoderOptions(
            threads=threads, precision=choice("precision", precision, _PRECISIONS)
        )
        load = c.LoadOptions(copy=bool(copy))
        if language is not None:
            load.language = c.c_string(language)
        model = self._model = _Model(folder_or_name, load)
        base = ctypes.c_void_p()
        check(lib.encoder_create(model.handle, ctypes.byref(options), ctypes.byref(base)))
        #: How many threads share a run.
        self.threads: int = lib.encoder_threads(base)
        #: "f32", "bf16" or "int8".
        self.precision: str = _PRECISION_NAMES[lib.encoder_precision(base)]
        #: What ``infer info --json`` prints of the model.
        self.info: Dict[str, Any] = json.loads(lib.model_info(model.handle))
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
        self._pool = Pool(base, max(1, cores // self.threads))
        self._language = language
        self._widths: Dict[Optional[str], int] = {}

    # --- Vectors of texts ---

    def encode(
        self,
        sentences: Union[str, Iterable[str]],
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
        positions: PositionsLike = None,
        edit: Union[str, Sequence[str]] = (),
    ) -> Any:
        """Vectors of texts, as ``SentenceTransformer.encode`` makes them: [W] of one text, [B, W]
        of several, float32.

        ``prompt_name`` picks one of the model's prompts, ``prompt`` is put before every text;
        without either the model's default is used. ``batch_size`` is accepted and has no effect:
        phasor packs texts by their lengths. ``output_value="token_embeddings"`` gives a list of
        hidden states [T, C] instead. ``normalize_embeddings`` makes vectors of length 1, also
        where the model's files do not ask for it; ``truncate_dim`` keeps the first numbers. ``out``
        [B, W] receives the vectors, such as a ``numpy.memmap``; then ``sentences`` may be any
        iterable, of which 16384 texts are in memory at a time. ``pooling``, ``max_tokens`` and
        ``overflow`` ("truncate", "error", "window", "clamp", "interpolate") replace what the
        model's files say; ``positions`` and ``edit`` are those of :meth:`run_with_cache`.
        """
        pool = self._open()
        if isinstance(output_value, str) and output_value == "token_embeddings":
            others = [normalize_embeddings, edit]
            others += [x is not None for x in (truncate_dim, out, pooling, overflow, positions)]
            if any(others):
                raise InvalidArgument(
                    "token_embeddings takes a prompt and max_tokens, no other options; "
                    "run_with_cache() has those of positions"
                )
            return self._token_embeddings(sentences, prompt_name, prompt, max_tokens)
        if not isinstance(output_value, str) or output_value != "sentence_embedding":
            raise InvalidArgument(
                f"output_value is {str(output_value)[:40]!r}; it may be 'sentence_embedding' or "
                "'token_embeddings'"
            )
        options = c.EmbedOptions(max_tokens=max_tokens, stop=pool.stop)
        if overflow is not None:
            options.overflow = choice("overflow policy", overflow, OVERFLOWS)
        if pooling is not None:
            options.pooling = c.c_string(pooling)
        prompt = self._prompt(prompt_name, prompt)
        if prompt is not None:
            encoded = c.utf8(prompt)
            options.prompt, options.prompt_size = encoded, len(encoded)
        held = None
        if positions is not None or edit:
            held = RunPositions(positions, edit)
            options.positions = held.pointer
        width = self._width(pooling, options)
        # A truncated vector is normalised after that, as sentence-transformers does.
        keep = width if truncate_dim is None else integer("truncate_dim", truncate_dim)
        if not 0 < keep <= width:
            raise InvalidArgument(f"truncate_dim is {keep}; the vectors have {width} numbers")
        options.normalize = 1 if normalize_embeddings and keep == width else 0
        one = isinstance(sentences, str)
        if one and out is None:
            vectors = np.empty((1, width), np.float32)
            self._embed([cast(str, sentences)], options, vectors, None)
        else:
            texts = [cast(str, sentences)] if one else sentences
            vectors = self._embed_all(texts, options, width, keep, out, show_progress_bar)
        vectors = vectors[:, :keep]
        if normalize_embeddings and keep < width and out is None:
            _normalize(vectors)
        return vectors[0] if one else vectors

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
        bar = _ProgressBar(len(out)) if show_progress_bar else None
        done = 0
        try:
            while chunk := list(itertools.islice(left, _CHUNK)):
                if done + len(chunk) > len(out):
                    raise InvalidArgument(f"there are more than the {len(out)} texts of out")
                self._embed(chunk, options, out[done : done + len(chunk)], bar, done)
                done += len(chunk)
                chunk.clear()  # before the next texts are made
        finally:
            if bar is not None:
                bar.close()
        if done < len(out):
            raise InvalidArgument(f"out has room for {len(out)} texts, and there were {done}")
        return out

    def _embed(
        self,
        texts: Sequence[str],
        options: c.EmbedOptions,
        vectors: npt.NDArray[np.float32],
        bar: Optional[_ProgressBar],
        before: int = 0,
    ) -> None:
        if not texts:
            return
        options.output, options.output_size = address(vectors), vectors.size
        borrowed = c.BorrowedTexts(texts)
        pool = self._open()
        if len(texts) == 1 and bar is None:
            encoder = pool.acquire()
            try:
                status = lib.embed(encoder, borrowed.pointer, ctypes.byref(options), None)
                check(status)
            finally:
                pool.release(encoder)
            return

        def progress(done: int, _total: int) -> None:  # lets Ctrl-C through, too
            if bar is not None:
                bar.show(before + done)

        with self._encoder() as encoder, Callbacks(pool, progress) as calls:
            options.progress, options.user = call_progress, id(calls)
            calls.check(lib.embed(encoder, borrowed.pointer, ctypes.byref(options), None))

    def _token_embeddings(
        self,
        sentences: Union[str, Iterable[str]],
        prompt_name: Optional[str],
        prompt: Optional[str],
        max_tokens: int,
    ) -> Any:
        one = isinstance(sentences, str)
        texts = [cast(str, sentences)] if one else c.strs(sentences, "sentences")
        before = self._prompt(prompt_name, prompt)
        if before is None:
            before = cast(str, self._sentence().get("prompt", ""))
        position = self.info["position"]  # the length is that of the texts of phasor_embed()
        longest = max_tokens or self._sentence().get("max_tokens", 0)
        longest = longest or position.get("trained_length", 2048)
        longest = min(longest, position.get("usable_positions", longest))
        states: List[FloatArray] = []
        for start in range(0, len(texts), 1024):
            tokens = self.tokenize(
                [before + text for text in texts[start : start + 1024]], max_tokens=longest
            )
            states += self.forward([t.ids for t in tokens])
        return states[0] if one else states

    def embed_documents(self, texts: List[str]) -> List[List[float]]:
        """Vectors of documents, with the model's prompt for them, as LangChain wants them."""
        name = self._prompt_of("document", "passage", "corpus")
        vectors = self.encode(c.strs(texts, "texts"), prompt_name=name)
        return cast(List[List[float]], vectors.tolist())

    def embed_query(self, text: str) -> List[float]:
        """The vector of a query, with the model's prompt for queries, as LangChain wants it."""
        name = self._prompt_of("query")
        return cast(List[float], self.encode([text], prompt_name=name)[0].tolist())

    def similarity(self, a: npt.ArrayLike, b: npt.ArrayLike) -> FloatArray:
        """Cosines between the vectors ``a`` [n, W] and ``b`` [m, W]: [n, m]."""
        first = np.array(floats("vectors", a), ndmin=2)
        second = np.array(floats("vectors", b), ndmin=2)
        if first.ndim > 2 or second.ndim > 2 or first.shape[1] != second.shape[1]:
            raise InvalidArgument(
                f"vectors of shapes {first.shape} and {second.shape} cannot be compared"
            )
        return _normalize(first) @ _normalize(second).T

    def rank(
        self,
        query: str,
        documents: Sequence[str],
        top_k: Optional[int] = None,
        return_documents: bool = False,
        show_progress_bar: Optional[bool] = None,
    ) -> List[Dict[str, Any]]:
        """Documents by relevance, best first, as ``CrossEncoder.rank`` gives them: dicts with
        ``corpus_id``, ``score`` and, on request, ``text``. A reranker reads query and document
        together; of other models the score is the cosine of their vectors."""
        self._open()
        if top_k is not None and integer("top_k", top_k) < 0:
            raise InvalidArgument(f"top_k is {top_k}; it must be 0 or more")
        texts = c.strs(documents, "documents")
        if not texts:
            return []
        result = self._classify_call(lib.rank, [query], texts, show_progress_bar)
        order, scores = result.array("order"), result.array("scores")
        ranking: List[Dict[str, Any]] = []
        for i in order[:top_k].tolist():
            ranking.append({"corpus_id": i, "score": float(scores[i])})
            if return_documents:
                ranking[-1]["text"] = texts[i]
        return ranking

    def classify(
        self,
        texts: Sequence[str],
        text_pairs: Optional[Sequence[str]] = None,
        show_progress_bar: Optional[bool] = None,
    ) -> Classification:
        """What the model's classification head says of texts, or of pairs."""
        second = None if text_pairs is None else c.strs(text_pairs, "text_pairs")
        first = c.strs(texts, "texts")
        result = self._classify_call(lib.classify, first, second, show_progress_bar)
        return Classification(
            result.strings("labels"), result.array("logits"), result.array("probabilities")
        )

    def _classify_call(
        self,
        function: Callable[..., int],
        first: List[str],
        second: Optional[List[str]],
        show_progress_bar: Optional[bool],
    ) -> c.Result:
        a = c.BorrowedTexts(first)
        b = c.BorrowedTexts(second) if second is not None else None
        result = c.Result()
        bar = _ProgressBar(None) if show_progress_bar else None

        def progress(done: int, _total: int) -> None:
            if bar is not None:
                bar.show(done)

        pool = self._open()
        try:
            with self._encoder() as encoder, Callbacks(pool, progress) as calls:
                options = c.ClassifyOptions(
                    progress=call_progress, user=id(calls), stop=pool.stop
                )
                status = function(
                    encoder,
                    a.pointer,
                    b.pointer if b is not None else None,
                    ctypes.byref(options),
                    result.pointer(),
                )
                calls.check(status)
        finally:
            if bar is not None:
                bar.close()
        return result

    def get_sentence_embedding_dimension(self) -> int:
        """W."""
        self._open()
        return self._width(None, c.EmbedOptions())

    # --- Tokens ---

    @overload  # type: ignore
    def tokenize(  # type: ignore
        self,
        texts: str,
        text_pairs: Optional[str] = ...,
        *,
        parse_special: bool = ...,
        max_tokens: int = ...,
    ) -> Tokens:
        ...

    @overload
    def tokenize(
        self,
        texts: Sequence[str],
        text_pairs: Optional[Sequence[str]] = ...,
        *,
        parse_special: bool = ...,
        max_tokens: int = ...,
    ) -> List[Tokens]:
        ...

    def tokenize(
        self,
        texts: Union[str, Sequence[str]],
        text_pairs: Union[None, str, Sequence[str]] = None,
        *,
        parse_special: bool = False,
        max_tokens: int = 0,
    ) -> Union[Tokens, List[Tokens]]:
        """Ids and pieces of a text, or of each of several, or of pairs. ``parse_special`` reads
        special tokens in the text ("[MASK]") as such; ``max_tokens`` cuts."""
        self._open()
        model = self._model  # kept by this call
        one = isinstance(texts, str)
        first = c.BorrowedTexts([cast(str, texts)] if one else c.strs(texts, "texts"))
        second = None
        if text_pairs is not None:
            pairs = [text_pairs] if one else c.strs(text_pairs, "text_pairs")
            second = c.BorrowedTexts(cast(List[str], pairs))
        options = c.TokenizeOptions(parse_special=bool(parse_special), max_tokens=max_tokens)
        result = c.Result()
        check(
            lib.tokenize(
                model.handle,
                first.pointer,
                second.pointer if second is not None else None,
                ctypes.byref(options),
                result.pointer(),
            )
        )
        ids, offsets = result.array("token_ids"), result.array("offsets")
        types = result.array("token_types") if second is not None else None
        dropped, invalid = result.array("dropped_tokens"), result.array("invalid_bytes")
        pieces = result.strings("pieces")
        tokens = []
        for i, (begin, end) in enumerate(zip(offsets, offsets[1:])):
            tokens.append(
                Tokens(
                    ids[begin:end],
                    pieces[begin:end],
                    types[begin:end] if types is not None else None,
                    int(dropped[i]),
                    int(invalid[i]),
                )
            )
        return tokens[0] if one else tokens

    # --- Looking inside ---

    @property
    def hook_names(self) -> List[str]:
        """Every hook of the model, as TransformerLens names them; some exist only in models of a
        kind (``hook_rot_q`` where positions are rotary)."""
        layers = self.info["sizes"]["layers"]
        names = []
        for template in iter(_hook_templates()):
            if "{}" in template:
                names += [template.replace("{}", str(layer)) for layer in range(layers)]
            else:
                names.append(template)
        return names

    def forward(
        self,
        texts: TextsOrIds,
        *,
        fwd_hooks: FwdHooks = (),
        positions: PositionsLike = None,
        edit: Union[str, Sequence[str]] = (),
        cut_residual: Union[Cut, Iterable[Cut]] = (),
        overflow: str = "error",
    ) -> Encoding:
        """The hidden states of texts as they are, without a prompt, or of token ids, to which
        nothing is added. Options as in :meth:`run_with_cache`."""
        result, _ = self._run(texts, [], fwd_hooks, positions, edit, cut_residual, overflow)
        return Encoding(result)

    run_with_hooks = forward

    def run_with_cache(
        self,
        texts: TextsOrIds,
        names_filter: NamesFilter = None,
        *,
        fwd_hooks: FwdHooks = (),
        positions: PositionsLike = None,
        edit: Union[str, Sequence[str]] = (),
        cut_residual: Union[Cut, Iterable[Cut]] = (),
        overflow: str = "error",
        remove_batch_dim: bool = False,
    ) -> Tuple[Encoding, ActivationCache]:
        """Runs texts, and keeps what passes the hooks that ``names_filter`` picks: a name, several,
        a function of a name, or None for all. Without a filter a text of T tokens takes
        4·(14·T·C + 2·H·T²) bytes a layer, or a little more.

        ``fwd_hooks`` are pairs of such a filter and a function ``f(value, hook)``, which gets a
        value with a leading batch dimension of 1, for one text after the other, and may change it
        in place or return another: to set a head to zero, or to patch in a value of another run.
        The run goes on with what it leaves, and the cache holds that.

        ``positions`` replaces the model's: a name ("none", "sinusoidal:paper", "learned", "rotary",
        "alibi"), a table [rows, E] or one int for each token. ``edit`` changes them: "zero",
        "scale=0.5", "shift=3", "swap=2,5", "reverse", "shuffle=7", "repeat", or several in order.
        ``cut_residual`` leaves out residual connections: layers from 0, "blocks.0.attn" or
        "blocks.0.mlp". ``overflow`` says what to do with a text longer than the positions.
        """
        names = pick_names(names_filter, self.hook_names)
        result, num_texts = self._run(
            texts, names, fwd_hooks, positions, edit, cut_residual, overflow
        )
        return Encoding(result), ActivationCache(result, num_texts, not remove_batch_dim)

    def _run(
        self,
        texts: TextsOrIds,
        record: List[str],
        fwd_hooks: FwdHooks,
        positions: PositionsLike,
        edit: Union[str, Sequence[str]],
        cut_residual: Union[Cut, Iterable[Cut]],
        overflow: str,
    ) -> Tuple[c.Result, int]:
        pool = self._open()
        recorded = c.BorrowedNames(record)
        held = RunPositions(positions, edit)
        cuts = residual_cuts(cut_residual)
        cut_array = (c.ResidualCut * len(cuts))(*[c.ResidualCut(*cut) for cut in cuts])
        options = c.RunOptions(
            positions=held.pointer,
            overflow=choice("overflow policy", overflow, OVERFLOWS),
            record=recorded.pointer,
            num_record=recorded.count,
            cut_residuals=ctypes.addressof(cut_array),
            num_cut_residuals=len(cuts),
            stop=pool.stop,
        )
        result = c.Result()
        points: List[Tuple[bytes, int]] = []  # name, index of the function
        functions: List[Callable[[Any], None]] = []
        for pair in fwd_hooks:
            if not isinstance(pair, (tuple, list)) or len(pair) != 2:
                raise TypeError("fwd_hooks are pairs of names and a function")
            filter, function = pair
            points += [
                (c.c_string(n), len(functions)) for n in pick_names(filter, self.hook_names)
            ]
            functions.append(hook_caller(function))
        sequences = _ids(texts)
        with self._encoder() as encoder, Callbacks(pool, hooks=functions) as calls:
            users = [HookUser(id(calls), index) for _, index in points]
            hooks = (c.Hook * len(points))(
                *[
                    c.Hook(name, call_hook, ctypes.addressof(user), 1)
                    for (name, _), user in zip(points, users)
                ]
            )
            options.hooks, options.num_hooks = ctypes.addressof(hooks), len(points)
            if sequences is None:
                given = [texts] if isinstance(texts, str) else c.strs(texts, "texts")
                num_texts = len(given)
                borrowed = c.BorrowedTexts(given)
                status = lib.encode(
                    encoder, borrowed.pointer, ctypes.byref(options), result.pointer()
                )
            else:
                num_texts = len(sequences)
                ids = np.concatenate([np.empty(0, np.int32), *sequences])
                offsets = np.zeros(num_texts + 1, np.int64)
                offsets[1:] = np.cumsum([len(s) for s in sequences])
                status = lib.encode_ids(
                    encoder,
                    address(ids),
                    address(offsets),
                    num_texts,
                    ctypes.byref(options),
                    result.pointer(),
                )
            calls.check(status)
        return result, num_texts

    def mlm_logits(self, hidden: npt.ArrayLike) -> FloatArray:
        """Scores over the vocabulary for states [n, C], before the softmax: [n, V]."""
        states = np.ascontiguousarray(floats("hidden", hidden))
        width = self.info["sizes"]["d_model"]
        if states.ndim != 2 or states.shape[1] != width:
            raise InvalidArgument(f"hidden has shape {states.shape}; it must be [n, {width}]")
        logits = np.empty((len(states), self.info["sizes"]["vocabulary"]), np.float32)
        with self._encoder() as encoder:
            check(
                lib.mlm_logits(encoder, address(states), len(states), address(logits), logits.size)
            )
        return logits

    def position_vectors(
        self,
        num_tokens: int,
        positions: PositionsLike = None,
        edit: Union[str, Sequence[str]] = (),
        overflow: str = "error",
    ) -> FloatArray:
        """The vectors that a run adds to the tokens of a text of this length, [num_tokens, E]."""
        self._open()
        model = self._model  # kept by this call
        held = RunPositions(positions, edit)
        result = c.Result()
        check(
            lib.position_vectors(
                model.handle,
                integer("num_tokens", num_tokens),
                held.pointer,
                choice("overflow policy", overflow, OVERFLOWS),
                result.pointer(),
            )
        )
        return result.array("vectors")

    def observe(self, texts: Union[str, Sequence[str]] = (), **options: Any) -> Observed:
        """:func:`phasor.observe` of this model's folder, in the same precision."""
        return observe(texts, model=self.info["folder"], **self._program_options(options))

    def compare(
        self,
        other: Union[str, "os.PathLike[str]", "Encoder"],
        texts: Union[str, Sequence[str]] = (),
        **options: Any,
    ) -> Observed:
        """:func:`phasor.compare` of this model and another, in the same precision."""
        second = other.info["folder"] if isinstance(other, Encoder) else other
        first = self.info["folder"]
        return compare(first, second, texts, **self._program_options(options))

    def _program_options(self, options: Dict[str, Any]) -> Dict[str, Any]:
        own = ["-t", str(self.threads), "--precision", self.precision]
        if self._language is not None:
            own += ["--lang", self._language]
        return {**options, "options": [*own, *strings(options.get("options", ()), "options")]}

    # --- Lifetime ---

    def close(self) -> None:
        """Frees the packed weights and ends the threads, once calls that run have ended. Arrays
        that were returned stay valid."""
        if self._pool is not None:
            self._pool.close()

    def __enter__(self) -> "Encoder":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        with contextlib.suppress(Exception):  # the interpreter may be ending
            self.close()

    def __reduce__(self) -> NoReturn:
        raise TypeError("an Encoder is not copied or pickled; make one in each process")

    def __repr__(self) -> str:
        sizes = self.info["sizes"]
        return (
            f"<phasor.Encoder {self.info['family']}, {sizes['layers']} layers, "
            f"d_model {sizes['d_model']}, positions {self.info['position']['kind']}, "
            f"{self.precision}, {self.threads} threads>"
        )

    # --- Parts ---

    def _open(self) -> Pool:
        if self._pool is None or self._pool.closed:
            raise c.Error("this Encoder is closed")
        return self._pool

    @contextlib.contextmanager
    def _encoder(self) -> Iterator[ctypes.c_void_p]:
        pool = self._open()
        encoder = pool.acquire()
        try:
            yield encoder
        finally:
            pool.release(encoder)

    def _width(self, pooling: Optional[str], options: c.EmbedOptions) -> int:
        if pooling not in self._widths:
            width = ctypes.c_int64()
            with self._open().base() as base:
                check(lib.embedding_width(base, ctypes.byref(options), ctypes.byref(width)))
            self._widths[pooling] = width.value
        return self._widths[pooling]

    def _sentence(self) -> Dict[str, Any]:
        return cast(Dict[str, Any], self.info.get("sentence", {}))

    def _prompt(self, name: Optional[str], prompt: Optional[str]) -> Optional[str]:
        if prompt is not None or name is None:
            return prompt
        prompts = self._sentence().get("prompts", {})
        if name not in prompts:
            raise InvalidArgument(
                f"the model has no prompt {name!r}; there are: {', '.join(prompts) or 'none'}"
            )
        return cast(str, prompts[name])

    def _prompt_of(self, *names: str) -> Optional[str]:
        """The first of these names that the model has a prompt for."""
        prompts = self._sentence().get("prompts", {})
        return next((name for name in names if name in prompts), None)


def _hook_templates() -> Iterator[str]:
    for i in itertools.count():
        name = lib.hook_name(i)
        if name is None:
            return
        yield name.decode()


def _normalize(vectors: FloatArray) -> FloatArray:
    """To length 1, in place."""
    vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    return vectors
