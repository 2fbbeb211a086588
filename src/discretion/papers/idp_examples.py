"""[SDSM17] the maximum, the second maximum and medians of 0/1 lists; and what an observer can read off such answers."""

from collections.abc import Iterator
from fractions import Fraction
from math import exp

import numpy as np

from discretion.mechanisms.effect import effect_of
from discretion.mechanisms.sensitivity import Ordered, log_smooth
from discretion.mechanisms.smooth import SHARE, largest_alpha
from discretion.noise import Floats
from discretion.papers.attack import attack_idp
from discretion.papers.claim import Check, compare
from discretion.papers.figure import INDIVIDUAL, Axes, Claim, Effort, Figure, Point, Points, Result
from discretion.papers.idp import AUTO, GAMMA, automatic_error, legend

UPPER = [1.0, 2.0, 5.0, 10.0, 30.0, 100.0, 300.0, 1_000.0]
MAXIMUM, SECOND = "iDP, maximum", "iDP, second maximum"
SMOOTH_MAXIMUM, SMOOTH_SECOND = "DP, smooth, maximum", "DP, smooth, second maximum"
PEOPLE = 100
LISTS = {"0×12, 1×9": (12, 9), "0×11, 1×10": (11, 10), "0×9, 1×90": (9, 90)}  # zeros and ones
LOCAL = "local sensitivity"
TOTAL = 0.01  # ε of all the answers that an observer sees together
NOISE = f"maximum of {PEOPLE} values of U[0, 1]"
BINARY = "median of 0/1 lists"
ATTACK = "secrets guessed right, total ε = .01"
OBSERVED = "individual, Laplace"


def examples(effort: Effort) -> Iterator[list[Point]]:
    """Noise for the maximum and the second maximum of U[0, 1] as the declared upper bound grows; ε = 1."""
    for upper in UPPER:
        found: dict[str, list[float]] = {}
        for run in range(effort.runs):
            for curve, size in _sizes(effort.generator("idp-examples", run).random(PEOPLE), (0.0, upper)).items():
                found.setdefault(curve, []).append(size)
        yield [Point.mean(sizes, x=upper, panel=NOISE, **legend(curve)) for curve, sizes in found.items()]
    yield _binary()
    yield _attack(effort)


def _sizes(data: Floats, bounds: tuple[float, float]) -> dict[str, float]:
    """The mean size of every mechanism's noise, or of the error of what the planner picks."""
    ordered, beta = Ordered.of(data, bounds), SHARE[GAMMA]
    alpha = largest_alpha(GAMMA, beta, 1.0)
    return {
        MAXIMUM: float(effect_of("max", data, bounds, "value").by_person.max()),
        SECOND: float(effect_of("second_max", data, bounds, "value").by_person.max()),
        SMOOTH_MAXIMUM: exp(log_smooth(ordered, len(data), beta)) / alpha,
        SMOOTH_SECOND: exp(log_smooth(ordered, len(data) - 1, beta)) / alpha,
        AUTO: automatic_error(data, bounds, 1.0, Fraction(1)),
    }


def _binary() -> list[Point]:
    """Example 2 with m = 10, and 90 ones of 99."""
    points = []
    for name, (zeros, ones) in LISTS.items():
        data = np.repeat([0.0, 1.0], [zeros, ones])
        local = float(effect_of("median", data, (0.0, 1.0), "value").by_person.max())
        points.append(Point(curve=LOCAL, x=name, y=local, panel=BINARY, by="reference"))
    return points


def _attack(effort: Effort) -> list[Point]:
    """Return what an observer reads off answers at a small total ε, by the library's attacks."""
    return [
        Point(
            curve=row.against,
            x=row.attack,
            y=row.recovered,
            panel=ATTACK,
            by="auto" if row.is_private else "paper",
            relation="value" if row.is_private else INDIVIDUAL,
        )
        for row in attack_idp(epsilon=TOTAL, seed=effort.seed)
        if row.attack == "second maximum"
    ]


def _grows(curve: str) -> Check:
    def check(points: Points) -> Result:
        return compare(
            10 * points.y(curve, 1.0, NOISE),
            points.y(curve, 1_000.0, NOISE),
            "ten times its noise at 1 is {:.3g}, at 1,000 it is {:.3g}",
        )

    return check


def _stays(curve: str) -> Check:
    def check(points: Points) -> Result:
        values = points.curve(curve, NOISE)
        return Result(holds=max(values) < 1.001 * min(values), number=f"{min(values):.4f} to {max(values):.4f}")

    return check


def _no_masking(points: Points) -> Result:
    local = points.y(LOCAL, "0×9, 1×90", BINARY)
    return Result(holds=local == 0, number=f"local sensitivity {local:g}: the exact answer")


def _sensitivities_differ(points: Points) -> Result:
    first, second = (points.y(LOCAL, name, BINARY) for name in list(LISTS)[:2])
    return Result(holds=(first, second) == (0.0, 1.0), number=f"local sensitivities {first:g} and {second:g}")


def _still_private(points: Points) -> Result:
    found = {p.curve: p for p in points.rows if p.panel == ATTACK}
    seen, private = found[OBSERVED].y, max(p.y for p in found.values() if p.relation != INDIVIDUAL)
    return Result(
        holds=seen < 0.6,
        number=f"{seen:.1%} of 101 secret bits read off answers at a total ε of .01; at most {private:.1%} "
        "by DP mechanisms",
    )


FIGURES = (
    Figure(
        id="idp-examples",
        title="iDP examples: maximum, second maximum, medians of 0/1 lists",
        compute=examples,
        claims=(
            Claim(
                text="noise for the maximum depends on the domain under iDP",
                check=_grows(MAXIMUM),
                rule="with an upper bound of 1,000 it is more than ten times that with 1",
                section="VI-B3",
                quote="the local sensitivity still depends on the domain of the attribute",
            ),
            Claim(
                text="noise for the second maximum does not",
                check=_stays(SECOND),
                rule="it is the same for every upper bound",
                section="VI-B3",
                quote="the local sensitivity does not depend on the domain anymore",
            ),
            Claim(
                text="with smooth sensitivity the trick does not work",
                check=_grows(SMOOTH_SECOND),
                rule="with an upper bound of 1,000 the noise is more than ten times that with 1",
                section="VI-B3",
                quote="is not possible with calibration to the smooth sensitivity",
            ),
            Claim(
                text="Example 2: two neighbouring lists of median 0 have local sensitivity 0 and 1",
                check=_sensitivities_differ,
                rule="exactly 0 and 1",
                section="II-B",
                quote="In both cases the median is 0, but the local sensitivity differs; it is 0 in the first case and "
                "1 in the second one",
            ),
            Claim(
                text="with 90 ones of 99 iDP needs no masking",
                check=_no_masking,
                rule="the local sensitivity is 0",
                section="IV-B",
                quote="iDP does not require any masking for the answer to the median query",
            ),
            Claim(
                text="iDP preserves the strict guarantees that DP gives to individuals",
                check=_still_private,
                rule="an observer reads off fewer than 60% of secret bits, where guessing finds half",
                section="IV-B",
                quote="individual differential privacy preserves the strict privacy guarantees that DP gives to "
                "individuals",
            ),
        ),
        axes=Axes(
            x="declared upper bound|list|attack",
            y="mean absolute noise at ε = 1|local sensitivity|share of 101 secret bits",
            log_x=True,
            log_y=True,
            columns=3,
        ),
        data=f"{PEOPLE} values of U[0, 1]; 0/1 lists",
        runs=100,
        quick=10,
        steps=len(UPPER) + 2,
        seconds=60.0,
        note="Where local sensitivity is 0 the answer is exact, and that it is exact tells.",
    ),
)
