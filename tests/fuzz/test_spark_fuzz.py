"""Generated queries on Spark: no row makes one fail, and its statistics are those of DuckDB to the last unit.

What one person may add to statistics is checked with DuckDB (`test_fuzz.py`); equal statistics pass that check too.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sqlglot import exp, parse_one

from discretion.engines.duckdb import DuckDB
from discretion.engines.duckdb.admission import sound_table
from discretion.engines.spark import Spark
from discretion.engines.spark.memory import spark_table
from discretion.errors import QueryRefused
from discretion.query import Query, parse
from discretion.statistics import Statistics
from fuzz.grammar import query as written
from fuzz.worlds import World

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("spark")]
ANSWERED, REHEARSED = 60, 6  # queries that Spark answers, and those of them that it rehearses
CURVES = (exp.Ln, exp.Exp, exp.Cbrt, exp.Pow)  # their last two digits may differ (docs/sources.md)


class Alike(DuckDB):
    """DuckDB with the types that Spark has."""

    def attach(self, name: str, table: Any, person: str = "") -> str:
        """Take a table in Spark's types."""
        return super().attach(name, spark_table(sound_table(table, person)), person)


def understood(seed: int, world: World) -> Query | None:
    """Return the query of a seed if both engines promise the same statistics for it."""
    sql = written(seed)
    if next(parse_one(sql, dialect="duckdb").find_all(*CURVES), None) is not None:
        return None
    try:
        query = parse(sql, world.known(seed))
        world.engine.check(world.request(query, world.calm, seed))
    except QueryRefused:
        return None
    return None if query.partners else query


def listed(statistics: Statistics) -> list[Any]:
    parts = (statistics.counts, statistics.totals, statistics.squares, statistics.histogram)
    return [None if part is None else np.asarray(part).tolist() for part in parts]


def test_generated_queries_have_the_statistics_that_duckdb_gives(
    spark_session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("discretion.engines.engine.coin_key", lambda: "0" * 64)
    plain = World("arrow", tmp_path / "duckdb", engine=Alike(threads=1, memory="700MB"))
    world = World("arrow", tmp_path / "spark", engine=Spark(spark_session))  # type: ignore[arg-type]
    assert plain.tables["value"].columns == world.tables["value"].columns
    seed, answered, refused, wrong = 0, 0, [], []
    while answered < ANSWERED:
        seed += 1
        if (query := understood(seed, plain)) is None:
            continue
        try:
            if answered < REHEARSED:
                world.engine.check(world.request(query, world.calm, seed))
            found = world.engine.compute(world.request(query, world.all, seed))
        except QueryRefused as refusal:
            refused.append(str(refusal))
            continue
        answered += 1
        expected = plain.engine.compute(plain.request(query, plain.all, seed))
        if [*map(listed, expected)] != [*map(listed, found)]:
            wrong.append(f"{seed}: {query.text}")
    print(f"{seed} queries: {answered} answered alike but for {len(wrong)}, {len(refused)} refused by Spark alone")
    assert all("Spark has no safe form of" in one for one in refused), refused
    assert [] == wrong
