"""The engines that keep the contract: every test with the fixture `engine` runs with each of them."""

from collections.abc import Callable

import pytest

from discretion.engines import Engine
from discretion.engines.duckdb import DuckDB

ENGINES: dict[str, Callable[[], Engine]] = {"duckdb": DuckDB}


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> Engine:
    """A new engine of each kind."""
    return ENGINES[request.param]()
