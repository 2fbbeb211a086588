"""Benchmarks are not run here, but they must not refer to what is gone."""

from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("topic", sorted(path.stem for path in (ROOT / "benchmarks").glob("[!_]*.py")))
def test_a_benchmark_can_be_imported(topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT))
    assert import_module(f"benchmarks.{topic}").__doc__
