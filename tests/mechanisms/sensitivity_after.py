"""A_k: the largest local sensitivity after k changes, by its definition."""

import numpy as np

from discretion.mechanisms.sensitivity import Ordered, RankOf


def changed_after(data: Ordered, rank: int, changes: int) -> float:
    """A_k under value: the largest local sensitivity within `changes` changes of the data."""
    step = np.arange(changes + 2)
    return float(np.max(data.at(rank + step) - data.at(rank + step - changes - 1)))


def midpoint_changed_after(data: Ordered, changes: int) -> float:
    """A_k of (X(m) + X(m+1))/2 under value, n = 2m."""
    m, a = len(data) // 2, np.arange(changes + 1)
    up = data.at(m + 2 + a) - data.at(m - changes + a)
    down = data.at(m + 1 + a) - data.at(m - 1 - changes + a)
    return float(np.max(np.maximum(up, down))) / 2


def appeared_after(data: Ordered, rank_of: RankOf, changes: int, least: int = 1) -> float:
    """A_k under presence: the largest local sensitivity within `changes` people coming or going."""
    largest = 0.0
    for come in range(changes + 1):
        for go in range(min(changes - come, len(data)) + 1):
            size = len(data) + come - go
            if size < least:
                continue
            here, above = rank_of(size), rank_of(size + 1)
            places = [here if above == here + 1 else here - 1] + ([rank_of(size - 1)] if size - 1 >= least else [])
            for place in places:
                first = place - np.arange(come + 1)
                largest = max(largest, float(np.max(data.at(first + go + 1) - data.at(first))))
    return largest
