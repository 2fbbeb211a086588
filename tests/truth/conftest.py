"""A PostgreSQL server for the tests of that kind of source."""

import kinds
import pytest


@pytest.fixture(autouse=True)
def _server(request: pytest.FixtureRequest) -> None:
    parameters = getattr(request.node, "callspec", None)
    if parameters is not None and "postgresql" in parameters.params.values():
        url = request.getfixturevalue("postgres_server").set(drivername="postgresql")
        kinds.SERVERS.append(url.render_as_string(hide_password=False))
