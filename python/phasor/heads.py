"""What an encoder gives beside one vector of a text: classes, labels, ranks, sparse and many vectors."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple, Optional, Sequence, Union, cast

import numpy as np
import numpy.typing as npt

from . import _library as c
from ._library import InvalidArgument, integer, lib
from .observed import strings
from .settings import tensor
from .vectors import Vectors
from .weights import FloatArray

@dataclasses.dataclass(frozen=True)
class Classification:
    """What a classification head says of B texts."""

    labels: list[str]
    logits: FloatArray  # [B, labels]
    probabilities: FloatArray  # [B, labels]


class Heads(Vectors):
    """See :class:`phasor.Encoder`."""

    __slots__ = ()

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
            result = self._call(lib.rank, [[query], texts], show_progress_bar, parse_special)
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
        result = self._call(lib.classify, [first, second], show_progress_bar, parse_special)
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
        given = list(c.ordered(sentences, "sentences", "pairs of str"))
        one = len(given) == 2 and all(isinstance(text, str) for text in given)
        pairs = [given] if one else given
        for i, pair in enumerate(pairs):
            if isinstance(pair, str) or len(c.strs(pair, f"sentences[{i}]")) != 2:
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
        made = self.encode_all(
            texts, show_progress_bar, dense=False, tokens=False,
            is_query=is_query, prompt=prompt, parse_special=parse_special,
        )
        return cast(SparseVectors, made.sparse)

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
        made = self.encode_all(
            texts, show_progress_bar, dense=False, sparse=False,
            is_query=is_query, prompt=prompt, parse_special=parse_special,
        )
        return cast(TokenVectors, made.tokens)

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
        each text (bge-m3). Texts are documents or, with ``is_query``, queries, and the model's prompt
        for these is put before each; ``prompt`` stands in its place."""
        if not (dense or sparse or tokens):
            raise InvalidArgument("encode_all() needs one of dense, sparse and tokens")
        wanted = {"dense": dense, "sparse": sparse, "tokens": tokens}
        if prompt is None:
            names = ("query",) if is_query else ("document", "passage", "corpus")
            prompt = next((self.prompts[name] for name in names if self.prompts.get(name)), None)
        result = self._call(
            lib.embed, [strings(texts, "texts")], show_progress_bar, parse_special,
            kinds=",".join(kind for kind, is_wanted in wanted.items() if is_wanted),
            role="query" if is_query else "document", prompt=prompt,
            offset_unit="characters" if tokens else None,
        )
        weights = None
        if sparse:
            weights = SparseVectors(
                result.array("sparse_offsets"),
                result.array("sparse_indices"),
                result.array("sparse_values"),
                (len(result.array("num_tokens")), self.info["sizes"]["vocabulary"]),
            )
        return AllVectors(
            result.array("dense")[:, : self._settings.truncate_dim] if dense else None,
            weights,
            _token_vectors(result, "token") if tokens else None,
        )

    def encode_states(
        self,
        texts: Union[str, Sequence[str]],
        show_progress_bar: Optional[bool] = None,
        *,
        prompt: Optional[str] = None,
        max_tokens: int = 0,
        overflow: Optional[str] = None,
        parse_special: bool = False,
    ) -> TokenVectors:
        """Each token's last hidden state, of texts run as :meth:`encode` runs them, with its
        ``prompt``, ``max_tokens`` and ``overflow``; and where the tokens stand in the texts."""
        result = self._states(
            strings(texts, "texts"), self._prompt(None, prompt), max_tokens, overflow, parse_special,
            show_progress_bar,
        )
        return _token_vectors(result, "state")

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
        given = strings(texts, "texts")
        result = self._call(
            lib.label, [given], show_progress_bar, parse_special, aggregation=aggregation_strategy,
            offset_unit="characters",
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


def _token_vectors(result: c.Result, kind: str) -> TokenVectors:
    """Those of a kind, "token" or "state"."""
    return TokenVectors(*(result.array(f"{kind}_{of}") for of in ("vectors", "offsets", "ids", "spans")))


def maxsim(queries: TokenVectors, documents: TokenVectors) -> FloatArray:
    """``[q, d]``: of each vector of query q the largest dot product with one of document d, summed;
    0 where one of them has no vector. bge-m3 divides it by the number of the query's vectors.
    :meth:`Encoder.rank` ranks by it, on all threads, where the model makes no sentence vectors."""
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
