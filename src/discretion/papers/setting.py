"""[JYC15] section V: its people and their preferences, and one parameter of them varied."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np

from discretion.engines.values import bits, numbers
from discretion.noise import Floats
from discretion.papers.figure import Effort, Point
from discretion.papers.trial import Contender, Trial, squared_error
from discretion.preference import Integers, Specification, allowance
from discretion.statistics import Aggregate

KEY = (
    "M: Minimum, everybody at the strictest ε · T: Threshold, only people who allow t · S: Sample with t = largest ε\n"
    "S-avg: Sample with t = mean ε · PE: the exponential mechanism of the paper · Alag.: stretching of [AGK16]"
)
GRID = 1_000  # values of the median data and candidates for its answer


@dataclass(frozen=True, kw_only=True)
class Setting:
    """[JYC15] Table I, with its defaults."""

    people: int = 1_000
    density: float = 0.15  # δ
    deviation: float = 200.0  # σ
    conservative: float = 0.54  # f_C, their share
    moderate: float = 0.37  # f_M
    strict: float = 0.01  # ε_C
    medium: float = 0.2  # ε_M
    liberal: float = 1.0  # ε_L

    def preferences(self, rng: Any) -> Floats:
        """One ε per person: three groups in random order, drawn as in section V, to the nearest hundredth."""
        ends = [round(self.people * self.conservative), round(self.people * (self.conservative + self.moderate))]
        epsilon = np.full(self.people, self.liberal)
        epsilon[: ends[0]] = rng.uniform(self.strict, self.medium, ends[0])
        epsilon[ends[0] : ends[1]] = rng.uniform(self.medium, self.liberal, ends[1] - ends[0])
        return np.asarray(rng.permutation(np.round(epsilon, 2)))

    def bits(self, rng: Any) -> Any:
        """δn ones in random places."""
        return rng.permutation(np.arange(self.people) < round(self.density * self.people))

    def values(self, rng: Any) -> Integers:
        """N(500, σ) rounded and forced into 1..1000."""
        return np.asarray(np.clip(np.rint(rng.normal(500, self.deviation, self.people)), 1, GRID), dtype=np.int64)

    def specification(self, rng: Any) -> tuple[Specification, Integers]:
        """The register and everybody's cohort. ε_C and ε_L are on offer even if nobody chose them."""
        offered = allowance([self.strict, self.liberal])
        chosen = allowance(self.preferences(rng))
        levels, cohort = np.unique(np.concatenate([offered, chosen]), return_inverse=True)
        people = np.bincount(cohort[2:], minlength=levels.size)
        return Specification(epsilons=tuple(levels.tolist()), people=tuple(people.tolist())), cohort[2:]


def count_trial(setting: Setting, rng: Any) -> Trial:
    """New people, new bits."""
    specification, cohort = setting.specification(rng)
    ones = setting.bits(rng)
    return Trial(specification=specification, cohort=cohort, column=bits(ones), truth=float(ones.sum()))


def median_trial(setting: Setting, rng: Any) -> Trial:
    """New people, new values; their number is odd."""
    specification, cohort = setting.specification(rng)
    values = setting.values(rng)
    return Trial(specification=specification, cohort=cohort, column=numbers(values), truth=float(np.median(values)))


def count_of(contender: Contender) -> Aggregate:
    """Return how many people have a one."""
    return Aggregate(kind="count", protects=contender.protects)


def median_of(contender: Contender) -> Aggregate:
    """The median among 1..1000; under value everybody is known to have one."""
    complete = contender.protects == "value"
    return Aggregate(
        kind="quantile", protects=contender.protects, lower=1, upper=GRID, rank=Fraction(1, 2), complete=complete
    )


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """Says what is asked, of which people, and who competes to answer it."""

    base: Setting
    trial: Callable[[Setting, Any], Trial]
    aggregate: Callable[[Contender], Aggregate]
    contenders: tuple[Contender, ...]


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """A parameter of the setting that a figure varies, and what the figure calls it."""

    name: str  # of the field of Setting
    values: list[float]
    title: str
    axis: str
    fixed: Mapping[str, Any] = field(default_factory=dict)  # others that differ from their defaults meanwhile

    def of(self, base: Setting, value: float) -> Setting:
        """The setting with this value."""
        return replace(base, **self.fixed, **{self.name: type(getattr(base, self.name))(value)})


CONSERVATIVE = Parameter(
    name="conservative",
    values=[0.1, 0.2, 0.3, 0.4, 0.5, 0.54, 0.6],
    title="the share of conservative people",
    axis="share of conservative people f_C",
)
STRICT = Parameter(
    name="strict",
    values=[0.01, 0.05, 0.08, 0.1, 0.2, 0.25, 0.3, 0.4, 0.5],
    title="the strictest preference (ε_M = .5)",
    axis="strictest preference ε_C",
    fixed={"medium": 0.5},  # so that ε_C may go up to .5
)
MEDIUM = Parameter(
    name="medium",
    values=[0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5],
    title="the medium preference",
    axis="medium preference ε_M",
)


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """One parameter varied, the others fixed; the RMSE of every contender at every value."""

    id: str
    question: Experiment
    parameter: Parameter
    panel: str = ""

    def __call__(self, effort: Effort) -> Iterator[list[Point]]:
        contenders = self.question.contenders
        for x in self.parameter.values:
            setting = self.parameter.of(self.question.base, x)
            squares: dict[str, list[float]] = {contender.curve: [] for contender in contenders}
            for run in range(effort.runs):
                rng = effort.generator(self.id, x, run)
                trial = self.question.trial(setting, rng)
                for contender in contenders:
                    mechanism = contender.tuned(self.question.aggregate(contender), trial.specification)
                    squares[contender.curve].append(squared_error(mechanism, trial, rng))
            yield [Point.root_mean(squares[c.curve], x=x, panel=self.panel, **c.legend) for c in contenders]
