"""Within: the smallest share whose predicted error is small enough, from public information only."""

from collections.abc import Callable
from contextlib import suppress
from fractions import Fraction
from math import inf, isfinite

from discretion.errors import BudgetExhausted, InvalidDeclaration, QueryRefused, Unsuitable
from discretion.plan import Plan
from discretion.plan.choice import Choice
from discretion.render.number import upwards

CONFIDENCE = 0.95  # of the error that answers are shown with
SHARES = tuple(  # of three digits, from a millionth to 1
    Fraction(digits, 10**place) for place in range(6, 2, -1) for digits in range(1 if place == 6 else 101, 1001)
)


def smallest_share(within: float, share: Fraction, most: Fraction, at: Callable[[Fraction], Plan]) -> Fraction:
    """Return the smallest share, of three digits, whose 95% errors are all at most `within`.

    It is at most `share`, which the analyst allows, and at most `most`, which the steward and the balances allow. If
    that is not enough, the refusal says what is possible. `at` plans with a share; it sees no data.
    """
    if not (isinstance(within, int | float) and not isinstance(within, bool) and isfinite(within) and within > 0):
        raise InvalidDeclaration(f"within must be a number above 0, got {within!r}.")
    error = _Errors(at, within)
    usable = [one for one in SHARES if one <= most] or [SHARES[0]]
    allowed = sum(one <= share for one in usable)
    if allowed and error.of(usable[allowed - 1]) <= within:
        return usable[_first(usable[:allowed], error, within)]
    best = error.of(usable[-1])
    if best <= within:
        needed = usable[_first(usable, error, within)]
        raise QueryRefused(
            f"An error of at most {within:g} needs a share of {float(needed):g}, and share = {float(share):g} is the "
            f"most that this question may use. Ask with share={float(needed):g}, or for a larger error."
        )
    plan = at(usable[-1])  # refuses where nothing can be planned at all
    instead = "or for fewer columns or groups"
    if any(choice.mechanism.error.assumable for choice in plan.choices):
        instead = "for fewer columns or groups, or with an assumption you can defend"
    raise QueryRefused(
        f"An error of at most {within:g} is not possible: with the largest share that everybody can still pay and the "
        f"steward allows, {float(usable[-1]):g}, the error is {upwards(best, 4):.12g}. Ask for a larger error, "
        f"{instead}."
    )


class _Errors:
    """The largest predicted 95% error of a plan, by its share."""

    def __init__(self, at: Callable[[Fraction], Plan], within: float) -> None:
        self._at, self._within = at, within

    def of(self, share: Fraction) -> float:
        with suppress(BudgetExhausted, Unsuitable):  # so small a share that nothing can be paid with it
            plan = self._at(share)
            errors = [choice.mechanism.error for choice in plan.choices]
            if len({error.unit for error in errors}) > 1:
                raise QueryRefused(
                    "The errors of medians are shares of the ranks, those of the others are in units of the values: "
                    "`within` cannot mean both. Ask them one by one."
                )
            for choice in plan.choices:
                _refuse_all_ranks(choice, self._within)
            return max(error.half_width(CONFIDENCE) for error in errors)
        return inf


def _refuse_all_ranks(choice: Choice, within: float) -> None:
    """Refuse an error in ranks that every answer has: it would buy nothing."""
    error = choice.mechanism.error
    most = max(error.asked or 0.0, 1 - (error.asked or 0.0))
    if error.unit == "rank" and within >= most:
        raise QueryRefused(f"within for {choice.label} is a share of ranks between 0 and {most:g}, got {within:g}.")


def _first(shares: list[Fraction], error: _Errors, within: float) -> int:
    """Return the place of the first share that is enough, by bisection; the last one is."""
    low, high = 0, len(shares) - 1
    while low < high:
        middle = (low + high) // 2
        if error.of(shares[middle]) <= within:
            high = middle
        else:
            low = middle + 1
    return high
