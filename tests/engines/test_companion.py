"""A register beside the rows of Parquet files gives what joining it gives, and fails towards leaving people out."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet
import pytest
from sqlglot import exp

from discretion.declaration.table import Table
from discretion.engines import Cohorts, Rows, gathering
from discretion.engines import engine as engine_module
from discretion.engines.backend import Held
from discretion.engines.duckdb import DuckDB
from discretion.engines.duckdb.companion import Companion, Directory
from discretion.engines.duckdb.repetition import repeats
from discretion.errors import EngineFailed
from discretion.noise import ALWAYS, simulation
from discretion.query import parse
from discretion.statistics import Measure, Request, Statistics

LEVELS: dict[float | str | None, int] = {0.1: 0, 0.5: 1, 1.0: 2, None: 0}
QUESTIONS = (
    "SELECT COUNT(*) FROM t",
    "SELECT place, SUM(x) AS s, COUNT(DISTINCT id) AS n FROM t WHERE x > 2 GROUP BY place",
    "SELECT MEDIAN(x), AVG(x) FROM t",
    "SELECT SUM(n) AS s, COUNT(*) AS m FROM (SELECT id, COUNT(*) AS n FROM t WHERE x > 2 GROUP BY id) WHERE n >= 3",
    "SELECT place, SUM(s) AS s FROM (SELECT id, place, SUM(x) AS s FROM t GROUP BY id, place) GROUP BY place",
)


def visits(ids: pa.DataType) -> pa.Table:
    """People 0 to 29 with several rows each, in no order; some rows are nobody's."""
    rng = simulation(5)
    owner = rng.integers(0, 30, 200)
    known = pa.array(owner, mask=rng.random(200) < 0.1).cast(ids)
    return pa.table({"id": known, "x": rng.integers(0, 10, 200), "place": rng.choice(["A", "B", "C"], 200)})


def register(ids: pa.DataType) -> pa.Table:
    """People 0 to 24 (the others are strangers); one without a preference, one with one that nobody offers."""
    epsilon = [[0.1, 0.5, 1.0][person % 3] for person in range(25)]
    epsilon[3], epsilon[4] = None, 0.7
    return pa.table({"who": pa.array(range(25)).cast(ids), "eps": epsilon})


def files(table: pa.Table, folder: Path, parts: int) -> str:
    """The table as one Parquet file or several, of several row groups each."""
    size = -(-len(table) // parts)
    for part in range(parts):
        pyarrow.parquet.write_table(table.slice(part * size, size), folder / f"t{part}.parquet", row_group_size=17)
    return str(folder / ("t0.parquet" if parts == 1 else "t*.parquet"))


def written(table: pa.Table, folder: Path) -> str:
    pyarrow.parquet.write_table(table, folder / "register.parquet")
    return str(folder / "register.parquet")


def ask(
    engine: DuckDB, source: str, people: str, sql: str, bound: int = 20, coins: bool = False, **cohorts: Any
) -> tuple[Statistics, ...]:
    """What is counted; without `people` the table's own column says the preferences."""
    apart = {"register": people, "person": "who", "epsilon": "eps"} if people else {}
    declared = Table(
        name="t",
        source=source,
        columns=engine.schema(source),
        person="id",
        register="r",
        protects="presence" if people else "value",
        epsilon="" if people else "eps",
        rows_per_person=bound,
        bounds={"x": (0, 9)},
        grid={"x": 1},
        keys={"place": ("A", "B")},
    )
    query = parse(sql, {"t": declared})
    known = Cohorts(**{"count": 3, "levels": LEVELS, **apart, **cohorts})
    inclusion = (ALWAYS // 3, ALWAYS // 2, ALWAYS) if coins else None
    measures = tuple(
        Measure(aggregate=one, histogram=one.kind == "quantile", inclusion=inclusion) for one in query.aggregates
    )
    return engine.compute(Request(measures=measures, source=Rows(query=query, cohorts=known)))


def same(one: tuple[Statistics, ...], other: tuple[Statistics, ...]) -> bool:
    return all(
        np.array_equal(a.counts, b.counts) and np.array_equal(a.totals, b.totals)
        for a, b in zip(one, other, strict=True)
    )


@pytest.mark.parametrize("sql", QUESTIONS)
@pytest.mark.parametrize("parts", [1, 3])
@pytest.mark.parametrize(
    ("mine", "theirs"),
    [(pa.int64(), pa.int64()), (pa.int64(), pa.int16()), (pa.int64(), pa.string()), (pa.string(), pa.string())],
)
def test_beside_the_rows_as_joined(
    sql: str, parts: int, mine: pa.DataType, theirs: pa.DataType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("discretion.engines.survey.PART", 60)  # several parts of people
    engine = DuckDB(threads=3)  # several pieces
    people = engine.attach("r", register(theirs))
    joined = ask(engine, engine.attach("t", visits(mine)), people, sql)
    assert not engine.backend.companions.kept
    beside = ask(engine, files(visits(mine), tmp_path, parts), people, sql)
    assert [True] == [found is not None for found in engine.backend.companions.kept.values()]
    assert joined[0].counts.sum() > 100 or "WHERE" in sql or "GROUP BY id" in sql
    assert same(joined, beside)


def test_a_directory_lists_everybody_and_nobody_else() -> None:
    """Every register of up to four people near each other, with strangers around them, far away and NULL."""
    ends = [-(2**63), 2**63 - 1]
    for first in (-(2**63), -2, 0, 2**63 - 4):
        asked = [first + step for step in range(4)] + ends + [None]
        for places in product([None, 0, 1], repeat=4):
            known = {first + step: place for step, place in enumerate(places) if place is not None}
            if not known:
                continue
            batch = pa.record_batch(
                {"person": pa.array(known, pa.int64()), "place": pa.array(known.values(), pa.uint8())}
            )
            directory = Directory.of(min(known), max(known), 2, [batch])
            assert directory is not None
            found = directory.found(pa.array(asked, pa.int64())).tolist()
            assert [known.get(one, 2) for one in asked] == [2 if one < 0 else directory.places[one] for one in found]
            assert Directory.of(min(known), max(known), 2, [batch, batch]) is None


@pytest.mark.parametrize("sql", QUESTIONS)
def test_people_whose_numbers_lie_far_apart_are_joined(
    sql: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = DuckDB(threads=2)
    people, source = engine.attach("r", register(pa.int64())), files(visits(pa.int64()), tmp_path, 2)
    monkeypatch.setattr("discretion.engines.survey.PART", 60)
    monkeypatch.setattr("discretion.engines.duckdb.beside.SPARSE", 0)
    joined = ask(engine, source, people, sql)
    monkeypatch.undo()
    assert same(joined, ask(DuckDB(threads=2), source, written(register(pa.int64()), tmp_path), sql))


def test_a_directory_that_is_off_by_one_would_be_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sql = QUESTIONS[0]
    engine, shifted = DuckDB(threads=1), Directory.found
    people = engine.attach("r", register(pa.int64()))
    joined = ask(engine, engine.attach("t", visits(pa.int64())), people, sql)
    monkeypatch.setattr(Directory, "found", lambda own, who: np.roll(shifted(own, who), 1))
    assert not same(joined, ask(engine, files(visits(pa.int64()), tmp_path, 1), people, sql))


@pytest.mark.parametrize("most", [1, 2, 3])
def test_somebody_with_too_many_rows_is_found_by_sorting(most: int) -> None:
    for owners in product([7, 8, 2**64 - 1], repeat=4):
        batches = [pa.record_batch({"owner": pa.array(part, pa.uint64())}) for part in (owners[:3], owners[3:])]
        assert (max(map(owners.count, owners)) > most) == repeats(batches, 4, most)
    assert not repeats([], 0, most)
    with pytest.raises(EngineFailed):  # more rows than there were
        repeats([pa.record_batch({"owner": pa.array([1, 2], pa.uint64())})], 1, most)


@pytest.mark.parametrize("part", [10, 60, 10_000])
def test_all_owners_are_sorted_in_some_part(part: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("discretion.engines.duckdb.repetition.PART", part)
    rows, engine = visits(pa.string()), DuckDB(threads=2)
    held = Held(places={"protected": files(rows, tmp_path, 1)}, tables={}, states={})
    busiest = max(Counter(rows["id"].drop_null().to_pylist()).values())
    for most in (busiest - 1, busiest):
        found = engine.backend.exceeds(exp.column("id"), most, rows.num_rows, held)
        assert (most < busiest) == found


@pytest.mark.parametrize("limit", [3, 255])
def test_rows_are_counted_while_owners_are_looked_up(limit: int) -> None:
    """Every table of four rows of two people, a stranger and nobody, and somebody with 255 rows or more."""
    listed = {"person": pa.array([7, 8], pa.int64()), "place": pa.array([0, 1], pa.uint8())}
    directory = Directory.of(7, 8, 2, [pa.record_batch(listed)])
    assert directory is not None
    for owners in product([7, 8, 9, None], repeat=4):
        everybody = [*owners, *[8] * (limit - 3)]
        batch = {"file": [0] * len(everybody), "row": range(len(everybody)), "person": pa.array(everybody, pa.int64())}
        rows = pa.record_batch({name: pa.array(column, pa.int64()) for name, column in batch.items()})
        made = Companion.empty([len(everybody)], [0.1, 0.2], 1).with_owners([rows], directory)
        known = [one for one in everybody if one is not None]
        counted = 9 not in known and known.count(8) < 256  # else the rows are sorted
        assert (max(map(known.count, (7, 8))) if counted else None) == made.most_rows
        assert [{7: 0, 8: 1}.get(one, 2) for one in everybody] == made.numbers.tolist()


@pytest.mark.parametrize("most", [1, 2, 3])
def test_rows_counted_beside_a_register_bound_like_sorted_ones(
    most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sql, known = "SELECT COUNT(*) FROM t", visits(pa.int64()).filter(pc.field("id") < 25)  # nobody is a stranger
    source, people, engine = files(known, tmp_path, 1), written(register(pa.int64()), tmp_path), DuckDB(threads=1)
    counted, told = (
        ask(engine, source, people, sql, bound=most),
        "discretion.engines.duckdb.beside.Companions.most_rows",
    )
    assert max(map(known["id"].to_pylist().count, range(25))) == engine.backend.companions.most_rows("id", source)
    monkeypatch.setattr(told, lambda *_: None)
    assert same(counted, ask(DuckDB(threads=1), source, people, sql, bound=most))
    monkeypatch.setattr(told, lambda *_: 1)  # a number that is too small would be noticed
    assert not same(counted, ask(DuckDB(threads=1), source, people, sql, bound=most))


@pytest.mark.parametrize("sql", QUESTIONS)
def test_changes_and_bounds_work_beside_the_rows_too(sql: str, tmp_path: Path) -> None:
    engine = DuckDB(threads=2)
    people, source = engine.attach("r", register(pa.int64())), files(visits(pa.int64()), tmp_path, 1)
    changes = pa.table({"person": ["0", "2", "04", "27"], "cohort": pa.array([2, -1, 1, 1], pa.int64())})
    joined = ask(engine, engine.attach("t", visits(pa.int64())), people, sql, changes=changes)
    assert same(joined, ask(engine, source, people, sql, changes=changes))
    assert not same(joined, ask(engine, source, people, sql))
    counted = ask(engine, source, people, "SELECT COUNT(*) FROM t", bound=2, changes=changes)
    known = set(visits(pa.int64())["id"].drop_null().to_pylist()) & {*range(25), 27} - {2, 4}
    assert 2 * len(known) == counted[0].counts.sum()


@pytest.mark.parametrize("sql", QUESTIONS)
def test_changes_are_found_beside_a_column_of_preferences(sql: str, tmp_path: Path) -> None:
    engine = DuckDB(threads=2)
    rows = visits(pa.int64())
    rows = rows.append_column(
        "eps", pa.array([[0.1, 0.5, None, 0.7][(person or 0) % 4] for person in rows["id"].to_pylist()])
    )
    source, attached = files(rows, tmp_path, 2), engine.attach("t", rows)
    assert same(ask(engine, attached, "", sql), ask(engine, source, "", sql))
    assert not engine.backend.companions.kept  # the rows say it themselves
    for changes in ({"0": 2, "2": -1, "04": 1, "27": 1}, {"0": 1, "2": -1}, {"99": 1}):
        table = pa.table({"person": list(changes), "cohort": pa.array(changes.values(), pa.int64())})
        joined = ask(engine, attached, "", sql, changes=table)
        assert same(joined, ask(engine, source, "", sql, changes=table))
        assert same(joined, ask(engine, attached, "", sql)) == ("99" in changes)


@pytest.mark.parametrize("sql", QUESTIONS)
def test_coins_fall_beside_the_rows_as_joined(sql: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_module, "coin_key", lambda: "key")
    engine = DuckDB(threads=2)
    people, source = engine.attach("r", register(pa.int64())), files(visits(pa.int64()), tmp_path, 1)
    joined = ask(engine, engine.attach("t", visits(pa.int64())), people, sql, coins=True)
    assert same(joined, ask(engine, source, people, sql, coins=True))
    assert not same(joined, ask(engine, source, people, sql))


def test_strangers_take_nobodys_place_among_rows_put_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine, sql = DuckDB(threads=2), QUESTIONS[-1].replace("SUM(s)", "SUM(LEAST(s, 50))")
    people, source = engine.attach("r", register(pa.int64())), files(visits(pa.int64()), tmp_path, 1)
    attached = engine.attach("t", visits(pa.int64()))

    def differ() -> list[str]:
        found = []
        for key in map(str, range(20)):
            monkeypatch.setattr(engine_module, "coin_key", lambda key=key: key)
            joined, beside = (ask(engine, one, people, sql, bound=1) for one in (attached, source))
            found += [] if same(joined, beside) else [key]
        return found

    assert not differ()
    right = gathering.Whose  # planted: the rows of strangers are taken for those of the first person
    monkeypatch.setattr("discretion.engines.duckdb.companion.Whose", lambda first, most, _: right(first, most, -1))
    assert differ()


def test_people_who_are_twice_in_the_register_are_joined(tmp_path: Path) -> None:
    engine = DuckDB()
    twice = pa.concat_tables([register(pa.int64()), register(pa.int64()).slice(0, 3)])
    people, sql = engine.attach("r", twice), "SELECT COUNT(*) FROM t"
    beside = ask(engine, files(visits(pa.int64()), tmp_path, 1), people, sql)
    assert [None] == list(engine.backend.companions.kept.values())
    assert same(beside, ask(engine, engine.attach("t", visits(pa.int64())), people, sql))


def test_a_table_without_rows_or_with_names_like_the_numbers_is_joined(tmp_path: Path) -> None:
    engine = DuckDB()
    people, sql = engine.attach("r", register(pa.int64())), "SELECT COUNT(*) FROM t"
    assert 0 == ask(engine, files(visits(pa.int64()).slice(0, 0), tmp_path, 1), people, sql)[0].counts.sum()
    other = visits(pa.int64()).append_column("FILE_ROW_NUMBER", pa.array(range(200)))
    expected = ask(engine, engine.attach("t", visits(pa.int64())), people, sql)
    assert same(expected, ask(engine, files(other, tmp_path, 1), people, sql))


@pytest.mark.parametrize("shift", [1, 17, -1])
def test_out_of_step_rows_are_missing_and_never_somebody_elses(
    shift: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A planted mistake: the companion is about other rows than it is read beside."""
    engine = DuckDB(threads=1)
    people, source = engine.attach("r", register(pa.int64())), files(visits(pa.int64()), tmp_path, 1)
    assert ask(engine, source, people, "SELECT COUNT(*) FROM t")[0].counts.sum() > 0
    (right,) = engine.backend.companions.kept.values()
    assert right is not None
    select, tables = right.rows({})
    moved = {"companion0": tables["companion0"].take(np.roll(np.arange(200), shift))}
    monkeypatch.setattr(Companion, "rows", lambda *_: (select, moved))
    assert 0 == ask(engine, source, people, "SELECT COUNT(*) FROM t")[0].counts.sum()


@pytest.mark.parametrize("different", [1, 252, 253, 254, 255, 256, 257])
def test_however_many_preferences_there_are_each_row_has_its_own(different: int, tmp_path: Path) -> None:
    """One number a row: around 256, with the 3 cohorts of changes or without, it takes a second byte."""
    engine = DuckDB(threads=2)
    rows = pa.table({"id": [*range(300)] * 2, "x": [*range(10)] * 60, "place": ["A", "B"] * 300})
    epsilon = [(person % different + 1) / 1_000 for person in range(300)]
    people = engine.attach("r", pa.table({"who": range(300), "eps": epsilon}))
    levels = {one: place % 3 for place, one in enumerate(sorted(set(epsilon)))}
    source, attached = files(rows, tmp_path, 1), engine.attach("t", rows)
    every = [*range(0, 300, 7), 299]
    table = pa.table({"person": map(str, every), "cohort": pa.array([n % 4 - 1 for n in every], pa.int64())})
    for changes in (None, table):
        beside = ask(engine, source, people, QUESTIONS[1], levels=levels, changes=changes)
        assert same(ask(engine, attached, people, QUESTIONS[1], levels=levels, changes=changes), beside)
    enrolled, changed = engine.backend.companions.kept.values()
    assert enrolled is not None
    assert changed is not None
    assert (different, different) == (len(enrolled.found), len(changed.found))
    assert [1 + (most > 255) for most in (different, different + 3)] == [
        found.numbers.itemsize for found in (enrolled, changed)
    ]


def test_files_without_rows_among_others_shift_nobody(tmp_path: Path) -> None:
    engine = DuckDB(threads=3)
    people, rows = engine.attach("r", register(pa.int64())), visits(pa.int64())
    source = files(rows, tmp_path, 3)
    for name in ("t-first", "t0-between", "t9-last"):
        pyarrow.parquet.write_table(rows.slice(0, 0), tmp_path / f"{name}.parquet")
    for sql in QUESTIONS:
        assert same(ask(engine, engine.attach("t", rows), people, sql), ask(engine, source, people, sql))
    kept = [found for found in engine.backend.companions.kept.values() if found is not None]
    assert [(6, False), (6, True)] == [(len(found.files), found.owners is not None) for found in kept]


def test_one_engine_answers_several_threads_at_once(tmp_path: Path) -> None:
    """More registers and changes than are kept: each question finds its own."""
    engine, rows = DuckDB(threads=2), visits(pa.int64())
    source, attached = files(rows, tmp_path, 2), engine.attach("t", rows)
    asked = []
    for turn in range(6):
        known = register(pa.int64())
        turned = known.set_column(1, "eps", pa.array(np.roll([0.1, 0.5, 1.0, 0.7, 0.1] * 5, turn)))
        changes = pa.table({"person": [str(turn), str(turn + 9)], "cohort": pa.array([turn % 3, -1], pa.int64())})
        asked += [(engine.attach(f"r{turn}", turned), sql, change) for sql in QUESTIONS for change in (None, changes)]
    expected = [ask(engine, attached, people, sql, changes=changes) for people, sql, changes in asked]
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda one: ask(engine, source, one[0], one[1], changes=one[2]), asked))
    assert all(same(one, other) for one, other in zip(expected, found, strict=True))
