"""[SDSM17] the maximum, the second maximum and medians of 0/1 lists; and what an observer can read off such answers."""

from collections.abc import Iterator
from fractions import Fraction
from math import exp

import numpy as np

from discretion.arrays import compute
from discretion.column import numbers
from discretion.mechanisms.effect import effect_of
from discretion.mechanisms.local import release_individual
from discretion.mechanisms.sensitivity import Ordered, log_smooth
from discretion.mechanisms.smooth import largest_alpha
from discretion.papers.claim import Check, compare
from discretion.papers.figure import Axes, Claim, Effort, Figure, Finding, Point, Points
from discretion.papers.idp import AUTO, automatic_error, mean_point
from discretion.papers.trial import Contender, Trial
from discretion.preference import Specification
from discretion.statistics import Aggregate

UPPER = [1.0, 2.0, 5.0, 10.0, 30.0, 100.0, 300.0, 1_000.0]
MAXIMUM, SECOND = "iDP, maximum", "iDP, second maximum"
SMOOTH_MAXIMUM, SMOOTH_SECOND = "DP, smooth, maximum", "DP, smooth, second maximum"


def examples(effort: Effort) -> Iterator[list[Point]]:
    """Noise for the maximum and the second maximum of U[0, 1] as the declared upper bound grows; ε = 1."""
    for upper in UPPER:
        found: dict[str, list[float]] = {}
        for run in range(effort.runs):
            data = effort.generator("idp-examples", run).random(100)
            bounds, ordered = (0.0, upper), Ordered.of(data, (0.0, upper))
            alpha = largest_alpha(3.0, 0.28, 1.0)
            sizes = {
                MAXIMUM: float(effect_of("max", data, bounds, "value").by_person.max()),
                SECOND: float(effect_of("second_max", data, bounds, "value").by_person.max()),
                SMOOTH_MAXIMUM: exp(log_smooth(ordered, 100, 0.28)) / alpha,
                SMOOTH_SECOND: exp(log_smooth(ordered, 99, 0.28)) / alpha,
                AUTO: automatic_error(data, bounds, 1.0, Fraction(1)),
            }
            for curve, size in sizes.items():
                found.setdefault(curve, []).append(size)
        yield [mean_point(curve, upper, errors, "") for curve, errors in found.items()]
    yield _binary()
    yield _attack(effort)


LISTS = {"12 zeros, 9 ones": (12, 9), "11 zeros, 10 ones": (11, 10), "9 zeros, 90 ones": (9, 90)}
BINARY = "local sensitivity of the median of 0/1 lists"
ATTACK = "secret bits guessed right, 101 people, total ε = .01"


def _binary() -> list[Point]:
    """Example 2 with m = 10, and 90 ones of 99."""
    points = []
    for name, (zeros, ones) in LISTS.items():
        data = np.repeat([0.0, 1.0], [zeros, ones])
        local = float(effect_of("median", data, (0.0, 1.0), "value").by_person.max())
        points.append(Point(curve="local sensitivity", x=name, y=local, panel=BINARY, by="reference"))
    return points


def _attack(effort: Effort) -> list[Point]:
    """Ask for the second maximum of (is this the target and is their bit 1), once for each of 101 people.

    The true answer is always 0. Under iDP it is exact unless the bit is 1: any other answer gives the bit away.
    """
    rng = effort.generator("idp-examples", "attack")
    secrets, right = rng.random(101) < 0.5, {SECOND: 0.0, AUTO: 0.0}
    specification, cohort = Specification.assign(np.full(101, 0.0001))
    contender = Contender(curve=AUTO, mechanism="auto", protects="value", by="auto")
    asked = Aggregate(kind="quantile", protects="value", rank=Fraction(100, 101), complete=True)
    for person, secret in enumerate(secrets):
        bits = np.zeros(101)
        bits[person] = secret
        seen = release_individual(
            bits,
            statistic="second_max",
            epsilon=np.full(101, 0.0001),
            bounds=(0, 1),
            model="individual",
            acknowledged=True,
            rng=rng,
        ).value
        right[SECOND] += (seen != 0) == secret
        trial = Trial(specification=specification, cohort=cohort, column=numbers(bits.astype(np.int64)), truth=0.0)
        private = contender.tuned(asked, trial)
        statistics = compute(private.measure, trial.column, trial.cohort, 1, rng)
        right[AUTO] += (private.release(statistics, rng)[0] != 0) == secret
    return [
        Point(curve=name, x="accuracy", y=float(count) / 101, panel=ATTACK, by="auto" if name == AUTO else "paper")
        for name, count in right.items()
    ]


def _grows(curve: str) -> Check:
    def check(points: Points) -> Finding:
        return compare(
            10 * points.y(curve, 1.0),
            points.y(curve, 1_000.0),
            "ten times its noise at 1 is {:.3g}, at 1,000 it is {:.3g}",
        )

    return check


def _stays(curve: str) -> Check:
    def check(points: Points) -> Finding:
        values = points.curve(curve)
        return Finding(holds=max(values) < 1.001 * min(values), number=f"{min(values):.4f} to {max(values):.4f}")

    return check


def _no_masking(points: Points) -> Finding:
    local = points.y("local sensitivity", "9 zeros, 90 ones", BINARY)
    return Finding(holds=local == 0, number=f"local sensitivity {local:g}: the exact answer")


def _sensitivities_differ(points: Points) -> Finding:
    first, second = (points.y("local sensitivity", name, BINARY) for name in list(LISTS)[:2])
    return Finding(holds=(first, second) == (0.0, 1.0), number=f"local sensitivities {first:g} and {second:g}")


def _still_private(points: Points) -> Finding:
    seen, private = points.y(SECOND, "accuracy", ATTACK), points.y(AUTO, "accuracy", ATTACK)
    return Finding(
        holds=seen < 0.6,
        number=f"{seen:.1%} of 101 secret bits read off answers at a total ε of .01; {private:.1%} under DP",
    )


FIGURES = (
    Figure(
        id="idp-examples",
        title="iDP examples: maximum, second maximum, medians of 0/1 lists",
        compute=examples,
        claims=(
            Claim(text="noise for the maximum depends on the domain under iDP", check=_grows(MAXIMUM)),
            Claim(text="noise for the second maximum does not", check=_stays(SECOND)),
            Claim(text="with smooth sensitivity the trick does not work", check=_grows(SMOOTH_SECOND)),
            Claim(
                text="Example 2: two neighbouring lists of median 0 have local sensitivity 0 and 1",
                check=_sensitivities_differ,
            ),
            Claim(text="with 90 ones of 99 iDP needs no masking", check=_no_masking),
            Claim(text="iDP preserves the strict guarantees that DP gives to individuals", check=_still_private),
        ),
        axes=Axes(x="declared upper bound||", y="mean absolute noise, or share", log_x=True, log_y=True, columns=3),
        data="100 values of U[0, 1]; 0/1 lists",
        runs=100,
        quick=10,
        steps=len(UPPER) + 2,
        seconds=60.0,
        note="Where local sensitivity is 0 the answer is exact, and that it is exact tells.",
    ),
)
