"""Belief: what the analyst assumes about the data. It moves accuracy, never privacy."""

from dataclasses import dataclass
from math import isfinite
from typing import Literal

from discretion.errors import InvalidDeclaration, did_you_mean

Assume = Literal["independent", "gradual"] | float | None


@dataclass(frozen=True, kw_only=True)
class Belief:
    """Says how preferences and values may be related, and where cohorts are expected to lie.

    assume  None: nothing is assumed, bias counts at its worst; "gradual": people of similar ε are alike, and how
            means depend on ε is estimated from the release (only `pooled` uses this, for the others it is None);
            "independent": preferences are unrelated to values; a number β from 0 to 1: cohort means differ by at
            most β of the range.
    expect  every cohort's fraction or mean lies between these two values.
    """

    assume: Assume = None
    expect: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        beta_is_fine = isinstance(self.assume, int | float) and 0 <= self.assume <= 1
        if not (self.assume in (None, "gradual", "independent") or beta_is_fine):
            raise InvalidDeclaration(
                f'assume must be None, "gradual", "independent" or a number from 0 to 1, got {self.assume!r}.'
                f"{did_you_mean(str(self.assume), ('gradual', 'independent'))}"
            )
        if self.expect is not None:
            try:
                low, high = (float(end) for end in self.expect)
            except (TypeError, ValueError):
                low, high = 1.0, 0.0
            if not (isfinite(low) and isfinite(high) and low <= high):
                raise InvalidDeclaration(f"expect must be two finite numbers in order, got {self.expect!r}.")
            object.__setattr__(self, "expect", (low, high))

    @property
    def beta(self) -> float | None:
        """Return how far cohort means may differ, as a part of the range; None: anything."""
        if self.assume in (None, "gradual"):
            return None
        return 0.0 if self.assume == "independent" else float(self.assume)

    def __str__(self) -> str:
        parts = []
        if self.assume == "independent":
            parts.append("choices are unrelated to values (wrong if they are related)")
        elif self.beta is not None:
            parts.append(f"cohort means within {self.beta:.0%} of the range of each other")
        if self.expect is not None:
            parts.append(f"every cohort between {self.expect[0]:g} and {self.expect[1]:g}")
        return "; ".join(parts)
