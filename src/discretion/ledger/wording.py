"""Wording: what a receipt says in plain words."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context
from math import exp, expm1, floor, log10
from typing import Any

from discretion.guarantee import PICO
from discretion.ledger.chance import BEFORE, BEFORE_IN_WORDS, chance
from discretion.ledger.offer import Cohort
from discretion.preference import MICRO
from discretion.render.sheet import Sheet, amount

LARGEST_EXPONENT = 700.0  # e^ε of more is larger than any double
SECRETS = {
    "presence": "whether you are in the data, and everything about you in it",
    "value": "your values (not that you are in the table)",
}


@dataclass(frozen=True, kw_only=True)
class Standing:
    """Holds what a summary is about."""

    cohort: Cohort
    stated: float  # what the person chose last
    since: str  # the day of that choice
    releases: int
    individual: int  # answers that were not differentially private
    names: Mapping[int, str]  # of levels, by micro-ε


def summary(standing: Standing) -> str:
    """Return in a few sentences what became of a person's choice."""
    cohort, since = standing.cohort, standing.since
    spent = f"ε = {amount(cohort.micro_spent / MICRO)}"
    before = f"{_answers(standing.releases)} That spent {spent}, and what is spent stays spent."
    before = before if standing.releases else _answers(0)
    if cohort.absent:
        told = f"Since {since} you are no longer in the register's source, so nothing uses your data. {before}"
    elif cohort.micro_allowance == 0 and standing.stated:
        told = (
            f"You chose ε = {amount(standing.stated)} on {since}. That is below the smallest level on offer, so it was "
            f"rounded down to 0 and your data are not used. {before}"
        )
    elif cohort.micro_allowance == 0:
        told = f"You chose that your data are not used. Nothing has used them since {since}. {before}"
    elif cohort.micro_spent > cohort.micro_allowance:
        now = level(cohort.micro_allowance, standing.names)
        told = (
            f"Since {since} you allow {now}. Before that you allowed more, and {spent} was spent then. That is more "
            f"than you allow now, so nothing uses your data any more. {_answers(standing.releases)}"
        )
    elif cohort.remaining() == 0:
        told = "Everything that you allowed is spent. Your data are left out of every further answer. "
        told += _answers(standing.releases)
    else:
        told = _open(standing)
    if standing.individual:
        were = "1 answer that was" if standing.individual == 1 else f"{standing.individual:,} answers that were"
        told += f" Not counted: {were} NOT differentially private."
    return told


def level(micro_epsilon: int, names: Mapping[int, str]) -> str:
    """Return a level as it was offered: with its name if it has one."""
    epsilon = f"ε = {amount(micro_epsilon / MICRO)}"
    return f"{names[micro_epsilon]!r} ({epsilon})" if micro_epsilon in names else epsilon


def chances_sheet(allowed: float, spent: float) -> Sheet:
    """Return what anybody can come to believe at most, because of answers so far and of all that are allowed."""
    rows = tuple(
        (
            BEFORE_IN_WORDS[before],
            str(chance(before, spent)),
            str(chance(before, max(allowed, spent))),
            str(chance(before, 2 * max(allowed, spent))),
        )
        for before in BEFORE
    )
    return Sheet(
        title="What anybody can come to believe about you, at most",
        columns=(
            "if they thought",
            "answers so far",
            "everything you allow",
            "your values, if sure that you are in it",
        ),
        rows=rows,
        notes=(
            "Where it is public that you are in the data, read the first columns for anything it says about you. Where "
            "that is secret, read them for whether you are in it, and the last column for what it says about you.",
        ),
    )


def _open(standing: Standing) -> str:
    cohort = standing.cohort
    epsilon = cohort.micro_allowance / MICRO
    doubt = f" Beyond that, δ = {cohort.pico_delta / PICO:g} is spent." if cohort.pico_delta else ""
    allowed, odds = level(cohort.micro_allowance, standing.names), (factor(epsilon), factor(2 * epsilon))
    return (
        f"You allow {allowed}. {_answers(standing.releases)} Suppose that somebody gives something secret about you a "
        f"chance of 1 in 10. After all answers that you allow, they can give it at most {chance(0.1, epsilon)}. (Their "
        f"odds change by a factor of at most {odds[0]}. Where it is secret that you are in the data, and they are "
        f"certain of it, the factor for your values is at most {odds[1]}.){doubt}"
    )


def _answers(releases: int) -> str:
    if not releases:
        return "No answer so far could have used your data."
    if releases == 1:
        return "One answer so far could have used your data."
    return f"{releases:,} answers so far could have used your data."


def in_plain_words(guarantee: dict[str, Any], epsilon: float, delta: float) -> str:
    """Return what a release promised one person, without mathematics."""
    hidden = guarantee["protects"] == "presence"
    also = guarantee.get("also", "")
    secret = SECRETS[guarantee["protects"]] + (f", {also}" if also else "")
    if guarantee["model"] == "individual":
        return (
            f"This release was NOT differentially private (model `individual`, ε = {amount(epsilon)}). It hides "
            f"{secret} only from somebody who asks nothing else; several such answers together can reveal it."
        )
    about = "that you are in it" if hidden else "about them"
    # Another value is leaving and coming back: two steps, (ε, δ) each.
    twice = f" and about your values, for somebody certain that you are in it, by {factor(2 * epsilon)}"
    more = delta * (1 + exp(min(epsilon, LARGEST_EXPONENT))) if hidden else delta
    doubt = f"; beyond that, any chance may differ by at most {_upwards(min(more, 1), 4)} (δ)" if delta else ""
    caution = " (computed with rounded arithmetic)" if guarantee["arithmetic"] == "float" else ""
    return (
        f"The answer protects {secret}: it moved anybody's odds {about} by a factor of at most {factor(epsilon)} "
        f"(ε = {amount(epsilon)}){twice if hidden else ''}{doubt}{caution}."
    )


def factor(epsilon: float) -> str:
    """e^ε, as odds are told: four digits, or two of how far it is above 1, so that some is never told as none."""
    if not 0 < epsilon < LARGEST_EXPONENT:
        return f"e^{amount(epsilon)}" if epsilon else "1"
    return _upwards(exp(epsilon), max(4, 2 - floor(log10(expm1(epsilon)))))


def _upwards(most: float, digits: int) -> str:
    """Round an upper bound up to a few significant digits."""
    return f"{float(Context(prec=digits, rounding=ROUND_CEILING).create_decimal_from_float(most)):,.{digits}g}"
