"""Executors that die in the middle of a question change no statistic: rows are chosen by content and key alone."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
PROGRAM = Path(__file__).parent / "retried.py"  # in a process of its own: Spark has one context for a process


def answers(folder: Path, *words: str) -> tuple[str, str]:
    """Return the statistics of a calm run and of one in which executors are killed."""
    run = subprocess.run([sys.executable, PROGRAM, folder, *words], capture_output=True, text=True, timeout=900)
    assert 0 == run.returncode, run.stderr[-2000:]
    calm, disturbed, killed = run.stdout.splitlines()[-3:]
    assert int(killed) > 0
    return calm, disturbed


@pytest.mark.parametrize("form", ["array", "window"])
def test_executors_that_die_change_no_statistic(tmp_path: Path, form: str) -> None:
    calm, disturbed = answers(tmp_path, form)
    assert calm == disturbed


@pytest.mark.parametrize("form", ["array", "window"])
def test_a_choice_by_the_order_of_arrival_would_be_noticed(tmp_path: Path, form: str) -> None:
    calm, disturbed = answers(tmp_path, "planted", form)
    assert calm != disturbed
