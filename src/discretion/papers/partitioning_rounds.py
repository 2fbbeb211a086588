"""[LXJJ17] T rounds of partitioning: how much of the budgets is left over, and what later rounds are worth."""

from collections.abc import Iterator

import numpy as np

from discretion.learn.run import plan
from discretion.mechanisms import Belief
from discretion.mechanisms.partition import Cuts
from discretion.mechanisms.partition import propose as partition
from discretion.papers.claim import NEAR, Check
from discretion.papers.figure import Axes, Claim, Effort, Figure, Point, Points, Result
from discretion.papers.partitioning import AUTO, COUNT, PEOPLE, WIDE
from discretion.preference import MICRO, Integers, Specification

ROUNDS, MANY = 4, 10_000  # rounds shown, and how many levels the budgets have there
PARTS = 10  # groups of a round
LEFT, FLOOR = f"{PEOPLE['US']:,} people, {WIDE}, k = {PARTS}", "12 people, k = 3, groups of at least 4"
WORTH = "a count's error"
CUTS: dict[str, Cuts] = {"privacy-aware": "privacy", "utility-based": "precision"}
BOUND = "bound of the theorem"


def rounds(effort: Effort) -> Iterator[list[Point]]:
    """Return what is left of the squared budgets after T rounds, beside the bound; and what later rounds are worth."""
    levels = np.unique(np.rint(np.linspace(0.01, 1, MANY) * MICRO).astype(np.int64))
    heads = np.full(levels.size, PEOPLE["US"] // levels.size)
    everybody = Specification(epsilons=tuple(levels.tolist()), people=tuple(heads.tolist()))
    belief = Belief(assume="independent")
    best = AUTO.tuned(COUNT, everybody).error.total / everybody.size
    for number in range(1, ROUNDS + 1):
        points = [_bound(number, everybody.size, PARTS, LEFT)]
        for curve, cuts in CUTS.items():
            made = partition(COUNT, everybody, belief, groups=PARTS, cuts=cuts, ensemble="homogeneous", rounds=number)
            paid = np.array([loss.micro_epsilon for loss in made.guarantee.losses.values()])
            points.append(Point(curve=curve, x=number, y=_left(levels, paid, heads), panel=LEFT, relation="value"))
            error = made.error.total / everybody.size
            points.append(Point(curve=curve, x=number, y=error, panel=WORTH, relation="value"))
        points.append(Point(x=number, y=best, panel=WORTH, **AUTO.legend))
        yield points + _floored(number)


def _left(levels: Integers, paid: Integers, heads: Integers) -> float:
    """Σ leftover² / Σ ε²."""
    return float(heads @ ((levels - paid) / MICRO) ** 2 / (heads @ (levels / MICRO) ** 2))


def _bound(number: int, people: int, groups: int, panel: str) -> Point:
    bound = (people / (people - 1 + groups**2)) ** number
    return Point(curve=BOUND, x=number, y=bound, panel=panel, by="reference")


def _floored(number: int) -> list[Point]:
    """Nine people at .01 and three at 1: no group of four can have only the latter."""
    few = Specification(epsilons=(10_000, MICRO), people=(9, 3))
    runs = plan(few, "partition", {"cuts": "privacy", "parts": 3, "smallest": 4})  # after it, three people are too few
    left = _left(few.micro, np.sum([run.charge for run in runs], axis=0), few.heads)
    return [
        _bound(number, 12, 3, FLOOR),
        Point(curve="privacy-aware", x=number, y=left, panel=FLOOR, relation="value"),
    ]


def _within(panel: str) -> Check:
    def check(points: Points) -> Result:
        left, bound = points.curve("privacy-aware", panel), points.curve(BOUND, panel)
        shown, bounds = ", ".join(f"{value:.2g}" for value in left), ", ".join(f"{value:.4g}" for value in bound)
        return Result(
            holds=all(value <= most for value, most in zip(left, bound, strict=True)),
            number=f"left after 1, 2, ... rounds: {shown}; bounds {bounds}; ratio {left[0] / bound[0]:.2f} after one",
        )

    return check


def _later_rounds(points: Points) -> Result:
    errors = points.curve("privacy-aware", WORTH)
    gain = 1 - min(errors) / errors[0]
    return Result(
        holds=gain >= NEAR,
        number=f"error {errors[0]:.3g} of n after one round, {min(errors):.3g} at best: {gain:.1%} less",
    )


FIGURES = (
    Figure(
        id="partitioning-rounds",
        title="Partitioning, T rounds: budget left over, and what later rounds are worth",
        compute=rounds,
        claims=(
            Claim(
                text="Σ leftover² ≤ (n/(n−1+k²))^T Σ ε²",
                check=_within(LEFT),
                rule="after every round",
                section="4.3",
                quote="which means the leftover privacy budget converges to 0 exponentially",
            ),
            Claim(
                text="the same bound holds with a minimum group size",
                check=_within(FLOOR),
                rule="after every round",
            ),
            Claim(
                text="further rounds make counts better by a tenth",
                check=_later_rounds,
                rule="the least error of any number of rounds is at least a tenth below that of one",
            ),
        ),
        axes=Axes(x="rounds T", y="Σ leftover² / Σ ε²|error / n|Σ leftover² / Σ ε²", log_y=True, columns=3),
        data=f"budgets spread evenly over the range, in {MANY:,} levels",
        runs=0,
        quick=0,
        steps=ROUNDS,
        seconds=10.0,
        note="The bound holds but is very loose: it depends on n, the leftovers do not.",
    ),
)
