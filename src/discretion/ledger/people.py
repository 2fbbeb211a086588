"""People: tables and identifiers become one canonical text per person, checked, sorted, and stored in bulk."""

from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc
import sqlalchemy as sa

from discretion.errors import InvalidDeclaration, InvalidPreference
from discretion.preference import LARGEST_EPSILON, MICRO

PART = 1 << 16  # people who are written together
BLANK = "A person's identifier must not be empty or blank. Leave it NULL where a row belongs to nobody."
INVALID = "A person's identifier must not contain the character NUL or half of a surrogate pair."


def person_text(person: object) -> str:
    """The one text for a person, whatever type the identifier has: what DuckDB's CAST(... AS VARCHAR) gives."""
    if isinstance(person, bool) or not isinstance(person, int | str | UUID):
        raise InvalidDeclaration(
            f"A person is identified by an integer, a text or a UUID, got a {type(person).__name__}."
        )
    text = str(person)
    if not text.strip():
        raise InvalidDeclaration(BLANK)
    if "\0" in text or any("\ud800" <= sign <= "\udfff" for sign in text):
        raise InvalidDeclaration(INVALID)
    return text


def canonical_people(people: pa.Table) -> pa.Table:
    """(person: text, micro_epsilon: int64), everybody once, in order of their text; rows of nobody are left out."""
    if not {"person", "micro_epsilon"} <= set(people.column_names):
        raise InvalidDeclaration("A register needs the columns person and micro_epsilon.")
    table = pa.table({"person": _as_text(people["person"]), "micro_epsilon": people["micro_epsilon"].cast(pa.int64())})
    table = table.filter(pc.is_valid(table["person"]))
    if table.num_rows == 0:
        raise InvalidPreference(
            "There is nobody to enrol: the source has no rows, or none of them names a person. Give a source with "
            "rows, and the column that says whose row it is."
        )
    if pc.any(pc.match_substring(table["person"], "\0")).as_py():
        raise InvalidDeclaration(INVALID)
    if pc.any(pc.equal(pc.utf8_trim_whitespace(table["person"]), "")).as_py():
        raise InvalidDeclaration(BLANK)
    preferences = table["micro_epsilon"]
    least, most = pc.min_max(preferences).values()
    if preferences.null_count or least.as_py() < 0 or most.as_py() > LARGEST_EPSILON * MICRO:
        raise InvalidPreference(
            f"Everybody in a register needs an epsilon from 0 to {LARGEST_EPSILON:g}, got one missing or beyond."
        )
    seen = table.group_by("person").aggregate([("micro_epsilon", "min"), ("micro_epsilon", "max")])
    if pc.any(pc.not_equal(seen["micro_epsilon_min"], seen["micro_epsilon_max"])).as_py():
        raise InvalidPreference(
            "Everybody must have one epsilon, but at least one person has rows with different ones. "
            "Give each person a single preference (the smallest of theirs is always safe)."
        )
    return pa.table({"person": seen["person"], "micro_epsilon": seen["micro_epsilon_min"]}).sort_by("person")


def digest_people(people: pa.Table) -> str:
    """SHA-256 over everybody and their preference, in order; lengths make the text unambiguous."""
    digest, text, between = sha256(), pa.large_string(), b""
    for batch in _batches(people):
        person = batch["person"].cast(text)
        parts = (pc.binary_length(person).cast(text), person, batch["micro_epsilon"].cast(text))
        lines = pc.binary_join_element_wise(*parts, pa.scalar(":", text))
        whole = pc.binary_join(pa.LargeListArray.from_arrays([0, len(lines)], lines), pa.scalar("\n", text))
        digest.update(between)
        digest.update(whole[0].as_buffer())
        between = b"\n"
    return digest.hexdigest()


def listed(people: pa.Table) -> Iterator[tuple[str, int]]:
    """Return everybody and their preference one by one; as objects of Python all of them would take far more memory."""
    for batch in _batches(people):
        yield from zip(batch["person"].to_pylist(), batch["micro_epsilon"].to_pylist(), strict=True)


def _batches(people: pa.Table) -> Iterator[pa.RecordBatch]:
    return (batch for batch in people.to_batches(max_chunksize=PART) if batch.num_rows)


def levels_of(people: pa.Table) -> dict[int, int]:
    """Micro-ε -> how many people enrolled with it, ascending."""
    counted = people["micro_epsilon"].value_counts()
    return dict(sorted((pair["values"].as_py(), pair["counts"].as_py()) for pair in counted))


def insert_many(db: sa.Connection, table: sa.Table, rows: Iterable[Sequence[Any]]) -> None:
    """Insert rows in the order of the table's columns; a million take seconds."""
    columns = ", ".join(column.name for column in table.columns)
    raw: Any = db.connection.cursor()  # psycopg has copy, sqlite3 takes an iterator
    if db.dialect.name == "postgresql":
        with raw.copy(f"COPY {table.name} ({columns}) FROM STDIN") as copy:
            for row in rows:
                copy.write_row(row)
    else:
        raw.executemany(f"INSERT INTO {table.name} ({columns}) VALUES ({', '.join('?' * len(table.columns))})", rows)
    raw.close()


def _as_text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    kind = column.type
    if isinstance(kind, pa.UuidType):
        return pa.chunked_array([[None if one is None else str(one) for one in column.to_pylist()]], pa.string())
    if pa.types.is_dictionary(kind):
        return _as_text(column.cast(kind.value_type))
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    if not (is_text or pa.types.is_integer(kind)):
        raise InvalidDeclaration(f"A person is identified by an integer, a text or a UUID, got a column of {kind}.")
    return column.cast(pa.string())
