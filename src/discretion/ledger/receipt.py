"""Receipt: what one person was promised and what was spent of it, from register and entries alone.

Nothing here looks at the data, so the receipt of somebody who is in the data and of somebody who is not are the same:
it lists what could have used their data.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import sqlalchemy as sa

from discretion.errors import InvalidDeclaration
from discretion.guarantee import PICO, Arithmetic, Model, Protects
from discretion.ledger import schema
from discretion.ledger.chain import entries, read
from discretion.ledger.offer import Cohort
from discretion.ledger.register import Register, cohorts_of
from discretion.ledger.wording import SECRETS, Standing, chances_sheet, factor, in_plain_words, summary
from discretion.preference import MICRO
from discretion.render.sheet import Sheet, Shown, amount, when

_PAID, _ENTRY = schema.charge.c, schema.entry.c


@dataclass(frozen=True, kw_only=True)
class Stay:
    """Say in which entries a person was in a cohort: from `first` on and before `end`.

    What the cohort paid meanwhile could have used their data.
    """

    cohort: int
    first: int
    end: int | None
    stated: int | None
    by: str


@dataclass(frozen=True, kw_only=True)
class Total:
    """Add up all charges of a person."""

    micro_epsilon: int
    releases: int
    individual: int  # how many were not differentially private


def stays_of(db: sa.Connection, register: Register, person: str) -> Iterator[Stay]:
    """Return where a person of the register was, in order."""
    known, change, cohort = schema.person.c, schema.change.c, schema.cohort.c
    enrolled = db.execute(
        sa.select(schema.person).where(known.register == register.id, known.person == person)
    ).one_or_none()
    if enrolled is None:
        raise InvalidDeclaration(f"Register {register.name!r} has no such person.")
    moves = db.execute(
        sa.select(schema.change).where(change.register == register.id, change.person == person).order_by(change.seq)
    ).all()
    ends = [move.seq for move in moves] + [None]
    if not moves or moves[0].seq != enrolled.seq:  # else they joined later, and the first move says where
        home = sa.select(cohort.id).where(
            cohort.register == register.id, cohort.enrolled, cohort.micro_allowance == enrolled.micro_epsilon
        )
        yield Stay(
            cohort=db.execute(home).scalar_one(),
            first=enrolled.seq,
            end=ends[0],
            stated=enrolled.micro_epsilon,
            by="enrolment",
        )
    for move, end in zip(moves, ends[1:], strict=True):
        yield Stay(cohort=move.cohort, first=move.seq, end=end, stated=move.micro_epsilon, by=move.origin)


def charges(
    db: sa.Connection, stays: Sequence[Stay], *, before: int | None = None, most: int | None = None
) -> list[sa.Row[Any]]:
    """Return the charges of all stays with their entries, newest first: so many of those before an entry."""
    found: list[sa.Row[Any]] = []
    for stay in reversed(stays):
        query = sa.select(schema.charge, _ENTRY.kind, _ENTRY.body, _ENTRY.hash)
        query = query.join(schema.entry, _ENTRY.seq == _PAID.seq).where(*_during(stay))
        if before is not None:
            query = query.where(_PAID.seq < before)
        if most is not None:
            query = query.limit(most - len(found))
        found += db.execute(query.order_by(_PAID.seq.desc())).all()
        if most is not None and len(found) >= most:
            break
    return found


def total(db: sa.Connection, stays: Sequence[Stay]) -> Total:
    """Add up all charges of all stays, without reading their entries."""
    spent = releases = individual = 0
    is_individual = sa.case((_PAID.micro_individual > 0, 1), else_=0)
    for stay in stays:
        sums = sa.select(sa.func.count(), sa.func.sum(_PAID.micro_epsilon), sa.func.sum(is_individual))
        count, paid, apart = db.execute(sums.where(*_during(stay))).one()
        spent, individual = spent + int(paid or 0), individual + int(apart or 0)
        releases += count - int(apart or 0)
    return Total(micro_epsilon=spent, releases=releases, individual=individual)


def _during(stay: Stay) -> list[sa.ColumnElement[bool]]:
    """Return the conditions for what a cohort paid during a stay."""
    end = [] if stay.end is None else [_PAID.seq < stay.end]
    return [_PAID.cohort == stay.cohort, _PAID.seq > stay.first, *end]


ENTERED = {  # how a choice came into the ledger -> who entered it
    "enrolment": "the steward, from the source",
    "source": "the steward, from the source",
    "steward": "the steward, for you",
    "person": "you",
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
    by: str  # enrolment, person, steward, source
    entry: str = ""  # that wrote it down
    name: str = ""  # of the level


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
    also: str = ""  # what it protects besides, where tables are joined

    @property
    def seq(self) -> int:
        """Return the number of the entry: entries are in order."""
        return int(self.entry.partition("-")[0])


@dataclass(frozen=True, kw_only=True, repr=False)
class Receipt(Shown):
    """Says what one person was promised, what was spent, and on what."""

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

    def quoting(self, quoted: Callable[[str], str]) -> "Receipt":
        """Return the receipt with what may be read of other people's questions."""
        releases, individual = (
            tuple(replace(use, question=quoted(use.question)) for use in uses)
            for uses in (self.releases, self.individual)
        )
        return replace(self, releases=releases, individual=individual)

    def sheets(self) -> list[Sheet]:
        """Return what the person was promised, and what was spent on which answers."""
        lowered = self.spent > self.allowance  # spent under an earlier, larger choice
        spent = ("spent before", "spent since") if lowered else ("spent",)
        amounts = (self.allowance, self.spent, *((0.0,) if lowered else ()), self.remaining)
        head = Sheet(
            title="Receipt",
            columns=("register", "allowed", *spent, "left"),
            rows=((self.register, *map(amount, amounts)),),
            notes=(self.summary,),
            numbers=frozenset({"allowed", *spent, "left"}),
        )
        chosen = Sheet(
            title="What you chose",
            columns=("when", "chosen", "counts as", "entered by"),
            rows=tuple(
                (
                    when(one.time),
                    one.name or ("" if one.epsilon is None else amount(one.epsilon)),
                    amount(one.level),
                    ENTERED[one.by],
                )
                for one in self.statements
            ),
        )
        return [head, chances_sheet(self.allowance, self.spent), chosen, self._used()]

    def _used(self) -> Sheet:
        """Return the answers that could have used the person's data; a sentence if there are none."""
        title, uses = "Answers that could have used your data", [*self.releases, *self.individual]
        if not uses:
            return Sheet(title=title, notes=("No answer so far could have used your data.",))
        return Sheet(
            title=title,
            columns=("when", "ε", "odds", "question"),
            rows=tuple((when(use.time), amount(use.epsilon), _factor(use, self), use.question) for use in uses),
            notes=tuple(dict.fromkeys(_promise(use, self) for use in uses)),
            numbers=frozenset({"ε", "odds"}),
        )


def receipt(
    db: sa.Connection,
    register: Register,
    person: str,
    *,
    most: int | None = None,
    names: Mapping[int, str] | None = None,
) -> Receipt:
    """Return the receipt of one person; the register decides whether they exist, the data never do.

    With `most`, only so many of the newest answers are listed; all others are counted all the same. `names` are those
    of levels, by micro-ε.
    """
    stays = list(stays_of(db, register, person))
    cohorts = {cohort.id: cohort for cohort in cohorts_of(db, register)}
    totals, cohort = total(db, stays), cohorts[stays[-1].cohort]
    listed = [_use(row) for row in reversed(charges(db, stays, most=most))]
    statements = tuple(_statement(db, stay, cohorts[stay.cohort], names or {}) for stay in stays)
    standing = Standing(
        cohort=cohort,
        stated=(stays[-1].stated or 0) / MICRO,
        since=statements[-1].time[:10],
        releases=totals.releases,
        individual=totals.individual,
        names=names or {},
    )
    return Receipt(
        register=register.name,
        allowance=cohort.micro_allowance / MICRO,
        spent=cohort.micro_spent / MICRO,
        remaining=cohort.remaining() / MICRO,
        delta=cohort.pico_delta / PICO,
        rounding=(cohort.micro_spent - totals.micro_epsilon) / MICRO,
        statements=statements,
        releases=tuple(use for use in listed if use.model == "personalized"),
        individual=tuple(use for use in listed if use.model == "individual"),
        individual_spent=cohort.micro_individual / MICRO,
        summary=summary(standing) + _doubts(db),
    )


def uses(db: sa.Connection, register: Register, person: str, *, before: int | None, most: int) -> tuple[Use, ...]:
    """Return answers that could have used a person's data, newest first: so many of those before an entry."""
    stays = list(stays_of(db, register, person))
    return tuple(map(_use, charges(db, stays, before=before, most=most)))


def _statement(db: sa.Connection, stay: Stay, cohort: Cohort, names: Mapping[int, str]) -> StatedPreference:
    entry = next(entries(db, wanted=[stay.first]))
    return StatedPreference(
        time=entry.facts["time"],
        epsilon=None if stay.stated is None else stay.stated / MICRO,
        level=cohort.micro_allowance / MICRO,
        by=entry.facts.get("by", stay.by) if stay.by == "person" else stay.by,
        entry=entry.id,
        name=names.get(stay.stated, "") if stay.stated is not None else "",
    )


def _use(row: sa.Row[Any]) -> Use:
    entry = read(row)
    facts = entry.facts
    guarantee, delta = facts["guarantee"], row.pico_delta / PICO
    epsilon = (row.micro_individual or row.micro_epsilon) / MICRO
    return Use(
        entry=entry.id,
        time=facts["time"],
        table=", ".join(entry.tables),
        question=facts["memo"],
        epsilon=epsilon,
        delta=delta,
        protects=guarantee["protects"],
        arithmetic=guarantee["arithmetic"],
        promise=in_plain_words(guarantee, epsilon, delta),
        model="individual" if row.micro_individual else "personalized",
        also=guarantee.get("also", ""),
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
    """Return what is promised in words that stand for all answers of its kind; caveats belong to one answer."""
    if use.delta or use.arithmetic == "float" or use not in receipt.releases:
        return f"{when(use.time)}: {use.promise}"
    also = f", {use.also}" if use.also else ""
    return f"{use.table}: The answer protects {SECRETS[use.protects]}{also}. {ODDS[use.protects]}"
