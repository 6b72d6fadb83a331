"""Whatever is given, a Python exception of the documented class says what is wrong in one line."""

import contextlib
import json
import shutil

import numpy as np
import pytest

import phasor
from phasor import InvalidArgument

HUGE = [10**12, 2**32 + 1, 2**63, 2**64, -(2**31) - 1, -(2**63) - 1, 10**30]


def refused(kind, call, match=None):
    with pytest.raises(kind, match=match) as raised:
        call()
    assert str(raised.value) and "\n" not in str(raised.value)


class Table:
    """Iterates over the names of its columns, as pandas' does."""

    @property
    def columns(self):
        return ["text", "title"]

    def __len__(self):
        return 3

    def __iter__(self):
        return iter(["text", "title"])


class ArrowTable:
    column_names = Table.columns
    __iter__ = Table.__iter__


class ArrowColumn:
    """Its items are no str."""

    def __init__(self, texts):
        self._texts = texts

    def to_pylist(self):
        return list(self._texts)

    def __iter__(self):
        return iter([object()] * len(self._texts))


def tables_and_columns():
    """Of the libraries that are here: tables of a column of these texts, and what makes a column."""
    texts, tables, columns = ["a dog", "Tom"], [Table(), ArrowTable()], [ArrowColumn, tuple, np.array]
    columns += [lambda texts: np.array(texts, object)]
    with contextlib.suppress(ImportError):
        import pandas

        tables += [pandas.DataFrame({"text": texts})]
        columns += [pandas.Series, lambda texts: pandas.Series(texts, index=["columns", "b"])]
    with contextlib.suppress(ImportError):
        import polars

        tables += [polars.DataFrame({"text": texts}), polars.LazyFrame({"text": texts})]
        columns += [polars.Series]
    with contextlib.suppress(ImportError):
        import pyarrow

        tables += [pyarrow.table({"text": texts}), pyarrow.record_batch({"text": texts})]
        columns += [pyarrow.array, lambda texts: pyarrow.chunked_array([texts])]
    return tables, columns


TABLES, COLUMNS = tables_and_columns()
NO_TEXTS = [None, 3, 1.5, b"text", bytearray(b"text"), {"a": 1}, {"a"}, object(), np.array("a")]
NO_TEXTS += [[b"a"], [None], ["a", 1], [["a"]], np.array([["a", "b"]]), {"a": "b"}.keys(), *TABLES]


def calls_with_texts(encoder, texts):
    return [
        lambda: encoder.encode(texts), lambda: encoder.encode(inputs=texts), lambda: encoder.encode_query(texts),
        lambda: encoder.encode_document(texts), lambda: encoder.encode(texts, output_value="token_embeddings"),
        lambda: encoder.encode_sparse(texts), lambda: encoder.encode_tokens(texts), lambda: encoder.encode_all(texts),
        lambda: encoder.encode_states(texts), lambda: encoder.forward(texts), lambda: encoder.run_with_cache(texts),
        lambda: encoder.run_with_hooks(texts), lambda: encoder.tokenize(texts), lambda: encoder.to_tokens(texts),
        lambda: encoder.to_str_tokens(texts), lambda: encoder.embed_documents(texts), lambda: encoder.classify(texts),
        lambda: encoder.label_tokens(texts), lambda: encoder.rank("a", texts), lambda: encoder.observe(texts),
        lambda: phasor.compare(encoder, texts=texts, positions=["own", "none"]),
    ]


@pytest.mark.parametrize("texts", NO_TEXTS, ids=lambda texts: repr(texts)[:40])
def test_what_is_no_text(encoder, texts):
    out = np.empty((2, 128), np.float32)
    for call in (
        *calls_with_texts(encoder, texts), lambda: encoder.encode(texts, out=out), lambda: encoder.embed_query(texts),
        lambda: encoder.rank(texts, ["a"]),
    ):
        refused(TypeError, call)
    # Where None stands for a default:
    if texts is not None:
        for call in (
            lambda: encoder.tokenize(["a"], texts), lambda: encoder.classify(["a"], texts),
            lambda: encoder.encode("a", prompt=texts),
        ):
            refused(TypeError, call)


@pytest.mark.parametrize(
    "make", [iter, lambda texts: (text for text in texts), lambda texts: zip(texts, texts), reversed]
)
def test_an_iterator_is_no_sequence_of_texts(encoder, make):
    for i in range(len(calls_with_texts(encoder, []))):
        refused(TypeError, calls_with_texts(encoder, make(["a", "b"]))[i], r"give list\(")
    refused(TypeError, lambda: encoder.predict(make(["a", "b"])), r"give list\(")


def test_what_to_give_in_the_place_of_a_table(encoder):
    for table in TABLES:
        for call in (*calls_with_texts(encoder, table), lambda: encoder.predict(table)):
            refused(TypeError, call, r'Table|Frame|Batch.*; give one of its columns, like table\["text"\]')
    refused(TypeError, lambda: encoder.encode({"a": 1}), r"sentences must be .* not dict; .*\.values\(\)")
    refused(TypeError, lambda: encoder.predict([{"a": 1, "b": 2}]), r"sentences\[0\] must be .* not dict")


@pytest.mark.parametrize("make", COLUMNS)
def test_columns_are_sequences_of_texts(encoder, make):
    texts = ["a dog", "Tom"]
    np.testing.assert_array_equal(encoder.encode(make(texts)), encoder.encode(texts))
    assert encoder.to_str_tokens(make(texts)) == encoder.to_str_tokens(texts)
    assert encoder.rank("a", make(texts)) == encoder.rank("a", texts)
    np.testing.assert_array_equal(encoder.forward(make(texts)).hidden, encoder.forward(texts).hidden)
    assert repr(encoder.observe(make(texts))) == repr(encoder.observe(texts))


def test_one_text_where_several_belong(encoder):
    for call in (
        lambda: encoder.rank("a", "b"), lambda: encoder.embed_documents("a"), lambda: encoder.tokenize(["a"], "b"),
    ):
        refused(TypeError, call)


NO_IDS = [[1.5], [[1], None], [[[1]]], [True], [[1], ["a"]], [1, "a"], [1, None]]
NO_IDS += [np.float32([1, 2]), np.int32(3), [2**70]]


@pytest.mark.parametrize("ids", NO_IDS, ids=repr)
def test_what_are_no_ids(encoder, ids):
    refused(TypeError, lambda: encoder.forward(ids))


def test_no_texts(encoder):
    assert encoder.encode([]).shape == (0, 128)
    assert encoder.tokenize([]) == []
    for empty in ([], [[]], np.empty((0, 3), np.int32)):
        refused(InvalidArgument, lambda: encoder.forward(empty))
        refused(InvalidArgument, lambda: encoder.run_with_cache(empty))
    assert np.isfinite(encoder.encode("")).all()
    assert len(encoder.forward("").token_ids) == 2


NO_INTS = [None, "1", 1.0, [1], b"1"]


def calls_with(encoder, value):
    """By the name that the message must have."""
    yield "threads", lambda: phasor.Encoder(threads=value)
    yield "", lambda: encoder.position_vectors(value)
    yield "max_tokens", lambda: encoder.encode("a", max_tokens=value)
    yield "max_tokens", lambda: encoder.encode(["a"], max_tokens=value)
    yield "max_tokens", lambda: encoder.tokenize("a", max_tokens=value)
    if value != "1":
        yield "residual", lambda: encoder.forward("a", cut_residual=[value])
    if value is not None:  # the default
        yield "top_k", lambda: encoder.rank("a", ["b"], top_k=value)
        yield "truncate_dim", lambda: encoder.encode("a", truncate_dim=value)


@pytest.mark.parametrize("value", NO_INTS, ids=repr)
def test_what_is_no_int(encoder, value):
    for name, call in calls_with(encoder, value):
        refused(TypeError, call, name)


@pytest.mark.parametrize("value", [*HUGE, -1], ids=repr)
def test_ints_out_of_range(encoder, value):
    for name, call in calls_with(encoder, value):
        if name in ("max_tokens", "top_k") and 0 < value < 2**63:
            continue  # as good as no limit
        refused(InvalidArgument, call, name)


def test_truncate_dim(encoder):
    for wrong in (0, 129, -5):
        refused(InvalidArgument, lambda: encoder.encode("a", truncate_dim=wrong), "truncate_dim")


NO_NAMES = [b"a", 3, ["a"], {"a": 1}]
NO_NAMES += ["a\0b", "nothing", "\ud800", "", "x" * 100000]


@pytest.mark.parametrize("value", NO_NAMES, ids=lambda v: repr(v)[:20])
def test_names(encoder, value):
    kinds = (TypeError, InvalidArgument)
    for call in (
        lambda: phasor.Encoder(precision=value), lambda: phasor.Encoder(kernels=value),
        lambda: phasor.Encoder(language=value or "none"), lambda: encoder.encode("a", pooling=value),
        lambda: encoder.encode("a", overflow=value), lambda: encoder.encode("a", output_value=value),
        lambda: encoder.encode("a", prompt_name=value), lambda: encoder.encode("a", edit=[value]),
        lambda: encoder.encode("a", positions=value or "?"), lambda: encoder.run_with_cache("a", [value]),
        lambda: encoder.forward("a", fwd_hooks=[([value], print)]),
        lambda: encoder.forward("a", cut_residual=[value] if value != 3 else ["3"]),
        lambda: encoder.forward("a", overflow=value), lambda: encoder.position_vectors(3, overflow=value),
    ):
        refused(kinds, call)


def test_options_that_there_are_not_are_named(encoder):
    names = "encode encode_query encode_document encode_sparse encode_tokens encode_all encode_states classify predict"
    for name in [*names.split(), "label_tokens", "rank"]:
        given = ["a", []] if name == "rank" else [[]]
        refused(TypeError, lambda: getattr(encoder, name)(*given, max_token=3), "'max_token'.* you mean max_tokens")
    refused(TypeError, lambda: encoder.encode("a", pooling=["cls"]), "pooling is a str, not list")
    rank = phasor.Encoder(prompts={"query": "dog "}).rank  # of vectors
    refused(InvalidArgument, lambda: rank("a", ["b"], pooling="cls"), "does not use pooling")


NO_HOOKS = [3, None, "ab", [3], [("embed",)], [("embed", 3)], [("embed", None)], [(3, print)]]
NO_HOOKS += [{"embed": print}]


@pytest.mark.parametrize("hooks", NO_HOOKS, ids=repr)
def test_hooks(encoder, hooks):
    refused((TypeError, InvalidArgument), lambda: encoder.forward("a", fwd_hooks=hooks))


NO_POSITIONS = [[], [[1.0], [2.0, 3.0]], [0, 1], [2**40, 1, 2], [2**70, 1, 2], [None, 1, 2], ["a"]]
NO_POSITIONS += [{}, object(), 3, 1.5, b"none", True]
NO_POSITIONS += [np.zeros(shape) for shape in ((0, 128), (3, 127), (2, 3, 128), (3,))]
NO_POSITIONS += [np.zeros((3, 128), kind) for kind in (int, complex, "U1")]
NO_POSITIONS += [np.full((3, 128), np.nan)]


@pytest.mark.parametrize("positions", NO_POSITIONS, ids=lambda p: repr(p)[:20])
def test_positions(encoder, positions):
    refused((TypeError, InvalidArgument), lambda: encoder.forward("a", positions=positions))


def test_models(tmp_path, encoder, model_folder):
    refused(phasor.NotFound, lambda: phasor.Encoder("/nowhere"), "/nowhere")
    refused(phasor.NotFound, lambda: phasor.Encoder("nothing"), "sinusoidal")
    refused(phasor.NotFound, lambda: phasor.Encoder(""))
    refused(phasor.ModelError, lambda: phasor.Encoder("x" * 5000), "too long")
    refused(FileNotFoundError, lambda: phasor.Encoder(tmp_path / "nothing"))
    refused(phasor.ModelError, lambda: phasor.Encoder(tmp_path), "config.json")
    refused(phasor.ModelError, lambda: phasor.Encoder(__file__), "not a folder")
    refused(InvalidArgument, lambda: phasor.Encoder("a\0b"), "NUL")
    refused(InvalidArgument, lambda: phasor.Encoder("\ud800"))
    for wrong in (None, 3, ["sinusoidal"]):
        refused(TypeError, lambda: phasor.Encoder(wrong))
    folder = model_folder()
    assert phasor.Encoder(str(folder).encode()).info["folder"] == str(folder)
    config = json.loads((folder / "config.json").read_text())
    for text in ("", "{", "[]", "null", "\0", json.dumps({**config, "num_layers": 7}),
                 json.dumps({**config, "num_heads": -1}), json.dumps({**config, "d_model": 2**70})):
        (folder / "config.json").write_text(text)
        refused(phasor.ModelError, lambda: phasor.Encoder(folder))
    shutil.rmtree(folder)
    folder = model_folder()
    data = (folder / "model.safetensors").read_bytes()
    for damaged in (b"", data[:5], data[:1000], b"\xff" * 8 + data[8:], data[:-1]):
        (folder / "model.safetensors").write_bytes(damaged)
        refused(phasor.ModelError, lambda: phasor.Encoder(folder, copy=True))
    (folder / "model.safetensors").unlink()
    refused(phasor.ModelError, lambda: phasor.Encoder(folder))


def test_links_out_of_the_folder_are_followed_if_asked_for(model_folder, tmp_path):
    folder, linked = model_folder(), tmp_path / "linked"
    linked.mkdir()
    for file in folder.iterdir():
        (linked / file.name).symlink_to(file)
    refused(phasor.ModelError, lambda: phasor.Encoder(linked), "follow_links")
    with phasor.Encoder(linked, follow_links=True) as encoder:
        assert encoder.encode("Tom bit a dog.").shape == (128,)
        assert encoder.observe("Tom bit a dog.")  # the program that it starts follows them, too


def test_a_model_that_cannot_be_described(monkeypatch):
    refused(phasor.NotFound, lambda: phasor.Encoder("nothing"))
    monkeypatch.setattr("phasor._base.lib.model_info", lambda model: None)
    refused(phasor.BackendError, phasor.Encoder, "no model 'nothing'")  # the library's last message


def test_after_close(tmp_path):
    encoder = phasor.Encoder(threads=1)
    encoder.encode("a")
    encoder.close()
    encoder.close()
    for call in (
        lambda: encoder.encode("a"), lambda: encoder.encode([]),
        lambda: encoder.encode([], output_value="token_embeddings"),
        lambda: encoder.encode(["a"], out=np.empty((1, 128), np.float32)),
        lambda: encoder.encode("a", output_value="token_embeddings"), lambda: encoder.embed_documents(["a"]),
        lambda: encoder.embed_query("a"), lambda: encoder.rank("a", ["b"]), lambda: encoder.rank("a", []),
        lambda: encoder.classify(["a"]), lambda: encoder.tokenize("a"), lambda: encoder.tokenize([]),
        lambda: encoder.forward("a"), lambda: encoder.forward([1, 2]), lambda: encoder.run_with_hooks("a"),
        lambda: encoder.run_with_cache("a"), lambda: encoder.mlm_logits(np.zeros((1, 128))),
        lambda: encoder.position_vectors(3), lambda: encoder.get_sentence_embedding_dimension(),
    ):
        refused(phasor.Error, call, "closed")
    assert "sinusoidal" in repr(encoder) and encoder.hook_names


def test_many_short_texts(encoder):
    texts = ["a"] * 100_000
    vectors = encoder.encode(texts)
    assert vectors.shape == (100_000, 128) and np.isfinite(vectors).all()


def test_an_iterable_that_fails(encoder):
    def texts():
        yield "a"
        raise RuntimeError("of the texts")

    with pytest.raises(RuntimeError, match="of the texts"):
        encoder.encode(texts(), out=np.empty((5, 128), np.float32))
