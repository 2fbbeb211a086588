"""Keys out of a public lookup: read when it is declared, never from people's rows."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import discretion as dn
from discretion.engines import Engine
from discretion.errors import InvalidDeclaration, QueryRefused, SourceChanged
from discretion.query import parse

VISITS = pa.table(
    {
        "id": [*range(9)],
        "epsilon": [1_000.0] * 9,
        "ward": [1, 1, 2, 2, 2, 9, None, 3, 3],
    }
)
WARDS = "ward,floor,name,beds\n1,1,north,10\n2,1,south,20\n3,2,,30\n4,3,empty,40\n"
QUESTIONS = [
    "SELECT floor, COUNT(*) AS n FROM v JOIN wards ON v.ward = wards.ward GROUP BY floor",
    "SELECT w.name, COUNT(*) AS n FROM v LEFT JOIN wards w ON v.ward = w.ward GROUP BY w.name",
    "SELECT name, floor, COUNT(*) AS n FROM v JOIN wards USING (ward) GROUP BY ALL",
    "SELECT floor, COUNT(*) AS n FROM v JOIN wards USING (ward) WHERE beds > 10 GROUP BY floor HAVING floor < 3",
]


@pytest.fixture
def db(tmp_path: Path) -> Iterator[dn.Connection]:
    with dn.connect(tmp_path / "l.discretion") as opened:
        (tmp_path / "wards.csv").write_text(WARDS)
        yield opened


def protect(db: dn.Connection, folder: Path, *confirmed: str) -> dn.Connection:
    lookups: Any = {"wards": (str(folder / "wards.csv"), "ward", *confirmed)}
    db.protect("v", VISITS, person="id", epsilon="epsilon", lookups=lookups)
    return db


@pytest.mark.parametrize("sql", QUESTIONS)
def test_groups_of_a_lookup_have_their_plain_counts(sql: str, db: dn.Connection, tmp_path: Path) -> None:
    found = {row[:-1]: row[-1] for row in protect(db, tmp_path, "public").sql(sql, share=1)}
    with duckdb.connect() as plain:
        plain.register("v", VISITS)
        plain.execute(f"CREATE TABLE wards AS FROM '{tmp_path / 'wards.csv'}'")
        truth = {row[:-1]: row[-1] for row in plain.sql(sql).fetchall()}
    assert set(truth) <= set(found)
    assert [] == [key for key, n in found.items() if abs(n - truth.get(key, 0)) > 0.5]  # noise: below 1e-100


def test_every_value_is_shown_also_without_anybody(db: dn.Connection, tmp_path: Path) -> None:
    found = protect(db, tmp_path, "public").sql(QUESTIONS[1])
    assert ["empty", "north", "south", None] == [name for name, _ in found]


def test_keys_that_people_have_instead_of_all_would_be_found(
    db: dn.Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A planted bug: of a lookup's values only those are read that somebody in the table has."""
    whole, theirs = Engine.distinct, {1, 2, "north", "south", None}

    def occurring(*given: Any) -> tuple[Any, ...]:
        return tuple(one for one in whole(*given) or () if one in theirs)

    monkeypatch.setattr(Engine, "distinct", occurring)
    with pytest.raises(AssertionError):
        test_every_value_is_shown_also_without_anybody(db, tmp_path)


def test_keys_are_those_of_the_declaration_whoever_is_in_the_table(db: dn.Connection, tmp_path: Path) -> None:
    table = protect(db, tmp_path, "public").tables()[0]
    (key,) = parse(QUESTIONS[0], {"v": table}).keys
    assert table.lookups["wards"].keys["floor"] == key.values == (1, 2, 3)
    db.protect(
        "w",
        VISITS.slice(0, 1),
        person="id",
        epsilon="epsilon",
        separate=True,
        lookups={"wards": (str(tmp_path / "wards.csv"), "ward", "public")},
    )
    assert table.lookups["wards"].keys == db.tables()[1].lookups["wards"].keys  # keys from rows would be fewer


def test_a_lookup_that_nobody_confirmed_is_no_key(db: dn.Connection, tmp_path: Path) -> None:
    with pytest.raises(QueryRefused, match="known in public"):
        protect(db, tmp_path).sql(QUESTIONS[0])
    with pytest.raises(InvalidDeclaration, match="you confirm that it was not made from people's rows"):
        protect(db, tmp_path, "perhaps")


def test_a_changed_lookup_is_refused_until_refresh(db: dn.Connection, tmp_path: Path) -> None:
    protect(db, tmp_path, "public").sql(QUESTIONS[0])
    place = Path(db.tables()[0].lookups["wards"].source)
    (tmp_path / "wards.csv").write_text(WARDS + "5,4,new,1\n")
    place.write_bytes(place.read_bytes()[::-1])
    with pytest.raises(SourceChanged):
        db.sql(QUESTIONS[0])
    db.refresh("v")
    assert (1, 2, 3, 4) == db.tables()[0].lookups["wards"].keys["floor"]
    assert 4 == len(db.sql(QUESTIONS[0]))


def test_a_lookup_with_too_many_values_has_no_keys(db: dn.Connection, tmp_path: Path) -> None:
    (tmp_path / "wards.csv").write_text("ward,floor\n" + "".join(f"{n},{n % 2}\n" for n in range(10_001)))
    table = protect(db, tmp_path, "public").tables()[0]
    assert {"floor": (0, 1)} == table.lookups["wards"].keys
