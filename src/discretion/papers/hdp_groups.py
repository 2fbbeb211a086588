"""[AGK16] Figures 3 to 5: fundamentalists, pragmatists and the unconcerned in one network."""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np

from discretion.papers.claim import Check
from discretion.papers.figure import Claim, Effort, Point, Points, Result
from discretion.papers.networks import (
    ASKED,
    Rule,
    figure,
    mean,
    networks,
    on,
    people,
    point,
    recalls,
    repeats,
    without,
)
from discretion.social.dataset import NETWORKS
from discretion.social.weight import WESTIN

FUNDAMENTALISTS, PRAGMATISTS, UNCONCERNED = "fundamentalists", "pragmatists", "unconcerned"
MIXES = [(p, u) for p in (0.1, 0.2, 0.6, 0.7) for u in (0.1, 0.2, 0.6, 0.7) if p + u < 1] + [(0.43, 0.23)]
FEW_PRAGMATISTS = 0.1  # their share in Figures 4 and 5
SHARE_LEAVING = 0.1  # of the people, in every run of Figures 3 to 5


@lru_cache(maxsize=4_096)
def grouped(
    effort: Effort, name: str, shares: tuple[float, float], run: int, rule: Rule, per: str, asked: int = ASKED
) -> dict[str, float]:
    """Return each group's mean recall. Groups are drawn anew in every run (the paper: once), and a tenth leave."""
    everybody = people(name, effort.data, effort.seed)
    mixed = everybody.westin(mix(*shares), effort.generator("mix", name, shares, run), per=per)
    rng = effort.generator("leave", name, shares, run)
    stayed = without(mixed, SHARE_LEAVING, rng)
    found, _ = recalls(stayed, rule, rng, asked=asked)
    members = {group: stayed.groups == number for number, group in enumerate(WESTIN)}
    return {group: mean(found, who) for group, who in members.items()} | {
        "all": mean(found),
        "others": mean(found, ~members[FUNDAMENTALISTS]),
    }


def shares_of(strict: float) -> tuple[float, float]:
    """Of pragmatists and of the unconcerned, in Figures 4 and 5."""
    return FEW_PRAGMATISTS, round(1 - FEW_PRAGMATISTS - strict, 10)


def mix(pragmatists: float, unconcerned: float) -> dict[str, float]:
    strict = round(1 - pragmatists - unconcerned, 10)
    return {UNCONCERNED: unconcerned, PRAGMATISTS: pragmatists, FUNDAMENTALISTS: strict}


def by_group(effort: Effort) -> Iterator[list[Point]]:
    """Figure 3: recall of each group against the share of fundamentalists, one panel a share of pragmatists."""
    for name in networks(effort):
        for shares in MIXES:
            panel = f"{name}, P = {shares[0]:.0%}"
            rules: list[tuple[str, Rule]] = [("", "paper")]
            if shares[0] == FEW_PRAGMATISTS or not effort.quick:
                rules.append((", min rule", "min"))
            points = []
            for suffix, rule in rules:
                rows = [grouped(effort, name, shares, run, rule, "item") for run in repeats(effort, name)]
                for group in WESTIN:
                    values = [row[group] for row in rows]
                    points.append(point(f"{group}{suffix}", round(1 - sum(shares), 10), values, panel))
            yield points


def _group_points(points: Points, group: str, name: str) -> dict[tuple[str, Any], Point]:
    rows = (p for p in points.rows if p.curve == group and p.panel.startswith(name) and np.isfinite(p.y))
    return {(p.panel, p.x): p for p in rows}


def _ahead(first: str, second: str, name: str, needed: float) -> Check:
    """Decide whether the first group has the better recall in at least this share of the mixes."""

    def check(points: Points) -> Result:
        mine, theirs = _group_points(points, first, name), _group_points(points, second, name)
        ahead = sum(mine[key].y > theirs[key].y for key in mine)
        return Result(
            holds=ahead >= needed * len(mine), number=f"{first} above {second} in {ahead} of {len(mine)} mixes"
        )

    return on(name, check)


def _lose_little(points: Points) -> Result:
    few, many = (points.y(UNCONCERNED, x, "Delicious, P = 10%") for x in (0.2, 0.8))
    return Result(
        holds=1 - many / few <= 1 - 0.19 / 0.22,
        number=f"recall of the unconcerned {few:.3f} at 20%, {many:.3f} at 80%: {1 - many / few:.0%} less",
    )


ALWAYS_BETTER = "PRAGMATISTS and UNCONCERNED always have better recall than FUNDAMENTALISTS"
OFTEN_BETTER = "UNCONCERNED often have a better recall than PRAGMATISTS"
ONLY_DECREASES = (
    "the utility of liberal groups only decreases from 0.22 to 0.19 as the percentage of conservative groups "
    "increases from 20% to 80%"
)

FIGURES = (
    figure(
        3,
        "recall of each group against the share of fundamentalists",
        by_group,
        "share of fundamentalists",
        (
            *(
                Claim(
                    text=f"{name}: {group} always above fundamentalists",
                    check=_ahead(group, FUNDAMENTALISTS, name, 1),
                    rule="above in every mix",
                    section="4.3",
                    quote=ALWAYS_BETTER,
                )
                for name in NETWORKS
                for group in (PRAGMATISTS, UNCONCERNED)
            ),
            *(
                Claim(
                    text=f"{name}: unconcerned often above pragmatists",
                    check=_ahead(UNCONCERNED, PRAGMATISTS, name, 0.5),
                    rule="above in at least half of the mixes",
                    section="4.3",
                    quote=OFTEN_BETTER,
                )
                for name in NETWORKS
            ),
            Claim(
                text="liberal people lose little by the presence of many strict ones",
                check=on("Delicious", _lose_little),
                rule="the unconcerned of Delicious lose at most 14%, which is .22 to .19",
                section="4.3",
                quote=ONLY_DECREASES,
            ),
        ),
        steps=len(NETWORKS) * len(MIXES),
        seconds=270.0,
        thinned=0.65,
        columns=len({pragmatists for pragmatists, _ in MIXES}),
    ),
)
