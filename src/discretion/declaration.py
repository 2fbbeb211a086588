"""Declare a table: what the steward says is checked against the schema, and everything wrong is told at once."""

import re
from collections.abc import Mapping, Sequence, Set
from datetime import date
from typing import Any

from discretion.errors import InvalidDeclaration
from discretion.table import Policy, Table

NUMBER = re.compile(r"U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?|FLOAT|DOUBLE|REAL|DECIMAL.*", re.IGNORECASE)


def declare(
    name: str,
    source: str,
    columns: Mapping[str, str],
    registers: Sequence[str],
    *,
    person: str,
    epsilon: str,
    register: str,
    bounds: Mapping[str, tuple[float, float]] | None = None,
    keys: Mapping[str, Sequence[Any]] | None = None,
    required: Sequence[str] = (),
    policy: Policy | None = None,
    **declared: Any,
) -> Table:
    """The table, or InvalidDeclaration with all that is missing or wrong."""
    bounds, keys = dict(bounds or {}), dict(keys or {})
    named = {person, epsilon, *bounds, *keys, *required, *declared.get("grid", {})} - {""}
    wrong = [*_owner(columns, registers, person, epsilon, register), *_unfit(columns, named, bounds)]
    if wrong:
        raise InvalidDeclaration(
            f"Table {name!r} cannot be protected yet:\n"
            + "\n".join(f"  - {problem}" for problem in wrong)
            + f"\nIts columns are {', '.join(f'{column} {kind}' for column, kind in columns.items())}."
        )
    return Table(
        name=name,
        source=source,
        person=person,
        register=register or name,
        protects="presence" if register else "value",
        columns=dict(columns),
        epsilon=epsilon,
        bounds={column: (float(low), float(high)) for column, (low, high) in bounds.items()},
        keys={column: tuple(_typed(value, columns[column]) for value in values) for column, values in keys.items()},
        required=tuple(required),
        policy=policy or Policy(),
        **declared,
    )


def _owner(columns: Mapping[str, str], registers: Sequence[str], person: str, epsilon: str, register: str) -> list[str]:
    """What is wrong with saying whose rows these are, and who chose what."""
    wrong = []
    if not person:
        wrong.append("`person` is missing: the column that says whose row each row is")
    if not (epsilon or register):
        wrong.append(
            "`epsilon` or `register` is missing: the column of preferences (who is in the table is public, values are "
            "protected), or the name of people enrolled before (being in the table is protected)"
        )
    if epsilon and register:
        wrong.append("give either `epsilon` (the table is its own register) or `register`, not both")
    if register and register not in registers:
        known = ", ".join(map(repr, registers)) or "none yet"
        wrong.append(f"there is no register {register!r} (there is {known}); enrol it with `register` first")
    return wrong


def _unfit(columns: Mapping[str, str], named: Set[str], bounds: Mapping[str, Any]) -> list[str]:
    """What does not fit the schema."""
    texts = [column for column in bounds if not NUMBER.fullmatch(columns.get(column, "DOUBLE"))]
    return [
        *(f"there is no column {column!r}" for column in sorted(named - set(columns))),
        *(f"bounds are for numbers, but {column!r} is {columns[column]}" for column in texts),
    ]


def _typed(value: Any, kind: str) -> Any:
    """A key as the column holds it: the command line has only text, and dates are kept as text."""
    if isinstance(value, date):
        return value.isoformat()
    if not isinstance(value, str) or kind.upper() in ("VARCHAR", "TEXT"):
        return value
    try:
        if kind.upper() == "BOOLEAN":
            return {"true": True, "false": False}[value.lower()]
        if "INT" in kind.upper():
            return int(value)
        return float(value) if NUMBER.fullmatch(kind) else value
    except (KeyError, ValueError):
        raise InvalidDeclaration(f"Key {value!r} is not a value of type {kind}.") from None
