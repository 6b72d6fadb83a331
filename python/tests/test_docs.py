"""The Python blocks of the pages run, and print what the pages show.

PHASOR_UPDATE_README=1 writes what they print into the pages.
"""

import contextlib
import inspect
import io
import json
import os
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest

import phasor
from conftest import ROOT, infer
from phasor.settings import WITHOUT_EFFECT

BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"-?\d+\.\d+")


def same(shown, printed):
    """Equal but for numbers with a point, which may differ by one in their last digit."""
    assert NUMBER.sub("#", shown) == NUMBER.sub("#", printed)
    for want, got in zip(NUMBER.findall(shown), NUMBER.findall(printed)):
        unit = 10.0 ** -len(want.split(".")[1])
        assert abs(float(want) - float(got)) < 1.01 * unit, printed


TYPES = """
import numpy as np, numpy.typing as npt, phasor
from typing import Any, Optional
from typing_extensions import assert_type
F = npt.NDArray[np.float32]
e, L = phasor.Encoder(), ["a", "b"]
for encode in (e.encode, e.encode_query, e.encode_document):
    assert_type(encode("a", normalize_embeddings=True), F)
    assert_type(encode(L, None, None, 64), F)
    assert_type(encode("a", output_value="token_embeddings", prompt="b"), F)
    assert_type(encode(L, output_value="token_embeddings"), list[F])
    assert_type(encode("a", output_value=None), dict[str, F])
    assert_type(encode(L, output_value=None), list[dict[str, F]])
    assert_type(encode(L, convert_to_numpy=False), list[F])
    assert_type(encode("a", convert_to_numpy=False), F)
    encode("a", normalise_embeddings=True)  # type: ignore
    encode("a", truncate_dim="8")  # type: ignore
assert_type(e.predict([("a", "b")]), F)
e.classify("a", max_token=8)  # type: ignore
assert_type(e.label_tokens("a"), list[dict[str, Any]])
assert_type(e.label_tokens(L), list[list[dict[str, Any]]])
assert_type(e.to_str_tokens("a"), list[str])
assert_type(e.to_str_tokens(L), list[list[str]])
assert_type(e.tokenize("a"), phasor.Tokens)
assert_type(e.tokenize(L), list[phasor.Tokens])
assert_type(e.run_with_cache("a", overflow="window"), tuple[phasor.Encoding, phasor.ActivationCache])
assert_type(e.run_with_cache("a", return_type=None), tuple[None, phasor.ActivationCache])
assert_type(e.run_with_cache("a", stop_at_layer=1), tuple[F, phasor.ActivationCache])
assert_type(e.run_with_hooks("a"), phasor.Encoding)
"""


def test_mypy_accepts_the_blocks_and_knows_the_types(tmp_path):
    pytest.importorskip("mypy")
    (tmp_path / "known_types.py").write_text(TYPES)
    for page in ("README.md", "docs/python.md"):
        blocks = [block[2] for block in BLOCK.finditer((ROOT / page).read_text("utf-8")) if block[1] == "python"]
        (tmp_path / page.split("/")[-1].replace(".md", "_md.py")).write_text("\n".join(blocks), "utf-8")
    programs = sorted(path.name for path in tmp_path.iterdir())
    command = [sys.executable, "-m", "mypy", "--config-file", str(ROOT / "python" / "pyproject.toml")]
    command += ["--allow-untyped-defs", "--allow-untyped-calls", "--warn-unused-ignores", *programs]
    where = {"cwd": tmp_path, "env": {**os.environ, "MYPYPATH": str(ROOT / "python")}}
    done = subprocess.run(command, capture_output=True, text=True, check=False, **where)
    found = [line for line in done.stdout.splitlines() if line.startswith(tuple(programs))]
    assert len(programs) == 3 and done.returncode in (0, 1) and found == [], done.stdout + done.stderr


def test_the_page_names_every_method():
    page = (ROOT / "docs" / "python.md").read_text("utf-8")
    names = [name for name in vars(phasor.Encoder) if not name.startswith("_")]
    assert len(names) > 40 and [name for name in names if not re.search(rf"\b{name}\b", page)] == []


def test_the_table_of_arguments_without_effect_is_that_of_the_package():
    page, table = (ROOT / "docs" / "python.md").read_text("utf-8"), {}
    for calls, arguments in re.findall(r"^\| (`\w+\(\)`.*?) \| (`\w+`.*?) \| .* \|$", page, re.MULTILINE):
        for call in re.findall(r"`(\w+)\(\)`", calls.replace("Encoder", "__init__")):
            table.setdefault(call, set()).update(re.findall(r"`(\w+)`", arguments))
    assert table == {call: set(arguments) for call, arguments in WITHOUT_EFFECT.items()}
    for call, arguments in WITHOUT_EFFECT.items():
        assert set(arguments) <= set(inspect.signature(getattr(phasor.Encoder, call)).parameters)


@pytest.mark.parametrize("page", ["README.md", "docs/python.md"])
def test_blocks_print_what_the_page_shows(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copy(ROOT / "examples" / "sentences.txt", tmp_path)
    text = (ROOT / page).read_text("utf-8")
    blocks = list(BLOCK.finditer(text))
    names, new, end, ran = {}, "", 0, 0
    for block, after in zip(blocks, [*blocks[1:], None]):
        if block[1] != "python":
            continue
        ran += 1
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(block[2], page, "exec"), names)
        if after is None or after[1] != "text":
            continue
        if "PHASOR_UPDATE_README" in os.environ:
            new += text[end : after.start(2)] + printed.getvalue()
            end = after.end(2)
        else:
            same(after[2], printed.getvalue())
    assert ran > 0
    if new:
        (ROOT / page).write_text(new + text[end:], "utf-8")


@pytest.mark.parametrize("corpus", [None, "Tom bit.\r\nIt rains.\r\n\u2028A dog\x85 bit Tom.\nTom bit.\n"])
def test_the_search_of_saved_vectors_finds_what_infer_finds(encoder, tmp_path, monkeypatch, corpus):
    monkeypatch.chdir(tmp_path)
    shutil.copy(ROOT / "examples" / "sentences.txt", tmp_path)
    if corpus:
        (tmp_path / "sentences.txt").write_bytes(corpus.encode())
    page = (ROOT / "docs" / "python.md").read_text("utf-8")
    recipe = next(block[2] for block in BLOCK.finditer(page) if "encode_query" in block[2])
    infer("embed", "-q", "-i", "sentences.txt", "-o", "vectors.npy")
    names = {"encoder": encoder, "np": np}
    with contextlib.redirect_stdout(io.StringIO()):
        exec(recipe, names)
    lines, scores, top = (names[name] for name in ("lines", "scores", "top"))
    search = ["embed", "-q", "--json", "-i", "sentences.txt", "--nearest", "3", "A dog bit Tom."]
    nearest = infer(*search)[0]["nearest"]
    assert [(i + 1, lines[i]) for i in top] == [(line["line"], line["text"]) for line in nearest]
    found = [line["cosine"] for line in nearest]
    np.testing.assert_allclose(scores[top], found, rtol=0, atol=1e-6)


def test_example(monkeypatch):
    monkeypatch.setattr("sys.argv", ["look_inside.py"])
    names = {"__name__": "__main__"}
    program = ROOT / "examples" / "look_inside.py"
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(program.read_text("utf-8"), str(program), "exec"), names)
    assert len(printed.getvalue().splitlines()) > 5


def test_the_notebook_runs(tmp_path, monkeypatch):
    """In Jupyter's own kernel; it shows numbers and pages of figures."""
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    kernel = tmp_path / "kernels" / "python3" / "kernel.json"  # with this Python's packages
    kernel.parent.mkdir(parents=True)
    argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    kernel.write_text(json.dumps({"argv": argv, "display_name": "Python 3", "language": "python"}))
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path))
    notebook = nbformat.read(ROOT / "examples" / "positions.ipynb", 4)
    resources = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(notebook, timeout=600, resources=resources).execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert outputs[0]["text"] == "cosine 1.000\n"  # without positions
    printed = [output["text"] for output in outputs if output["output_type"] == "stream"]
    assert len(set(printed[2].split())) == 1  # of places as far apart
    assert float(printed[3]) < 1e-4  # the model's table is the formula's
    pages = [output["data"]["text/html"] for output in outputs if "data" in output]
    assert len(pages) == 4 and all(page.startswith("<iframe") for page in pages)
