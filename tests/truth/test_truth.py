"""At a huge epsilon every answer is the plain one: every kind of source, shape of table and question."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest
from asking import JOINED, Protected, protect, wrong, wrong_groups, wrong_lookup
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from kinds import KINDS, Kind
from questions import aggregated, condition, counts, numeric, pick, spread
from shapes import EPSILON, Column, shapes

import discretion as dn

EXAMPLES = 2  # of tables for each kind of source; each has its own
every_kind = pytest.mark.parametrize(
    "kind", [pytest.param(name, marks=[pytest.mark.xdist_group("postgres")] * (name == "postgresql")) for name in KINDS]
)
RUN: dict[str, Any] = {
    "deadline": None,
    "database": None,
    "suppress_health_check": list(HealthCheck),
    "report_multiple_bugs": False,
    "phases": [Phase.generate],  # a table is large and slow to shrink; what is wrong is said in one line
}


def examine(kind: Kind, data: Any, folder: Path, write: Any = None) -> list[str]:
    """Draw a table and questions, and return every answer that is not the plain one."""
    shape = data.draw(shapes(salt=[*KINDS.values()].index(kind)), label="shape")  # each kind has tables of its own
    asked = protect(shape, kind, folder, None if write is None else write(shape))
    columns = [one for one in shape.columns if one.type not in kind.loses][:15]
    try:
        return chosen(asked, columns or shape.columns[-1:], shape.rng)
    finally:
        asked.db.close()


def chosen(asked: Protected, columns: list[Column], rng: Any) -> list[str]:
    """Ask many questions, or one about a spread that has almost all of everybody's allowance."""
    where = pick(rng, ["", condition(rng, columns)])
    by_command = not asked.kind.in_memory and rng.random() < 0.5
    numbers = aggregated(columns)
    if numbers and rng.random() < 0.3:
        return wrong(asked, [spread(rng, numbers)], where, 1.0, by_command=by_command)
    asks = [counts(rng, columns, one) for one in columns[: 15 // asked.shape.rows_per_person]]
    found = wrong(asked, asks, where, 0.5, by_command=by_command)
    if numbers:
        asks = list({ask.function: ask for ask in (numeric(rng, numbers), numeric(rng, numbers))}.values())
        found += wrong(asked, asks, where, 0.25, by_command=by_command)
    if grouped := [one for one in columns if one.type in ("text", "category", "bool")]:
        found += wrong_groups(asked, pick(rng, grouped), 0.2)
    joined = [one for one in asked.shape.columns if one.type in JOINED]
    if joined and joined[0] in columns and asked.shape.rows_per_person == 1:
        found += wrong_lookup(asked, joined[0], 0.05)
    return found


@every_kind
@settings(max_examples=EXAMPLES, derandomize=True, **RUN)
@given(data=st.data())
def test_every_answer_is_the_plain_one(kind, data):
    with TemporaryDirectory() as folder:
        assert [] == examine(KINDS[kind], data, Path(folder))


@pytest.mark.slow
@every_kind
@settings(max_examples=10 * EXAMPLES, **RUN)
@given(data=st.data())
def test_every_answer_is_the_plain_one_on_many_more_tables(kind, data):
    with TemporaryDirectory() as folder:
        assert [] == examine(KINDS[kind], data, Path(folder))


@every_kind
def test_a_table_may_have_one_column(kind, tmp_path):
    db = dn.connect(tmp_path / "l.discretion")
    for name in ("people", "rows"):
        (tmp_path / name).mkdir()
    people = pa.table({"who": ["a", "b", "c"], "e": [EPSILON] * 3})
    db.register("people", KINDS[kind].write(tmp_path / "people", people), person="who", epsilon="e")
    source = KINDS[kind].write(tmp_path / "rows", pa.table({"who": ["b", "c", "c", "d"]}))
    db.protect("t", source, person="who", register="people", rows_per_person=2)
    assert [3, 2] == [round(one) for one in next(iter(db.sql("SELECT COUNT(*), COUNT(DISTINCT who) FROM t")))]
    db.close()


def test_a_table_may_have_two_hundred_columns(tmp_path):
    check_wide("parquet", tmp_path)


@pytest.mark.slow
@every_kind
def test_a_table_of_every_kind_may_have_two_hundred_columns(kind, tmp_path):
    check_wide(kind, tmp_path)


def check_wide(kind, folder):
    names = [f"c{199 - i}" for i in range(198)]
    rows = {name: [(i + row) % 7 for row in range(30)] for i, name in enumerate(names)}
    table = pa.table({**rows, "who": list(range(30)), "e": [EPSILON] * 30})
    with dn.connect(folder / "l.discretion") as db:
        db.protect("t", KINDS[kind].write(folder, table), person="who", epsilon="e")
        asked = db.sql(f"SELECT {', '.join(f'COUNT_IF({name} = 0) AS {name}' for name in names[::10])} FROM t", share=1)
    assert {name: rows[name].count(0) for name in names[::10]} == {n: round(v[0]) for n, v in asked.columns.items()}


@every_kind
def test_a_thousand_more_rows_of_one_person_move_an_answer_by_their_bound(kind, tmp_path):
    check_privacy_unit(kind, "value", tmp_path)


@pytest.mark.parametrize("kind", ["parquet", "csv", "sqlite", "arrow"])
def test_a_thousand_more_rows_of_somebody_in_a_register_do_the_same(kind, tmp_path):
    check_privacy_unit(kind, "presence", tmp_path)


@pytest.mark.slow
@every_kind
def test_a_thousand_more_rows_of_somebody_in_a_register_do_the_same_in_every_kind(kind, tmp_path):
    check_privacy_unit(kind, "presence", tmp_path)


def check_privacy_unit(kind, protects, folder):
    """At most two rows of a person count, however many there are: the privacy unit is the person."""
    answers = []
    for more in (0, 1000):
        place = folder / str(more)
        place.mkdir()
        owners = [f"p{i % 30}" for i in range(60)] + ["p7"] * more
        table = pa.table({"x": [1] * 60 + [5] * more, "who": owners, "e": [EPSILON] * len(owners)})
        db = dn.connect(place / "l.discretion")
        how = {"person": "who", "rows_per_person": 2, "bounds": {"x": (0, 10)}}
        if protects == "value":
            db.protect("t", KINDS[kind].write(place, table), epsilon="e", **how)
        else:
            people = pa.table({"who": sorted(set(owners)), "e": [EPSILON] * 30})
            (place / "people").mkdir()
            db.register("people", KINDS[kind].write(place / "people", people), person="who", epsilon="e")
            db.protect("t", KINDS[kind].write(place, table), register="people", **how)
        sql = "SELECT COUNT(*), COUNT(DISTINCT who), SUM(x) FROM t WHERE x > 0"
        answers.append([round(one) for one in next(iter(db.sql(sql, share=1.0)))])
        db.close()
    assert [60, 30, 60] == answers[0]
    assert [60, 30] == answers[1][:2]
    assert 60 <= answers[1][2] <= 60 + 2 * (5 - 1)
