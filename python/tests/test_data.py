"""The scripts of docs/data: seeds.py prints means over seeds and their intervals; reproduce.py makes the figures
and tables of docs/finding.md from the data beside it; reading_by_numpy.py computes its curves without phasor."""

import csv
import itertools
import math
import shutil
import subprocess
import sys

import numpy as np
import pytest
from conftest import ROOT, script

import phasor

DATA = ROOT / "docs" / "data"
FIELDS = ["kind", "norm", "seed", "tokens", "layer", "measure", "value"]


def printed(*arguments, folder=DATA, status=0):
    """The table that is printed, by row and column; and all that is."""
    command = [sys.executable, str(folder / "seeds.py"), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == status, done.stderr
    head, *rows = [line.split("  ") for line in done.stdout.splitlines() if "  " in line] or [[]]
    kinds = [cell.strip() for cell in head if cell.strip()][1:]
    table = {row[0]: dict(zip(kinds, [cell.strip() for cell in row[1:] if cell.strip()])) for row in rows}
    return table, done.stdout + done.stderr


def t_95(freedom):
    """The value that Student's t exceeds in 2.5 % of cases: by halving, over a sum of its density."""
    scale = math.gamma((freedom + 1) / 2) / math.sqrt(freedom * math.pi) / math.gamma(freedom / 2)

    def inside(t):
        x = (np.arange(100_000) + 0.5) * (t / 100_000)
        return 2 * scale * np.sum((1 + x * x / freedom) ** (-(freedom + 1) / 2)) * (t / 100_000)

    low, high = 1.0, 20.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if inside(middle) < 0.95 else (low, middle)
    return low


@pytest.fixture
def made(tmp_path):
    """Makes the script's folder with runs: (kind, tokens, seed) → loss."""

    def make(runs):
        shutil.copy(DATA / "seeds.py", tmp_path)
        with open(tmp_path / "seeds.csv", "w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(FIELDS)
            for (kind, tokens, seed), loss in runs.items():
                writer.writerow([kind, "post", seed, tokens, "", "valid.loss", loss])
        return tmp_path

    return make


@pytest.mark.parametrize("count", range(2, 11))
def test_intervals_are_students(made, count):
    draw = np.random.default_rng(count)
    loss = {(kind, seed): draw.normal(4, 0.3) for kind in ("none", "rotary") for seed in range(count)}
    folder = made({(kind, "16M", seed): value for (kind, seed), value in loss.items()})
    of = {kind: np.array([loss[kind, seed] for seed in range(count)]) for kind in ("none", "rotary")}
    for values, arguments, kind in [
        (of["none"], (), "none"), (of["rotary"], (), "rotary"),
        (of["rotary"] - of["none"], ("--less", "none"), "rotary"),
    ]:
        half = t_95(count - 1) * np.sqrt(np.sum((values - values.mean()) ** 2) / (count - 1) / count)
        table, text = printed("valid.loss", *arguments, folder=folder)
        mean, shown = map(float, table["valid.loss"][kind].split(" ±"))
        assert mean == pytest.approx(values.mean(), abs=0.00051)
        assert shown == pytest.approx(half, abs=0.00051 + 1e-4 * half)  # t has three decimals
        assert "no interval" not in text


def test_the_schedule_with_the_most_runs_is_shown(made):
    runs = {("none", "64M", 1): 5.9, ("none", "16M", 1): 6.0, ("none", "16M", 2): 6.2}
    folder = made({**runs, ("rotary", "16M", 2): 4.2})
    table, text = printed("valid.loss", folder=folder)
    assert text.startswith("16M tokens")
    assert table["seeds"] == {"none": "2", "rotary": "1"}
    assert table["valid.loss"]["rotary"] == "4.200"
    assert "One seed alone has no interval." in text
    table, _ = printed("valid.loss", "--less", "rotary", folder=folder)
    assert table == {"seeds": {"none": "1"}, "valid.loss": {"none": "2.000"}}  # of the seed that both have
    assert printed("valid.loss", "--tokens", "64M", folder=folder)[0]["valid.loss"]["none"] == "5.900"


def test_from_one_schedule_to_the_next_over_the_seeds_that_have_both(made):
    runs = {("none", "16M", seed): 6.0 + seed / 10 for seed in (1, 2)}
    folder = made({**runs, ("none", "64M", 1): 5.9, ("rotary", "16M", 1): 4.2})
    table, _ = printed("valid", "--tokens", "16M", "--then", "64M", folder=folder)
    assert table == {"seeds": {"none": "1"}, "valid.loss": {"none": "6.100 → 5.900"}}
    folder = made({("none", "16M", 1): 6.1, ("none", "64M", 2): 5.9})
    error = printed("valid", "--tokens", "16M", "--then", "64M", folder=folder, status=2)[1]
    assert "no seed has runs of 16M and of 64M tokens" in error


def test_a_name_stands_for_all_that_begin_with_it():
    whole, _ = printed("sources", "--tokens", "16M")
    layers = [f"sources.mlp@{layer}" for layer in range(7)]
    assert list(printed("sources.mlp", "--tokens", "16M")[0]) == ["seeds", *layers]
    assert set(layers) < set(whole) and len(whole) == 1 + 3 * 7
    assert list(printed("causes.MLP 1.removed", "causes.MLP 2.removed")[0])[1:] == [
        "causes.MLP 1.removed", "causes.MLP 2.removed",
    ]


def test_errors_say_what_there_is(made):
    folder = made({("none", "64M", 1): 5.9})
    for arguments, message in [
        (("valid.loss", "--tokens", "16M"), "no post-norm runs of 16M tokens; there are 64M"),
        (("valid.loss", "--then", "16M"), "no post-norm runs of 16M tokens; there are 64M"),
        (("valid.loss", "--norm", "pre"), "no pre-norm runs\n"),
        (("valid.loss", "--less", "alibi"), "no such runs of alibi; there are none"),
        (("loss",), "there is no measure loss; there are valid\n"),
        (("valid.loss", "val"), "there is no measure val; there are valid\n"),
        (("valid.los",), "there is no measure valid.los; there are valid.loss\n"),
    ]:
        assert message in printed(*arguments, folder=folder, status=2)[1]


def test_the_committed_table_is_of_the_bundled_models():
    with open(DATA / "seeds.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    runs = [(r["kind"], r["norm"], r["seed"], r["tokens"]) for r in rows]
    assert [run for run, _ in itertools.groupby(runs)] == sorted(set(runs))
    losses = {run: r["value"] for run, r in zip(runs, rows) if r["measure"] == "valid.loss"}
    for kind in ("sinusoidal", "learned", "none", "rotary", "relative", "alibi"):
        card = (ROOT / "models" / kind / "README.md").read_text("utf-8")
        assert f"(loss {losses[kind, 'post', '1', '64M']})" in card
        assert kind in printed("valid.loss", "--tokens", "64M")[0]["valid.loss"]


def test_what_is_kept_of_a_model_is_what_observe_measures(tmp_path):
    measure = script("models/train/measure.py")
    texts = (ROOT / "examples/sentences.txt").read_text(encoding="utf-8").splitlines()[:12]
    few = tmp_path / "few.txt"
    few.write_text("\n".join(texts), encoding="utf-8")
    observed = phasor.observe(model="learned", only=list(measure.KEPT), file=few)
    with open(DATA / "seeds.csv", newline="", encoding="utf-8") as file:
        recorded = {row["measure"] for row in csv.DictReader(file)} - {"valid.loss"}
    names = {(name.split(".", 1)[0], name.rsplit(".", 1)[1]) for name in recorded}
    assert names == {(view, column) for view, columns in measure.KEPT.items() for column in columns}
    for view, column in names:
        assert column in observed[view], (view, column)


def reproduce(*arguments):
    command = [sys.executable, str(DATA / "reproduce.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_figures_and_tables_are_those_of_the_data():
    done = reproduce("--check")
    assert done.returncode == 0, done.stderr + done.stdout
    assert reproduce("--all").returncode != 0


def test_a_model_is_measured_as_its_views_say(encoder, tmp_path):
    lines = tmp_path / "lines.txt"
    lines.write_text("Tom bit a dog.\nThe cat sat on the mat.\nIt rains again today.\n")
    observed = encoder.observe(file=str(lines), only=["reading", "offset_patterns"])
    made = script("docs/data/reproduce.py").rows_of_run(observed.json[0], "one", "trained")
    rows = [{key: str(value) for key, value in row.items()} for row in made]
    assert [row["layer"] for row in rows] == [str(l) for l in range(7)]
    assert {(row["model"], row["weights"], row["measure"], row["texts"]) for row in rows} == {
        ("one", "trained", "loss", "3")
    }
    for row, left, present in zip(rows, observed["reading"]["left"], observed["reading"]["present"]):
        assert math.isclose(float(row["left"]), left, rel_tol=1e-3, abs_tol=1e-6)
        assert math.isclose(float(row["present"]), present, rel_tol=1e-3)
    for row, patterns in zip(rows[1:], observed["offset_patterns"]["offset_patterns"]):
        assert math.isclose(float(row["offset_patterns"]), patterns, rel_tol=1e-3, abs_tol=1e-6)
    assert rows[0]["needed"] == "" and rows[0]["offset_patterns"] == ""


def test_the_mean_depth_is_the_sum_of_the_curve():
    found = script("docs/data/reproduce.py").curves()
    table = script("docs/data/reproduce.py").reading_tables(found)[0]
    for (name, weights, by), rows in found.items():
        assert rows[0]["left"] == 1
        depth = sum(row["left"] for row in rows[:-1])
        if weights == "trained" and by == "angle":
            assert f"| {name} |" in table and f"{depth:.2f} of {len(rows) - 1}" in table


@pytest.mark.parametrize("name", ["sinusoidal", "learned"])
def test_reading_curves_are_those_of_a_program_without_phasor(name, tmp_path):
    numpy_alone = script("docs/data/reading_by_numpy.py")
    few = tmp_path / "few.txt"
    few.write_text("".join((ROOT / "examples/sentences.txt").read_text(encoding="utf-8").splitlines(True)[:8]))
    with phasor.Encoder(name) as encoder:
        observed = encoder.observe(file=str(few), only=["reading"])["reading"]
        ids = [np.array(tokens.ids) for tokens in encoder.tokenize(few.read_text().splitlines())]
        mask = encoder.tokenize("[MASK]", parse_special=True).ids[1]
    found = numpy_alone.measured(numpy_alone.Model(ROOT / "models" / name), ids, mask, 5, ["loss"])["loss"]
    for row in ("left", "later"):
        shares = [value for value, _, _ in found[row]]
        assert np.allclose(shares, observed[row][1:], atol=1e-3), (row, shares, observed[row])
