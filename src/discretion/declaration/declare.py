"""Declare a table: what the steward says is checked against the schema, and everything wrong is told at once."""

import re
from collections.abc import Iterable, Mapping, Sequence, Set, Sized
from datetime import date
from decimal import Decimal
from numbers import Real
from typing import Any

from discretion.declaration.span import TIMED, is_moment, span_of
from discretion.declaration.table import LONGEST_TEXT, Lookup, Policy, Table
from discretion.errors import InvalidDeclaration, did_you_mean

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
    bounds: Mapping[str, tuple[Any, Any]] | None = None,
    grid: Mapping[str, float] | None = None,
    keys: Mapping[str, Sequence[Any]] | None = None,
    required: Sequence[str] = (),
    policy: Policy | None = None,
    rows_per_person: int = 1,
    longest_text: int = LONGEST_TEXT,
    lookups: Mapping[str, Lookup] | None = None,
) -> Table:
    """The table, or InvalidDeclaration with all that is missing or wrong."""
    bounds, grid, keys = bounds or {}, grid or {}, keys or {}
    misshapen = _misshapen(bounds, keys, grid, required, policy)
    wrong = [*_owner(columns, registers, person, epsilon, register), *misshapen]
    if not misshapen:
        named = {person, epsilon, *bounds, *keys, *required, *grid} - {""}
        wrong += _unfit(columns, named, bounds)
    if wrong:
        raise InvalidDeclaration(
            f"Table {name!r} cannot be protected yet:\n"
            + "\n".join(f"  - {problem}" for problem in wrong)
            + f"\nIts columns are {', '.join(f'{column} {kind}' for column, kind in columns.items())}."
        )
    dated = {column: pair for column, pair in bounds.items() if is_moment(pair[0])}
    return Table(
        name=name,
        source=source,
        person=person,
        register=register or name,
        protects="presence" if register else "value",
        columns=dict(columns),
        epsilon=epsilon,
        bounds={column: (float(low), float(high)) for column, (low, high) in bounds.items() if column not in dated},
        spans={column: span_of(column, columns[column], *pair) for column, pair in dated.items()},
        grid={column: float(step) for column, step in grid.items()},
        keys={column: tuple(_typed(one, column, columns[column]) for one in values) for column, values in keys.items()},
        required=tuple(required),
        policy=policy or Policy(),
        rows_per_person=rows_per_person,
        longest_text=longest_text,
        lookups=lookups or {},
    )


def _owner(columns: Mapping[str, str], registers: Sequence[str], person: str, epsilon: str, register: str) -> list[str]:
    """Return what is wrong with saying whose rows these are, and who chose what."""
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


def _misshapen(bounds: Any, keys: Any, grid: Any, required: Any, policy: Any) -> list[str]:
    """Return what is said in a form that means nothing."""
    mappings = {"bounds": (bounds, "(low, high)"), "keys": (keys, "[values]"), "grid": (grid, "step")}
    wrong = [
        f"`{name}` must be {{column: {form}}}, got {said!r}"
        for name, (said, form) in mappings.items()
        if not isinstance(said, Mapping)
    ]
    if wrong:
        return wrong
    checks = [
        *(
            (f"bounds of {column!r}", "two numbers or two dates, low and high", said, _is_pair(said))
            for column, said in bounds.items()
        ),
        *((f"the grid step of {column!r}", "a number", said, _is_number(said)) for column, said in grid.items()),
        *((f"keys of {column!r}", "a list of values", said, _is_list(said)) for column, said in keys.items()),
        ("`required`", "a list of columns", required, _is_list(required)),
        ("`policy`", "a Policy", policy, policy is None or isinstance(policy, Policy)),
    ]
    return [f"{what} must be {form}, got {said!r}" for what, form, said, fits in checks if not fits]


def _is_list(said: Any) -> bool:
    """Return whether these are several values; a text is one."""
    return isinstance(said, Iterable) and not isinstance(said, str | bytes)


def _is_pair(said: Any) -> bool:
    several = isinstance(said, Iterable) and isinstance(said, Sized) and len(said) == 2
    return several and any(all(map(fits, said)) for fits in (_is_number, is_moment))


def _is_number(said: Any) -> bool:
    return isinstance(said, Real | Decimal) and not isinstance(said, bool)


def refuse_unfit(table: Table) -> None:
    """Refuse a table in a new state that does not fit what was declared about it."""
    if wrong := _unfit(table.columns, set(), {**table.bounds, **table.spans}):
        raise InvalidDeclaration(f"Table {table.name!r} does not fit its declaration any more: {'; '.join(wrong)}.")


def _unfit(columns: Mapping[str, str], named: Set[str], bounds: Mapping[str, Any]) -> list[str]:
    """Return what does not fit the schema."""
    dated = {column for column, pair in bounds.items() if is_moment(next(iter(pair)))}
    numbers = [column for column in bounds if column not in dated]
    texts = [column for column in numbers if not NUMBER.fullmatch(columns.get(column, "DOUBLE"))]
    times = [column for column in bounds if column in dated and not TIMED.fullmatch(columns.get(column, "DATE"))]
    return [
        *(f"there is no column {column!r}{_near(column, columns)}" for column in sorted(named - set(columns))),
        *(f"bounds of {column!r} are numbers, but {_held(columns[column], 'DOUBLE', column)}" for column in texts),
        *(f"bounds of {column!r} are dates, but {_held(columns[column], 'DATE', column)}" for column in times),
    ]


def _near(column: str, columns: Mapping[str, str]) -> str:
    near = did_you_mean(column, columns)
    return f".{near}" if near else ""


def _held(kind: str, wanted: str, column: str) -> str:
    """Say what a column holds instead of numbers or dates, and how its texts can be read as them."""
    if kind != "VARCHAR":
        return f"the column holds {kind}"
    comma = "If its numbers look like 1,5, give decimal=',' (--decimal ,). " if wanted == "DOUBLE" else ""
    return (
        f"the column holds texts. {comma}If only some of its values are not {'numbers' if comma else 'dates'}, give "
        f"types={{{column!r}: {wanted!r}}} (--types {column}={wanted}): those become NULL, and you are told how many"
    )


def _typed(value: Any, column: str, kind: str) -> Any:
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
        raise InvalidDeclaration(f"Key {value!r} of column {column!r} is not a value of its type, {kind}.") from None
