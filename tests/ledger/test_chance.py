"""What an allowance means in natural frequencies: Bayes' rule, rounded up, the same as the table in docs/promise.md."""

import re
from fractions import Fraction
from math import exp
from pathlib import Path

import pytest

from discretion.ledger.chance import BEFORE, Chance, after, chance, chances

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("before", BEFORE)
@pytest.mark.parametrize("epsilon", [0, 0.05, 0.1, 0.5, 1, 2, 5, 10])
def test_the_chance_is_bayes_rule_with_the_worst_answer_and_never_understates_it(before, epsilon):
    worst = before * exp(epsilon) / (before * exp(epsilon) + 1 - before)
    shown = chance(before, epsilon)
    assert worst == pytest.approx(after(before, epsilon), rel=1e-12)
    assert worst <= Fraction(shown.many, shown.whole) + Fraction(1, 10**8)
    assert Fraction(shown.many - 1, shown.whole) < worst


def test_the_page_says_the_same_as_the_documentation():
    lines = re.findall(
        r"^\| ([\d.]+) \| ([\d.]+) % \| ([\d.]+) % \| ([\d.]+) % \|$", (DOCS / "promise.md").read_text(), re.M
    )
    assert 6 == len(lines)
    for line in lines:
        epsilon, *told = map(float, line)
        for before, percent in zip(BEFORE, told, strict=True):
            assert -1e-9 <= percent - 100 * after(before, epsilon) < 0.1  # three digits, rounded up


def test_strict_allowances_change_little_and_huge_ones_are_called_certain():
    assert [("10 in 1,000", "10 in 100", "50 in 100")] == [tuple(map(str, cells)) for _, cells in chances([0])]
    assert "24 in 100" == str(chance(0.1, 1))
    assert "994 in 1,000" == str(chance(0.5, 5))
    assert "certain" == str(chance(0.5, 1_000)) == str(Chance(many=100, whole=100))
