"""Offer: cohorts, a share and a number of parts become what each cohort may spend on each part of one question."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from discretion.errors import BudgetExhausted, InvalidDeclaration
from discretion.guarantee import Model
from discretion.preference import MICRO, Specification


@dataclass(frozen=True, kw_only=True)
class Cohort:
    """People of one register with the same allowance and the same amount spent. Public, unlike its members."""

    id: int
    micro_allowance: int
    micro_spent: int
    people: int
    pico_delta: int = 0  # δ spent
    micro_individual: int = 0  # spent under model `individual`: another account, never mixed with ε
    enrolled: bool = False  # where everybody enrolled with this preference belongs who did not change it since
    absent: bool = False  # no longer in the source: set aside, neither asked nor charged

    def spent(self, model: Model = "personalized") -> int:
        """Return what is spent of the account that `model` draws on."""
        return self.micro_individual if model == "individual" else self.micro_spent

    def remaining(self, model: Model = "personalized") -> int:
        """Return what is left of the allowance; nothing for somebody who lowered it below what is spent."""
        return max(0, self.micro_allowance - self.spent(model))


@dataclass(frozen=True, kw_only=True)
class Offer:
    """Says what each cohort may spend on each of the `parts` of one question, and when that was so."""

    register: str
    share: Fraction  # of each person's allowance, for the whole question
    parts: int
    partial: bool
    model: Model
    cohorts: tuple[Cohort, ...]
    members: int  # the last entry that moved anybody between cohorts: pass it to `Ledger.changes`
    fingerprint: str  # of the register's source, as it was then

    @cached_property
    def available(self) -> Mapping[int, int]:
        """Cohort id -> micro-ε for each part."""
        return available(self.cohorts, share=self.share, parts=self.parts, partial=self.partial, model=self.model)

    @property
    def largest_share(self) -> Fraction:
        """Return the largest share that can be asked for: everybody who is not exhausted can still pay it."""
        left = [(cohort.remaining(self.model), cohort.micro_allowance) for cohort in self.cohorts]
        return Fraction(1) if self.partial else min((Fraction(*one) for one in left if one[0]), default=Fraction(1))

    @cached_property
    def specification(self) -> Specification:
        """Return what the planner sees; cohorts that may spend the same are one."""
        return Specification.of((self.available[cohort.id], cohort.people) for cohort in self.cohorts)

    @cached_property
    def position(self) -> Mapping[int, int]:
        """Cohort id -> its place in `specification`: for people found in `Ledger.changes`."""
        places = {epsilon: place for place, epsilon in enumerate(self.specification.epsilons)}
        return {cohort.id: places[self.available[cohort.id]] for cohort in self.cohorts}

    @cached_property
    def enrolled_position(self) -> Mapping[int, int]:
        """Micro-ε as enrolled -> place in `specification`: for people not found in `Ledger.changes`."""
        return {cohort.micro_allowance: self.position[cohort.id] for cohort in self.cohorts if cohort.enrolled}


def exact(share: float | Fraction) -> Fraction:
    """The share as it was written: 0.1 is one tenth, not the double next to it."""
    try:
        fraction = share if isinstance(share, Fraction) else Fraction(str(share))
    except (ValueError, ZeroDivisionError):
        fraction = Fraction(0)  # NaN, or not a number
    if not 0 < fraction <= 1:
        raise InvalidDeclaration(
            f"share must be above 0 and at most 1 (0.1 is a tenth of each allowance), got {share!r}."
        )
    return fraction


def available(
    cohorts: Iterable[Cohort], *, share: Fraction, parts: int, partial: bool, model: Model = "personalized"
) -> dict[int, int]:
    """Cohort id -> micro-ε for each part; refused unless everybody not exhausted can pay (or may pay partially)."""
    if parts < 1:
        raise InvalidDeclaration(f"A question has at least one part, got {parts}.")
    offered, short = {}, []
    for cohort in cohorts:
        asked = cohort.micro_allowance * share.numerator // share.denominator
        left = cohort.remaining(model)
        if 0 < left < asked and not partial:
            short.append(cohort)
        offered[cohort.id] = min(asked, left) // parts
    if short:
        raise BudgetExhausted(_refusal(short, share, model))
    if not any(offered.values()):
        raise BudgetExhausted(
            "Nobody can pay for this question: everybody has spent their allowance, chose 0 (never use my data), "
            f"or has too little to pay the {parts} parts of this question at share = {float(share):g}. See `balance`."
        )
    return offered


def _refusal(short: list[Cohort], share: Fraction, model: Model) -> str:
    fits = min(Fraction(cohort.remaining(model), cohort.micro_allowance) for cohort in short)
    levels: dict[int, int] = {}  # preference -> least remaining
    for cohort in short:
        level = cohort.micro_allowance
        levels[level] = min(levels.get(level, level), cohort.remaining(model))
    lines = [
        f"  ε = {level / MICRO:g}: requested {int(share * level) / MICRO:g}, remaining {left / MICRO:g}, "
        f"difference {(int(share * level) - left) / MICRO:g}"
        for level, left in sorted(levels.items())[:10]
    ]
    more = [f"  ... and {len(levels) - 10} more levels"] if len(levels) > 10 else []
    return "\n".join(
        [
            f"Cannot answer with share = {float(share):g}: not everybody can still pay that part of their allowance.",
            *lines,
            *more,
            f"{_advice(fits)} let each pay what they have left (`partial`, less accurate), or ask the data owner.",
        ]
    )


def _advice(fits: Fraction) -> str:
    micro_share = int(fits * MICRO)  # rounded down, so that it does fit
    if micro_share == 0:
        return "No useful share would fit;"
    return f"A share of at most {micro_share / MICRO:.6f}".rstrip("0") + " would still fit; or"
