"""The Python blocks of the pages run, and print what the pages show.

PHASOR_UPDATE_README=1 writes what they print into the pages.
"""

import contextlib
import io
import os
import pathlib
import re
import shutil

import numpy as np
import pytest

from conftest import infer

ROOT = pathlib.Path(__file__).parents[2]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"-?\d+\.\d+")


def same(shown, printed):
    """Equal but for numbers with a point, which may differ by one in their last digit."""
    assert NUMBER.sub("#", shown) == NUMBER.sub("#", printed)
    for want, got in zip(NUMBER.findall(shown), NUMBER.findall(printed)):
        unit = 10.0 ** -len(want.split(".")[1])
        assert abs(float(want) - float(got)) < 1.01 * unit, printed


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
