"""[AGK16] Figures 3 to 5: fundamentalists, pragmatists and the unconcerned in one network."""

from collections.abc import Iterator
from functools import lru_cache
from math import inf
from typing import Any, Literal

import numpy as np

from discretion.papers.claim import Check
from discretion.papers.figure import Claim, Effort, Finding, Point, Points
from discretion.papers.networks import (
    HDP,
    HOMOGENEOUS,
    OURS,
    RANDOM,
    SAME_PEOPLE,
    Rule,
    figure,
    half,
    mean,
    networks,
    on,
    people,
    point,
    recalls,
    repeats,
    whole,
    without,
)
from discretion.social.dataset import NETWORKS
from discretion.social.weight import WESTIN

NAIVE, PER_PERSON = "Naive, fundamentalists dropped", "HDP, one weight per person"
FUNDAMENTALISTS, PRAGMATISTS, UNCONCERNED = "fundamentalists", "pragmatists", "unconcerned"
MIXES = [(p, u) for p in (0.1, 0.2, 0.6, 0.7) for u in (0.1, 0.2, 0.6, 0.7) if p + u < 1] + [(0.43, 0.23)]
STRICT = [0.2, 0.3, 0.6, 0.7, 0.8]  # shares of fundamentalists in Figures 4 and 5
ENDS = [STRICT[0], STRICT[-1]]
DROPPED = [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]  # α
FEW_STRICT, FEW_DROPPED = [0.2, 0.3, 0.6, 0.8], [0.0, 0.6, 1.0]  # of a quick run
FEW_PRAGMATISTS = 0.1  # their share in Figures 4 and 5
SHARE_LEAVING = 0.1  # of the people, in every run of Figures 3 to 5
Kind = Literal["naive", "ours", "true"]  # how to halve ε: the weights by the paper's rule or by ours, or ε itself


@lru_cache(maxsize=4_096)
def _grouped(
    effort: Effort, name: str, shares: tuple[float, float], run: int, rule: Rule, per: str
) -> dict[str, float]:
    """Mean recall of each group, drawn anew in every run (the paper: once), in which a tenth of the people leave."""
    everybody = people(name, effort.data, effort.seed)
    grouped = everybody.westin(_mix(*shares), effort.generator("mix", name, shares, run), per=per)
    rng = effort.generator("leave", name, shares, run)
    stayed = without(grouped, SHARE_LEAVING, rng)
    found, _ = recalls(stayed, rule, rng)
    members = {group: stayed.groups == number for number, group in enumerate(WESTIN)}
    return {group: mean(found, who) for group, who in members.items()} | {
        "all": mean(found),
        "others": mean(found, ~members[FUNDAMENTALISTS]),
    }


def _shares(strict: float) -> tuple[float, float]:
    """Of pragmatists and of the unconcerned, in Figures 4 and 5."""
    return FEW_PRAGMATISTS, round(1 - FEW_PRAGMATISTS - strict, 10)


def _mix(pragmatists: float, unconcerned: float) -> dict[str, float]:
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
                rows = [_grouped(effort, name, shares, run, rule, "item") for run in repeats(effort, name)]
                for group in WESTIN:
                    values = [row[group] for row in rows]
                    points.append(point(f"{group}{suffix}", round(1 - sum(shares), 10), values, panel))
            yield points


@lru_cache(maxsize=4_096)
def _reduced(effort: Effort, name: str, strict: float, dropped: float, run: int, kind: Kind) -> tuple[float, float]:
    """Mean recall, and that of random neighbours, when a share of the fundamentalists leaves and all weigh the same."""
    rng = effort.generator("naive", name, strict, dropped, run)
    profiles = people(name, effort.data, effort.seed).westin(_mix(*_shares(strict)), rng)
    left = without(without(profiles, SHARE_LEAVING, rng), dropped, rng, FUNDAMENTALISTS)
    if kind == "true":
        found, chance = recalls(whole(left), "paper", rng, epsilon_scale=0.5)
    else:
        found, chance = recalls(half(left), "paper" if kind == "naive" else "min", rng)
    return mean(found), mean(chance)


def against_naive(effort: Effort) -> Iterator[list[Point]]:
    """Figure 4: HDP beside dropping all fundamentalists; 10% pragmatists."""
    for name in networks(effort):
        for strict in FEW_STRICT if effort.quick else STRICT:
            shares, runs = _shares(strict), repeats(effort, name)
            text = [_grouped(effort, name, shares, run, "paper", "item") for run in runs]
            code = [_grouped(effort, name, shares, run, "paper", "person") for run in runs]
            ours = [_grouped(effort, name, shares, run, "min", "item")["all"] for run in runs]
            yield [
                point(HDP, strict, [row["all"] for row in text], name),
                point(NAIVE, strict, [_reduced(effort, name, strict, 1.0, run, "naive")[0] for run in runs], name),
                point(PER_PERSON, strict, [row["all"] for row in code], name),
                point(SAME_PEOPLE, strict, [row["others"] for row in text], name),
                point(HOMOGENEOUS, strict, [_reduced(effort, name, strict, 1.0, run, "true")[0] for run in runs], name),
                point(OURS, strict, ours, name),
            ]


def by_dropped(effort: Effort) -> Iterator[list[Point]]:
    """Figure 5: recall against the share of fundamentalists dropped, beside random neighbours on the same network."""
    for name in networks(effort):
        for strict in ENDS if effort.quick else STRICT:
            points = []
            for dropped in FEW_DROPPED if effort.quick else DROPPED:
                rows = [_reduced(effort, name, strict, dropped, run, "naive") for run in repeats(effort, name)]
                points.append(point(f"Naive, F = {strict:.0%}", dropped, [found for found, _ in rows], name))
                points.append(point(f"{RANDOM}, F = {strict:.0%}", dropped, [chance for _, chance in rows], name))
                if strict in ENDS:
                    ours = [_reduced(effort, name, strict, dropped, run, "ours")[0] for run in repeats(effort, name)]
                    points.append(point(f"{OURS}, F = {strict:.0%}", dropped, ours, name))
            yield points


def _group_points(points: Points, group: str, name: str) -> dict[tuple[str, Any], Point]:
    rows = (p for p in points.rows if p.curve == group and p.panel.startswith(name) and np.isfinite(p.y))
    return {(p.panel, p.x): p for p in rows}


def _ahead(first: str, second: str, name: str, needed: float) -> Check:
    """Whether the first group is ahead in at least this share of the mixes (1: nowhere behind by more than chance)."""

    def check(points: Points) -> Finding:
        mine, theirs = _group_points(points, first, name), _group_points(points, second, name)
        ahead = sum(mine[key].y > theirs[key].y for key in mine)
        behind = [
            key
            for key in mine
            if theirs[key].y - mine[key].y > 3 * np.hypot(mine[key].spread, theirs[key].spread) + 0.002
        ]
        holds = not behind if needed == 1 else ahead >= needed * len(mine)
        return Finding(holds=holds, number=f"{first} above {second} in {ahead} of {len(mine)} mixes")

    return on(name, check)


def _lose_little(points: Points) -> Finding:
    few, many = (points.y(UNCONCERNED, x, "Delicious, P = 10%") for x in (0.2, 0.8))
    return Finding(
        holds=many > 0.75 * few,
        number=f"recall of the unconcerned {few:.3f} at 20%, {many:.3f} at 80%: {1 - many / few:.0%} less",
    )


def _leads(curve: str, name: str, until: float = 1.0, behind_from: float = inf) -> Check:
    """Whether the curve is above Naive up to one share of fundamentalists, and below it from another one on."""

    def check(points: Points) -> Finding:
        lead = {x: points.y(curve, x, name) - points.y(NAIVE, x, name) for x in points.xs(name)}
        shown = ", ".join(f"{gap:+.4f} at {x:.0%}" for x, gap in lead.items())
        before = all(gap > 0 for x, gap in lead.items() if x <= until)
        after = all(gap < 0 for x, gap in lead.items() if x >= behind_from)
        return Finding(holds=before and after, number=f"lead over Naive {shown}")

    return on(name, check)


def _worse_off(points: Points) -> Finding:
    last = points.xs("Digg")[-1]
    stay, without_them = points.y(SAME_PEOPLE, last, "Digg"), points.y(NAIVE, last, "Digg")
    return Finding(
        holds=without_them > stay,
        number=f"their recall at {last:.0%}: {stay:.4f} with them, {without_them:.4f} without",
    )


def _is_half(points: Points) -> Finding:
    name = points.panels[-1]
    gaps = [points.y(HOMOGENEOUS, x, name) - points.y(NAIVE, x, name) for x in points.xs(name)]
    return Finding(
        holds=abs(float(np.mean(gaps))) < 0.01,
        number=f"a true ε/2 has {min(gaps):+.4f} to {max(gaps):+.4f} recall more ({name})",
    )


def _growth(points: Points, curve: str, name: str) -> float:
    return points.y(f"{curve}, F = 80%", 1.0, name) - points.y(f"{curve}, F = 80%", 0.0, name)


def _grows(name: str, grows: bool) -> Check:
    def check(points: Points) -> Finding:
        growth = _growth(points, "Naive", name)
        return Finding(
            holds=(growth > 0.015) == grows, number=f"recall changes by {growth:+.4f} from α = 0 to 1 at F = 80%"
        )

    return on(name, check)


def _not_just_size(points: Points) -> Finding:
    growth, chance = _growth(points, "Naive", "Delicious"), _growth(points, RANDOM, "Delicious")
    return Finding(
        holds=growth > chance + 0.03, number=f"Naive {growth:+.4f}, random neighbours on the same network {chance:+.4f}"
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
                    text=f"{name}: {group} always above fundamentalists", check=_ahead(group, FUNDAMENTALISTS, name, 1)
                )
                for name in NETWORKS
                for group in (PRAGMATISTS, UNCONCERNED)
            ),
            *(
                Claim(
                    text=f"{name}: unconcerned often above pragmatists",
                    check=_ahead(UNCONCERNED, PRAGMATISTS, name, 0.5),
                )
                for name in NETWORKS
            ),
            Claim(
                text="liberal people lose little by the presence of many strict ones (.22 to .19)",
                check=on("Delicious", _lose_little),
            ),
        ),
        steps=len(NETWORKS) * len(MIXES),
        seconds=200.0,
        thinned=0.65,
        columns=len({pragmatists for pragmatists, _ in MIXES}),
    ),
    figure(
        4,
        "HDP and dropping the fundamentalists",
        against_naive,
        "share of fundamentalists",
        (
            Claim(text="Survey: HDP is better at every share", check=_leads(HDP, "Survey")),
            Claim(text="Digg: HDP is better below 40% only", check=_leads(HDP, "Digg", 0.3, 0.6)),
            Claim(
                text="Digg: HDP is better below 40% only, with one weight per person as in the authors' code",
                check=_leads(PER_PERSON, "Digg", 0.2, 0.6),
            ),
            Claim(text="Delicious: HDP is better below 70% only", check=_leads(HDP, "Delicious", 0.3, 0.8)),
            Claim(
                text="Digg: with many fundamentalists those who remain are better off without them",
                check=on("Digg", _worse_off),
            ),
            Claim(text="Naive is the homogeneous case with ε/2", check=_is_half),
        ),
        steps=len(NETWORKS) * len(STRICT),
        seconds=195.0,
        thinned=0.8,
    ),
    figure(
        5,
        "recall as fundamentalists are dropped",
        by_dropped,
        "share α of the fundamentalists dropped",
        (
            Claim(text="Delicious: recall grows as more are dropped", check=_grows("Delicious", True)),
            Claim(text="Digg: it does not", check=_grows("Digg", False)),
            Claim(
                text="Delicious: it grows because fundamentalists add noise, not because the network is smaller",
                check=on("Delicious", _not_just_size),
            ),
        ),
        steps=len(NETWORKS) * len(STRICT),
        seconds=330.0,
        thinned=0.29,
    ),
)
