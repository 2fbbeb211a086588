"""What several test files need."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

GOLDEN = Path(__file__).parent / "golden"


@pytest.fixture(scope="session")
def golden() -> Callable[[str], Any]:
    """The exact test vectors: golden("pdp") or golden("hdp")."""
    return lambda name: json.loads((GOLDEN / f"{name}.json").read_text())
