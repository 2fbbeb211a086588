"""Tables joined on the person: reading the other table's columns next to the rows gives what joining it gives."""

from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from test_companion import LEVELS, files, register, same, visits, written

from discretion.declaration.table import Table
from discretion.engines import Cohorts, Rows
from discretion.engines import engine as engine_module
from discretion.engines.duckdb import DuckDB
from discretion.engines.duckdb import meeting as meeting_module
from discretion.noise import ALWAYS
from discretion.query import parse
from discretion.statistics import Measure, Request, Statistics

CHANGES = pa.table({"person": ["0", "2", "04", "27"], "cohort": pa.array([2, -1, 1, 1], pa.int64())})
JOINED = "FROM t JOIN p ON t.id = p.who"
QUESTIONS = (
    f"SELECT COUNT(*) {JOINED}",
    f"SELECT SUM(x) AS s, COUNT(name) AS n, COUNT(DISTINCT t.id) AS people {JOINED} WHERE age > 40 AND name <> 'b'",
    f"SELECT place, kind, SUM(age) AS s, COUNT(*) AS n {JOINED} WHERE x > 1 GROUP BY place, kind",
    f"SELECT SUM(CAST(member AS INTEGER)) AS m, COUNT_IF(born > '1970-01-01') AS b, COUNT_IF(cost > 2.5) AS c {JOINED}",
    f"SELECT COUNT_IF(seen > '2020-06-01 12:00:00') AS s, COUNT_IF(height > 1.7) AS h, MEDIAN(age) AS m {JOINED}",
    "SELECT COUNT(*) AS n, COUNT(age) AS a, SUM(age) AS s FROM t LEFT JOIN p ON t.id = p.who",
    "SELECT COUNT(*) FROM t LEFT JOIN p ON t.id = p.who WHERE p.who IS NULL",
    f"SELECT SUM(n) AS s, COUNT(*) AS people FROM (SELECT t.id, COUNT(*) AS n {JOINED} WHERE age > 30 GROUP BY t.id)",
    "SELECT SUM(age) AS s FROM (SELECT id, COUNT(*) AS n FROM t GROUP BY id) AS o JOIN p ON o.id = p.who WHERE n > 2",
)


def patients(ids: pa.DataType) -> pa.Table:
    """People 3 to 34, nobody twice, in no order; two rows are nobody's, and each column misses some values."""
    people = [(17 * place) % 32 + 3 for place in range(32)]
    rows: list[dict[str, Any]] = []
    for one in people:
        row = {
            "age": 20 + 2 * one,
            "name": "abc"[one % 3] * (one % 5),
            "kind": "KL"[one % 2],
            "member": one % 4 == 0,
            "born": date(1960 + one, 1, 1),
            "cost": Decimal(one) / 8,
            "seen": datetime(2020, 1 + one % 12, 3, one % 24),
            "height": 1.5 + one / 100,
        }
        missing = [*row][one % 9 : one % 9 + 1]
        rows.append(row | dict.fromkeys(missing))
    owners = pa.array([None if place in (4, 9) else one for place, one in enumerate(people)], pa.int64())
    values = pa.Table.from_pylist(rows)
    values = values.set_column(5, "cost", values["cost"].cast(pa.decimal128(9, 3)))
    return values.add_column(0, "who", owners.cast(ids))


def ask(
    engine: DuckDB, places: tuple[str, str], people: str, sql: str, bound: int = 30, coins: bool = False, **more: Any
) -> tuple[Statistics, ...]:
    """Return what is counted in tables t and p; without `people`, t has its own preferences."""
    shared = {
        "register": "r",
        "protects": "presence" if people else "value",
    }
    t = Table(
        name="t",
        source=places[0],
        columns=engine.schema(places[0]),
        person="id",
        epsilon="" if people else "eps",
        rows_per_person=bound,
        bounds={"x": (0, 9)},
        grid={"x": 1},
        keys={"place": ("A", "B")},
        **shared,
    )
    p = Table(
        name="p",
        source=places[1],
        columns=engine.schema(places[1]),
        person="who",
        epsilon="" if people else "age",
        bounds={"age": (20, 90)},
        keys={"kind": ("K", "L")},
        **shared,
    )
    query = parse(sql, {"t": t, "p": p})
    apart = {"register": people, "person": "who", "epsilon": "eps"} if people else {}
    cohorts = Cohorts(**{"count": 3, "levels": LEVELS, **apart, **more})
    inclusion = (ALWAYS // 3, ALWAYS // 2, ALWAYS) if coins else None
    measures = tuple(
        Measure(aggregate=one, histogram=one.kind == "quantile", inclusion=inclusion) for one in query.aggregates
    )
    return engine.compute(Request(measures=measures, source=Rows(query=query, cohorts=cohorts)))


def stored(engine: DuckDB, folder: Path, parts: int, mine: pa.DataType, theirs: pa.DataType, own: bool = False) -> Any:
    """Return both tables in memory, which are joined, and in files, which are read next to each other."""
    rows, others = visits(mine), patients(theirs)
    if own:
        said = [[0.1, 0.5, None, 0.7][int(one or 0) % 4] for one in rows["id"].to_pylist()]
        rows = rows.append_column("eps", pa.array(said))
    pyarrow.parquet.write_table(others, folder / "p.parquet", row_group_size=5)
    attached = engine.attach("t", rows), engine.attach("p", others)
    return attached, (files(rows, folder, parts), str(folder / "p.parquet"))


@pytest.mark.parametrize("sql", QUESTIONS)
@pytest.mark.parametrize("changes", [None, CHANGES], ids=["", "changed"])
@pytest.mark.parametrize(
    ("mine", "theirs", "parts"),
    [
        (pa.int64(), pa.int64(), 1),
        (pa.int64(), pa.int16(), 3),
        (pa.int64(), pa.string(), 1),
        (pa.string(), pa.string(), 3),
    ],
)
def test_a_partner_next_to_the_rows_is_the_one_that_is_joined(
    sql: str, changes: pa.Table | None, mine: pa.DataType, theirs: pa.DataType, parts: int, tmp_path: Path
) -> None:
    engine = DuckDB(threads=2)
    attached, places = stored(engine, tmp_path, parts, mine, theirs)
    people = written(register(mine), tmp_path)
    joined = ask(engine, attached, people, sql, changes=changes)
    assert not engine.backend.companions.meetings.kept
    beside = ask(engine, places, people, sql, changes=changes)
    assert bool(engine.backend.companions.meetings.kept) == ("o JOIN" not in sql)
    assert any(one.counts.sum() > 4 for one in joined)
    assert same(joined, beside)


@pytest.mark.parametrize("sql", QUESTIONS)
def test_a_table_with_its_own_preferences_reads_its_partner_next_to_it(sql: str, tmp_path: Path) -> None:
    engine = DuckDB(threads=2)
    attached, places = stored(engine, tmp_path, 2, pa.int64(), pa.int64(), own=True)
    joined = ask(engine, attached, "", sql)
    assert any(one.counts.sum() > 4 for one in joined)
    assert same(joined, ask(engine, places, "", sql))
    assert bool(engine.backend.companions.meetings.kept) == ("o JOIN" not in sql)


@pytest.mark.parametrize("sql", QUESTIONS)
@pytest.mark.parametrize("coins", [False, True])
def test_bounds_and_coins_fall_next_to_the_rows_as_joined(
    sql: str, coins: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_module, "coin_key", lambda: "key")
    engine = DuckDB(threads=2)
    attached, places = stored(engine, tmp_path, 1, pa.int64(), pa.int64())
    people = written(register(pa.int64()), tmp_path)
    joined = ask(engine, attached, people, sql, bound=2, coins=coins)
    assert same(joined, ask(engine, places, people, sql, bound=2, coins=coins))


def test_who_is_twice_in_the_other_table_is_joined(tmp_path: Path) -> None:
    engine = DuckDB(threads=1)
    _, places = stored(engine, tmp_path, 1, pa.int64(), pa.int64())
    twice = pa.concat_tables([patients(pa.int64()), patients(pa.int64()).slice(0, 1)])
    pyarrow.parquet.write_table(twice, tmp_path / "p.parquet")
    people = written(register(pa.int64()), tmp_path)
    assert ask(engine, places, people, QUESTIONS[0])[0].counts.sum() > 0
    assert not engine.backend.companions.meetings.kept


def test_a_changed_partner_is_read_again(tmp_path: Path) -> None:
    engine = DuckDB(threads=1)
    _, places = stored(engine, tmp_path, 1, pa.int64(), pa.int64())
    people = written(register(pa.int64()), tmp_path)
    before = ask(engine, places, people, QUESTIONS[1])
    pyarrow.parquet.write_table(patients(pa.int64()).slice(7), tmp_path / "p.parquet")
    after = ask(engine, places, people, QUESTIONS[1])
    assert not same(before, after)
    attached = engine.attach("t", visits(pa.int64())), engine.attach("p", patients(pa.int64()).slice(7))
    assert same(ask(engine, attached, people, QUESTIONS[1]), after)


def test_places_that_are_off_by_one_would_be_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted mistake: rows read the row after the one that they meet."""
    engine, right = DuckDB(threads=1), meeting_module._scattered
    attached, places = stored(engine, tmp_path, 1, pa.int64(), pa.int64())
    people = written(register(pa.int64()), tmp_path)

    def shifted(*given: Any) -> pa.Array:
        found = right(*given).to_numpy(zero_copy_only=False)
        moved = np.where(np.isnan(found), 0, (found + 1) % 32).astype(np.int32)
        return pa.array(moved, mask=np.isnan(found))

    monkeypatch.setattr(meeting_module, "_scattered", shifted)
    for sql in QUESTIONS[1:5]:
        assert not same(ask(engine, attached, people, sql), ask(engine, places, people, sql))
