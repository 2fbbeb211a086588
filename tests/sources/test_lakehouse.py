"""Delta and Iceberg tables: a version is a list of files, read in place until `refresh` admits a later one."""

from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.utils.config import Config

import discretion as dn
from discretion.declaration.source import source_of
from discretion.errors import EngineFailed, InvalidDeclaration, SourceChanged

PEOPLE = pa.table({"id": ["a", "b", "c"], "epsilon": [1e3, 1e3, 1e3], "x": [1.0, 2.0, 3.0], "place": ["N", "S", "N"]})
MORE = pa.table({"id": ["d"], "epsilon": [1e3], "x": [4.0], "place": ["S"]})


def asked(db: Any) -> int:
    return round(db.sql("SELECT COUNT(*) AS n FROM t", share=0.2).to_pandas()["n"][0])


def protect(db: Any, source: str) -> Any:
    return db.protect("t", source, person="id", epsilon="epsilon", bounds={"x": (0, 10)}, keys={"place": ["N", "S"]})


@pytest.fixture
def iceberg(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    settings = {"URI": f"sqlite:///{tmp_path}/catalog.db", "WAREHOUSE": f"file://{tmp_path}/house", "TYPE": "sql"}
    for name, setting in settings.items():
        monkeypatch.setenv(f"PYICEBERG_CATALOG__CLINIC__{name}", setting)
    monkeypatch.setattr("pyiceberg.catalog._ENV_CONFIG", Config())  # it reads the environment when it is imported
    (tmp_path / "house").mkdir()
    catalog = load_catalog("clinic")
    catalog.create_namespace("main")
    table = catalog.create_table("main.people", schema=PEOPLE.schema)
    table.append(PEOPLE)
    yield table
    catalog.close()


@pytest.mark.parametrize("spelled", ["{}", "delta:{}"])
def test_a_delta_table_is_read_as_of_the_version_that_was_admitted(tmp_path: Path, spelled: str) -> None:
    folder = tmp_path / "people"
    deltalake.write_deltalake(folder, PEOPLE)
    with dn.connect(tmp_path / "l.discretion") as db:
        table = protect(db, spelled.format(folder))
        assert table.source.endswith(".parquet")
        assert str(folder) in table.source  # in place
        deltalake.write_deltalake(folder, MORE, mode="append")
        assert 3 == asked(db)
        db.refresh("t")
        assert 4 == asked(db)
        deltalake.write_deltalake(folder, PEOPLE, mode="overwrite")
        deltalake.DeltaTable(folder).vacuum(0, dry_run=False, enforce_retention_duration=False)
        with pytest.raises(SourceChanged, match="not in the state that was admitted"):
            db.sql("SELECT AVG(x) FROM t", share=0.1)


def test_a_partitioned_delta_table_is_copied_with_its_columns(tmp_path: Path) -> None:
    deltalake.write_deltalake(tmp_path / "people", PEOPLE, partition_by=["place"])
    with dn.connect(tmp_path / "l.discretion") as db:
        table = protect(db, str(tmp_path / "people"))
        assert table.source.endswith(".copy.parquet")
        found = db.sql("SELECT place, COUNT(*) AS n FROM t GROUP BY place", share=0.4).to_pandas()
        assert [2, 1] == found["n"].round().tolist()


@pytest.mark.parametrize(
    ("feature", "refused"), [("deletionVectors", "deletion vectors"), ("columnMapping", "column mapping")]
)
def test_what_hides_rows_or_names_of_a_delta_table_is_refused(
    tmp_path: Path, feature: str, refused: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    deltalake.write_deltalake(tmp_path / "people", PEOPLE)
    real = deltalake.DeltaTable

    class Newer(real):  # type: ignore[misc,valid-type]  # the writer at hand makes no such table
        def protocol(self) -> Any:
            return super().protocol()._replace(reader_features=[feature])

    monkeypatch.setattr(deltalake, "DeltaTable", Newer)
    with dn.connect(tmp_path / "l.discretion") as db, pytest.raises(InvalidDeclaration, match=refused):
        protect(db, str(tmp_path / "people"))


@pytest.mark.parametrize("by", ["name", "folder"])
def test_an_iceberg_table_is_read_as_of_the_snapshot_that_was_admitted(iceberg: Any, tmp_path: Path, by: str) -> None:
    source = "iceberg:clinic.main.people" if by == "name" else iceberg.location().removeprefix("file://")
    with dn.connect(tmp_path / "l.discretion") as db:
        assert protect(db, source).source.endswith(".parquet")
        iceberg.append(MORE)
        assert 3 == asked(db)
        db.refresh("t")
        assert 4 == asked(db)


def test_renamed_columns_of_an_iceberg_table_are_refused(iceberg: Any, tmp_path: Path) -> None:
    with iceberg.update_schema() as change:
        change.rename_column("x", "cost")
    with dn.connect(tmp_path / "l.discretion") as db, pytest.raises(InvalidDeclaration, match="Rewrite its data files"):
        protect(db, "iceberg:clinic.main.people")


def test_an_empty_or_missing_table_is_refused(tmp_path: Path) -> None:
    deltalake.write_deltalake(tmp_path / "empty", PEOPLE.slice(0, 0))
    with dn.connect(tmp_path / "l.discretion") as db:
        with pytest.raises(InvalidDeclaration, match="no rows yet"):
            protect(db, str(tmp_path / "empty"))
        with pytest.raises(EngineFailed, match="cannot be read as a Delta table"):
            protect(db, f"delta:{tmp_path}/nowhere")
        with pytest.raises(EngineFailed, match="cannot be read as an Iceberg table"):
            protect(db, "iceberg:nowhere.main.people")
        with pytest.raises(InvalidDeclaration, match="in Spark's catalog"):
            protect(db, "table:clinic.people")


def test_folders_are_recognised_by_their_logs(tmp_path: Path) -> None:
    deltalake.write_deltalake(tmp_path / "delta", PEOPLE)
    (tmp_path / "plain").mkdir()
    pq.write_table(PEOPLE, tmp_path / "plain" / "a.parquet")
    assert ["delta", "parquet"] == [source_of(tmp_path / name).kind for name in ("delta", "plain")]
    assert source_of(tmp_path / "delta") == source_of(f"delta:{tmp_path}/delta")
