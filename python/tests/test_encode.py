"""Vectors of texts."""

import numpy as np
import pytest
from conftest import cosine

import phasor
from phasor._base import _note_faster
from phasor._library import info


def test_a_vector_is_the_mean_of_the_states_also_of_one_text(encoder, texts):
    vectors = encoder.encode(texts)
    states, _ = encoder.run_with_cache(texts, [])
    assert vectors.shape == (len(texts), 128) and vectors.dtype == np.float32
    for vector, state in zip(vectors, states):
        np.testing.assert_allclose(vector, state.mean(0), atol=1e-5)
    one = encoder.encode(texts[0])
    assert one.shape == (128,)
    np.testing.assert_allclose(one, encoder.encode(texts)[0], atol=1e-5)
    assert encoder.encode([]).shape == (0, 128)
    assert encoder.get_sentence_embedding_dimension() == 128


def test_out_receives_the_vectors(encoder, texts, tmp_path):
    out = np.memmap(tmp_path / "vectors", np.float32, "w+", shape=(len(texts), 128))
    given = encoder.encode((text for text in texts), out=out)
    np.testing.assert_array_equal(given, encoder.encode(texts))
    out.flush()
    stored = np.fromfile(tmp_path / "vectors", np.float32).reshape(out.shape)
    np.testing.assert_array_equal(stored, given)
    one = np.empty((1, 128), np.float32)
    assert encoder.encode(texts[0], out=one).shape == (128,)
    np.testing.assert_array_equal(one[0], encoder.encode(texts[0]))


def test_out_takes_more_texts_than_are_handed_over_at_once(encoder):
    texts = [str(i % 100) for i in range(17000)]
    out = np.zeros((len(texts), 128), np.float32)
    encoder.encode(iter(texts), out=out)
    assert np.all(np.isfinite(out)) and np.all(np.abs(out).sum(1) > 0)
    np.testing.assert_allclose(out[:100], out[-100:], atol=1e-5)
    np.testing.assert_allclose(out[16300:16400], out[:100], atol=1e-5)


@pytest.mark.parametrize("rows", [4, 6])
def test_out_must_have_a_row_for_each_text(encoder, texts, rows):
    with pytest.raises(phasor.InvalidArgument, match=f"{rows} texts"):
        encoder.encode(iter(texts), out=np.empty((rows, 128), np.float32))


@pytest.mark.parametrize("out", [
    np.empty((5, 127), np.float32), np.empty((5 * 128,), np.float32), np.empty((5, 128), np.float64),
    np.empty((5, 128), ">f4"), np.empty((5, 256), np.float32)[:, ::2], np.empty((128, 5), np.float32).T,
    np.frombuffer(bytes(5 * 128 * 4), np.float32).reshape(5, 128),
    np.empty(5 * 128 * 4 + 1, np.uint8)[1:].view(np.float32).reshape(5, 128),
])
def test_unfit_out_is_refused(encoder, texts, out):
    with pytest.raises(phasor.InvalidArgument, match="out"):
        encoder.encode(texts, out=out)
    with pytest.raises(TypeError, match="out"):
        encoder.encode(texts, out=out.tolist())


def test_truncated_vectors_are_normalised_afterwards(encoder, texts):
    whole = encoder.encode(texts)
    np.testing.assert_array_equal(encoder.encode(texts, truncate_dim=7), whole[:, :7])
    normal = encoder.encode(texts, normalize_embeddings=True)
    np.testing.assert_allclose(np.linalg.norm(normal, axis=1), 1, atol=1e-6)
    np.testing.assert_allclose(cosine(normal, whole), 1, atol=1e-6)
    short = encoder.encode(texts, normalize_embeddings=True, truncate_dim=7)
    np.testing.assert_allclose(np.linalg.norm(short, axis=1), 1, atol=1e-6)
    np.testing.assert_allclose(cosine(short, whole[:, :7]), 1, atol=1e-6)
    one = encoder.encode(texts[0], normalize_embeddings=True, truncate_dim=7)
    np.testing.assert_allclose(one, short[0], atol=1e-6)


def test_positions_and_edits_are_those_of_a_run(encoder, texts):
    for options in ({"positions": "none"}, {"edit": "reverse"}, {"edit": ["scale=0.5", "shift=3"]}):
        states = encoder.forward(texts, **options)
        expected = [state.mean(0) for state in states]
        np.testing.assert_allclose(encoder.encode(texts, **options), expected, atol=1e-5)


def test_tokens_know_their_places(encoder):
    text = "É dog"
    tokens = encoder.tokenize(text)
    places = [text[begin:end] for begin, end in tokens.offset_mapping]
    assert places[-2:] == [" dog", ""] and tokens.offset_mapping.shape == (len(tokens.ids), 2)


def test_batch_size_and_progress_change_nothing(encoder, texts, capsys):
    vectors = encoder.encode(texts, batch_size=1, show_progress_bar=True)
    np.testing.assert_array_equal(vectors, encoder.encode(texts))
    assert "5" in capsys.readouterr().err


def test_token_embeddings_are_the_states(encoder, texts):
    states = encoder.encode(texts, output_value="token_embeddings")
    for given, expected in zip(states, encoder.forward(texts)):
        np.testing.assert_array_equal(given, expected)
    one = encoder.encode(texts[0], output_value="token_embeddings")
    np.testing.assert_allclose(one, states[0], atol=1e-5)
    cut = encoder.encode(texts[0], output_value="token_embeddings", max_tokens=4)
    assert cut.shape == (4, 128)
    assert encoder.encode([], output_value="token_embeddings") == []


@pytest.mark.parametrize("name", ["sinusoidal", "learned", "none", "rotary", "relative", "alibi"])
def test_token_embeddings_of_long_texts_are_cut_as_vectors_are(name):
    with phasor.Encoder(name) as encoder:
        long = "a dog bit Tom. " * 100
        for options in ({}, {"max_tokens": 50}, {"max_tokens": 300}):
            states = encoder.encode(long, output_value="token_embeddings", **options)
            np.testing.assert_allclose(encoder.encode(long, **options), states.mean(0), atol=1e-5)


PROMPTS = {"query": "ask: ", "passage": "tell: ", "empty": ""}


def test_prompts_are_put_before_texts(model_folder, texts):
    folder = model_folder(config_sentence_transformers={"prompts": PROMPTS, "default_prompt_name": "query"})
    with phasor.Encoder(folder) as encoder:
        plain = encoder.encode(texts, prompt="")
        asked = encoder.encode(["ask: " + text for text in texts], prompt="")
        told = encoder.encode(["tell: " + text for text in texts], prompt="")
        np.testing.assert_allclose(encoder.encode(texts), asked, atol=1e-5)
        np.testing.assert_allclose(encoder.encode(texts, "query"), asked, atol=1e-5)
        np.testing.assert_allclose(encoder.encode(texts, "passage"), told, atol=1e-5)
        np.testing.assert_allclose(encoder.encode(texts, "empty"), plain, atol=1e-5)
        np.testing.assert_allclose(encoder.encode(texts, prompt="tell: "), told, atol=1e-5)
        np.testing.assert_allclose(encoder.embed_documents(texts), told, atol=1e-5)
        np.testing.assert_allclose(encoder.embed_query(texts[0]), asked[0], atol=1e-5)
        for options in ({"prompt_name": "passage"}, {"prompt": "tell: "}):
            np.testing.assert_allclose(encoder.encode_query(texts, **options), told, atol=1e-5)
        states = encoder.encode(texts[0], "passage", output_value="token_embeddings")
        np.testing.assert_allclose(states.mean(0), told[0], atol=1e-5)
        with pytest.raises(phasor.InvalidArgument, match="query, .*|passage"):
            encoder.encode(texts, "nothing")
        ranked = encoder.rank(texts[0], texts)
        scores = cosine(asked[0], told)
        assert [r["corpus_id"] for r in ranked] == np.argsort(-scores, kind="stable").tolist()
        np.testing.assert_allclose([r["score"] for r in ranked], np.sort(scores)[::-1], atol=1e-5)


def test_the_files_of_sentence_transformers_say_how_to_pool(model_folder, texts):
    kind = "sentence_transformers.models."
    folder = model_folder(
        modules=[
            {"idx": 0, "name": "0", "path": "", "type": kind + "Transformer"},
            {"idx": 1, "name": "1", "path": "1_Pooling", "type": kind + "Pooling"},
            {"idx": 2, "name": "2", "path": "2_Normalize", "type": kind + "Normalize"},
        ],
        **{"1_Pooling__config": {"word_embedding_dimension": 128, "pooling_mode": "cls"}},
        sentence_bert_config={"max_seq_length": 6},
    )
    with phasor.Encoder(folder) as encoder:
        vectors = encoder.encode(texts)
        states = encoder.encode(texts, output_value="token_embeddings")
        assert max(map(len, states)) == 6
        expected = np.array([state[0] / np.linalg.norm(state[0]) for state in states])
        np.testing.assert_allclose(vectors, expected, atol=1e-5)
        # What normalises comes before what truncates.
        np.testing.assert_array_equal(encoder.encode(texts, truncate_dim=9), vectors[:, :9])
        short = encoder.encode(texts, truncate_dim=9, normalize_embeddings=True)
        np.testing.assert_allclose(np.linalg.norm(short, axis=1), 1, atol=1e-6)


def test_langchain_gets_lists_of_floats(encoder, texts):
    documents, query = encoder.embed_documents(texts), encoder.embed_query(texts[0])
    assert type(documents) is list and {type(v) for v in documents} == {list}
    assert {type(x) for v in documents for x in v} == {float}
    assert type(query) is list and {type(x) for x in query} == {float}
    np.testing.assert_allclose(documents[0], query, atol=1e-5)
    assert encoder.embed_documents([]) == []
    with pytest.raises(TypeError):
        encoder.embed_documents("one text")
    with pytest.raises(TypeError):
        encoder.embed_query(["a"])


def test_similarity_is_the_cosine(encoder):
    generator = np.random.default_rng(0)
    a, b = generator.normal(size=(3, 8)), generator.normal(size=(2, 8))
    expected = [[cosine(x, y) for y in b] for x in a]
    np.testing.assert_allclose(encoder.similarity(a, b), expected, atol=1e-6)
    assert encoder.similarity(a[0].tolist(), b).shape == (1, 2)
    assert encoder.similarity(a * 0, b).max() == 0
    before = a.astype(np.float32)
    copy = before.copy()
    encoder.similarity(before, before)
    np.testing.assert_array_equal(before, copy)
    with pytest.raises(phasor.InvalidArgument):
        encoder.similarity(a, b[:, :7])
    with pytest.raises(TypeError):
        encoder.similarity(None, b)


@pytest.mark.parametrize("name", ["cosine", "dot", "euclidean", "manhattan"])
def test_similarity_is_that_of_the_models_files(model_folder, texts, name):
    pairs = {
        "cosine": lambda x, y: x @ y / np.linalg.norm(x) / np.linalg.norm(y), "dot": lambda x, y: x @ y,
        "euclidean": lambda x, y: -np.sqrt(((x - y) ** 2).sum()), "manhattan": lambda x, y: -np.abs(x - y).sum(),
    }
    folder = model_folder(config_sentence_transformers={"similarity_fn_name": name})
    with phasor.Encoder(folder) as encoder:
        vectors = encoder.encode(texts)
        expected = [[pairs[name](x, y) for y in vectors] for x in vectors[:2]]
        similar = encoder.similarity(vectors[:2], vectors)
        assert similar.dtype == np.float32
        np.testing.assert_allclose(similar, expected, rtol=1e-5, atol=1e-5)
        assert encoder.similarity(vectors[:0], vectors).shape == (0, len(texts))
        diagonal = np.diag(encoder.similarity(vectors, vectors[::-1]))
        pairwise = encoder.similarity_pairwise(vectors, vectors[::-1])
        np.testing.assert_allclose(pairwise, diagonal, rtol=2e-6, atol=1e-5)
        with pytest.raises(phasor.InvalidArgument):
            encoder.similarity_pairwise(vectors, vectors[1:])
        for r in encoder.rank(texts[0], texts):
            assert r["score"] == pytest.approx(expected[0][r["corpus_id"]], rel=1e-5, abs=1e-4)


def test_a_default_precision_notes_the_faster_ones_once(caplog):
    faster = info("faster_than_float32")
    _note_faster.cache_clear()
    caplog.set_level("INFO", logger="phasor")
    phasor.Encoder(precision="f32").close()
    assert caplog.messages == []
    for _ in range(2):
        phasor.Encoder().close()
    assert caplog.messages == ([f"precision is f32 by default; {faster}"] if faster else [])


@pytest.mark.parametrize("precision", ["bf16", "int8", "auto"])
def test_precisions_are_close(encoder, texts, precision):
    with phasor.Encoder(precision=precision) as other:
        assert other.precision in ("f32", "bf16", "int8")
        assert cosine(other.encode(texts), encoder.encode(texts)).min() > 0.97


def test_kernels_agree(encoder, texts):
    with phasor.Encoder(kernels="onednn") as other, phasor.Encoder(kernels="own") as own:
        assert (other.kernels, own.kernels) == ("onednn", "own")
        np.testing.assert_allclose(other.encode(texts), own.encode(texts), atol=1e-5)


def test_weights_may_be_copied(encoder, texts, model_folder):
    with phasor.Encoder(model_folder(), copy=True, threads=1) as copied:
        np.testing.assert_allclose(copied.encode(texts), encoder.encode(texts), atol=1e-5)


@pytest.mark.parametrize("count", [1, 3, 4, 5, 8, 9])
@pytest.mark.parametrize("shown", [None, True])
def test_any_number_of_texts_in_chunks(encoder, monkeypatch, count, shown):
    """The last chunk may be a single text."""
    texts = [f"dog {i}" for i in range(count)]
    whole = encoder.encode(texts)
    monkeypatch.setattr("phasor.vectors._CHUNK", 4)
    np.testing.assert_array_equal(encoder.encode(texts, show_progress_bar=shown), whole)


def test_encode_takes_what_sentence_transformers_callers_write(encoder, texts):
    vectors = encoder.encode(texts, convert_to_numpy=True, convert_to_tensor=False)
    np.testing.assert_array_equal(vectors, encoder.encode(texts))
    listed = encoder.encode(texts, convert_to_numpy=False)
    assert isinstance(listed, list)
    np.testing.assert_array_equal(np.stack(listed), vectors)
    for same in (dict(device="cpu", chunk_size=7, precision="float32"), dict(batch_size=2)):
        np.testing.assert_array_equal(encoder.encode(texts, **same), vectors)
    np.testing.assert_array_equal(encoder.encode(inputs=texts), vectors)
    np.testing.assert_array_equal(encoder.encode(sentences=texts), vectors)
    for wrong in (dict(inputs=texts), dict(device="cuda"), dict(pool=3), dict(precision="int4")):
        with pytest.raises((TypeError, phasor.InvalidArgument)):
            encoder.encode(texts, **wrong)
    features = encoder.encode(texts, output_value=None)
    states = encoder.encode(texts, output_value="token_embeddings")
    for found, state, vector in zip(features, states, vectors):
        np.testing.assert_array_equal(found["token_embeddings"], state)
        np.testing.assert_array_equal(found["sentence_embedding"], vector)


def test_a_setting_does_what_it_says_or_is_an_error(model_folder):
    encoder = phasor.Encoder(model_folder())
    text = "Tom bit a dog. " * 9
    whole = encoder.encode(text)
    encoder.max_seq_length = 8
    assert encoder.max_seq_length == encoder.get_max_seq_length() == 8
    np.testing.assert_array_equal(encoder.encode(text), encoder.encode(text, max_tokens=8))
    assert not np.array_equal(encoder.encode(text), whole)
    encoder.truncate_dim = 16
    with pytest.raises(phasor.InvalidArgument, match="out receives"):
        encoder.encode([text], out=np.empty((1, 128), np.float32))
    assert encoder.encode(text).shape == (encoder.get_embedding_dimension(),) == (16,)
    encoder.truncate_dim = None
    encoder.similarity_fn_name = "dot"
    vector = encoder.encode(text)
    assert encoder.similarity(vector, vector)[0, 0] == pytest.approx(vector @ vector, rel=1e-6)
    assert encoder.prompts == {"query": "", "document": ""}
    np.testing.assert_array_equal(encoder.encode(text, prompt_name="query"), vector)
    encoder.prompts = {"query": "dog "}
    for of_query in (encoder.encode_query(text), encoder.encode(text, prompt_name="query")):
        np.testing.assert_array_equal(of_query, encoder.encode(text, prompt="dog "))
    encoder.default_prompt_name = "query"
    np.testing.assert_array_equal(encoder.encode(text), of_query)
    names = "_x pool tokenizer training half model_card_data max_length normalize dtype module"
    for name in names.split() + ["threads", "precision", "kernels", "name", "info", "device"]:
        with pytest.raises(AttributeError):
            setattr(encoder, name, 1)
    for name, wrong in [("truncate_dim", 0), ("max_seq_length", 0), ("similarity_fn_name", "x")]:
        with pytest.raises(phasor.InvalidArgument):
            setattr(encoder, name, wrong)
    with pytest.raises(phasor.InvalidArgument):
        encoder.default_prompt_name = "none"
    assert encoder.to("cpu") is encoder.eval() is encoder
    with pytest.raises(phasor.InvalidArgument):
        encoder.to("cuda")


def test_the_constructor_takes_sentence_transformers_arguments(model_folder, tmp_path):
    folder = model_folder()
    snapshot = tmp_path / "hub" / "models--me--dog" / "snapshots" / "abc"
    (snapshot.parents[1] / "refs").mkdir(parents=True)
    (snapshot.parents[1] / "refs" / "main").write_text("abc")
    snapshot.parent.mkdir()
    folder.rename(snapshot)
    encoder = phasor.Encoder(
        model_name_or_path="me/dog", cache_folder=tmp_path / "hub", device="cpu", truncate_dim=8,
        prompts={"query": "dog "}, default_prompt_name="query", similarity_fn_name="manhattan",
        backend="onnx", trust_remote_code=True,
    )
    same = phasor.Encoder(snapshot)
    np.testing.assert_array_equal(encoder.encode("a"), same.encode("dog a")[:8])
    a, b = encoder.encode(["a", "b"])
    assert encoder.similarity(a, b)[0, 0] == pytest.approx(-np.abs(a - b).sum(), rel=1e-6)
    with pytest.raises(phasor.NotFound, match="me/cat"):
        phasor.Encoder("me/cat", cache_folder=tmp_path / "hub")
    with pytest.raises(TypeError):
        phasor.Encoder("learned", model_name_or_path="rotary")


def test_prompts_that_are_set_take_the_place_of_the_files(model_folder):
    folder = model_folder(
        config_sentence_transformers={"prompts": {"query": "dog ", "passage": "cat "}, "default_prompt_name": "query"}
    )
    encoder = phasor.Encoder(folder)

    def is_said(vectors, prompt):
        np.testing.assert_array_equal(vectors, encoder.encode("a", prompt=prompt))

    assert encoder.default_prompt_name == "query"
    is_said(encoder.encode("a"), "dog ")
    is_said(encoder.encode_document("a"), "cat ")
    encoder.prompts["query"] = "Tom "
    is_said(encoder.encode("a"), "Tom ")
    is_said(encoder.encode_query(inputs="a"), "Tom ")
    encoder.default_prompt_name = None
    is_said(encoder.encode("a"), "")
    encoder.prompts = {"corpus": "it "}
    is_said(encoder.encode_query("a"), "")
    is_said(encoder.encode_document("a", None, None, 16), "it ")
    is_said(phasor.Encoder(folder, prompts={"query": "it "}).encode("a"), "it ")
    for wrong in (None, ["query"], {"query": 1}):
        with pytest.raises(TypeError):
            encoder.prompts = wrong


def test_rank_of_a_model_of_vectors_is_their_similarity(encoder, texts):
    made = phasor.Encoder(similarity_fn_name="dot", truncate_dim=9, prompts={"query": "dog "})
    ranking = made.rank("Tom", texts)
    scores = made.similarity(made.encode("Tom", prompt="dog "), made.encode(texts))[0]
    assert [hit["corpus_id"] for hit in ranking] == np.argsort(-scores, kind="stable").tolist()
    assert [hit["score"] for hit in ranking] == pytest.approx(sorted(scores, reverse=True))


@pytest.mark.parametrize("value", [None, "token_embeddings"])
def test_what_other_values_do_not_take_is_refused(encoder, value):
    for wrong in (
        {"normalize_embeddings": True}, {"truncate_dim": 8}, {"precision": "int8"},
        {"pooling": "cls"}, {"convert_to_tensor": True}, {"edit": "reverse"},
    ):
        for texts in ("a", ["a"]):
            with pytest.raises(phasor.InvalidArgument, match=f"output_value={value!r}"):
                encoder.encode(texts, output_value=value, **wrong)


def test_smaller_vectors_are_steps_between_least_and_largest_or_bits(encoder, texts):
    vectors = encoder.encode(texts)
    least, most = vectors.min(0), vectors.max(0)
    steps = encoder.encode(texts, precision="uint8")
    assert steps.dtype == np.uint8
    np.testing.assert_allclose(least + steps * (most - least) / 255, vectors, atol=(most - least).max() / 250)
    signed = encoder.encode(texts, precision="int8")
    assert signed.dtype == np.int8 and np.abs(signed.astype(int) + 128 - steps).max() <= 1
    bits = encoder.encode(texts, precision="ubinary")
    np.testing.assert_array_equal(np.unpackbits(bits, axis=1), vectors > 0)
    signed = encoder.encode(texts, precision="binary").astype(int)
    np.testing.assert_array_equal(signed + 128, bits)
    np.testing.assert_array_equal(encoder.encode(texts[0], precision="ubinary"), bits[0])
    assert encoder.encode(["a", "a"], precision="uint8").any() == False  # noqa: E712
    assert encoder.encode([], precision="int8").shape == (0, 128)
    with pytest.raises(phasor.InvalidArgument, match="one"):
        encoder.encode("a", precision="int8")


def test_max_seq_length_is_how_many_tokens_are_read(encoder):
    states = encoder.encode("dog " * 5000, output_value="token_embeddings")
    assert len(states) == encoder.max_seq_length
