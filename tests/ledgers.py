"""A small clinic for the tests of the ledger, in this process and in others."""

from typing import Any

import pyarrow as pa

from discretion.declaration.table import Policy, Table
from discretion.guarantee import Guarantee, Loss
from discretion.ledger import Access, Ledger, Offer, head

PEOPLE = {"ann": 100_000, "ben": 100_000, "cleo": 500_000, "dan": 500_000, "eve": 1_000_000, "fay": 0}


def people(preferences: dict[Any, int] = PEOPLE) -> pa.Table:
    return pa.table({"person": list(preferences), "micro_epsilon": list(preferences.values())})


def visits(name: str = "visits", *, register: str = "people", **options: Any) -> Table:
    policy = Policy(**options)
    columns = {"patient": "VARCHAR", "cost": "DOUBLE"}
    return Table(
        name=name,
        source=f"{name}.parquet",
        person="patient",
        register=register,
        protects="presence",
        columns=columns,
        policy=policy,
    )


def clinic(place: str, preferences: dict[Any, int] = PEOPLE, **options: Any) -> Ledger:
    """A ledger with six people and one table."""
    ledger = Ledger(place)
    ledger.enroll("people", people(preferences), source="people.parquet", fingerprint="first")
    ledger.declare(visits(**options))
    return ledger


def all_of(offer: Offer, *, delta: int = 0, **kind: Any) -> Guarantee:
    """A plan that spends everything it was offered."""
    offered = enumerate(offer.specification.epsilons)
    losses = {place: Loss(micro * offer.parts, delta if micro else 0) for place, micro in offered}
    return Guarantee(protects="presence", losses=losses, model=offer.model, **kind)


def ask(ledger: Ledger, share: float = 0.1, *, question: str = "", table: str = "visits", **terms: Any) -> str:
    """Offer, plan, charge."""
    offer = ledger.offer(ledger.table(table).register, share=share, **terms)
    return ledger.charge(offer, all_of(offer), table=table, analyst="ada", memo="SELECT 1", question=question)


def forget() -> None:
    """Go on as another process would, which has not seen any ledger yet."""
    head._seen.clear()


def spent(ledger: Ledger, person: object, register: str = "people") -> float:
    return ledger.receipt(register, person).spent


def admit(access: Access, register: str) -> None:
    """Fill the tables of members, tokens and invitations, with some of them ended."""
    for name, role in (("sam", "steward"), ("ada", "analyst"), ("bob", "analyst")):
        access.add(name, role)
    access.token("ada", label="notebook")
    access.accept(access.link("sam"))
    access.revoke("bob")
    _, letters = access.invite(register)
    access.accept(letters[0][1])
    access.withdraw_all(access.invite(register, [letters[1][0]])[0])
