"""The calls of scripts that use sentence-transformers, on both packages; the same must come out."""

import asyncio
import copy
import pickle

import numpy as np
import pytest

import phasor
from test_real import model  # noqa: F401  (a fixture)

st = pytest.importorskip("sentence_transformers")

A, B = "A man is eating in Paris.", "The prisoner looked through the bars."
L = [A, B, "It rains.", "Nobody had seen the cat, which slept.", "a man eats"]
LONG = "word " * 600


def set_and(name, value, use):
    def call(m):
        before = getattr(m, name)
        setattr(m, name, value)
        try:
            return use(m)
        finally:
            setattr(m, name, before)

    return call


CALLS = {
    "str": lambda m: m.encode(A),
    "list": lambda m: m.encode(L),
    "tuple": lambda m: m.encode(tuple(L)),
    "array of str": lambda m: m.encode(np.array(L)),
    "array of object": lambda m: m.encode(np.array(L, object)),
    "empty text": lambda m: m.encode(""),
    "long text": lambda m: m.encode(LONG),
    "inputs": lambda m: m.encode(inputs=L),
    "sentences": lambda m: m.encode(sentences=L),
    "batch_size": lambda m: m.encode(L, batch_size=2),
    "positional": lambda m: m.encode(L, None, None, 64),
    "show_progress_bar": lambda m: m.encode(L, show_progress_bar=False),
    "convert_to_numpy": lambda m: m.encode(L, convert_to_numpy=True),
    "convert_to_numpy=False": lambda m: m.encode(L, convert_to_numpy=False),
    "convert_to_tensor": lambda m: m.encode(L, convert_to_tensor=True),
    "convert_to_tensor of one": lambda m: m.encode(A, convert_to_tensor=True),
    "device": lambda m: m.encode(L, device="cpu"),
    "normalize_embeddings": lambda m: m.encode(L, normalize_embeddings=True),
    "truncate_dim": lambda m: m.encode(L, truncate_dim=64),
    "both": lambda m: m.encode(L, truncate_dim=64, normalize_embeddings=True),
    "precision float32": lambda m: m.encode(L, precision="float32"),
    "precision binary": lambda m: m.encode(L, precision="binary"),
    "precision ubinary": lambda m: m.encode(L, precision="ubinary"),
    "prompt": lambda m: m.encode(L, prompt="query: "),
    "prompt_name": lambda m: m.encode(L, prompt_name="query"),
    "encode_query": lambda m: m.encode_query(L),
    "encode_document": lambda m: m.encode_document(L),
    "token_embeddings": lambda m: m.encode(L, output_value="token_embeddings"),
    "token_embeddings of one": lambda m: m.encode(A, output_value="token_embeddings"),
    "all values": lambda m: [each["sentence_embedding"] for each in m.encode(L, output_value=None)],
    "similarity": lambda m: m.similarity(m.encode(L), m.encode(L[:2])),
    "similarity of one": lambda m: m.similarity(m.encode(A), m.encode(B)),
    "similarity of tensors": lambda m: m.similarity(
        m.encode(L, convert_to_tensor=True), m.encode(L, convert_to_tensor=True)
    ),
    "similarity_pairwise": lambda m: m.similarity_pairwise(m.encode(L), m.encode(L[::-1])),
    "similarity_fn_name": lambda m: m.similarity_fn_name,
    **{
        f"similarity_fn_name = {name}": set_and(
            "similarity_fn_name", name, lambda m: m.similarity(2 * m.encode(L), m.encode(L))
        )
        for name in ("dot", "euclidean", "manhattan")
    },
    "similarity_pairwise = euclidean": set_and(
        "similarity_fn_name", "euclidean", lambda m: m.similarity_pairwise(m.encode(L), m.encode(L[::-1]))
    ),
    "max_seq_length": lambda m: m.max_seq_length,
    "get_max_seq_length": lambda m: m.get_max_seq_length(),
    "max_seq_length = 8": set_and("max_seq_length", 8, lambda m: m.encode([LONG, *L])),
    "truncate_dim = 32": set_and("truncate_dim", 32, lambda m: m.encode(L)),
    "truncate_dim = 32, dimension": set_and("truncate_dim", 32, lambda m: m.get_embedding_dimension()),
    "get_embedding_dimension": lambda m: m.get_embedding_dimension(),
    "get_sentence_embedding_dimension": lambda m: m.get_sentence_embedding_dimension(),
    "prompts": lambda m: m.prompts,
    "prompts = …": set_and("prompts", {"query": "query: "}, lambda m: m.encode_query(L)),
    "default_prompt_name": lambda m: m.default_prompt_name,
    "device of the model": lambda m: str(m.device),
    "to": lambda m: m.to("cpu").encode(L),
    "eval": lambda m: m.eval().encode(L),
    "copy": lambda m: copy.copy(m).encode(L),
    "deepcopy": lambda m: copy.deepcopy(m).encode(L),
    "pickle": lambda m: pickle.loads(pickle.dumps(m)).encode(L),
    "thread": lambda m: asyncio.run(asyncio.to_thread(m.encode, L)),
    "semantic_search": lambda m: [
        [hit["corpus_id"] for hit in hits]
        for hits in st.util.semantic_search(m.encode(L[:2]), m.encode(L), top_k=3)
    ],
    "cos_sim": lambda m: st.util.cos_sim(m.encode(L), m.encode(L)),
    "paraphrase_mining": lambda m: [[round(pair[0], 5), *pair[1:]] for pair in st.util.paraphrase_mining(m, L)],
    "community_detection": lambda m: st.util.community_detection(
        m.encode(L, convert_to_tensor=True), threshold=0.3, min_community_size=1
    ),
    "quantize_embeddings": lambda m: st.quantize_embeddings(m.encode(L), "ubinary"),
}
REFUSED = {
    "a number": lambda m: m.encode([1]), "None in a list": lambda m: m.encode([None]),
    "unknown prompt": lambda m: m.encode(L, prompt_name="nothing"),
    "unknown argument": lambda m: m.encode(L, nothing=1),
    "vectors of two widths": lambda m: m.similarity(m.encode(L), m.encode(L)[:, :4]),
}


@pytest.fixture(scope="module")
def both(model):  # noqa: F811
    return st.SentenceTransformer(model, device="cpu"), phasor.Encoder(model)


def assert_same(found, want):
    if isinstance(want, (str, int, dict, type(None))):
        assert found == want
    elif isinstance(want, list) and not all(isinstance(each, (float, int)) for each in want):
        assert len(found) == len(want)
        for a, b in zip(found, want):
            assert_same(a, b)
    else:
        a, b = np.asarray(found), np.asarray(want)
        assert a.shape == b.shape and a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=2e-6, atol=3e-6)


@pytest.mark.parametrize("name", CALLS)
def test_both_packages_give_the_same(both, name):
    theirs, ours = both
    want, found = CALLS[name](theirs), CALLS[name](ours)
    if "tensor" in name and "similarity" not in name:
        assert type(found) is type(want)
    assert_same(found, want)


@pytest.mark.parametrize("name", REFUSED)
def test_both_packages_refuse(both, name):
    for each in both:
        with pytest.raises(Exception):
            REFUSED[name](each)


# Rounding to integers may differ by one where the float32 numbers differ in their last bits.
@pytest.mark.parametrize("precision", ["int8", "uint8"])
def test_steps_of_vectors_are_the_same(both, precision):
    want, found = (each.encode(L, precision=precision) for each in both)
    assert found.dtype == want.dtype and np.abs(found.astype(int) - want).max() <= 1


def test_names_that_neither_knows_are_errors_here(both):
    for name in ("max_length", "normalize", "pooling", "batch_size", "dtype", "half", "tokenizer"):
        with pytest.raises(AttributeError):
            setattr(both[1], name, 1)
