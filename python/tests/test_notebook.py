"""The notebook of examples/ runs in Jupyter's own kernel, and shows numbers and pages of figures."""

import pathlib

import pytest

NOTEBOOK = pathlib.Path(__file__).parents[2] / "examples" / "positions.ipynb"


def test_the_notebook_runs(tmp_path):
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
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
