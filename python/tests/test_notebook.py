"""The notebook of examples/ runs in Jupyter's own kernel, and shows numbers and pages of figures."""

import json
import pathlib
import sys

import pytest

NOTEBOOK = pathlib.Path(__file__).parents[2] / "examples" / "positions.ipynb"


def test_the_notebook_runs(tmp_path, monkeypatch):
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    kernel = tmp_path / "kernels" / "python3" / "kernel.json"  # with this Python's packages
    kernel.parent.mkdir(parents=True)
    argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    kernel.write_text(json.dumps({"argv": argv, "display_name": "Python 3", "language": "python"}))
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path))
    notebook = nbformat.read(NOTEBOOK, 4)
    resources = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(notebook, timeout=600, resources=resources).execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert outputs[0]["text"] == "cosine 1.000\n"  # without positions
    printed = [output["text"] for output in outputs if output["output_type"] == "stream"]
    assert len(set(printed[2].split())) == 1  # of places as far apart
    assert float(printed[3]) < 1e-4  # the model's table is the formula's
    pages = [output["data"]["text/html"] for output in outputs if "data" in output]
    assert len(pages) == 3 and all(page.startswith("<iframe") for page in pages)
