"""What heads say: classification, reranking, masked words."""

import json
import math
import re

import numpy as np
import pytest
from conftest import ROOT, cosine

import phasor


def test_without_a_head_documents_are_ranked_by_cosine(encoder, texts):
    scores = cosine(encoder.encode(texts[0]), encoder.encode(texts))
    ranked = encoder.rank(texts[0], texts, return_documents=True)
    assert ranked[0] == {"corpus_id": 0, "score": pytest.approx(1, abs=1e-5), "text": texts[0]}
    assert sorted(r["corpus_id"] for r in ranked) == list(range(len(texts)))
    for r in ranked:
        assert r["score"] == pytest.approx(scores[r["corpus_id"]], abs=1e-5)
        assert r["text"] == texts[r["corpus_id"]]
    assert encoder.rank(texts[0], texts, top_k=2) == [
        {"corpus_id": r["corpus_id"], "score": r["score"]} for r in ranked[:2]
    ]
    assert encoder.rank(texts[0], texts, top_k=0) == []
    assert len(encoder.rank(texts[0], texts, top_k=100)) == len(texts)
    assert encoder.rank(texts[0], []) == []
    with pytest.raises(phasor.InvalidArgument, match="top_k is -1"):
        encoder.rank(texts[0], texts, top_k=-1)


def test_a_reranker_ranks_by_its_logit(golden):
    with phasor.Encoder(golden("bert-cross-encoder")) as encoder:
        query, documents = "a dog", ["the cat", "a dog bit", "dog", "no"]
        result = encoder.classify([query] * len(documents), documents)
        assert result.logits.shape == (len(documents), 1) and len(result.labels) == 1
        np.testing.assert_allclose(result.probabilities, 1 / (1 + np.exp(-result.logits)), atol=1e-6)
        ranked = encoder.rank(query, documents)
        order = np.argsort(-result.logits[:, 0], kind="stable")
        assert [r["corpus_id"] for r in ranked] == order.tolist()
        expected = result.probabilities[order, 0]
        np.testing.assert_allclose([r["score"] for r in ranked], expected, atol=1e-6)
        scores = encoder.predict([(query, document) for document in documents])
        np.testing.assert_array_equal(scores, result.probabilities[:, 0])
        assert encoder.predict((query, documents[1])).shape == ()
        with pytest.raises(phasor.InvalidArgument, match="pairs"):
            encoder.predict(documents)
        # One text makes a pair with each of the others.
        again = encoder.classify([query], documents)
        np.testing.assert_allclose(again.logits, result.logits, atol=1e-5)


def test_a_classifier(golden):
    with phasor.Encoder(golden("distilbert-classifier")) as encoder:
        texts = ["a dog", "the cat sat", "x"]
        result = encoder.classify(texts, show_progress_bar=False)
        assert result.logits.shape == (3, len(result.labels))
        exp = np.exp(result.logits - result.logits.max(1, keepdims=True))
        np.testing.assert_allclose(result.probabilities, exp / exp.sum(1, keepdims=True), atol=1e-6)
        for i, text in enumerate(texts):
            alone = encoder.classify([text]).logits[0]
            np.testing.assert_allclose(alone, result.logits[i], atol=1e-5)
        with pytest.raises(phasor.ModelError, match="label"):
            encoder.rank("a", texts)
        with pytest.raises(phasor.InvalidArgument):
            encoder.classify(texts, texts[:2])


@pytest.mark.parametrize("model", ["token-bert", "token-xlm-roberta"])
def test_spans_are_those_of_the_pipeline(golden, model):
    with phasor.Encoder(golden(model)) as encoder:
        items = json.loads((golden(model) / "token_classification.json").read_text())["items"]
        for strategy in ("simple", "none", "average"):
            found = encoder.label_tokens([item["text"] for item in items], strategy)
            for spans, item in zip(found, items):
                wanted = item["pipeline"][strategy]
                for ours, theirs in zip(spans, wanted):
                    assert ours.pop("score") == pytest.approx(theirs.pop("score"), abs=1e-5)
                    assert ours["word"] == item["text"][theirs["start"] : theirs["end"]]
                    ours.pop("word"), theirs.pop("word")
                assert spans == wanted
        assert encoder.label_tokens(items[0]["text"]) == encoder.label_tokens([items[0]["text"]])[0]
        with pytest.raises(phasor.InvalidArgument, match="average"):
            encoder.label_tokens("a", "some")


@pytest.mark.parametrize("model", ["splade", "splade-sum", "splade-doc", "bge-m3"])
def test_sparse_vectors_are_those_of_the_references(golden, model):
    with phasor.Encoder(golden(model)) as encoder:
        file = golden(model) / ("m3.json" if model == "bge-m3" else "sparse.json")
        items = json.loads(file.read_text())["items"]
        texts = [item["text"] for item in items]
        for kind in ("sparse",) if model == "bge-m3" else ("document", "query"):
            found = encoder.encode_sparse(texts, is_query=kind == "query")
            assert found.shape == (len(texts), encoder.info["sizes"]["vocabulary"])
            for i, item in enumerate(items):
                row = slice(found.indptr[i], found.indptr[i + 1])
                assert found.indices[row].tolist() == item[kind]["index"]
                np.testing.assert_allclose(found.values[row], item[kind]["value"], 2e-4, 2e-5)
        alone = encoder.encode_sparse(texts[0])
        assert alone.shape[0] == 1 and len(alone.indptr) == 2
        prompted = encoder.encode_sparse(texts[0], prompt="it rains ")
        assert prompted.indices.tolist() != alone.indices.tolist()


def test_sparse_vectors_become_those_of_scipy(golden):
    pytest.importorskip("scipy.sparse")
    with phasor.Encoder(golden("splade")) as encoder:
        found = encoder.encode_sparse(["Tom bit a dog.", "It rains."])
        dense = found.to_scipy().toarray()
        assert dense.shape == found.shape and (dense > 0).sum() == len(found.values)
        for i, (begin, end) in enumerate(zip(found.indptr, found.indptr[1:])):
            assert (dense[i, found.indices[begin:end]] == found.values[begin:end]).all()


def test_all_that_the_package_names_is_there():
    assert [name for name in phasor.__all__ if not hasattr(phasor, name)] == []


@pytest.mark.parametrize("model", ["colbert", "colbert-min", "colbert-pylate", "colbert-stanford"])
def test_token_vectors_are_those_of_the_references(golden, model):
    want = json.loads((golden(model) / "multivector.json").read_text(encoding="utf-8"))
    with phasor.Encoder(golden(model)) as encoder:
        found = {}
        for side in ("queries", "documents"):
            texts = [item["text"] for item in want[side]]
            found[side] = encoder.encode_tokens(texts, is_query=side == "queries")
            for item, vectors in zip(want[side], found[side].texts()):
                np.testing.assert_allclose(vectors, item["vectors"], rtol=2e-4, atol=2e-5)
        scores = phasor.maxsim(found["queries"], found["documents"])
        np.testing.assert_allclose(scores, want["maxsim"], atol=1e-4)
        narrow = found["queries"]._replace(vectors=found["queries"].vectors[:, :2])
        with pytest.raises(phasor.InvalidArgument, match="widths 2 and"):
            phasor.maxsim(narrow, found["documents"])
        documents = [item["text"] for item in want["documents"]]
        for query, row in zip(want["queries"], scores):
            ranked = encoder.rank(query["text"], documents)
            assert [each["corpus_id"] for each in ranked] == np.argsort(-row, kind="stable").tolist()
        text = documents[0]
        alone = encoder.encode_tokens(text)
        words = [text[a:b] for a, b in alone.spans]
        assert words[:2] == ["", ""] and text.startswith(words[2]) and words[2]
        assert len(alone.token_ids) == len(alone.vectors) == alone.offsets[-1]
        assert encoder.encode_tokens([]).vectors.shape == (0, alone.vectors.shape[1])


def test_all_of_bge_m3_from_one_run(golden):
    texts = ["Tom bit a dog.", "", "It rains, café."]
    with phasor.Encoder(golden("bge-m3")) as encoder:
        all_kinds = encoder.encode_all(texts, is_query=True)
        np.testing.assert_array_equal(all_kinds.dense, encoder.encode(texts))
        for one, other in (
            (all_kinds.sparse, encoder.encode_sparse(texts, is_query=True)),
            (all_kinds.tokens, encoder.encode_tokens(texts, is_query=True)),
        ):
            for a, b in zip(one, other):
                np.testing.assert_array_equal(a, b)
        some = encoder.encode_all(texts[0], dense=False, tokens=False)
        assert some.dense is None and some.tokens is None and some.sparse.shape[0] == 1
        encoder.truncate_dim = 8
        np.testing.assert_array_equal(encoder.encode_all(texts).dense, encoder.encode(texts))
        encoder.truncate_dim = None
        with pytest.raises(phasor.InvalidArgument, match="one of dense"):
            encoder.encode_all(texts, dense=False, sparse=False, tokens=False)


def test_states_and_where_their_tokens_stand(encoder):
    texts = ["Ünter bit Tom.", "", "It rains"]
    made = encoder.encode_states(texts)
    for states, expected in zip(made.texts(), encoder.encode(texts, output_value="token_embeddings")):
        np.testing.assert_array_equal(states, expected)
    words = [[texts[i][a:b] for a, b in made.spans[made.offsets[i] :][: len(made.texts()[i])]] for i in range(3)]
    assert ["".join(each).split() for each in words] == [text.split() for text in texts]
    prompted = encoder.encode_states("rains", prompt="It ")
    np.testing.assert_array_equal(prompted.token_ids, encoder.encode_states("It rains").token_ids)
    assert prompted.spans.tolist()[:2] == [[0, 0], [0, 0]] and prompted.spans[-2].tolist()[1] == 5
    assert len(encoder.encode_states("It rains", max_tokens=3).vectors) == 3


def test_late_chunks_of_a_text_of_many_windows_are_means_over_single_runs():
    """The recipe of docs/python.md."""
    page = (ROOT / "docs" / "python.md").read_text("utf-8")
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    recipe = next(block for block in blocks if "encode_states" in block)
    with phasor.Encoder("learned") as encoder:
        most = encoder.max_seq_length
        text = " ".join(f"Tom bit a dog in {year}." for year in range(1000, 2000))
        text = text[: encoder.tokenize(text).offset_mapping[4 * most + most // 2 - 2][1]]
        names = {"encoder": encoder, "np": np, "text": text}
        exec(re.sub("^text = .*", "", recipe, flags=re.MULTILINE), names)

        tokens = encoder.tokenize(text)
        sums, counts = np.zeros((len(tokens.ids), 128)), np.zeros((len(tokens.ids), 1))
        starts = [*range(0, len(tokens.ids) - most, most // 2), len(tokens.ids) - most]
        assert len(starts) == 8
        for start in starts:
            sums[start : start + most] += encoder.forward([tokens.ids[start : start + most]])[0]
            counts[start : start + most] += 1
        states = sums / counts
        assert len(names["sentences"]) > 30
        for (begin, end), vector in zip(names["sentences"], names["vectors"]):
            of = [begin < stop <= end for _, stop in tokens.offset_mapping]
            np.testing.assert_allclose(vector, states[of].mean(axis=0), atol=1e-5)
    assert len(names["sentences"]) == len(names["vectors"])


def test_without_a_head_nothing_is_classified(encoder):
    with pytest.raises(phasor.ModelError, match="classification head"):
        encoder.classify(["a"])


def test_the_masked_word_is_found(encoder, weights):
    tokens = encoder.tokenize("The sun rises in the [MASK].", parse_special=True)
    place = tokens.pieces.index("[MASK]")
    states = encoder.forward([tokens.ids])
    np.testing.assert_array_equal(states.token_ids, tokens.ids)
    logits = encoder.mlm_logits(states[0])
    assert logits.shape == (len(tokens.ids), 8192) and logits.dtype == np.float32
    alone = encoder.mlm_logits(states[0][place][None])[0]
    np.testing.assert_allclose(alone, logits[place], atol=1e-4)
    assert np.isfinite(logits).all()

    # The head: a linear map, GELU, LayerNorm, and the embedding matrix.
    x = states[0].astype(np.float64) @ weights["mlm.dense.weight"].T + weights["mlm.dense.bias"]
    x = 0.5 * x * (1 + np.vectorize(math.erf)(x / np.sqrt(2)))
    x = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5)
    x = x * weights["mlm.norm.weight"] + weights["mlm.norm.bias"]
    expected = x @ weights["token_embedding.weight"].T + weights["mlm.bias"]
    np.testing.assert_allclose(logits, expected, atol=2e-3)


def test_mlm_logits_of_arrays(encoder):
    assert encoder.mlm_logits(np.empty((0, 128))).shape == (0, 8192)
    wide = np.random.default_rng(0).normal(size=(4, 256)).astype(np.float32)
    np.testing.assert_array_equal(encoder.mlm_logits(wide[:, ::2]), encoder.mlm_logits(wide[:, ::2].copy()))
    for wrong in (np.zeros(128), np.zeros((2, 127)), np.zeros((1, 2, 128))):
        with pytest.raises(phasor.InvalidArgument, match=r"\[n, 128\]"):
            encoder.mlm_logits(wrong)
    with pytest.raises(TypeError):
        encoder.mlm_logits([["a"] * 128])
