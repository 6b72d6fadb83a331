"""What an encoder gives beside one vector of a text: classes, labels, ranks, sparse and many vectors."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, NamedTuple, Optional

import numpy as np
import numpy.typing as npt

from . import _library as c
from ._library import InvalidArgument, lib
from .observed import Strings, strings
from .vectors import TextOptions, call
from .weights import FloatArray

if TYPE_CHECKING:
    from .encoder import Encoder

@dataclasses.dataclass(frozen=True)
class Classification:
    """What a classification head says of B texts."""

    labels: list[str]
    logits: FloatArray  # [B, labels]
    probabilities: FloatArray  # [B, labels]


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


def token_vectors(result: c.Result, kind: str) -> TokenVectors:
    """Those of a kind, "token" or "state"."""
    return TokenVectors(*(result.array(f"{kind}_{of}") for of in ("vectors", "offsets", "ids", "spans")))


def kinds_of(
    encoder: Encoder, texts: Strings, kinds: str, show: Optional[bool], is_query: bool, prompt: Optional[str],
    options: TextOptions,
) -> AllVectors:
    """Vectors of several kinds, "dense,sparse"."""
    if not kinds:
        raise InvalidArgument("encode_all() needs one of dense, sparse and tokens")
    if prompt is None:
        prompt = (encoder.prompts.get("query") if is_query else encoder._settings.of_documents()) or None
    role, unit = "query" if is_query else "document", "characters" if "tokens" in kinds else None
    how = {"kinds": kinds, "role": role, "prompt": prompt, "offset_unit": unit}
    result = call(encoder, lib.embed, [strings(texts, "texts")], show, options, **how)
    dense, weights = None, None
    if "dense" in kinds:
        dense = result.array("dense")[:, : encoder.truncate_dim]
    if "sparse" in kinds:
        shape = (len(result.array("num_tokens")), encoder.info["sizes"]["vocabulary"])
        of = {name: result.array(f"sparse_{name}") for name in ("offsets", "indices", "values")}
        weights = SparseVectors(of["offsets"], of["indices"], of["values"], shape)
    return AllVectors(dense, weights, token_vectors(result, "token") if "tokens" in kinds else None)


def ranked(
    encoder: Encoder, query: str, texts: list[str], show: Optional[bool], options: TextOptions
) -> tuple[list[int], FloatArray]:
    """The numbers of the documents, best first, and the score of each. Of vectors the library knows
    the settings of the model's files alone, and puts their default prompt before what has none."""
    info, own = encoder.info, encoder._settings == encoder._own
    by_tokens = info["token_vectors"] and "pooling" not in info["sentence"]
    by_head = info["classifier"] and info["classifier"].get("of") != "tokens"
    if by_tokens or by_head or (own and not info["text"].get("prompt")):
        result = call(encoder, lib.rank, [[query], texts], show, options)
        return result.numbers("order"), result.array("scores")
    if options:
        call(encoder, lib.rank, [[""], []], None, options)  # refuses what rank() does not use, and encode() does
    vectors = encoder.encode_document(texts, show_progress_bar=show, **options)
    wanted = encoder.encode_query([query], **options)
    scores = encoder.similarity(wanted, vectors)[0]
    return [int(i) for i in np.argsort(-scores, kind="stable")], scores


def pairs_of(sentences: Any) -> tuple[list[Any], bool]:
    """Pairs of texts, and whether it is one pair that was given."""
    given = list(c.ordered(sentences, "sentences", "pairs of str"))
    one = len(given) == 2 and all(isinstance(text, str) for text in given)
    pairs = [given] if one else given
    for i, pair in enumerate(pairs):
        if isinstance(pair, str) or len(c.strs(pair, f"sentences[{i}]")) != 2:
            raise InvalidArgument("predict() takes pairs of texts, like [(query, text)]")
    return pairs, one


def scores_of(said: Classification, apply_softmax: bool, output: str) -> FloatArray:
    """As ``CrossEncoder.predict`` gives them; ``output`` is that of the head."""
    if len(said.labels) == 1:
        return said.probabilities[:, 0]
    if not apply_softmax or output == "softmax":
        return said.probabilities if apply_softmax else said.logits
    powers: FloatArray = np.exp(said.logits - said.logits.max(axis=1, keepdims=True))
    powers /= powers.sum(axis=1, keepdims=True)
    return powers


def spans_of(result: c.Result, texts: list[str], strategy: str) -> list[list[dict[str, Any]]]:
    """What a token classifier finds in each text."""
    labels, scores = result.strings("labels"), result.numbers("scores")
    spans, tokens, offsets = map(result.numbers, ("spans", "tokens", "offsets"))
    found: list[list[dict[str, Any]]] = []
    for text, begin, end in zip(texts, offsets, offsets[1:]):
        found.append([])
        for i in range(begin, end):
            kind = "entity" if strategy == "none" else "entity_group"
            entity = {kind: labels[i], "score": scores[i]}
            if kind == "entity":
                entity["index"] = tokens[i][0]
            entity["word"] = text[spans[i][0] : spans[i][1]]
            entity["start"], entity["end"] = spans[i]
            found[-1].append(entity)
    return found


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
