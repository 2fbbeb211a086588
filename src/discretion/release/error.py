"""Deviation: how far an answer may be from the truth it speaks about."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import asinh, ceil, exp, hypot, inf, isfinite, log, log1p, sqrt
from statistics import NormalDist
from typing import Any, Literal

from discretion.errors import InvalidDeclaration
from discretion.release.relation import Relation

WIDE = 0.1  # an error beyond this part of the answer calls for a comparison of assumptions


@dataclass(frozen=True, kw_only=True)
class Error:
    """Says how far an answer may be from the truth it speaks about, from public information only."""

    bias: float  # the worst it can be off on average (under the assumption, if there is one)
    noise: float  # standard deviation of everything random
    grain: float = 0.0  # all of it is discrete Laplace noise, a whole number of these; 0: finer, or not all of it
    unit: Literal["value", "rank"] = "value"  # ranks: a share of the people
    assumption: str = ""  # what was believed about the data; accuracy rests on it, privacy does not
    limits: tuple[float, float] | None = None  # where answers can lie at all
    asked: float | None = None  # in ranks: the one asked for, which the interval is around
    pull: float = 0.0  # how much further bad data may draw a choice among many: in the interval, not in `total`
    step: float = 0.0  # in ranks: values were rounded to steps of this size, and ranks are those of the rounded values
    rows: float | None = None  # in ranks: if fewer rows than these are asked about, the error is a share of these
    bought: bool = False  # the interval was released beside the value: its ends are the limits
    quantiles: tuple[tuple[float, float, float], ...] = ()  # (tail, low, high) of the truth minus the value, if known
    relation: Relation | None = None  # how choices and values were found to be related, where that was estimated
    shortfall: bool = False  # in ranks, of a mode: how many fewer people may have it than the most frequent value
    simulated: bool = False  # found by draws from the known noise
    assumable: bool = True  # an assumption about the data could make it smaller
    expected: float | None = None  # root mean squared error for values that vary as usual, where `noise` has the worst

    @property
    def total(self) -> float:
        """Root mean squared error."""
        return hypot(self.bias, self.noise)

    @property
    def ranked(self) -> float:
        """Return what mechanisms are compared by."""
        return self.total if self.expected is None else self.expected

    def half_width(self, confidence: float = 0.95) -> float:
        """Return how far the truth may be: noise is taken as Laplace or normal, the one that strays further.

        A bias that is at worst `bias`, on one side, needs a tail of the noise on that side only. Choices among ranks
        stray to one side, so theirs is added to the whole width of the noise. Noise of coarse grains is further away
        than its deviation says, by less than half a grain.
        """
        if not 0 < confidence < 1:
            raise InvalidDeclaration(f"A confidence must be between 0 and 1 (0.95 is 95%), got {confidence!r}.")
        missed = 1 - confidence
        if self.quantiles:
            return max(map(abs, self._ends(missed / 2)))
        if self.unit == "rank" or not (self.bias and self.noise) or not isfinite(self.bias + self.noise):
            half = self.bias + self.noise * _deviations(missed)
            return self.pull + (max(half, self._grains(missed)) if self.grain and not self.bias else half)
        noise = max(self.noise, sqrt(2) * self.grain / self._decay) if self.grain else self.noise
        return self.pull + noise * _with_bias(self.bias / noise, missed) + self.grain / 2

    @property
    def width(self) -> float:
        """Return how wide the 95% interval is before limits cut it: one side may be longer than the other."""
        if not self.quantiles:
            return 2 * self.half_width()
        low, high = self._ends(0.025)
        return high - low

    @property
    def _decay(self) -> float:
        """Return grain/b, b the scale of discrete Laplace noise, whose variance is ½/sinh²(grain/2b) grains²."""
        return 2 * asinh(self.grain / (sqrt(2) * self.noise))

    def _grains(self, missed: float) -> float:
        """Return m grains, a little more for rounding: P(|N| > m) = 2q^(m + 1)/(1 + q) is at most `missed`.

        q is e^(−grain/b); m is 0 where the noise is nearly always 0.
        """
        steps = (log(2 / missed) - log1p(exp(-self._decay))) / self._decay
        return self.grain * max(ceil(steps) - 1, 0) * (1 + 1e-6)

    def interval(self, value: float, confidence: float = 0.95) -> tuple[float, float]:
        """Return where the truth lies with this confidence; in ranks, which ranks the answer may have.

        If noise took the value outside its limits, the interval is that of the limit: cut there instead, an answer far
        outside would have an interval of no width, as if it were exact.
        """
        low, high = self.limits if self.limits is not None else (-inf, inf)
        half, value = self.half_width(confidence), value if self.asked is None else self.asked
        value = max(low, min(value, high))
        if self.quantiles:
            below, above = self._ends((1 - confidence) / 2)
            return float(max(low, min(value + below, high))), float(min(high, max(value + above, low)))
        return float(max(low, min(value - half, high))), float(min(high, max(value + half, low)))

    def _ends(self, tail: float) -> tuple[float, float]:
        """The quantiles at both tails: between stored ones by the logarithm of the tail, beyond them by its slope."""
        stored = sorted(self.quantiles, reverse=True)
        place = next((n for n in range(1, len(stored)) if stored[n][0] <= tail), len(stored) - 1)
        first, second = stored[place - 1], stored[place]
        part = log(first[0] / tail) / log(first[0] / second[0])
        low, high = (a + part * (b - a) for a, b in zip(first[1:], second[1:], strict=True))
        return low, high

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> "Error":
        """Restore what `dataclasses.asdict` made plain."""
        restored: dict[str, Any] = {
            "limits": plain["limits"] and tuple(plain["limits"]),
            "quantiles": tuple(map(tuple, plain.get("quantiles", ()))),
            "relation": plain.get("relation") and Relation.from_dict(plain["relation"]),
        }
        return cls(**{**plain, **restored})

    def says_nothing(self, value: float) -> bool:
        """Return whether the interval is all that is possible."""
        return self.interval(value) == self.limits and not self.bought

    def is_wide(self, value: Any) -> bool:
        """Tell whether the 95% error is more than a tenth of the value, or of the ranks."""
        size = 1.0 if self.unit == "rank" else abs(value) if isinstance(value, int | float) else 0.0
        return self.half_width() > WIDE * size

    def reach(self, value: float) -> float:
        """Return how far the truth may be from the value, at 95%, within what is possible; ranks are no values."""
        if self.unit == "rank" or self.bought:
            return 0.0
        low, high = self.interval(value)
        return max(value - low, high - value)

    def fits(self, value: float) -> bool:
        """Tell whether ± says the 95% error well: all within it is possible, and one side is not twice the other."""
        low, high = self.limits if self.limits is not None else (-inf, inf)
        half = self.half_width()
        sides = [abs(end) for end in self._ends(0.025)] if self.quantiles else [half]
        return low <= value - half and value + half <= high and 2 * min(sides) >= half

    def is_outside(self, value: float) -> bool:
        """Return whether noise took the value where the truth cannot be; ranks are no values."""
        return self.limits is not None and self.asked is None and not self.limits[0] <= value <= self.limits[1]


def _deviations(missed: float) -> float:
    """Return the larger of the two-sided quantiles of Laplace and normal noise, in standard deviations."""
    return max(log(1 / missed) / sqrt(2), -NormalDist().inv_cdf(missed / 2))


def _with_bias(bias: float, missed: float) -> float:
    """Return t with P(|bias + noise| > t) = missed for Laplace or normal noise of deviation 1, the larger.

    For Laplace noise of scale s and t ≥ bias this probability is e^(−t/s)·cosh(bias/s).
    """
    if missed >= 0.5:
        return bias + _deviations(missed)
    times, normal = bias * sqrt(2), NormalDist()
    laplace = (log(1 / missed) + times + log1p(exp(-2 * times)) - log(2)) / sqrt(2)
    low, high = bias - normal.inv_cdf(missed), bias - normal.inv_cdf(missed / 2)
    for _ in range(30):
        middle = (low + high) / 2
        outside = normal.cdf(bias - middle) + normal.cdf(-bias - middle)
        low, high = (middle, high) if outside > missed else (low, middle)
    return max(laplace, high)
