"""Stop: a question that failed after its charge stops a register, until the steward resumes it."""

from dataclasses import dataclass

import sqlalchemy as sa

from discretion.errors import InvalidDeclaration, QueryRefused, TableStopped
from discretion.ledger import schema
from discretion.ledger.chain import Entry, Writing, append, entries, find, settled
from discretion.ledger.register import Register, load

_OF = schema.stop.c.register == sa.bindparam("wanted")
_STOPS = sa.select(schema.stop.c.seq, schema.stop.c.shape, schema.stop.c.resumed).where(_OF).order_by(schema.stop.c.seq)


@dataclass(frozen=True, kw_only=True)
class Stop:
    """One failure that stopped a register."""

    register: str
    entry: str
    charge: str  # the entry that paid for the failed question; "": none
    shape: str  # the form of the statement that failed, a line for each part, refused for good; "": none
    time: str
    resumed: str  # the entry that resumed the register; "": it is still stopped


def stop(tx: Writing, name: str, *, charge: str, shape: str) -> Entry:
    """Refuse all questions about every table of the register from now on."""
    register = load(tx.db, name)
    paid = find(tx.db, charge) if charge else None
    if paid is not None and paid.kind != "charge":
        raise InvalidDeclaration(f"Entry {charge!r} is not a charge, so no question failed after it.")
    if charge and (stopped := _open(tx.db, register)) is not None:
        return next(entries(tx.db, wanted=[stopped]))  # one failure is told, not which others failed meanwhile
    settles = paid.seq if paid is not None and not settled(tx.db, paid.seq) else None  # no answer will come
    facts = {"register": name, "charge": charge, "shape": shape, "settles": settles}
    entry = append(tx, "stop", facts, settles=settles)
    row = {"seq": entry.seq, "register": register.id, "charge": charge, "shape": shape, "resumed": None}
    tx.db.execute(sa.insert(schema.stop).values(row))
    return entry


def resume(tx: Writing, name: str) -> Entry:
    """Allow questions again; statement shapes that failed stay refused."""
    register = load(tx.db, name)
    if _open(tx.db, register) is None:
        raise InvalidDeclaration(f"Register {name!r} is not stopped, so it cannot be resumed.")
    entry = append(tx, "resume", {"register": name})
    table = schema.stop.c
    open_stops = sa.update(schema.stop).where(table.register == register.id, table.resumed.is_(None))
    tx.db.execute(open_stops.values(resumed=entry.seq))
    return entry


def stops(db: sa.Connection) -> tuple[Stop, ...]:
    """Return every stop, in order."""
    table, names = schema.stop.c, schema.register.c
    query = sa.select(schema.stop, names.name).join(schema.register, names.id == table.register)
    rows = db.execute(query.order_by(table.seq)).all()
    wanted = {seq for row in rows for seq in (row.seq, row.resumed) if seq is not None}
    found = {entry.seq: entry for entry in entries(db, wanted=sorted(wanted))}
    return tuple(
        Stop(
            register=row.name,
            entry=found[row.seq].id,
            charge=row.charge,
            shape=row.shape,
            time=found[row.seq].facts["time"],
            resumed="" if row.resumed is None else found[row.resumed].id,
        )
        for row in rows
    )


def refuse_stopped(db: sa.Connection, register: Register, shape: str = "") -> None:
    """Refuse every question about a stopped register, always in the same words.

    Refuse a statement `shape` that failed before, even after the register was resumed.
    """
    found = db.execute(_STOPS, {"wanted": register.id}).all()
    if any(one.resumed is None for one in found):
        raise TableStopped(TableStopped.sentence)
    if shape and any(same_shape(shape, one.shape) for one in found if one.shape):
        raise QueryRefused("A question of this form failed before, so it is refused. Ask in another way.")


def same_shape(one: str, other: str) -> bool:
    """Return whether two statements have a part of the same form: a line each. Nobody knows which part failed."""
    return not {*one.split("\n")}.isdisjoint(other.split("\n"))


def _open(db: sa.Connection, register: Register) -> int | None:
    """Return the entry that stopped a register, None if it is not stopped."""
    return next((one.seq for one in db.execute(_STOPS, {"wanted": register.id}) if one.resumed is None), None)
