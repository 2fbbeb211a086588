"""Plot: how accurate the mechanisms are on invented data, measured and drawn (needs Matplotlib)."""

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from discretion.engines.arrays import ArrayColumn, ArrayRows, compute
from discretion.engines.values import bits, numbers
from discretion.mechanisms import Belief
from discretion.noise import Floats, simulation
from discretion.plan import choose
from discretion.preference import Specification
from discretion.statistics import Aggregate

SHARES = (0.01, 0.03, 0.1, 0.3)
REPETITIONS = 20
LINES = {  # mechanism -> what to call it, colour, mark
    "minimum": ("minimum: everybody as the strictest", "#888888", "s"),
    "threshold": ("threshold", "#d08a3c", "^"),
    "sample": ("sample", "#5b9a68", "v"),
    "auto": ("auto: chosen by discretion", "#2b6cb0", "o"),
}
COUNT = Aggregate(kind="count", protects="value")
MEDIAN = Aggregate(
    kind="quantile", protects="value", rank=Fraction(1, 2), upper=1_000, origin=Fraction(90), step=Fraction(1, 10)
)


def draw_accuracy(path: Path, *, smoker: Any, pressure: Any, epsilon: Floats) -> None:
    """Write a picture of the measured error of a count and a median over the share that a question may use."""
    from matplotlib import pyplot, ticker  # an extra: only this picture needs it

    ordered, smokers = np.sort(pressure), float(np.sum(smoker))

    def rank(answer: Floats) -> Floats:  # of the middle of those who share it
        return np.add(*(np.searchsorted(ordered, answer, side) for side in ("left", "right"))) / (2 * ordered.size)

    panels: tuple[tuple[str, Aggregate, ArrayColumn, Callable[[Floats], Floats]], ...] = (
        ("How many smoke? (people)", COUNT, bits(smoker), lambda answer: answer - smokers),
        ("Median blood pressure (% of ranks)", MEDIAN, numbers(pressure), lambda answer: 100 * (rank(answer) - 0.5)),
    )
    figure, axes = pyplot.subplots(1, 2, figsize=(11, 4.6), layout="constrained")
    for axis, (title, aggregate, column, off) in zip(axes, panels, strict=True):
        for mechanism, (label, colour, mark) in LINES.items():
            answers = [_answers(mechanism, aggregate, column, epsilon * share) for share in SHARES]
            errors = [float(np.sqrt(np.mean(off(answer) ** 2))) for answer in answers]
            axis.plot(SHARES, errors, label=label, color=colour, marker=mark, linewidth=2)
        axis.set(title=title, xscale="log", yscale="log", xlabel="share of each person's allowance")
        axis.set_xticks(SHARES, [f"{share:.0%}" for share in SHARES])
        axis.yaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
        axis.yaxis.set_major_formatter(ticker.StrMethodFormatter("{x:,.10g}"))
        axis.minorticks_off()
        axis.grid(alpha=0.3)
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("root mean squared error, measured")
    axes[0].legend(frameon=False)
    people = f"{len(epsilon):,} people, preferences assumed unrelated to values, {REPETITIONS} runs each"
    figure.suptitle(f"One promise to everybody, kept by different mechanisms ({people})", fontsize=11)
    figure.savefig(path, dpi=150)
    pyplot.close(figure)


def _answers(mechanism: str, aggregate: Aggregate, column: ArrayColumn, epsilon: Floats) -> Floats:
    """Return what `mechanism` answers, over and over: planned once, drawn many times."""
    specification, cohort = Specification.assign(epsilon)
    rows = ArrayRows(column=column, cohort=cohort, cohorts=len(specification.epsilons))
    plan = choose([aggregate], specification, Belief(assume="independent"), mechanism=mechanism, source=rows)
    chosen, answers = plan.choices[0].mechanism, []
    statistics = None
    for seed in range(REPETITIONS):
        rng = simulation(seed)
        if statistics is None or chosen.measure.inclusion is not None:  # coins are tossed anew
            (statistics,) = compute(plan.request, rng)
        answers.append(chosen.release(statistics, rng)[0])
    return np.array(answers)
