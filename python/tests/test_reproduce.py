"""docs/data/reproduce.py makes the figures and tables of docs/finding.md from the data beside it."""

import csv
import importlib.util
import math
import pathlib
import subprocess
import sys

DATA = pathlib.Path(__file__).parents[2] / "docs" / "data"
SCRIPT = DATA / "reproduce.py"


def reproduce(*arguments):
    command = [sys.executable, str(SCRIPT), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def module():
    spec = importlib.util.spec_from_file_location("reproduce", SCRIPT)
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def test_figures_and_tables_are_those_of_the_data():
    done = reproduce("--check")
    assert done.returncode == 0, done.stderr + done.stdout
    assert reproduce("--all").returncode != 0


def test_a_model_is_measured_as_its_views_say(encoder, capsys, tmp_path):
    lines = tmp_path / "lines.txt"
    lines.write_text("Tom bit a dog.\nThe cat sat on the mat.\nIt rains again today.\n")
    observed = encoder.observe(file=str(lines), only=["reading", "kernels"])
    module().add_rows("one", {"runs": observed.json})
    rows = list(csv.DictReader(capsys.readouterr().out.splitlines(), module().FIELDS))
    assert [row["layer"] for row in rows] == [str(l) for l in range(7)]
    assert {(row["model"], row["weights"], row["measure"], row["texts"]) for row in rows} == {
        ("one", "trained", "loss", "3")
    }
    for row, left, present in zip(rows, observed["reading"]["left"], observed["reading"]["present"]):
        assert math.isclose(float(row["left"]), left, rel_tol=1e-3, abs_tol=1e-6)
        assert math.isclose(float(row["present"]), present, rel_tol=1e-3)
    for row, kernels in zip(rows[1:], observed["kernels"]["kernels"]):
        assert math.isclose(float(row["kernels"]), kernels, rel_tol=1e-3, abs_tol=1e-6)
    assert rows[0]["needed"] == "" and rows[0]["kernels"] == ""


def test_the_mean_depth_is_the_sum_of_the_curve():
    found = module().curves()
    table = "\n".join(module().reading_table(found))
    for (name, weights), rows in found.items():
        assert rows[0]["left"] == 1
        depth = sum(row["left"] for row in rows[:-1])
        if weights == "trained" and (name == "MPNet" or rows[0]["present"]):
            assert f"| {name} |" in table and f"{depth:.2f} of {len(rows) - 1}" in table
