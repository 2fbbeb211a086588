"""Attacks and the papers' figures as sheets."""

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from discretion.papers.attack import Reconstruction
from discretion.render.sheet import Sheet


def attack_sheets(found: Sequence[Reconstruction]) -> list[Sheet]:
    """Return how much of a secret column each attack recovered, and what guessing recovers."""
    columns = ("against", "queries", "recovered", "guessing", "DP allows")
    attacks = [
        Sheet(
            title=f"A secret column, read off answers at a total ε of {rows[0].epsilon:g}: {attack}",
            columns=columns,
            rows=tuple(
                (
                    row.against,
                    f"{row.queries:,}",
                    f"{row.recovered:.1%}",
                    f"{row.guessing:.1%}",
                    f"{row.ceiling:.1%}" if row.ceiling is not None and row.is_private else "",
                )
                for row in rows
            ),
            numbers=frozenset(columns[1:]),
        )
        for attack, group in groupby(found, key=lambda row: row.attack)
        if (rows := list(group))
    ]
    lesson = (
        "Model `individual` adds noise only where one person could move the answer: that there is noise is the secret.",
        "Invented data, real mechanisms. This is why `individual` is off unless it is asked for twice.",
    )
    return [*attacks, Sheet(title="Why", notes=lesson)]


def figure_sheets(figures: Sequence[dict[str, Any]]) -> list[Sheet]:
    """The papers' figures: what there is, or one sheet of verdicts each."""
    if not any("claims" in figure for figure in figures):
        rows = tuple((f["figure"], f["title"], f"{f['runs']:,}", f"{f['seconds']:,.0f} s") for f in figures)
        return [
            Sheet(
                title="Figures", columns=("id", "title", "runs", "time"), rows=rows, numbers=frozenset({"time", "runs"})
            )
        ]
    return [
        Sheet(
            title=f"{figure['figure']}: {figure['title']}",
            columns=("verdict", "claim", "number"),
            rows=tuple((row["verdict"], row["claim"], row["number"]) for row in figure["claims"]),
            notes=(f"data: {figure['data']}", *(f"beyond the paper: {gain}" for gain in figure["beyond"])),
        )
        for figure in figures
    ]
