"""Notebooks: a kernel without ipywidgets answers questions, and shows answers and tables as HTML."""

from collections.abc import Iterator

import pytest
from nbclient import NotebookClient
from nbformat import v4

PREPARE = """
import pyarrow as pa, pyarrow.parquet as pq
import discretion as dn
pq.write_table(pa.table({"id": range(50), "age": [40] * 50, "epsilon": [1.0] * 50}), "people.parquet")
db = dn.connect("clinic.discretion")
db.protect("people", "people.parquet", person="id", epsilon="epsilon", bounds={"age": (0, 120)})
"""


@pytest.fixture
def ran(tmp_path) -> Iterator[list]:
    """Run the cells of a notebook in a kernel of its own, as Jupyter does; return what each cell shows."""
    cells = [PREPARE, 'db.sql("SELECT AVG(age) FROM people")', "db.tables()"]
    notebook = v4.new_notebook(cells=[v4.new_code_cell(cell) for cell in cells])
    NotebookClient(notebook, timeout=60, resources={"metadata": {"path": str(tmp_path)}}).execute()
    return [cell.outputs for cell in notebook.cells]


def test_a_notebook_without_widgets_answers_questions(ran):
    (answer,) = ran[1]
    assert "<table>" in answer.data["text/html"]
    (tables,) = ran[2]
    assert "<td>people</td>" in tables.data["text/html"]
