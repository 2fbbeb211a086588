"""Receipt: what one person was promised and what was spent of it, from register and entries alone.

Nothing here looks at the data, so the receipt of somebody who is in the data and of somebody who is not are the same:
it lists what could have used their data.
"""

from dataclasses import dataclass
from decimal import ROUND_CEILING, Context
from math import exp, expm1, floor, log10
from typing import Any

import sqlalchemy as sa

from discretion.guarantee import PICO, Arithmetic, Model, Protects
from discretion.ledger import schema
from discretion.ledger.chain import entries, read
from discretion.ledger.offer import Cohort
from discretion.ledger.register import Register, cohorts_of
from discretion.ledger.stay import Stay, charges, stays_of, total
from discretion.preference import MICRO
from discretion.render.sheet import Sheet, Shown, amount, when

LARGEST_EXPONENT = 700.0  # beyond it e^ε is no double
SECRETS = {
    "presence": "whether you are in the data, and everything about you in it",
    "value": "your values (not that you are in the table)",
}
ODDS = {  # what an answer protects -> what its factor bounds: another value is leaving and coming back
    "presence": "It moved anybody's odds that you are in it by at most the factor under `odds`, and about your values, "
    "for somebody certain that you are in it, by at most that factor twice.",
    "value": "It moved anybody's odds about your values by at most the factor under `odds`.",
}


@dataclass(frozen=True, kw_only=True)
class StatedPreference:
    """A preference, and who stated it when."""

    time: str
    epsilon: float | None  # as stated; None: the source did not name the person any more
    level: float  # what it was rounded down to
    by: str  # enrolment, person, source
    entry: str = ""  # that wrote it down


@dataclass(frozen=True, kw_only=True)
class Use:
    """One release that could have used the person's data, and what it cost them at most."""

    entry: str
    time: str
    table: str
    question: str
    epsilon: float
    delta: float
    protects: Protects
    arithmetic: Arithmetic
    promise: str  # in plain words
    model: Model = "personalized"

    @property
    def seq(self) -> int:
        """Return the number of the entry: entries are in order."""
        return int(self.entry.partition("-")[0])


@dataclass(frozen=True, kw_only=True, repr=False)
class Receipt(Shown):
    """What one person was promised, what was spent, and on what."""

    register: str
    allowance: float
    spent: float
    remaining: float
    delta: float
    rounding: float  # part of `spent` that no release used: added when the person changed cohorts
    statements: tuple[StatedPreference, ...]
    releases: tuple[Use, ...]
    individual: tuple[Use, ...]  # releases that are not differential privacy, on an account of their own
    individual_spent: float
    summary: str

    def sheets(self) -> list[Sheet]:
        """What the person was promised, and what was spent on which answers."""
        head = Sheet(
            title="Receipt",
            columns=("register", "allowed", "spent", "left"),
            rows=((self.register, *map(amount, (self.allowance, self.spent, self.remaining))),),
            notes=(self.summary,),
            numbers=frozenset({"allowed", "spent", "left"}),
        )
        chosen = Sheet(
            title="What you chose",
            columns=("when", "chosen", "counts as", "by"),
            rows=tuple(
                (when(one.time), "" if one.epsilon is None else amount(one.epsilon), amount(one.level), one.by)
                for one in self.statements
            ),
        )
        uses = [*self.releases, *self.individual]
        used = Sheet(
            title="Answers that could have used your data",
            columns=("when", "ε", "odds", "question"),
            rows=tuple((when(use.time), amount(use.epsilon), _factor(use, self), use.question) for use in uses),
            notes=tuple(dict.fromkeys(_promise(use, self) for use in uses)),
            numbers=frozenset({"ε", "odds"}),
        )
        return [head, chosen, used]


def receipt(db: sa.Connection, register: Register, person: str, *, most: int | None = None) -> Receipt:
    """Return the receipt of one person; the register decides whether they exist, the data never do.

    With `most`, only so many of the newest answers are listed; all others are counted all the same.
    """
    stays = list(stays_of(db, register, person))
    cohorts = {cohort.id: cohort for cohort in cohorts_of(db, register)}
    totals, cohort = total(db, stays), cohorts[stays[-1].cohort]
    listed = [_use(row) for row in reversed(charges(db, stays, most=most))]
    stated = (stays[-1].stated or 0) / MICRO
    return Receipt(
        register=register.name,
        allowance=cohort.micro_allowance / MICRO,
        spent=cohort.micro_spent / MICRO,
        remaining=cohort.remaining() / MICRO,
        delta=cohort.pico_delta / PICO,
        rounding=(cohort.micro_spent - totals.micro_epsilon) / MICRO,
        statements=tuple(_statement(db, stay, cohorts[stay.cohort]) for stay in stays),
        releases=tuple(use for use in listed if use.model == "personalized"),
        individual=tuple(use for use in listed if use.model == "individual"),
        individual_spent=cohort.micro_individual / MICRO,
        summary=_summary(cohort, stated, totals.releases, totals.individual) + _doubts(db),
    )


def uses(db: sa.Connection, register: Register, person: str, *, before: int | None, most: int) -> tuple[Use, ...]:
    """Return answers that could have used a person's data, newest first: so many of those before an entry."""
    stays = list(stays_of(db, register, person))
    return tuple(map(_use, charges(db, stays, before=before, most=most)))


def _statement(db: sa.Connection, stay: Stay, cohort: Cohort) -> StatedPreference:
    entry = next(entries(db, wanted=[stay.first]))
    return StatedPreference(
        time=entry.facts["time"],
        epsilon=None if stay.stated is None else stay.stated / MICRO,
        level=cohort.micro_allowance / MICRO,
        by=stay.by,
        entry=entry.id,
    )


def _use(row: sa.Row[Any]) -> Use:
    entry = read(row)
    facts = entry.facts
    guarantee, delta = facts["guarantee"], row.pico_delta / PICO
    epsilon = (row.micro_individual or row.micro_epsilon) / MICRO
    return Use(
        entry=entry.id,
        time=facts["time"],
        table=facts["table"],
        question=facts["memo"],
        epsilon=epsilon,
        delta=delta,
        protects=guarantee["protects"],
        arithmetic=guarantee["arithmetic"],
        promise=in_plain_words(guarantee, epsilon, delta),
        model="individual" if row.micro_individual else "personalized",
    )


def in_plain_words(guarantee: dict[str, Any], epsilon: float, delta: float) -> str:
    """What a release promised one person, without mathematics."""
    hidden = guarantee["protects"] == "presence"
    secret = SECRETS[guarantee["protects"]]
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
    """So many digits of a number that nothing is above, nor above what is shown of it."""
    return f"{float(Context(prec=digits, rounding=ROUND_CEILING).create_decimal_from_float(most)):,.{digits}g}"


def _summary(cohort: Cohort, stated: float, releases: int, individual: int) -> str:
    apart = f" Not counted: {individual} answer(s) that were NOT differentially private." if individual else ""
    if cohort.absent:
        return (
            f"You are no longer in the register's source, so nothing uses your data. What was spent stays spent.{apart}"
        )
    if cohort.micro_allowance == 0:
        if stated:
            return (
                f"You chose ε = {amount(stated)}, which is below the smallest level on offer. It was rounded down to "
                f"0, so your data are not used.{apart}"
            )
        return f"You chose that your data are not used, and they are not.{apart}"
    if cohort.remaining() == 0:
        return f"What you allowed is spent. Your data are left out of every further answer.{apart}"
    epsilon = cohort.micro_allowance / MICRO
    doubt = f" Beyond that, δ = {cohort.pico_delta / PICO:g} is spent." if cohort.pico_delta else ""
    return (
        f"{releases} answer(s) could have used your data so far. All answers together, past and future, may move "
        f"anybody's odds about what is secret by a factor of at most {factor(epsilon)}, as you chose "
        f"(ε = {amount(epsilon)}). Where it is secret that you are in the data at all, this is the factor for being in "
        f"it; about your values, for somebody certain that you are in it, it is at most {factor(2 * epsilon)}."
        f"{doubt}{apart}"
    )


def _doubts(db: sa.Connection) -> str:
    """Say that answers may be missing, if the ledger was put back to a copy that may lack some."""
    entry = schema.entry.c
    restored = [read(row).facts for row in db.execute(sa.select(schema.entry).where(entry.kind == "restore"))]
    days = [when(facts["time"]) for facts in restored if facts["lost"] != 0]
    return f" The ledger was put back to a copy ({', '.join(days)}); answers from before may be missing here." * bool(
        days
    )


def _factor(use: Use, receipt: Receipt) -> str:
    return f"× {factor(use.epsilon)}" if use in receipt.releases else "no limit"


def _promise(use: Use, receipt: Receipt) -> str:
    """What is promised in words that stand for all answers of its kind; caveats belong to one answer."""
    if use.delta or use.arithmetic == "float" or use not in receipt.releases:
        return f"{when(use.time)}: {use.promise}"
    return f"{use.table}: The answer protects {SECRETS[use.protects]}. {ODDS[use.protects]}"
