"""A million draws of discrete Laplace against OpenDP's own vector call, in the same run."""

from time import perf_counter

import numpy as np
import opendp.prelude as dp
from rich.console import Console
from rich.table import Table

from discretion import noise

DRAWS = 1_000_000


def main() -> None:
    dp.enable_features("contrib")
    table = Table(title=f"{DRAWS:,} draws of discrete Laplace: seconds, and ratio to OpenDP's vector call")
    for heading in ("scale", "OpenDP", "discretion", "ratio"):
        table.add_column(heading, justify="right")
    for scale in (2, 1_000_000):
        space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
        theirs = _seconds(lambda s=scale, d=space: dp.m.make_laplace(*d, scale=float(s))([0] * DRAWS))
        ours = _seconds(lambda s=scale: noise.discrete_laplace(s, DRAWS))
        table.add_row(f"{scale:,}", f"{theirs:.2f}", f"{ours:.2f}", f"{ours / theirs:.2f}")
    scores = -np.abs(np.arange(1000) - 500) * 10_000
    each = min(_seconds(lambda: noise.choose(scores, 2_000_000)) for _ in range(20))
    Console().print(table)
    Console().print(f"one exact choice among 1,000 candidates: {each * 1e3:.2f} ms")


def _seconds(work: object) -> float:
    start = perf_counter()
    work()  # type: ignore[operator]
    return perf_counter() - start


if __name__ == "__main__":
    main()
