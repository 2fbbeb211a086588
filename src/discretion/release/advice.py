"""Advice beside an answer: what would have made it better, and that an error asked for was missed."""

from math import ceil

from discretion.render.number import upwards


def larger_share(times: float, share: float | None) -> str:
    """Say how much more must be spent before an interval is half of what is possible; '' if nobody has that much."""
    half = "the interval would then be about half of what is possible"
    if share is None:
        return f"about {ceil(times):,} times the epsilon ({half})"
    if times * share > 1:
        return ""
    return f"share={min(upwards(times * share, 2), 1.0):g} instead of {share:g} ({half})"


def missed(within: float, cells: int, rows: int, *, estimated: bool) -> str:
    """Say that an error is larger than the one asked for, and why; `estimated`: from the release itself."""
    where = f" in {cells:,} of {rows:,} rows" if rows > 1 else ""
    also = "; under `gradual` it also depends on the relation that is found" if estimated else ""
    return (
        f"the error asked for, within={within:g}, was missed{where}. It was planned as if everybody had one row in the "
        "answer and groups were equally large, because a plan sees no data: WHERE, groups and missing values leave "
        f"fewer rows{also}."
    )
