"""Spending: an offer and a guarantee become a charge, then the answer it paid for becomes a delivery."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from math import ceil
from typing import Any

import sqlalchemy as sa

from discretion.declaration.table import Table
from discretion.errors import (
    BudgetExhausted,
    InvalidDeclaration,
    LedgerFailed,
    PlanOutdated,
    QueryRefused,
    SourceChanged,
)
from discretion.guarantee import PICO, Guarantee, Loss, Model
from discretion.ledger import schema
from discretion.ledger.chain import Entry, Writing, append, find, settled
from discretion.ledger.offer import Cohort, Offer, exact
from discretion.ledger.people import insert_many
from discretion.ledger.register import Register, cohorts_of, digest_cohorts, load
from discretion.ledger.snapshot import Before, Snapshot, asked
from discretion.ledger.stop import refuse_stopped
from discretion.preference import MICRO

CHANGED = "A source changed while it was read. The charge stands; ask again."
_PAID, _COHORT = schema.charge.c, schema.cohort.c
_QUOTA_OF = schema.quota.c.table == sa.bindparam("wanted"), schema.quota.c.analyst == sa.bindparam("whose")
_USED = sa.select(schema.quota.c.micro_share).where(*_QUOTA_OF)
_USE = sa.update(schema.quota).where(*_QUOTA_OF)
_USE_FIRST = sa.insert(schema.quota)
_PAY = (
    sa.update(schema.cohort)
    .where(_COHORT.id == _PAID.cohort, _PAID.seq == sa.bindparam("at"), _COHORT.register == sa.bindparam("of"))
    .values(
        micro_spent=_COHORT.micro_spent + _PAID.micro_epsilon,
        pico_delta=_COHORT.pico_delta + _PAID.pico_delta,
        micro_individual=_COHORT.micro_individual + _PAID.micro_individual,
    )
)
_BALANCE = sa.update(schema.register).where(schema.register.c.id == sa.bindparam("of"))


def declare(tx: Writing, table: Table) -> Entry:
    """Write down what the steward says about a table; saying it anew replaces it and gives nothing back."""
    load(tx.db, table.register)  # refuses a register that does not exist
    known = tx.db.scalar(sa.select(schema.declaration.c.body).where(schema.declaration.c.name == table.name))
    if known is not None and Table.from_stored(known).register != table.register:
        raise InvalidDeclaration(
            f"Table {table.name!r} is paid for by register {Table.from_stored(known).register!r}, and that is final: "
            f"register {table.register!r} would start with nothing spent. Keep the register, or choose another name."
        )
    declaration = json.loads(table.stored())
    entry = append(tx, "declare", {"table": table.name, "declaration": declaration})
    tx.db.execute(sa.delete(schema.declaration).where(schema.declaration.c.name == table.name))
    tx.db.execute(sa.insert(schema.declaration).values(name=table.name, body=declaration_text(declaration)))
    return entry


def declaration_text(declaration: Mapping[str, Any]) -> str:
    """Return a declaration as its table stores it: the text of its entry, with any fields it had when it was made."""
    return json.dumps(declaration, sort_keys=True)


def charge(
    tx: Writing,
    offered: Offer,
    guarantee: Guarantee,
    *,
    table: str,
    facts: Mapping[str, Any],
    joined: Sequence[str] = (),
) -> Entry:
    """Every cohort or none, and only what was offered and still stands.

    A question that joins other tables (`joined`) must be allowed by every table, and uses up a quota of each.
    """
    if not facts["analyst"].isprintable():  # written down, it could never be shown again
        raise InvalidDeclaration(f"An analyst's name must be printable text, got {facts['analyst']!r}.")
    seen = Snapshot(tx.db)
    declarations = [seen.table(name) for name in (table, *joined)]
    if facts["question"] and seen.before(facts["question"]) != Before(None, frozenset()):  # one charge for one question
        raise PlanOutdated("Somebody else asked the same question at the same time; ask again to get its answer.")
    register = load(tx.db, offered.register)
    refuse_stopped(tx.db, register, facts["shape"])
    quotas = {one.name: tx.db.scalar(_USED, {"wanted": one.name, "whose": facts["analyst"]}) for one in declarations}
    for one in declarations:
        _obey(one, offered, guarantee, analyst=facts["analyst"], used=quotas[one.name] or 0, alone=not joined)
    cohorts = cohorts_of(tx.db, register)
    current = replace(offered, cohorts=asked(cohorts), members=register.members, fingerprint=register.fingerprint)
    if current == offered:
        current = offered  # what it makes available is known
    if any(getattr(current, name) != getattr(offered, name) for name in ("available", "members", "fingerprint")):
        raise PlanOutdated("Preferences or balances changed while this question was planned; ask again.")
    largest_delta = min(Fraction(str(one.policy.largest_delta)) for one in declarations)
    losses = _losses(current, guarantee, int(largest_delta * PICO))
    after = [_pay(cohort, losses.get(cohort.id, Loss(0)), offered.model) for cohort in cohorts]
    entry = append(
        tx,
        "charge",
        {
            **facts,
            "register": offered.register,
            "table": table,
            **({"joined": list(joined)} if joined else {}),
            "share": str(offered.share),
            "parts": offered.parts,
            "partial": offered.partial,
            "guarantee": promise(guarantee),
            "losses": _by_loss(losses),
            "balances": digest_cohorts(after),
        },
        question=facts["question"] or None,
    )
    _store(tx.db, register, entry, losses, offered.model)
    for name in (table, *joined):
        quotas[name] = _use_quota(tx.db, name, facts["analyst"], quotas[name], offered.share)
    return entry


def deliver(tx: Writing, id: str, answer: str, fingerprint: str = "") -> Entry:
    """Seal the answer that a charge paid for, before anybody sees it; refuse if its register was refreshed since."""
    paid = find(tx.db, id)
    if paid.kind != "charge":
        raise InvalidDeclaration(f"Entry {id!r} is not a charge, so no answer belongs to it.")
    if settled(tx.db, paid.seq):
        raise InvalidDeclaration(f"The answer that entry {id!r} paid for was delivered before; a charge pays once.")
    register = load(tx.db, paid.facts["register"])
    refuse_stopped(tx.db, register)  # or every question under way would tell if it fails
    if fingerprint and fingerprint != register.fingerprint:
        raise SourceChanged(CHANGED)
    try:
        content = json.loads(answer)
    except ValueError:
        raise InvalidDeclaration("An answer is kept as JSON, got something else.") from None
    if isinstance(content, dict) and content.get("simulated"):
        raise InvalidDeclaration("A simulated answer protects nobody and is never written to a ledger.")
    question = paid.facts["question"] or None
    facts = {"charge": paid.seq, "answer": answer, "question": paid.facts["question"]}
    return append(tx, "deliver", facts, question=question, settles=paid.seq)


def abandon(tx: Writing, id: str) -> Entry | None:
    """Record that no answer will come, so that the next asker need not wait; None if the charge has ended."""
    paid = find(tx.db, id)
    if paid.kind != "charge" or settled(tx.db, paid.seq):
        return None
    question = paid.facts["question"]
    facts = {"settles": paid.seq, "question": question}
    return append(tx, "abandon", facts, question=question or None, settles=paid.seq)


def promise(guarantee: Guarantee) -> dict[str, Any]:
    """A guarantee as an entry tells it; what each cohort pays stands beside it."""
    names = ("model", "protects", "unit", "arithmetic", "note")
    also = {"also": guarantee.also} if guarantee.also else {}
    return {name: getattr(guarantee, name) for name in names} | also


def _obey(table: Table, offered: Offer, guarantee: Guarantee, *, analyst: str, used: int, alone: bool = True) -> None:
    """The steward's policy, and the plain consistency of what is charged with what was planned.

    Joined with others, a table that protects presence may be covered by a promise about values, which holds for rows
    that come, go or change; never the other way round.
    """
    policy = table.policy
    covered = table.protects == guarantee.protects or (not alone and guarantee.protects == "value")
    if (table.register, offered.model) != (offered.register, guarantee.model) or not covered:
        raise LedgerFailed(
            f"Table {table.name!r} belongs to register {table.register!r} and protects {table.protects}; a plan for "
            f"register {offered.register!r} that protects {guarantee.protects} cannot be charged."
        )
    if guarantee.unit != "person":
        raise QueryRefused(
            f"The ledger keeps accounts of people, and this plan protects each {guarantee.unit} apart: a person would "
            "lose more than was written down. Ask for a guarantee per person."
        )
    if offered.share > exact(policy.largest_share):
        raise QueryRefused(
            f"share = {float(offered.share):g} is more than table {table.name!r} allows in one question: "
            f"{policy.largest_share:g}. Ask with a smaller share."
        )
    if guarantee.model == "individual" and not policy.individual:
        raise QueryRefused(
            f"Model `individual` is not differential privacy, and table {table.name!r} does not allow it."
        )
    if guarantee.arithmetic == "float" and not policy.float_arithmetic:
        raise QueryRefused(f"This mechanism has no exact sampler, and table {table.name!r} allows exact ones only.")
    quota = policy.quotas.get(analyst, policy.quotas.get("*"))
    if quota is not None and used + ceil(offered.share * MICRO) > Fraction(str(quota)) * MICRO:
        raise BudgetExhausted(
            f"The quota of analyst {analyst!r} on table {table.name!r} is {quota:g}, used {used / MICRO:g}, requested "
            f"{float(offered.share):g}. Ask with a smaller share, or ask the data owner."
        )


def _losses(offered: Offer, guarantee: Guarantee, largest_pico_delta: int) -> dict[int, Loss]:
    losses = {}
    for cohort in offered.cohorts:
        budget = offered.available[cohort.id]
        loss = guarantee.losses.get(offered.position[cohort.id])
        if loss is None or loss.micro_epsilon > budget * offered.parts:
            raise LedgerFailed(
                f"The plan does not say what the cohort with ε = {budget / MICRO:g} for each part loses, or says more "
                "than it was offered. This is a mistake in the plan; nothing was charged."
            )
        if loss.pico_delta and cohort.pico_delta + loss.pico_delta > largest_pico_delta:
            raise BudgetExhausted(
                f"Everybody's δ may add up to {largest_pico_delta / PICO:g} on this table; this question needs "
                f"{loss.pico_delta / PICO:g} more than the {cohort.pico_delta / PICO:g} spent at "
                f"ε = {cohort.micro_allowance / MICRO:g}. Ask without δ, or ask the data owner."
            )
        losses[cohort.id] = loss
    return losses


def _pay(cohort: Cohort, loss: Loss, model: Model) -> Cohort:
    if not any(loss):
        return cohort
    account = "micro_individual" if model == "individual" else "micro_spent"
    paid = {account: getattr(cohort, account) + loss.micro_epsilon, "pico_delta": cohort.pico_delta + loss.pico_delta}
    return Cohort(**vars(cohort) | paid)


def _by_loss(losses: Mapping[int, Loss]) -> list[list[Any]]:
    """[micro-ε, pico-δ, [cohorts that lose it]], in order: cohorts of a level share a line."""
    lines: dict[Loss, list[int]] = {}
    for cohort, loss in losses.items():
        if any(loss):
            lines.setdefault(loss, []).append(cohort)
    return [[*loss, sorted(lines[loss])] for loss in sorted(lines)]


def _store(db: sa.Connection, register: Register, entry: Entry, losses: Mapping[int, Loss], model: Model) -> None:
    individual = model == "individual"
    rows = [
        (cohort, entry.seq, 0 if individual else loss.micro_epsilon, loss.pico_delta, loss.micro_epsilon * individual)
        for cohort, loss in losses.items()
        if any(loss)
    ]
    if rows:
        insert_many(db, schema.charge, rows)
        db.execute(_PAY, {"at": entry.seq, "of": register.id})
    db.execute(_BALANCE, {"of": register.id, "balances": entry.facts["balances"]})


def _use_quota(db: sa.Connection, table: str, analyst: str, used: int | None, share: Fraction) -> int:
    """Write down that a share was used, after what was `used` before (None: nothing is written down); return both."""
    both = (used or 0) + ceil(share * MICRO)
    if used is None:
        db.execute(_USE_FIRST, {"table": table, "analyst": analyst, "micro_share": both})
    else:
        db.execute(_USE, {"wanted": table, "whose": analyst, "micro_share": both})
    return both
