"""[AGK16] Figures 4 and 5: keep the fundamentalists with their weights, or drop them and weigh all alike."""

from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise
from math import inf
from typing import Literal

import numpy as np

from discretion.papers.claim import GREAT, NEAR, Check
from discretion.papers.figure import Claim, Effort, Point, Points, Result
from discretion.papers.hdp_groups import FUNDAMENTALISTS, SHARE_LEAVING, grouped, mix, shares_of
from discretion.papers.networks import (
    ASKED,
    HDP,
    HOMOGENEOUS,
    OURS,
    RANDOM,
    SAME_PEOPLE,
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

NAIVE, PER_PERSON = "Naive, fundamentalists dropped", "HDP, one weight per person"
STRICT = [0.2, 0.3, 0.6, 0.7, 0.8]  # shares of fundamentalists in Figures 4 and 5
ENDS = [STRICT[0], STRICT[-1]]
DROPPED = [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]  # α
FEW_STRICT, FEW_DROPPED = [0.2, 0.3, 0.6, 0.8], [0.0, 0.6, 1.0]  # of a quick run
MORE_ASKED = (2, 3)  # others that everybody asks a cycle, besides one: how much that matters in Figure 4
Kind = Literal["naive", "ours", "true"]  # how to halve ε: the weights by the paper's rule or by ours, or ε itself


@lru_cache(maxsize=4_096)
def _reduced(
    effort: Effort, name: str, strict: float, dropped: float, run: int, kind: Kind, asked: int = ASKED
) -> tuple[float, float]:
    """Return mean recall, and that of random neighbours, when fundamentalists leave and all weights are the same."""
    rng = effort.generator("naive", name, strict, dropped, run)
    profiles = people(name, effort.data, effort.seed).westin(mix(*shares_of(strict)), rng)
    left = without(without(profiles, SHARE_LEAVING, rng), dropped, rng, FUNDAMENTALISTS)
    if kind == "true":
        found, chance = recalls(whole(left), "paper", rng, epsilon_scale=0.5, asked=asked)
    else:
        found, chance = recalls(half(left), "paper" if kind == "naive" else "min", rng, asked=asked)
    return mean(found), mean(chance)


def against_naive(effort: Effort) -> Iterator[list[Point]]:
    """Figure 4: HDP beside dropping all fundamentalists; 10% pragmatists."""
    for name in networks(effort):
        for strict in FEW_STRICT if effort.quick else STRICT:
            shares, runs = shares_of(strict), repeats(effort, name)
            text = [grouped(effort, name, shares, run, "paper", "item") for run in runs]
            code = [grouped(effort, name, shares, run, "paper", "person") for run in runs]
            ours = [grouped(effort, name, shares, run, "min", "item")["all"] for run in runs]
            yield [
                point(HDP, strict, [row["all"] for row in text], name),
                point(NAIVE, strict, [_reduced(effort, name, strict, 1.0, run, "naive")[0] for run in runs], name),
                point(PER_PERSON, strict, [row["all"] for row in code], name),
                point(SAME_PEOPLE, strict, [row["others"] for row in text], name),
                point(HOMOGENEOUS, strict, [_reduced(effort, name, strict, 1.0, run, "true")[0] for run in runs], name),
                point(OURS, strict, ours, name),
                *_asking_more(effort, name, strict),
            ]


def _asking_more(effort: Effort, name: str, strict: float) -> list[Point]:
    """Return the same comparison where everybody asks two or three others a cycle instead of one."""
    points = []
    for asked in MORE_ASKED:
        runs, panel = repeats(effort, name), f"{name}, {asked} asked"
        kept = [grouped(effort, name, shares_of(strict), run, "paper", "item", asked) for run in runs]
        naive = [_reduced(effort, name, strict, 1.0, run, "naive", asked)[0] for run in runs]
        points.append(point(HDP, strict, [row["all"] for row in kept], panel))
        points.append(point(NAIVE, strict, naive, panel))
    return points


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


def _leads(curve: str, name: str, until: float = 1.0, behind_from: float = inf) -> Check:
    """Decide whether the curve is above Naive up to one share of fundamentalists, and below it from another one on."""

    def check(points: Points) -> Result:
        lead = _lead(points, curve, name)
        before = all(gap > 0 for x, gap in lead.items() if x <= until)
        after = all(gap < 0 for x, gap in lead.items() if x >= behind_from)
        return Result(holds=before and after, number=f"lead over Naive {_shown(lead)}")

    return on(name, check)


def _lead(points: Points, curve: str, panel: str) -> dict[float, float]:
    """Return how far the curve is above Naive, by share of fundamentalists."""
    return {x: points.y(curve, x, panel) - points.y(NAIVE, x, panel) for x in points.xs(panel)}


def _shown(lead: dict[float, float]) -> str:
    return ", ".join(f"{gap:+.4f} at {x:.0%}" for x, gap in lead.items())


def _rate_decides(name: str) -> Check:
    """Decide whether HDP changes sides at some share when everybody asks two or three others instead of one."""

    def check(points: Points) -> Result:
        leads = {asked: _lead(points, HDP, f"{name}, {asked} asked") for asked in MORE_ASKED}
        one = _lead(points, HDP, name)
        changed = any((gap > 0) != (one[x] > 0) for lead in leads.values() for x, gap in lead.items())
        shown = "; ".join(f"{asked} asked: {_shown(lead)}" for asked, lead in leads.items())
        return Result(holds=changed, number=f"HDP's lead, 1 asked: {_shown(one)}; {shown}")

    return on(name, check)


def _worse_off(points: Points) -> Result:
    last = points.xs("Digg")[-1]
    stay, without_them = points.y(SAME_PEOPLE, last, "Digg"), points.y(NAIVE, last, "Digg")
    return Result(
        holds=without_them > stay,
        number=f"their recall at {last:.0%}: {stay:.4f} with them, {without_them:.4f} without",
    )


def _is_half(points: Points) -> Result:
    name = "Delicious" if "Delicious" in points.panels else points.panels[0]
    naive = [points.y(NAIVE, x, name) for x in points.xs(name)]
    gaps = [points.y(HOMOGENEOUS, x, name) - points.y(NAIVE, x, name) for x in points.xs(name)]
    return Result(
        holds=abs(float(np.mean(gaps))) <= NEAR * float(np.mean(naive)),
        number=f"a true ε/2 has {min(gaps):+.4f} to {max(gaps):+.4f} recall more than {np.mean(naive):.4f} ({name})",
    )


def _growth(points: Points, curve: str, name: str) -> float:
    return points.y(f"{curve}, F = 80%", 1.0, name) - points.y(f"{curve}, F = 80%", 0.0, name)


def _grows(name: str, grows: bool) -> Check:
    """Decide whether recall grows at every step of α; the paper says "consistently"."""

    def check(points: Points) -> Result:
        curve = [p.y for p in points.rows if p.curve == "Naive, F = 80%" and p.panel == name]
        rises = all(after > before for before, after in pairwise(curve))
        shown = ", ".join(f"{y:.4f}" for y in curve)
        return Result(holds=rises == grows, number=f"recall at F = 80% as α grows: {shown}")

    return on(name, check)


def _not_just_size(points: Points) -> Result:
    growth, chance = _growth(points, "Naive", "Delicious"), _growth(points, RANDOM, "Delicious")
    return Result(
        holds=chance <= GREAT * growth,
        number=f"Naive {growth:+.4f}, random neighbours on the same network {chance:+.4f}",
    )


BELOW_40_AND_70 = (
    "For Digg and Delicious, HDP outperforms Naïve when the FUNDAMENTALISTS ratio is respectively less than 40% and 70%"
)
THROW_OUT = "when the number of FUNDAMENTALISTS is too big, it is better to throw them out"
IDENTICAL = "effectively rendering the case identical to the homogeneous ε/2-differentially private case"
ENHANCES = "the utility consistently enhances as more FUNDAMENTALISTS are removed from the system"

FIGURES = (
    figure(
        4,
        "HDP and dropping the fundamentalists",
        against_naive,
        "share of fundamentalists",
        (
            Claim(
                text="Survey: HDP is better at every share",
                check=_leads(HDP, "Survey"),
                rule="above Naive at every share",
                section="4.3",
                quote="HDP outperforms Naïve for all FUNDAMENTALISTS ratios for the Survey dataset",
            ),
            Claim(
                text="Digg: HDP is better below 40% only",
                check=_leads(HDP, "Digg", 0.3, 0.6),
                rule="above Naive up to 30%, below it from 60% on",
                section="4.3",
                quote=BELOW_40_AND_70,
            ),
            Claim(
                text="Delicious: HDP is better below 70% only",
                check=_leads(HDP, "Delicious", 0.6, 0.8),
                rule="above Naive up to 60%, below it at 80%",
                section="4.3",
                quote=BELOW_40_AND_70,
            ),
            Claim(
                text="Digg: with many fundamentalists those who remain are better off without them",
                check=on("Digg", _worse_off),
                rule="at the largest share, the others' recall is higher under Naive",
                section="4.3",
                quote=THROW_OUT,
            ),
            Claim(
                text="Naive has the recall of the homogeneous case with ε/2",
                check=_is_half,
                rule="a true ε/2 has the same recall within a tenth",
                section="4.3",
                quote=IDENTICAL,
            ),
            Claim(
                text="Digg: HDP is better below 40% only, with one weight per person as in the authors' code",
                check=_leads(PER_PERSON, "Digg", 0.3, 0.6),
                rule="above Naive up to 30%, below it from 60% on",
            ),
            *(
                Claim(
                    text=f"{name}: which of the two is better depends on how many others a person asks a cycle",
                    check=_rate_decides(name),
                    rule="HDP changes sides at some share when two or three are asked instead of one",
                )
                for name in ("Digg", "Delicious")
            ),
        ),
        steps=len(NETWORKS) * len(STRICT),
        seconds=420.0,
        thinned=0.8,
    ),
    figure(
        5,
        "recall as fundamentalists are dropped",
        by_dropped,
        "share α of the fundamentalists dropped",
        (
            Claim(
                text="Delicious: recall grows as more are dropped",
                check=_grows("Delicious", True),
                rule="it grows at every step of α, F = 80%",
                section="4.3",
                quote=ENHANCES,
            ),
            Claim(
                text="Digg: it does not",
                check=_grows("Digg", False),
                rule="it falls at some step of α, F = 80%",
                section="4.3",
                quote="However, as this is not true for Digg",
            ),
            Claim(
                text="Delicious: it grows because fundamentalists add noise, not because the network is smaller",
                check=on("Delicious", _not_just_size),
                rule="random neighbours gain at most half as much",
                section="4.3",
                quote="This may be due to fact that FUNDAMENTALISTS add noise to the network",
            ),
        ),
        steps=len(NETWORKS) * len(STRICT),
        seconds=400.0,
        thinned=0.29,
    ),
)
