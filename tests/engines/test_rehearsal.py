"""Made-up rows: no pair of values of two columns is left out."""

from itertools import combinations

import pytest

from discretion.engines.rehearsal import MOST_ROWS, _combined


@pytest.mark.parametrize("sizes", [[3, 4, 5], [25, 24, 26, 10], [25] * 31, [7] * 70, [2] * 300, [29] * 12])
def test_every_pair_of_values_of_two_columns_is_among_the_rows(sizes: list[int]) -> None:
    rows = _combined(sizes)
    assert len(rows) <= max(MOST_ROWS, 2 * 31**2)
    for one, other in combinations(range(len(sizes)), 2):
        assert sizes[one] * sizes[other] == len({(row[one], row[other]) for row in rows})
    assert all({*range(1, size + 1)} == {row[place] for row in rows} for place, size in enumerate(sizes))
