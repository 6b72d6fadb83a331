"""observe() and compare()."""

import json
import re
import threading

import numpy as np
import pytest

import phasor
from conftest import infer

TEXT = "Tom bit a dog."


def views(lines):
    """What was measured, without the names of models."""
    return [run["views"] for line in lines for run in line.get("runs", [line])]


def same(column, cells):
    assert len(column) == len(cells)
    for value, cell in zip(column, cells):
        if cell is None:
            assert value == "" or np.isnan(value)
        else:
            assert value == cell


@pytest.fixture(scope="module")
def observed():
    return phasor.observe(TEXT)


def test_tables_are_those_of_the_program(observed):
    printed = infer("observe", "--json", TEXT)
    assert observed.json == printed
    assert list(observed) == list(printed[0]["views"])
    for view, rows in printed[0]["views"].items():
        table = observed[view]
        assert set(table) == {name for row in rows for name in row}
        assert len(table) == len(set(table))
        for name in table:
            same(table[name], [row.get(name) for row in rows])


def test_a_table_has_types(observed):
    assert observed["norm"]["layer"].dtype == np.int64
    assert observed["norm"]["norm"].dtype == np.float64
    assert "layer" in repr(observed["norm"]) and "norm" in repr(observed)


def test_several_texts_have_a_column(encoder):
    observed = encoder.observe([TEXT, "A cat."], only=["norm", "effect"])
    assert sorted(observed) == ["effect", "norm"]
    np.testing.assert_array_equal(observed["norm"]["text"], [0] * 7 + [1] * 7)
    alone = encoder.observe("A cat.", only="norm")["norm"]
    np.testing.assert_allclose(observed["norm"]["norm"][7:], alone["norm"], atol=1e-5)


def test_two_orders_of_the_same_words_begin_with_what_tells_them_apart(encoder):
    observed = encoder.observe(["Tom bit a dog a", "a dog bit a Tom"], only="effect")
    pair = observed.json[1]["pair"]
    assert pair.startswith("Without positions both texts are the same to this model.")
    assert repr(observed).startswith(f"{pair}\n\neffect\n")
    assert repr(encoder.observe(["Tom", "A cat."], only="effect")).startswith("effect\n")


def test_degrees_are_the_mean_angle(encoder):
    states = [encoder.run_with_cache(TEXT, "full_embed", edit=edit)[1]["full_embed"][0] for edit in ((), "mean")]
    a, b = (state.astype(float) / np.linalg.norm(state.astype(float), axis=-1, keepdims=True) for state in states)
    angles = np.degrees(np.arccos((a * b).sum(-1)))
    assert encoder.observe(TEXT, only="effect")["effect"]["degrees"][0] == pytest.approx(angles.mean(), rel=1e-4)


def test_numbers_are_those_of_a_run(encoder):
    """The mean length of the states."""
    _, cache = encoder.run_with_cache(TEXT, ["full_embed", "normalized_resid_post"])
    states = [cache["full_embed"], *(cache["normalized_resid_post", i] for i in range(6))]
    lengths = [np.linalg.norm(state[0], axis=-1).mean() for state in states]
    np.testing.assert_allclose(encoder.observe(TEXT)["norm"]["norm"], lengths, rtol=1e-4)


def test_two_runs_have_a_column(encoder):
    for options, arguments in (
        ({"edit": "reverse"}, ["--edit", "reverse"]),
        ({"cut_residual": "blocks.1.attn"}, ["--cut-residual", "2.attn"]),
        ({"cut_residual": [1, 2]}, ["--cut-residual", "2", "--cut-residual", "3"]),
    ):
        observed = encoder.observe(TEXT, **options)
        assert views(observed.json) == views(infer("observe", "--json", *arguments, TEXT))
        assert len(set(observed["norm"]["run"])) == 2
        assert "moved" in observed


def test_positions(encoder):
    observed = encoder.observe(TEXT, positions="none", only="norm")
    printed = infer("observe", "--json", "--positions", "none", "--only", "norm", TEXT)
    assert views(observed.json) == views(printed)


def test_compare(encoder):
    printed = infer("compare", "--json", "sinusoidal", "learned", TEXT)
    assert phasor.compare("sinusoidal", "learned", TEXT).json == printed
    with phasor.Encoder("learned") as learned:
        by_encoder = encoder.compare(learned, TEXT)
    assert views(by_encoder.json) == views(printed)
    assert set(by_encoder["norm"]["run"]) == {run["label"] for run in by_encoder.json[0]["runs"]}


def test_compare_one_model_run_in_two_ways(encoder):
    printed = infer("compare", "--json", "learned", "--positions", "learned", "--positions", "none", TEXT)
    ways = {"texts": TEXT, "positions": ["learned", "none"]}
    assert views(phasor.compare("learned", **ways).json) == views(printed)
    with phasor.Encoder("learned") as learned:
        assert views(learned.compare(**ways).json) == views(printed)
        by_precision = learned.compare(texts=TEXT, precision=["f32", "int8"], only="moved")
    assert by_precision.json[0]["runs"][1]["precision"] == "int8"
    assert list(by_precision)
    for refused in (
        lambda: phasor.compare("learned", "learned", TEXT, positions=["learned", "none"]),
        lambda: phasor.compare("learned", "none", precision=["f32", "int8"]),
        lambda: phasor.compare("learned", "none", TEXT, positions=["learned"]),
        lambda: phasor.compare("learned", texts=TEXT),
    ):
        with pytest.raises(phasor.InvalidArgument, match="learned"):
            refused()


def test_a_model_whose_name_an_error_quotes_is_not_missing(model_folder):
    folder = model_folder(config="{")
    with pytest.raises(phasor.ModelError, match="config.json"):
        phasor.observe("a", model=folder)
    other = folder.parent / "no model 'x'"
    folder.rename(other)
    with pytest.raises(phasor.ModelError) as raised:
        phasor.observe("a", model=other)
    assert not isinstance(raised.value, phasor.NotFound)


def test_untrained_models_stand_beside_each_run(encoder):
    observed = encoder.observe(TEXT, only="effect", baseline="random:2")
    table = observed["effect"]
    assert list(table["run"]) == ["trained"] * 7 + ["untrained"] * 7
    assert np.isnan(table["effect_low"][:7]).all()
    assert (table["effect_low"][7:] <= table["effect"][7:]).all()
    compared = encoder.compare("learned", TEXT, only="effect", baseline="random:1")
    assert len(set(compared["effect"]["run"])) == 4


def test_a_file_of_texts(encoder, tmp_path):
    file = tmp_path / "texts with a space.txt"
    file.write_text("Tom bit a dog.\nA cat sat on the mat.\n" * 5)
    observed = encoder.observe(file=file, only="norm")
    assert observed.json[0]["texts"] == 10 and len(observed["norm"]["norm"]) == 7
    assert (observed["norm"]["norm_low"] < observed["norm"]["norm_high"]).all()


@pytest.mark.parametrize(
    "text", ["-", "-x", "a\0b", "--help", "a\u2028b\x85c\x0bd", "a\nb", "\ud800", "né", '"<script>&', "[MASK] a"]
)
def test_any_text(text):
    observed = phasor.observe([text, "b"], only="norm")
    assert len(observed.json) == 2 and len(observed["norm"]["norm"]) == 14


def test_the_page_needs_no_network(observed):
    page = observed.html()
    assert page.lstrip().lower().startswith("<!doctype html>") and "</html>" in page
    assert not re.search(r"""(?:src|href)\s*=\s*["']?(?:https?:)?//""", page)
    assert not re.search(r"@import|url\(\s*['\"]?(?:https?:)?//", page)
    framed = observed._repr_html_()
    assert framed.startswith("<iframe") and framed.count('"') == 4
    assert "&lt;html" in framed


def test_to_pandas(observed):
    pandas = pytest.importorskip("pandas")
    frame = observed["heads"].to_pandas()
    assert isinstance(frame, pandas.DataFrame) and len(frame) == 24
    np.testing.assert_array_equal(frame["layer"], observed["heads"]["layer"])


def test_views_that_are_not_there(observed):
    with pytest.raises(KeyError, match="there are: .*norm"):
        observed["nothing"]
    with pytest.raises(KeyError, match="moved"):
        observed["moved"]


@pytest.mark.parametrize("kind,call", [
    (phasor.NotFound, lambda: phasor.observe("a", model="/nowhere")),
    (phasor.InvalidArgument, lambda: phasor.observe("a", only="nothing")),
    (phasor.InvalidArgument, lambda: phasor.observe("a", edit="nothing")),
    (phasor.InvalidArgument, lambda: phasor.observe("a", baseline="nothing")),
    (phasor.InvalidArgument, lambda: phasor.observe("a", positions="nothing")),
    (phasor.InvalidArgument, lambda: phasor.observe("a", positions=3)),
    (phasor.InvalidArgument, lambda: phasor.observe("a", cut_residual=99)),
    (phasor.InvalidArgument, lambda: phasor.observe("a", cut_residual="2.attn")),
    (phasor.InvalidArgument, lambda: phasor.observe("a", without="nothing")),
    (phasor.InvalidArgument, lambda: phasor.observe("a", top_k=-1)),
    (phasor.InvalidArgument, lambda: phasor.observe("a", max_tokens=-1)),
    (phasor.InvalidArgument, lambda: phasor.observe()),
    (phasor.InvalidArgument, lambda: phasor.observe("a" * 3_000_000)),
    (phasor.Error, lambda: phasor.observe(file="/nowhere")),
    (phasor.NotFound, lambda: phasor.compare("sinusoidal", "/nowhere", "a")),
    (TypeError, lambda: phasor.observe(None)), (TypeError, lambda: phasor.observe([1])),
    (TypeError, lambda: phasor.observe(b"a")), (TypeError, lambda: phasor.observe({"a": 1})),
    (TypeError, lambda: phasor.observe("a", model=None)), (TypeError, lambda: phasor.observe("a", only=[None])),
    (TypeError, lambda: phasor.observe("a", seed="a")), (TypeError, lambda: phasor.observe("a", nothing=1)),
])
def test_errors(kind, call):
    with pytest.raises(kind) as raised:
        call()
    message = str(raised.value)
    assert message and "\n" not in message and not message.startswith("infer")


def test_progress_is_called_and_may_end_the_call(encoder):
    stages = []
    encoder.observe(TEXT, progress=lambda *stage: stages.append(stage))
    assert stages and all(0 <= done <= total for _, done, total in stages)

    def fail(*_):
        raise KeyboardInterrupt

    for call in (encoder.observe, lambda text, **how: encoder.compare(encoder, text, **how)):
        with pytest.raises(KeyboardInterrupt):
            call(TEXT, progress=fail)
    encoder.observe(TEXT, progress=lambda *_: encoder.encode(TEXT))


def test_threads_compare_two_encoders(encoder):
    with phasor.Encoder("learned") as other:
        calls = [lambda: encoder.compare(other, TEXT, only="norm")] * 4
        calls += [lambda: other.compare(encoder, TEXT, only="norm")] * 4
        threads = [threading.Thread(target=call) for call in calls]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=300)
            assert not thread.is_alive()
    twice = encoder.compare(encoder, TEXT, only="moved")
    assert np.abs(twice["moved"]["distance"]).max() < 1e-12


def test_a_file_beside_texts_and_its_page(encoder, tmp_path):
    file = tmp_path / "lines.txt"
    file.write_bytes(b"Tom bit a dog.\r\n\n \nA cat sat on the mat.\n" * 5)
    observed = encoder.observe(TEXT, file=file, only=["pattern", "corpus", "norm"])
    assert "file" not in observed.json[0] and observed.json[1]["file"] == str(file)
    assert observed.json[1]["texts"] == 10 and "corpus" in observed
    data = observed.html().split('id="data">')[1].split("</script>")[0]
    texts = json.loads(data)["texts"]
    assert "patterns" in texts[0] and texts[1]["texts"] == 10
    compared = encoder.compare("learned", [TEXT, "A cat."])
    data = compared.html().split('id="data">')[1].split("</script>")[0]
    assert [len(text["runs"]) for text in json.loads(data)["texts"]] == [2, 2, 2]


@pytest.mark.parametrize("data, said", [
    (b"\x1f\x8bTom\n", "is compressed; z"), (b"\x28\xb5\x2f\xfdTom\n", "is compressed; z"),
    ("Tom bit.\nA dog.\n".encode("utf-16"), "iconv"), ("Tom bit.\nA dog.\n".encode("utf-16-le"), "iconv"),
    ("東京\n大阪\n".encode("utf-16-be"), "iconv"), ("Tom bit.\n".encode("utf-32-le"), "iconv"),
    (b"Tom bit.\rA dog.\r", "old Macs"),
])
def test_files_that_are_no_lines_of_text_are_refused(tmp_path, data, said):
    (tmp_path / "lines").write_bytes(data)
    with pytest.raises(phasor.InvalidArgument, match=said):
        phasor.observe(file=tmp_path / "lines")


def test_observed_and_tables_are_mappings(encoder):
    observed = encoder.observe("Tom bit a dog.", only=["effect", "norm"])
    assert set(observed) == {"effect", "norm"} and len(observed) == 2 and "effect" in observed
    assert isinstance(observed["norm"], dict)
    with pytest.raises(KeyError, match="run_with_cache"):
        encoder.observe("Tom", only="pattern")["pattern"]
    long = phasor.observe("word " * 200, model="learned", only="norm", overflow="truncate")
    assert len(long["norm"]["norm"]) == 7


ORDERS = ["the dog bit the man who fed it", "the man bit the dog who fed it"]


def data_of(shown):
    return json.loads(shown.html().split('id="data">')[1].split("</script>")[0])


def test_show_is_one_figure_of_the_page(encoder):
    shown = encoder.show(*ORDERS)
    assert data_of(shown)["figure"] == "turns" and "opens_on" not in data_of(shown)
    assert [text["text"] for text in data_of(shown)["texts"]] == ORDERS
    assert all("turns" in text for text in data_of(shown)["texts"]) and "apart" in data_of(shown)["texts"][1]
    assert shown._repr_html_().startswith("<iframe") and shown._repr_html_().count('"') == 4
    data = data_of(encoder.show(ORDERS, figure="links", layer=2, head=3))
    assert (data["figure"], data["opens_on"]) == ("links", {"layer": 2, "head": 3}) and len(data["texts"]) == 2
    assert data_of(encoder.show(TEXT, figure="links", head=3))["opens_on"] == {"layer": 1, "head": 3}
    assert [len(text["runs"]) for text in data_of(encoder.show(TEXT, figure="moved", edit="reverse"))["texts"]] == [2]


def test_every_figure_of_the_page_can_be_shown(encoder):
    with pytest.raises(phasor.InvalidArgument, match="say figure=, not only="):
        encoder.show(TEXT, only="norm")
    with pytest.raises(phasor.InvalidArgument, match="no figure 'nothing'; there are: turns, links, ") as raised:
        encoder.show(TEXT, figure="nothing")
    names = str(raised.value).split("there are: ")[1].split(", ")
    page = encoder.show(TEXT).html()
    views = {view["name"] for view in data_of(encoder.show(TEXT))["views"] if view["chart"] != "none"}
    for name in names:
        assert (name in views) != (f'id:"{name}"' in page)  # of the page's scripts
    assert views < set(names)
    for name in ("links", "overview", "profile", "distances"):
        text, = data_of(encoder.show(TEXT, figure=name))["texts"]
        assert "patterns" in text and "vectors" in text and bool(text["views"].get("heads")) == (name != "distances")


def test_a_terminal_prints_the_numbers_of_a_figure(encoder):
    said, degrees = repr(encoder.show(*ORDERS)).split("\n\n")
    assert said == encoder.observe(ORDERS).json[1]["pair"]
    assert not any("pair" in line for line in encoder.observe(ORDERS * 33, only="effect").json)  # two in a slice
    assert encoder.observe(ORDERS[0]).json[0]["conclusions"][0]["sentence"] in repr(encoder.show(ORDERS[0]))
    heading, *rows = degrees.splitlines()[1:]
    assert heading.split() == "layer text 0 text 1 apart apart without positions".split()
    effect = encoder.observe(ORDERS[0], only="effect")["effect"]["effect"]
    for row, each in zip(rows, effect):
        layer, mean, _, apart, without = map(float, row.split())
        assert mean == pytest.approx(np.degrees(np.arccos(1 - each)), abs=2.5)  # an angle's mean, not the mean's angle
        assert apart > 1 and without < 0.1
    assert len(rows) == 7
    before_and_after = repr(encoder.show(TEXT, edit="reverse"))
    assert "before" in before_and_after and "after" in before_and_after
    assert repr(encoder.show(TEXT, figure="norm")) == repr(encoder.observe(TEXT, only="norm")["norm"])
    assert "links" in repr(encoder.show(TEXT, figure="links"))


@pytest.mark.parametrize("options, said", [
    ({"layer": 0}, "layer is 0; there are 1 to 6"), ({"layer": 7}, "layer is 7"), ({"head": 5}, "1 to 4"),
    ({"figure": "probe"}, "probe"), ({"figure": "moved"}, "moved"), ({"edit": "nothing"}, "nothing"),
])
def test_what_cannot_be_shown_is_refused(encoder, options, said):
    with pytest.raises(phasor.InvalidArgument, match=said):
        encoder.show(TEXT, **options)
    with pytest.raises(phasor.InvalidArgument, match="give texts"):
        encoder.show()
