"""The encoder: texts in, vectors, hidden states and everything between out."""

from __future__ import annotations

import contextlib
import contextvars
import dataclasses
import os
import types
import weakref
from typing import TYPE_CHECKING, Any, Callable, Iterable, Iterator, Literal, Mapping
from typing import Optional, Sequence, TypeVar, Union, cast, overload

import numpy as np
import numpy.typing as npt

from . import _library as c
from . import heads, inside, vectors
from ._base import ModelName, in_cache, opened
from ._calls import Handle, hooks_around
from ._library import InvalidArgument, address, check, floats, integer, lib
from .cache import Encoding, FwdHooks
from .heads import AllVectors, Classification, SparseVectors, TokenVectors
from .inside import TextsOrIds, Tokens
from .names import HookNames, NamesFilter
from .observed import Figure, Observed, Strings, compare, figure_of, observe, strings
from .residual import ActivationCache
from .run_options import Cut, PositionsLike, RunOptions, RunPositions, choice, int32, residual_cuts
from .settings import SIMILARITIES, Settings, on_cpu, tensor
from .weights import Blocks, FloatArray, Weights

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .run_options import RunKeywords
    from .vectors import EncodeOptions, TextOptions, VectorOptions

Self = TypeVar("Self", bound="Encoder")
Function = TypeVar("Function")
Output = TypeVar("Output")
Pairs = Union[Sequence[tuple[str, str]], Sequence[list[str]]]


def _as(other: Function) -> Callable[[Callable[..., Any]], Function]:
    """A method with the types of another one."""
    return lambda method: cast(Function, method)


class Encoder:
    """Runs a model.

    ``folder_or_name`` is a model folder (``config.json``, weights, tokenizer files), the name of a bundled
    model, such as ``sinusoidal`` or ``rotary``, or ``OWNER/MODEL`` for a model in the hub's local cache;
    nothing is downloaded. ``threads`` share each run; 0 stands for all available cores. ``precision`` is
    ``f32``, ``bf16``, ``int8`` or ``auto``; where none is given it is ``f32``, and the logger ``phasor`` says
    once what others would give here. ``kernels`` is ``own``, ``onednn`` (primitives of oneDNN alone) or
    ``auto``, the faster one. ``language`` is for tokenizers whose texts carry one. ``copy`` reads the weights
    into memory instead of mapping their files. ``follow_links`` follows links that lead out of the folder,
    which are refused otherwise: whoever made the folder could have any file read. ``names`` chooses what four
    names of hooks mean: ``hook_embed``, ``hook_attn_out``, ``hook_resid_mid`` and ``hook_resid_post``. "hooked"
    gives them the values of TransformerLens' HookedEncoder (before version 4), "bridge" those of its
    TransformerBridge, which differ in models like BERT. Names that only the bridge has, such as
    ``blocks.0.ln1.hook_out``, can be used with both. A hook function is told the name that it was given with.

    The other arguments are those of ``SentenceTransformer``. ``prompts``, ``default_prompt_name``,
    ``similarity_fn_name`` and ``truncate_dim`` replace what the model's files say, and can be set later, as
    ``max_seq_length`` can. ``cache_folder`` is a hub cache in which the model lies. ``device`` may be "cpu".
    ``backend``, ``trust_remote_code`` and ``local_files_only`` change nothing. To set anything that an Encoder
    does not have is an AttributeError.

    Any number of Python threads may use one Encoder. A copy, and one that was pickled, loads the model again,
    whose weights processes share.

    Shape letters: B texts, N tokens of all texts, T tokens of one text, C width of the states, F width of the
    MLP, H heads, D width of a head, V vocabulary, W width of the vectors.
    """

    # Nothing else may be set: a setting that phasor does not have would have no effect.
    __slots__ = (
        "_handle", "_model", "_info", "_name", "_place", "_runs", "_options", "_settings", "_own",
        "_widths", "_names", "_weights", "__weakref__",
    )

    def __init__(
        self, folder_or_name: ModelName = "sinusoidal", *, threads: int = 0, precision: Optional[str] = None,
        kernels: str = "auto", language: Optional[str] = None, copy: bool = False, follow_links: bool = False,
        names: str = "hooked",
        # Of SentenceTransformer.
        model_name_or_path: Optional[ModelName] = None, device: object = None,
        prompts: Optional[Mapping[str, str]] = None, default_prompt_name: Optional[str] = None,
        similarity_fn_name: Optional[str] = None, truncate_dim: Optional[int] = None,
        cache_folder: Optional[ModelName] = None, backend: str = "torch", trust_remote_code: bool = False,
        local_files_only: bool = True,
    ) -> None:
        self._handle: Optional[Handle] = None
        on_cpu(device)
        if model_name_or_path is not None and folder_or_name != "sinusoidal":
            raise TypeError("the model was named twice: the first argument is model_name_or_path")
        model = folder_or_name if model_name_or_path is None else model_name_or_path
        if cache_folder is not None and "/" in os.fsdecode(model) and not os.path.isdir(model):
            model = in_cache(os.fsdecode(model), cache_folder)
        options: dict[str, Any] = {
            "threads": threads, "precision": precision, "kernels": kernels, "language": language,
            "copy": copy, "follow_links": follow_links, "names": names,
        }
        self._model, self._info, self._handle, self._runs = opened(model, options)
        self._name = os.fsdecode(model)
        # What loads the model, in any folder and process, as it runs here.
        self._place = os.path.abspath(self._name) if os.path.isdir(self._name) else self._name
        self._options = dict(options, precision=self.precision, kernels=self.kernels)
        # Once they are asked for.
        self._names: Optional[HookNames] = None
        self._weights: Optional[Weights] = None
        self._widths: dict[str, int] = {}

        files = self.info.get("text", {})
        self._settings = Settings({"query": "", "document": "", **files.get("prompts", {})})
        named = [name for name, text in self.prompts.items() if text and text == files.get("prompt")]
        self._settings.default_prompt_name = named[0] if named else None
        self._own: Settings = dataclasses.replace(self._settings, prompts=dict(self.prompts))
        if prompts is not None:
            self.prompts = {**self.prompts, **prompts}
        if default_prompt_name is not None:
            self.default_prompt_name = default_prompt_name
        self.truncate_dim = truncate_dim
        if similarity_fn_name is not None:
            self.similarity_fn_name = similarity_fn_name

    def __reduce__(self) -> tuple[Any, ...]:
        settings = dataclasses.replace(self._settings, prompts=dict(self.prompts))
        state = (getattr(self, "__dict__", None), {"_settings": settings})
        return _made, (type(self), self._place, self._options), state

    def close(self) -> None:
        """Frees the packed weights and ends the threads, once calls that run have ended. Arrays
        that were returned stay valid."""
        self._handle = None

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        with contextlib.suppress(Exception):  # the interpreter may be ending
            self.close()

    def __repr__(self) -> str:
        sizes = self.info["sizes"]
        return (
            f"<phasor.Encoder {self.name!r}: {self.info['family']}, {sizes['layers']} layers, "
            f"d_model {sizes['d_model']}, positions {self.info['position']['kind']}, "
            f"{self.precision}, {self.threads} threads>"
        )

    def _open(self) -> Handle:
        handle = self._handle
        if handle is None:
            raise c.Error("this Encoder is closed")
        return handle

    # --- What it is, and what it can be told ---

    @property
    def name(self) -> str:
        """The model's name, or its folder."""
        return self._name

    @property
    def info(self) -> dict[str, Any]:
        """What ``infer info --json`` prints."""
        return self._info

    @property
    def threads(self) -> int:
        """How many threads share a run."""
        return int(self._runs["threads"])

    @property
    def precision(self) -> str:
        """One of "f32", "bf16" and "int8"."""
        return str(self._runs["precision"])

    @property
    def kernels(self) -> str:
        """Either "own" or "onednn"."""
        return str(self._runs["kernels"])

    @property
    def prompts(self) -> dict[str, str]:
        """The prompts by name; "query" and "document" are empty where the model has none."""
        return self._settings.prompts

    @prompts.setter
    def prompts(self, prompts: Mapping[str, str]) -> None:
        if not isinstance(prompts, Mapping):
            raise TypeError(f"prompts is a dict of texts by name, not {type(prompts).__name__}")
        for name, prompt in prompts.items():
            c.utf8(prompt), c.utf8(name)
        self._settings.prompts = dict(prompts)

    @property
    def default_prompt_name(self) -> Optional[str]:
        """The prompt of texts for which none is named; None for no prompt."""
        return self._settings.default_prompt_name

    @default_prompt_name.setter
    def default_prompt_name(self, name: Optional[str]) -> None:
        if not isinstance(name, (str, type(None))):
            raise TypeError(f"default_prompt_name is a str, not {type(name).__name__}")
        self._settings.prompt(name, None)
        self._settings.default_prompt_name = name

    @property
    def truncate_dim(self) -> Optional[int]:
        """How many numbers of a vector :meth:`encode` keeps; None for all."""
        return self._settings.truncate_dim

    @truncate_dim.setter
    def truncate_dim(self, numbers: Optional[int]) -> None:
        if numbers is not None and not 0 < integer("truncate_dim", numbers) <= vectors.width_of(self):
            raise InvalidArgument(f"truncate_dim is {numbers}; the vectors have {vectors.width_of(self)} numbers")
        self._settings.truncate_dim = numbers

    @property
    def max_seq_length(self) -> int:
        """How many tokens of a text :meth:`encode` reads, special tokens included."""
        self._open()
        own = self._settings.max_tokens
        return min(own, self.info["position"].get("usable_positions", own)) or int(self._runs["max_tokens"])

    @max_seq_length.setter
    def max_seq_length(self, tokens: int) -> None:
        if integer("max_seq_length", tokens) < 1:
            raise InvalidArgument(f"max_seq_length is {tokens}; it must be 1 or more")
        self._settings.max_tokens = tokens

    @property
    def similarity_fn_name(self) -> str:
        """What :meth:`similarity` computes: "cosine", "dot", "euclidean" or "manhattan"."""
        files = self.info.get("sentence", {}).get("similarity", "cosine")
        return str(self._settings.similarity or files)

    @similarity_fn_name.setter
    def similarity_fn_name(self, name: str) -> None:
        choice("similarity", name, SIMILARITIES)
        self._settings.similarity = name

    @property
    def device(self) -> str:
        """Always "cpu"."""
        return "cpu"

    def to(self: Self, device: object) -> Self:
        """This Encoder, if the device is the CPU."""
        on_cpu(device)
        return self

    def eval(self: Self) -> Self:
        """This Encoder, which is never trained."""
        return self

    def get_max_seq_length(self) -> int:
        """:attr:`max_seq_length`."""
        return self.max_seq_length

    def get_embedding_dimension(self) -> int:
        """W."""
        self._open()
        return self._settings.truncate_dim or vectors.width_of(self)

    get_sentence_embedding_dimension = get_embedding_dimension  # its name before version 6

    # --- Vectors of texts ---

    # "type: ignore" stands on both lines: mypy 1.0 reports at the decorator, later ones at "def".
    @overload  # type: ignore
    def encode(  # type: ignore
        self, sentences: str, *, output_value: Literal["token_embeddings"], **options: Unpack[EncodeOptions]
    ) -> FloatArray: ...

    @overload
    def encode(
        self, sentences: Iterable[str], *, output_value: Literal["token_embeddings"],
        **options: Unpack[EncodeOptions],
    ) -> list[FloatArray]: ...

    @overload  # type: ignore
    def encode(  # type: ignore
        self, sentences: str, *, output_value: None, **options: Unpack[EncodeOptions]
    ) -> dict[str, FloatArray]: ...

    @overload
    def encode(
        self, sentences: Iterable[str], *, output_value: None, **options: Unpack[EncodeOptions]
    ) -> list[dict[str, FloatArray]]: ...

    @overload  # type: ignore
    def encode(  # type: ignore
        self, sentences: str, *, convert_to_numpy: Literal[False], **options: Unpack[EncodeOptions]
    ) -> FloatArray: ...

    @overload
    def encode(
        self, sentences: Iterable[str], *, convert_to_numpy: Literal[False], **options: Unpack[EncodeOptions]
    ) -> list[FloatArray]: ...

    @overload
    def encode(
        self, sentences: Union[None, str, Iterable[str]] = ..., prompt_name: Optional[str] = ...,
        prompt: Optional[str] = ..., batch_size: int = ..., show_progress_bar: Optional[bool] = ...,
        output_value: Literal["sentence_embedding"] = ..., *, precision: Literal["float32"] = ...,
        convert_to_numpy: Literal[True] = ..., convert_to_tensor: Literal[False] = ...,
        **options: Unpack[VectorOptions],
    ) -> FloatArray: ...

    @overload
    def encode(
        self, sentences: Union[None, str, Iterable[str]] = ..., *, precision: str = ...,
        convert_to_numpy: bool = ..., convert_to_tensor: bool = ..., **options: Unpack[EncodeOptions],
    ) -> Any: ...  # torch's tensors, of which NumPy's types know nothing, or smaller vectors

    def encode(
        self, sentences: Union[None, str, Iterable[str]] = None, prompt_name: Optional[str] = None,
        prompt: Optional[str] = None, batch_size: int = 32, show_progress_bar: Optional[bool] = None,
        output_value: Optional[str] = "sentence_embedding", *, normalize_embeddings: bool = False,
        truncate_dim: Optional[int] = None, out: Optional[FloatArray] = None, positions: PositionsLike = None,
        edit: Strings = (), precision: str = "float32", convert_to_numpy: bool = True, convert_to_tensor: bool = False,
        inputs: Union[None, str, Iterable[str]] = None, device: object = None, chunk_size: Optional[int] = None,
        pool: None = None, **options: Unpack[TextOptions],
    ) -> Any:
        """Vectors of texts, as ``SentenceTransformer.encode`` makes them: [W] of one text, [B, W] of several,
        float32. ``inputs`` is another name of ``sentences``, and ``options`` are :class:`TextOptions`.

        ``prompt_name`` picks one of the model's prompts, ``prompt`` is put before every text; without either the
        model's default is used. ``batch_size``, ``chunk_size`` and the ``device`` "cpu" change nothing.
        ``output_value="token_embeddings"`` gives a list of hidden states [T, C] instead (see :meth:`encode_states`),
        and None a dict of both for each text. ``normalize_embeddings`` makes vectors of length 1, also where the
        model's files do not ask for it; ``truncate_dim`` keeps the first numbers. ``precision`` "int8", "uint8",
        "binary" or "ubinary" makes the vectors smaller, as ``sentence_transformers.quantize_embeddings`` does. ``out``
        [B, W] receives the vectors, such as a ``numpy.memmap``; then ``sentences`` may be any iterable, of which 16384
        texts are in memory at a time. ``positions`` and ``edit`` are those of :meth:`run_with_cache`. With
        ``convert_to_numpy=False`` several texts give a list of vectors, and with ``convert_to_tensor=True`` torch's
        tensors, where it is installed."""
        self._open()
        on_cpu(device)
        if pool is not None:
            raise InvalidArgument("pool: threads share an Encoder; Encoder(threads=N) uses N")
        if (sentences is None) == (inputs is None):
            raise TypeError("encode() takes the texts once, as sentences or as inputs")
        given: Any = inputs if sentences is None else sentences
        before = self._settings.prompt(prompt_name, prompt)
        if output_value != "sentence_embedding":
            others = normalize_embeddings or edit or convert_to_tensor or precision != "float32"
            if others or any(x is not None for x in (truncate_dim, out, options.get("pooling"), positions)):
                raise InvalidArgument(
                    f"output_value={output_value!r} takes a prompt and TextOptions without pooling, and no other "
                    "options; run_with_cache() has those of positions"
                )
            return vectors.states_of(self, given, output_value, show_progress_bar, before, options)
        smaller = choice("precision of vectors", precision, vectors.SMALLER)
        made: npt.NDArray[Any] = vectors.embedded(
            self, given, before, show_progress_bar, normalize_embeddings, truncate_dim, out, positions, edit, options,
        )
        if smaller:
            made = vectors.smaller_vectors(made, precision)
        one = isinstance(given, str)
        if convert_to_tensor:
            return tensor(made[0] if one else made)
        return made[0] if one else made if convert_to_numpy else list(made)

    @_as(encode)
    def encode_query(
        self, sentences: Any = None, prompt_name: Any = None, prompt: Any = None, *arguments: Any, **options: Any
    ) -> Any:
        """:meth:`encode` with the prompt "query", if there is one."""
        if prompt is None and prompt_name is None:
            prompt = self.prompts.get("query")
        return self.encode(sentences, prompt_name, prompt, *arguments, **options)

    @_as(encode)
    def encode_document(
        self, sentences: Any = None, prompt_name: Any = None, prompt: Any = None, *arguments: Any, **options: Any
    ) -> Any:
        """:meth:`encode` with the prompt "document", "passage" or "corpus", if there is one."""
        if prompt is None and prompt_name is None:
            prompt = self._settings.of_documents()
        return self.encode(sentences, prompt_name, prompt, *arguments, **options)

    def similarity(self, a: npt.ArrayLike, b: npt.ArrayLike) -> FloatArray:
        """How similar the vectors ``a`` [n, W] and ``b`` [m, W] are: [n, m]. Cosines, or what
        :attr:`similarity_fn_name` says: ``dot``, or ``euclidean`` or ``manhattan``, which are minus the distances."""
        return vectors.similarity(self.similarity_fn_name, a, b)

    def similarity_pairwise(self, a: npt.ArrayLike, b: npt.ArrayLike) -> FloatArray:
        """:meth:`similarity` of each row of ``a`` [n, W] and the same row of ``b``: [n]."""
        return vectors.similarity_pairwise(self.similarity_fn_name, a, b)

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Vectors of documents, with the model's prompt for them, as LangChain wants them."""
        return cast(list[list[float]], self.encode_document(c.strs(texts, "texts")).tolist())

    def embed_query(self, text: str) -> list[float]:
        """The vector of a query, with the model's prompt for queries, as LangChain wants it."""
        return cast(list[float], self.encode_query([text])[0].tolist())

    async def aembed_documents(self, texts: list[str]) -> list[list[float]]:
        """:meth:`embed_documents` on another thread."""
        return cast(list[list[float]], await _elsewhere(self.embed_documents, texts))

    async def aembed_query(self, text: str) -> list[float]:
        """:meth:`embed_query` on another thread."""
        return cast(list[float], await _elsewhere(self.embed_query, text))

    # --- What else heads make of texts ---

    def rank(
        self, query: str, documents: Sequence[str], top_k: Optional[int] = None, return_documents: bool = False,
        show_progress_bar: Optional[bool] = None, *, batch_size: int = 32, **options: Unpack[TextOptions],
    ) -> list[dict[str, Any]]:
        """Documents by relevance, best first, as ``CrossEncoder.rank`` gives them: dicts with ``corpus_id``,
        ``score`` and, on request, ``text``. A reranker reads query and document together; of other models the
        score is the :meth:`similarity` of their vectors, or :func:`maxsim` where they have a vector of each
        token and none of a text. ``batch_size`` and ``options`` are those of :meth:`encode`."""
        self._open()
        if top_k is not None and integer("top_k", top_k) < 0:
            raise InvalidArgument(f"top_k is {top_k}; it must be 0 or more")
        texts = c.strs(documents, "documents")
        vectors.told(self, options)  # also where there are no texts
        if not texts:
            return []
        order, scores = heads.ranked(self, query, texts, show_progress_bar, options)
        found: list[dict[str, Any]] = [{"corpus_id": i, "score": float(scores[i])} for i in order[:top_k]]
        return [{**each, "text": texts[each["corpus_id"]]} for each in found] if return_documents else found

    def classify(
        self, texts: Strings, text_pairs: Optional[Strings] = None, show_progress_bar: Optional[bool] = None,
        **options: Unpack[TextOptions],
    ) -> Classification:
        """What the model's classification head says of texts, or of pairs, with :class:`TextOptions`."""
        given = [strings(texts, "texts"), None if text_pairs is None else strings(text_pairs, "text_pairs")]
        said = vectors.call(self, lib.classify, given, show_progress_bar, options)
        return Classification(said.strings("labels"), said.array("logits"), said.array("probabilities"))

    @overload
    def predict(
        self, sentences: Pairs, batch_size: int = ..., show_progress_bar: Optional[bool] = ..., *,
        apply_softmax: bool = ..., convert_to_numpy: Literal[True] = ..., convert_to_tensor: Literal[False] = ...,
        **options: Unpack[TextOptions],
    ) -> FloatArray: ...

    @overload
    def predict(
        self, sentences: Union[tuple[str, str], Pairs, Sequence[Sequence[str]]], batch_size: int = ...,
        show_progress_bar: Optional[bool] = ..., *, apply_softmax: bool = ..., convert_to_numpy: bool = ...,
        convert_to_tensor: bool = ..., **options: Unpack[TextOptions],
    ) -> Any: ...

    def predict(
        self, sentences: Union[tuple[str, str], Pairs, Sequence[Sequence[str]]], batch_size: int = 32,
        show_progress_bar: Optional[bool] = None, *, apply_softmax: bool = False, convert_to_numpy: bool = True,
        convert_to_tensor: bool = False, **options: Unpack[TextOptions],
    ) -> Any:
        """What a cross-encoder says of pairs of texts, as ``CrossEncoder.predict`` gives it: [B], the scores of
        a model with one label, or [B, labels], the logits of another (probabilities with ``apply_softmax``); of
        one pair [] or [labels]. ``batch_size``, the conversions and ``options`` are those of :meth:`encode`."""
        pairs, one = heads.pairs_of(sentences)
        said = self.classify([a for a, _ in pairs], [b for _, b in pairs], show_progress_bar, **options)
        scores = heads.scores_of(said, apply_softmax, self.info["classifier"]["output"])
        if convert_to_tensor:
            return tensor(scores)[0] if one else tensor(scores)
        return scores[0] if one else scores if convert_to_numpy else list(scores)

    def encode_sparse(
        self, texts: Strings, show_progress_bar: Optional[bool] = None, *, is_query: bool = False,
        prompt: Optional[str] = None, **options: Unpack[TextOptions],
    ) -> SparseVectors:
        """A weight for each piece of the vocabulary, of which few are not 0, by SPLADE's or bge-m3's
        formula. ``is_query`` looks texts up where the model has weights for queries, and puts the
        model's prompt for them before each; ``prompt`` stands in its place."""
        made = heads.kinds_of(self, texts, "sparse", show_progress_bar, is_query, prompt, options)
        return cast(SparseVectors, made.sparse)

    def encode_tokens(
        self, texts: Strings, show_progress_bar: Optional[bool] = None, *, is_query: bool = False,
        prompt: Optional[str] = None, **options: Unpack[TextOptions],
    ) -> TokenVectors:
        """A vector of each token, of ColBERT's kind and bge-m3's, for late interaction: see
        :func:`maxsim`. ``is_query`` runs texts as the model runs queries, with its prompt, marker
        and expansion for them; ``prompt`` stands in the prompt's place."""
        made = heads.kinds_of(self, texts, "tokens", show_progress_bar, is_query, prompt, options)
        return cast(TokenVectors, made.tokens)

    def encode_all(
        self, texts: Strings, show_progress_bar: Optional[bool] = None, *, dense: bool = True, sparse: bool = True,
        tokens: bool = True, is_query: bool = False, prompt: Optional[str] = None, **options: Unpack[TextOptions],
    ) -> AllVectors:
        """What :meth:`encode`, :meth:`encode_sparse` and :meth:`encode_tokens` give, from one run of
        each text (bge-m3). Texts are documents or, with ``is_query``, queries, and the model's prompt
        for these is put before each; ``prompt`` stands in its place."""
        wanted = {"dense": dense, "sparse": sparse, "tokens": tokens}
        kinds = ",".join(kind for kind, is_wanted in wanted.items() if is_wanted)
        return heads.kinds_of(self, texts, kinds, show_progress_bar, is_query, prompt, options)

    def encode_states(
        self, texts: Strings, show_progress_bar: Optional[bool] = None, *, prompt: Optional[str] = None,
        **options: Unpack[TextOptions],
    ) -> TokenVectors:
        """Each token's last hidden state, of texts run as :meth:`encode` runs them, with its ``prompt`` and
        ``options``; and where the tokens stand in the texts."""
        how = {"kinds": "states", "prompt": self._settings.prompt(None, prompt), "offset_unit": "characters"}
        made = vectors.call(self, lib.embed, [strings(texts, "texts")], show_progress_bar, options, **how)
        return heads.token_vectors(made, "state")

    @overload  # type: ignore
    def label_tokens(  # type: ignore
        self, texts: str, aggregation_strategy: str = ..., show_progress_bar: Optional[bool] = ...,
        **options: Unpack[TextOptions],
    ) -> list[dict[str, Any]]: ...

    @overload
    def label_tokens(
        self, texts: Sequence[str], aggregation_strategy: str = ..., show_progress_bar: Optional[bool] = ...,
        **options: Unpack[TextOptions],
    ) -> list[list[dict[str, Any]]]: ...

    def label_tokens(
        self, texts: Strings, aggregation_strategy: str = "simple", show_progress_bar: Optional[bool] = None,
        **options: Unpack[TextOptions],
    ) -> Any:
        """The spans that a token classifier finds, as Transformers' token-classification pipeline gives them (of
        BIOES labels those of the most probable legal sequence): of one text a list of ``{"entity_group", "score",
        "word", "start", "end"}``, of several a list of such lists. ``word`` is the text from character ``start`` to
        before ``end``; with the strategy "none" each token is one, with ``entity`` and ``index``."""
        given, how = strings(texts, "texts"), {"aggregation": aggregation_strategy, "offset_unit": "characters"}
        made = vectors.call(self, lib.label, [given], show_progress_bar, options, **how)
        found = heads.spans_of(made, given, aggregation_strategy)
        return found[0] if isinstance(texts, str) else found

    def mlm_logits(self, hidden: npt.ArrayLike) -> FloatArray:
        """Scores over the vocabulary for states [n, C], before the softmax: [n, V]."""
        states = np.ascontiguousarray(floats("hidden", hidden))
        width = self.info["sizes"]["d_model"]
        if states.ndim != 2 or states.shape[1] != width:
            raise InvalidArgument(f"hidden has shape {states.shape}; it must be [n, {width}]")
        logits = np.empty((len(states), self.info["sizes"]["vocabulary"]), np.float32)
        given = (address(states), len(states), address(logits), logits.size)
        self._open().ask(lib.mlm_logits, *given, hooked=True)  # there are no hooks in the head
        return logits

    # --- Tokens and weights ---

    @overload  # type: ignore
    def tokenize(  # type: ignore
        self, texts: str, text_pairs: Optional[str] = ..., *, parse_special: bool = ..., max_tokens: int = ...
    ) -> Tokens: ...

    @overload
    def tokenize(
        self, texts: Sequence[str], text_pairs: Optional[Sequence[str]] = ..., *, parse_special: bool = ...,
        max_tokens: int = ...,
    ) -> list[Tokens]: ...

    def tokenize(
        self, texts: Strings, text_pairs: Optional[Strings] = None, *, parse_special: bool = False,
        max_tokens: int = 0,
    ) -> Union[Tokens, list[Tokens]]:
        """Ids and pieces of a text, or of each of several, or of pairs. ``parse_special`` reads
        special tokens in the text ("[MASK]") as such; ``max_tokens`` cuts."""
        self._open()
        one = isinstance(texts, str)
        pairs: Any = [text_pairs] if one else text_pairs
        pairs = None if text_pairs is None else c.strs(pairs, "text_pairs")
        tokens = inside.tokenized(self._model, strings(texts, "texts"), pairs, parse_special, max_tokens)
        return tokens[0] if one else tokens

    def to_tokens(self, texts: Strings) -> npt.NDArray[np.int32]:
        """Ids, special tokens included, [B, T]; texts of several lengths have to go one by one."""
        tokens = self.tokenize([texts] if isinstance(texts, str) else texts)
        if len({len(each.ids) for each in tokens}) > 1:
            raise InvalidArgument("the texts have different lengths, and phasor does not pad")
        return np.array([each.ids for each in tokens], np.int32)

    @overload  # type: ignore
    def to_str_tokens(self, text: str) -> list[str]: ...  # type: ignore

    @overload
    def to_str_tokens(self, text: Sequence[str]) -> list[list[str]]: ...

    def to_str_tokens(self, text: Strings) -> Union[list[str], list[list[str]]]:
        """The pieces of a text, special tokens included, or those of each of several."""
        if isinstance(text, str):
            return self.tokenize(text).pieces
        return [each.pieces for each in self.tokenize(text)]

    def pieces(self, token_ids: npt.ArrayLike) -> list[str]:
        """The string of each token id."""
        self._open()
        model = self._model  # kept by this call
        ids = int32(np.atleast_1d(np.asarray(token_ids)), "token ids")
        result = c.Result()
        check(lib.pieces(model.handle, address(ids), ids.size, result.pointer()))
        return result.strings("pieces")

    @property
    def cfg(self) -> types.SimpleNamespace:
        """The model's sizes under TransformerLens' names; :attr:`info` has more."""
        sizes, position = self.info["sizes"], self.info["position"]
        return types.SimpleNamespace(
            model_name=self.name, n_layers=sizes["layers"], n_heads=sizes["heads"], d_model=sizes["d_model"],
            d_head=sizes["head_dim"], d_mlp=sizes["d_ff"], d_vocab=sizes["vocabulary"],
            n_ctx=position.get("usable_positions", position.get("trained_length")),
        )

    @property
    def weights(self) -> Weights:
        """Every tensor that the model uses, by phasor's name, read-only, as the run uses them,
        whatever the precision of the Encoder."""
        if self._weights is None:
            self._open()
            self._weights = Weights(self._model)
        return self._weights

    @property
    def blocks(self) -> Blocks:
        """TransformerLens' weights of each block, read-only: ``blocks[0].attn.W_Q`` [H, C, D] (W_K
        and W_V have the heads of keys), ``attn.W_O`` [H, D, C], ``attn.b_Q`` [H, D], ``attn.b_O``,
        ``mlp.W_in`` and ``W_gate`` [C, F], ``mlp.W_out`` [F, C], ``mlp.b_in``, ``mlp.b_out``, ``ln1.w``,
        ``ln1.b``, ``ln2.w``. ``b_Q`` and others are absent where the model lacks them."""
        return Blocks(self.weights, self.info["sizes"])

    @property
    def W_E(self) -> FloatArray:
        """The embedding of each token, [V, E], before any scale."""
        return self.weights["token_embedding.weight"]

    @property
    def W_pos(self) -> FloatArray:
        """The stored table of positions as the file has it, [rows, E]; position_vectors() gives what
        is added, also where that is a formula."""
        if "position_embedding.weight" not in self.weights:
            raise AttributeError("the model stores no table of positions; see position_vectors()")
        return self.weights["position_embedding.weight"]

    def position_vectors(
        self, num_tokens: int, positions: PositionsLike = None, edit: Strings = (), overflow: str = "error",
    ) -> FloatArray:
        """The vectors that a run adds to the tokens of a text of this length, [num_tokens, E]."""
        self._open()
        model = self._model  # kept by this call
        held, result = RunPositions(positions, edit), c.Result()
        given = (integer("num_tokens", num_tokens), held.pointer, c.word(overflow, "overflow"))
        check(lib.position_vectors(model.handle, *given, result.pointer()))
        return result.array("vectors")

    # --- Runs that are recorded and changed ---

    @property
    def hook_names(self) -> list[str]:
        """Every hook of the model, as TransformerLens names them; some exist only in models of a
        kind (``hook_rot_q`` where positions are rotary)."""
        return list(self._hook_names().every)

    def _hook_names(self) -> HookNames:
        if self._names is None:
            bridge = self._options["names"] == "bridge"
            self._names = HookNames(self.info, c.info("hooks").split("\n"), bridge)
        return self._names

    def forward(
        self, texts: TextsOrIds, *, fwd_hooks: FwdHooks = (), positions: PositionsLike = None, edit: Strings = (),
        cut_residual: Union[Cut, Iterable[Cut]] = (), overflow: str = "error",
    ) -> Encoding:
        """The hidden states of texts as they are, without a prompt, or of token ids, to which
        nothing is added. Options as in :meth:`run_with_cache`."""
        options = RunOptions(positions, edit, residual_cuts(cut_residual), overflow)
        return Encoding(inside.recorded_run(self, texts, [], fwd_hooks, options)[0])

    @overload
    def run_with_hooks(
        self, texts: TextsOrIds, fwd_hooks: FwdHooks = ..., *, reset_hooks_end: bool = ...,
        return_type: None, **options: Unpack[RunKeywords],
    ) -> None: ...

    @overload
    def run_with_hooks(
        self, texts: TextsOrIds, fwd_hooks: FwdHooks = ..., *, reset_hooks_end: bool = ...,
        return_type: Literal["states"] = ..., **options: Unpack[RunKeywords],
    ) -> Encoding: ...

    def run_with_hooks(
        self, texts: TextsOrIds, fwd_hooks: FwdHooks = (), *, reset_hooks_end: bool = True,
        return_type: Optional[str] = "states", **options: Any,
    ) -> Optional[Encoding]:
        """:meth:`forward`, as TransformerLens calls it. The hooks end with the run."""
        if not reset_hooks_end:
            raise InvalidArgument("hooks end with the run; see hooks() for several runs")
        return _returned(return_type, self.forward(texts, fwd_hooks=fwd_hooks, **options))

    @contextlib.contextmanager
    def hooks(self: Self, fwd_hooks: FwdHooks = ()) -> Iterator[Self]:
        """Within ``with``, runs of this Encoder in this context (``contextvars``: this thread, this task) have
        these hooks, before their own. What hooks do not reach, such as :meth:`encode`, is an error there."""
        owner, around, within = weakref.ref(self._open()), hooks_around.get(), [True]
        hooks = [(owner, within, pair) for pair in inside.hook_pairs(fwd_hooks)]
        token = hooks_around.set((*around, *hooks))
        try:
            yield self
        finally:
            within.clear()  # also in tasks that were begun here
            hooks_around.reset(token)

    @overload
    def run_with_cache(
        self, texts: TextsOrIds, names_filter: NamesFilter = ..., *, return_type: None,
        stop_at_layer: Optional[int] = ..., fwd_hooks: FwdHooks = ..., remove_batch_dim: bool = ...,
        **options: Unpack[RunKeywords],
    ) -> tuple[None, ActivationCache]: ...

    @overload
    def run_with_cache(
        self, texts: TextsOrIds, names_filter: NamesFilter = ..., *, return_type: Literal["states"] = ...,
        stop_at_layer: int, fwd_hooks: FwdHooks = ..., remove_batch_dim: bool = ..., **options: Unpack[RunKeywords],
    ) -> tuple[FloatArray, ActivationCache]: ...

    @overload
    def run_with_cache(
        self, texts: TextsOrIds, names_filter: NamesFilter = ..., *, return_type: Literal["states"] = ...,
        stop_at_layer: None = ..., fwd_hooks: FwdHooks = ..., remove_batch_dim: bool = ...,
        **options: Unpack[RunKeywords],
    ) -> tuple[Encoding, ActivationCache]: ...

    def run_with_cache(
        self, texts: TextsOrIds, names_filter: NamesFilter = None, *, fwd_hooks: FwdHooks = (),
        positions: PositionsLike = None, edit: Strings = (), cut_residual: Union[Cut, Iterable[Cut]] = (),
        overflow: str = "error", remove_batch_dim: bool = False, return_type: Optional[str] = "states",
        stop_at_layer: Optional[int] = None,
    ) -> tuple[Union[None, Encoding, FloatArray], ActivationCache]:
        """Runs texts, and keeps what passes the hooks that ``names_filter`` picks: a name, several, a function of a
        name, or None for all. Without a filter a text of T tokens takes 4·(11·T·C + 2·T·F + 2·H·T²) bytes a layer, or
        a little more.

        ``fwd_hooks`` are pairs of such a filter and a function ``f(value, hook)``, which gets a value with a leading
        batch dimension of 1, for one text after the other, and may change it in place or return another: to set a
        head to zero, or to patch in a value of another run. The run goes on with what it leaves, and the cache holds
        that. Functions may be called on another thread than the caller's, one at a time. To look only, use the cache:
        a function at a pattern or at scores changes the results by rounding even if it changes nothing.

        ``positions`` replaces the model's: a name ("none", "sinusoidal:paper", "learned", "rotary", "alibi"), a table
        [rows, E] or one int for each token. ``edit`` changes them: "zero", "mean", "scale=0.5", "shift=3",
        "swap=2,5", "reverse", "shuffle=7", "repeat", or several in order. ``cut_residual`` leaves out residual
        connections: layers from 0, "blocks.0.attn" or "blocks.0.mlp". ``overflow`` says what to do with a text longer
        than the positions. With ``return_type`` None the first of the two is None, otherwise an :class:`Encoding`.
        With ``stop_at_layer`` it is the state that this block reads, [B, T, C], and the cache has no more of this
        block and later ones; phasor runs whole, which saves no time.
        """
        names, layers = self._hook_names(), self.info["sizes"]["layers"]
        stop = None if stop_at_layer is None else integer("stop_at_layer", stop_at_layer)
        if stop is not None and not -layers <= stop <= layers:
            raise InvalidArgument(f"stop_at_layer is {stop}; there are the blocks 0 to {layers - 1}")
        stop = stop if stop is None or stop >= 0 else stop + layers
        record = names.pick(names_filter) + ([] if stop is None else [names.state(stop)])
        options = RunOptions(positions, edit, residual_cuts(cut_residual), overflow)
        result, texts_run = inside.recorded_run(self, texts, record, fwd_hooks, options)
        cache = ActivationCache(result, texts_run, names, self.blocks, not remove_batch_dim)
        if stop is not None:
            return _returned(return_type, cache._stopped(stop)), cache
        return _returned(return_type, Encoding(result)), cache

    # --- Measures ---

    def observe(self, texts: Strings = (), **options: Any) -> Observed:
        """:func:`phasor.observe` of this Encoder."""
        return observe(texts, model=self, **options)

    def show(
        self, *texts: Strings, figure: str = "turns", layer: Optional[int] = None, head: Optional[int] = None,
        **options: Any,
    ) -> Figure:
        """A figure of the page, for a notebook's cell: ``encoder.show("Tom bit a dog.")`` is what the page opens
        with, how far positions turn each token's state. ``figure="links"`` draws a head's attention as lines,
        "pattern" as a map; ``layer`` and ``head`` count from 1. Others are named where there is no such figure.
        Options are those of :func:`phasor.observe`, such as ``edit``."""
        if "only" in options:
            raise InvalidArgument("show() draws one figure: say figure=, not only=")
        given = [text for some in texts for text in strings(some, "texts")]
        return figure_of(self, given, figure, layer, head, options)

    def compare(self, other: Union[None, ModelName, Encoder] = None, texts: Strings = (), **options: Any) -> Observed:
        """:func:`phasor.compare` of this Encoder and another or a model, which then runs in the same
        precision where none is given, or of this one run in two ways."""
        if other is not None and not isinstance(other, Encoder):
            other = Encoder(other, threads=self.threads, precision=self.precision, kernels=self.kernels)
        return compare(self, other, texts, **options)

    def _in(self, precision: str) -> Encoder:
        """The same model in another precision."""
        return Encoder(self._place, **dict(self._options, precision=precision))


def _returned(return_type: Optional[str], output: Output) -> Optional[Output]:
    return None if choice("return_type", return_type, {"states": 0, None: 1}) else output


async def _elsewhere(function: Callable[[Any], Any], value: Any) -> Any:
    """On another thread, in this context."""
    import asyncio  # here, because it takes as long as the rest of the package

    run = contextvars.copy_context().run
    return await asyncio.get_running_loop().run_in_executor(None, run, function, value)


def _made(kind: type[Encoder], place: str, options: dict[str, Any]) -> Encoder:
    """A copy, or what was pickled, before its settings."""
    made = kind.__new__(kind)
    Encoder.__init__(made, place, **options)
    return made
