"""Numbers of Arrow arrays as NumPy arrays and back: the same as PyArrow's, and without pandas."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import discretion as dn
from discretion.engines.buffer import column_of, is_known, numbers, stored, table_of

ASK = """
import sys
import discretion as dn

with dn.connect(sys.argv[1]) as db:
    for sql in ("SELECT COUNT(*) FROM t", "SELECT AVG(x) FROM t WHERE x > 2", "SELECT MEDIAN(x) FROM t"):
        db.sql(sql, share=0.1)
print("pandas" in sys.modules)
"""


@pytest.mark.parametrize("kind", [pa.int64(), pa.uint8(), pa.uint32(), pa.float64()])
def test_numbers_are_those_of_the_array(kind: pa.DataType) -> None:
    whole = pa.array(range(100), kind)
    for array in (whole, whole.slice(13, 40), whole.slice(5, 0), pa.array([], kind)):
        assert array.to_pylist() == numbers(array).tolist()
        assert array.to_numpy().dtype == numbers(array).dtype
        for chunks in ([array], [array, whole, array], []):
            several = pa.chunked_array(chunks, kind)
            assert several.to_pylist() == numbers(several).tolist()


def test_null_is_not_a_number() -> None:
    array = pa.array([None, *range(20), None, 3], pa.int64())
    for one in (array, array.slice(3), array.slice(20, 3), array.slice(2, 9), array.slice(0, 0)):
        assert [value.is_valid for value in one] == is_known(one).tolist()
        assert [value for value in one.to_pylist() if value is not None] == stored(one)[is_known(one)].tolist()
    for one in (array, pa.chunked_array([[1], [None]], pa.int64())):
        with pytest.raises(pa.ArrowInvalid):
            numbers(one)


@pytest.mark.parametrize(
    ("values", "kind"),
    [([0.1, 2.0], pa.float64()), ([0.1, None], pa.float64()), (["a", None], pa.string()), ([], pa.int64())],
)
def test_columns_are_those_of_pyarrow(values: list[object], kind: pa.DataType) -> None:
    assert pa.array(values, kind).equals(column_of(values, kind))


def test_slices_become_tables() -> None:
    order = np.arange(50, dtype=np.uint32)
    expected = pa.table({"row": order[7:20], "other": order[::4][:13].astype(np.uint8)})
    assert expected.equals(table_of(row=order[7:20], other=order[::4][:13].astype(np.uint8)))


@pytest.mark.parametrize("apart", [False, True])
def test_a_question_does_not_import_pandas(apart: bool, tmp_path: Path) -> None:
    people = pa.table({"id": range(50), "x": range(50), "eps": [1.0, 2.0] * 25})
    pyarrow.parquet.write_table(people, tmp_path / "t.parquet")
    with dn.connect(tmp_path / "l.discretion") as db:
        where: dict[str, Any] = {"epsilon": "eps"}
        if apart:
            db.register("everybody", tmp_path / "t.parquet", person="id", epsilon="eps")
            pyarrow.parquet.write_table(people.select(["id", "x"]), tmp_path / "rows.parquet")
            where = {"register": "everybody"}
        rows = tmp_path / ("rows.parquet" if apart else "t.parquet")
        db.protect("t", rows, person="id", bounds={"x": (0, 50)}, **where)
    done = subprocess.run([sys.executable, "-c", ASK, tmp_path / "l.discretion"], capture_output=True, text=True)
    assert "False" == done.stdout.strip(), done.stderr
