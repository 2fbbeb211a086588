"""Survey: counts about a table that its steward should know, in one pass over people and one over rows."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sqlglot import exp

from discretion.declaration.table import Table
from discretion.engines.duckdb.place import named, quoted
from discretion.engines.person import person_text

Counts = dict[tuple[str, str], int]  # (measure, column or key) -> count


def rows_survey(table: Table) -> tuple[list[tuple[str, str]], str]:
    """Return what is counted about rows, and the SQL that counts it."""
    counted = dict(_row_measures(table))
    text = ", ".join(f"COUNT(*) FILTER (WHERE {condition})" for condition in counted.values())
    return list(counted), f"SELECT {text} FROM protected"


def people_survey(table: Table, register: Mapping[str, str], person: str) -> tuple[list[tuple[str, str]], str]:
    """Return what is counted about people, and the SQL that counts it; `register` has the types of people apart."""
    who = named(table.person)
    found = [("above_rows_per_person", table.person)]
    counts = [f"COUNT(*) FILTER (WHERE n > {table.rows_per_person})"]
    chosen = f", COUNT({named(table.epsilon)}) AS chosen" if table.epsilon else ""
    if table.epsilon:
        found.append(("no_preference", table.epsilon))
        counts.append("COUNT(*) FILTER (WHERE chosen = 0)")
    if register:
        found.append(("not_in_register", table.person))
        mine = person_text(exp.column("who"), table.columns[table.person]).sql("duckdb")
        theirs = person_text(exp.column(person, quoted=True), register[person]).sql("duckdb")
        known = f"SELECT {theirs} FROM register WHERE {named(person)} IS NOT NULL"
        counts.append(f"COUNT(*) FILTER (WHERE {mine} NOT IN ({known}))")
    each = f"SELECT {who} AS who, COUNT(*) AS n{chosen} FROM protected WHERE {who} IS NOT NULL GROUP BY 1"
    return found, f"SELECT {', '.join(counts)} FROM ({each})"


def keys_without_rows(table: Table, values: Mapping[str, set[Any]]) -> Counts:
    """Return the declared keys that no row has."""
    return {
        ("key_without_rows", f"{column} = {key}"): 1
        for column, keys in table.keys.items()
        for key in keys
        if _as_text(key) not in values[column]
    }


def distinct_texts(column: str, keys: Sequence[Any]) -> str:
    """Return the SQL that finds which declared keys there are."""
    listed = ", ".join(quoted(_as_text(key)) for key in keys)
    text = f"CAST({named(column)} AS VARCHAR)"
    return f"SELECT DISTINCT {text} FROM protected WHERE {text} IN ({listed})"


def _row_measures(table: Table) -> Iterator[tuple[tuple[str, str], str]]:
    yield ("no_person", table.person), f"{named(table.person)} IS NULL"
    for column, (low, high) in table.bounds.items():
        value = f"TRY_CAST({named(column)} AS DOUBLE)"  # an infinity is missing, not clamped
        yield ("outside_bounds", column), f"isfinite({value}) AND ({value} < {low!r} OR {value} > {high!r})"
    for column, keys in table.keys.items():
        listed = ", ".join(quoted(_as_text(key)) for key in keys)
        yield ("rows_without_key", column), f"CAST({named(column)} AS VARCHAR) NOT IN ({listed})"


def _as_text(key: Any) -> str:
    return str(key).lower() if isinstance(key, bool) else str(key)
