"""Neighbours for every query of the grammar, on every kind of source: no row decides how a question ends.

The run in the normal suite takes about two minutes of one core, that of the nightly suite about 90 minutes of two.
A violation prints the query, the kind of source and the state; `Fuzz.run([seed])` repeats it.
"""

from collections.abc import Iterator
from pathlib import Path
from time import process_time

import pytest
import sqlalchemy as sa
from sqlglot import exp, parse_one

from discretion.query.function import FUNCTIONS
from fuzz.grammar import query
from fuzz.neighbours import Fuzz, Statements, distinct
from fuzz.sources import COPIED, WRITERS
from fuzz.worlds import World

WORLDS = [
    pytest.param(kind, sound, id=f"{kind}-{'in-place' if sound else 'copied'}", marks=marks)
    for kind in WRITERS
    for sound in ((False,) if kind in COPIED else (True, False))
    for marks in ([pytest.mark.xdist_group("postgres")] if kind == "postgresql" else [],)
]
SECONDS = 120 / len(WORLDS)  # of one core, for each world
NIGHTLY = 20_000  # accepted queries, over all worlds
BATCH = 20
LARGE_BATCH = 200
# Written as something else, or not over rows: sqlglot reads MONTH(day) as exp.Month, which becomes EXTRACT.
SYNONYMS = {exp.TryCast, exp.DateTrunc}


@pytest.fixture(autouse=True)
def _same_coins(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The same coins in every world, so that what a person adds can be compared; statements are built once."""
    monkeypatch.setattr("discretion.engines.engine.coin_key", lambda: "0" * 64)
    monkeypatch.setattr("discretion.engines.engine.statement", Statements())
    return


def told(fuzz: Fuzz) -> str:
    found = "\n".join(map(str, distinct(fuzz.violations)))
    kinds = f"{fuzz.joined} join tables, {fuzz.divided} compute from released values"
    return f"{fuzz.world.name}: {fuzz.accepted} accepted ({kinds}), {fuzz.refused} refused\n{found}"


@pytest.fixture
def server(request: pytest.FixtureRequest) -> str:
    """The URL of a PostgreSQL server, for the worlds that need one."""
    if request.node.callspec.params["kind"] != "postgresql":
        return ""
    url: sa.URL = request.getfixturevalue("postgres_server")
    return url.set(drivername="postgresql").render_as_string(hide_password=False)


@pytest.mark.parametrize(("kind", "sound"), WORLDS)
def test_no_row_decides_how_a_question_ends(kind: str, sound: bool, server: str, tmp_path: Path) -> None:
    start, first = process_time(), 0
    fuzz = Fuzz(World(kind, tmp_path, sound=sound, server=server))
    while process_time() - start < SECONDS:
        fuzz.run(range(first, first + BATCH))
        first += BATCH
    assert fuzz.accepted > 0
    assert [] == fuzz.violations, told(fuzz)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "sound"), WORLDS)
def test_no_row_decides_how_thousands_of_questions_end(kind: str, sound: bool, server: str, tmp_path: Path) -> None:
    wanted = NIGHTLY // len(WORLDS) + 1
    fuzz = Fuzz(World(kind, tmp_path, sound=sound, server=server))
    first = 1_000_000 * (1 + list(WRITERS).index(kind)) + 500_000 * sound  # other queries in every world
    while fuzz.accepted < wanted:
        fuzz.run(range(first, first + LARGE_BATCH))
        first += LARGE_BATCH
    print(told(fuzz))
    assert [] == fuzz.violations, told(fuzz)


def test_the_grammar_uses_everything_that_may_be_computed() -> None:
    used: set[type] = set()
    for seed in range(700):
        used |= {type(node) for node in parse_one(query(seed), dialect="duckdb").walk()}
    assert set() == set(FUNCTIONS) - used - SYNONYMS


def test_a_seed_gives_the_same_query_every_time() -> None:
    assert [query(seed) for seed in range(50)] == [query(seed) for seed in range(50)]
    assert len({query(seed) for seed in range(500)}) > 480
