"""Notebooks: those of the documents run in a kernel without ipywidgets, and show answers and tables as HTML."""

from functools import cache
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOKS = sorted((Path(__file__).parent.parent / "docs" / "notebooks").glob("*.ipynb"))


@cache
def shown(name: str, folder: Path) -> dict[str, str]:
    """Run a notebook as Jupyter does, in an empty folder; return what each cell shows, by its last line."""
    notebook = nbformat.read(next(path for path in NOTEBOOKS if path.stem == name), as_version=4)
    NotebookClient(notebook, timeout=60, resources={"metadata": {"path": str(folder)}}).execute()
    return {
        cell.source.splitlines()[-1]: output.data.get("text/html", "")
        for cell in notebook.cells
        if cell.cell_type == "code"
        for output in cell.outputs
        if "data" in output
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("notebooks")


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_kept_without_outputs(path):
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    assert [] == [cell.outputs for cell in notebook.cells if cell.cell_type == "code" and cell.outputs]


def test_a_notebook_asks_about_a_protected_table(folder):
    cells = shown("clinic", folder)
    assert "<td>patients</td>" in cells["db.tables()"]
    for line in ("answer", "answer.to_pandas()", "db.balance()", "db.receipt(17)"):
        assert "<td>" in cells[line], line
    assert [] == list(folder.iterdir())


def test_a_notebook_asks_about_data_frames(folder):
    cells = shown("frames", folder)
    assert "<td" in cells["release"]
    assert "<td" in cells["release.explain()"]
