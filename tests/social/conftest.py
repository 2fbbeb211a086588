import json
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def golden():
    return json.loads((Path(__file__).parents[1] / "golden" / "hdp.json").read_text())
