"""A service that many tests share: none of them stops it or empties anybody's allowance."""

import pytest

from served import Served, served


@pytest.fixture(scope="session")
def town(tmp_path_factory) -> Served:
    with served(tmp_path_factory.mktemp("town")) as started:
        yield started
