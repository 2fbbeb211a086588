"""Table: what a steward declares about protected data. All of it is public."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import date
from functools import cached_property
from math import isfinite
from typing import Any, Literal

from discretion.errors import InvalidDeclaration
from discretion.guarantee import Protects
from discretion.render.sheet import Sheet, Shown, to_html, to_text

MOST_GROUPS = 10_000  # that GROUP BY can have
COPY = ".copy.parquet"  # the ending of a file that admission made
COLUMNS = ("table", "protects", "person", "rows per person", "bounds", "keys", "columns")
LONGEST_TEXT = 1_000  # characters of a text that count, if nobody says otherwise
Bounds = tuple[float, float] | tuple[date, date] | tuple[str, str]  # texts are dates
LookupSource = tuple[object, str] | tuple[object, str, Literal["public"]]  # (source, key), or not made of people's rows


@dataclass(frozen=True, kw_only=True)
class Policy:
    """Says what the steward allows on one table. Quotas are scheduling; the promise is each person's own cap."""

    largest_share: float = 1.0  # of each person's allowance, by one query
    quotas: Mapping[str, float] = field(default_factory=dict)  # analyst -> share over all their queries
    individual: bool = False  # model `individual`, which is not differential privacy
    float_arithmetic: bool = False  # mechanisms without an exact sampler
    largest_delta: float = 0.0
    preferences_are: str = "public"

    def __post_init__(self) -> None:
        if not 0 < self.largest_share <= 1:
            raise InvalidDeclaration(f"The largest share must be above 0 and at most 1, got {self.largest_share!r}.")
        if not 0 <= self.largest_delta < 1:
            raise InvalidDeclaration(f"The largest delta must be from 0 to below 1, got {self.largest_delta!r}.")
        if self.preferences_are != "public":
            raise InvalidDeclaration(
                f"preferences_are must be 'public', got {self.preferences_are!r}: mechanisms are tuned to the "
                "choices people made, so keeping the choices themselves secret is not supported yet."
            )


@dataclass(frozen=True, kw_only=True)
class Lookup:
    """An unprotected table that analysts may join on a unique key."""

    source: str
    key: str
    columns: Mapping[str, str]  # name -> SQL type
    origin: str = ""  # what the steward gave, as `Source.to_json` writes it; empty for objects and before version 0.2
    admitted: str = ""  # the fingerprint of the state that may be asked about
    public: bool = False  # the steward confirmed that it was not made from people's rows: its values are keys
    keys: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)  # column -> every value of it, where public


@dataclass(frozen=True, kw_only=True, repr=False)
class Table(Shown):
    """One protected table: who owns its rows, how many each, and where its values may lie."""

    name: str
    source: str  # where its rows are, in the engine's words
    person: str  # the column that says whose row it is
    register: str  # whose allowances pay; a table that protects values is its own register
    protects: Protects
    columns: Mapping[str, str]  # name -> SQL type
    epsilon: str = ""  # the column of preferences, where the table is its own register
    rows_per_person: int = 1
    bounds: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    spans: Mapping[str, tuple[str, str]] = field(default_factory=dict)  # bounds of dates and times, in ISO form
    grid: Mapping[str, float] = field(default_factory=dict)  # column -> step between candidate answers
    keys: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)  # column -> every value an answer shows
    required: tuple[str, ...] = ()  # columns declared never NULL; a NULL found there counts as the bound nearest 0
    lookups: Mapping[str, Lookup] = field(default_factory=dict)
    longest_text: int = LONGEST_TEXT  # characters of a text that count, except in the person; the rest is cut off
    policy: Policy = field(default_factory=Policy)
    origin: str = ""  # what the steward gave, as `Source.to_json` writes it; empty for objects and before version 0.2
    admitted: str = ""  # the fingerprint of the state that may be asked about

    def __post_init__(self) -> None:
        named = {self.person, *self.bounds, *self.spans, *self.grid, *self.keys, *self.required}
        unknown = sorted((named | ({self.epsilon} if self.epsilon else set())) - set(self.columns))
        if unknown:
            raise InvalidDeclaration(
                f"Table {self.name!r} has no column {', '.join(map(repr, unknown))}; "
                f"it has {', '.join(map(repr, self.columns))}."
            )
        if not isinstance(self.rows_per_person, int) or self.rows_per_person < 1:
            raise InvalidDeclaration(
                f"rows_per_person must be a whole number, at least 1, got {self.rows_per_person!r}."
            )
        if not isinstance(self.longest_text, int) or not 1 <= self.longest_text <= 10_000:
            raise InvalidDeclaration(
                f"longest_text must be a whole number from 1 to 10,000, got {self.longest_text!r}."
            )
        for column, (low, high) in self.bounds.items():
            if not (isfinite(low) and isfinite(high) and low < high):
                raise InvalidDeclaration(f"Bounds of {column!r} must be finite and ascend, got {low!r} to {high!r}.")
        for column, step in self.grid.items():
            if not (isfinite(step) and step > 0):
                raise InvalidDeclaration(f"The grid step of {column!r} must be above 0, got {step!r}.")
        for column, values in self.keys.items():
            if not values or len(set(values)) != len(values):
                raise InvalidDeclaration(f"Keys of {column!r} must be one or more different values.")

    def __hash__(self) -> int:
        return hash((self.name, self.source))  # what it holds has no hash, and need not differ

    def sheets(self) -> list[Sheet]:
        """Return what the declaration makes public, and what it protects."""
        rows = [(column, kind, _role(self, column), _use(self, column)) for column, kind in self.columns.items()]
        protects = (
            "Protected: everybody's values. Public: who is in the table."
            if self.protects == "value"
            else "Protected: whether somebody is in the table at all, and everything about them in it."
        )
        k = self.rows_per_person
        limit = "At most 1 row of a person counts" if k == 1 else f"At most {k:,} rows of a person count"
        return [
            Sheet(
                title=f"Table {self.name!r}, paid for by register {self.register!r}",
                columns=("column", "type", "declared", "may be used in"),
                rows=tuple(rows),
                notes=(
                    "Public: all of the above, and how many people chose which level of privacy.",
                    protects,
                    f"{limit}; others are left out at random.",
                    *([f"Its rows are a copy: {self.source}."] if self.source.endswith(COPY) else []),
                    *(
                        f"Lookup {name!r}, not protected: {', '.join(lookup.columns)}; joined on {lookup.key}."
                        + (f" GROUP BY may use {', '.join(lookup.keys)}." if lookup.keys else "")
                        for name, lookup in self.lookups.items()
                    ),
                    *_policy(self.policy),
                ),
            )
        ]

    def stored(self) -> str:
        """Return the canonical text for the ledger; what version 0.1 did not know is left out where nobody said it."""
        stored = asdict(self)
        for kept in (stored, *stored["lookups"].values()):
            for name in ("origin", "admitted", *(("public", "keys") if kept is not stored else ())):
                if not kept[name]:
                    del kept[name]
        if self.longest_text == LONGEST_TEXT:  # stored answers of version 0.1 stay free
            del stored["longest_text"]
        if not self.spans:
            del stored["spans"]
        return json.dumps(stored, sort_keys=True)

    @cached_property
    def identity(self) -> str:
        """Return everything declared that an answer depends on: what is allowed and where rows came from is left out.

        The state of every source has a fingerprint of its own.
        """
        # The keys of a lookup follow from its state.
        lookups = {name: replace(one, origin="", admitted="", keys={}) for name, one in self.lookups.items()}
        return replace(self, policy=Policy(), lookups=lookups, origin="", admitted="").stored()

    @classmethod
    def from_stored(cls, text: str) -> "Table":
        """Return the table that `stored` wrote down."""
        stored = json.loads(text)
        stored["bounds"] = {column: tuple(pair) for column, pair in stored["bounds"].items()}
        stored["spans"] = {column: tuple(pair) for column, pair in stored.get("spans", {}).items()}
        stored["keys"] = {column: tuple(values) for column, values in stored["keys"].items()}
        stored["required"] = tuple(stored["required"])
        for lookup in stored["lookups"].values():
            lookup["keys"] = {column: tuple(values) for column, values in lookup.get("keys", {}).items()}
        stored["lookups"] = {name: Lookup(**lookup) for name, lookup in stored["lookups"].items()}
        stored["policy"] = Policy(**stored["policy"])
        return cls(**stored)


def _policy(policy: Policy) -> Iterator[str]:
    """Return what the steward allows beyond, or less than, what everybody gets."""
    if policy.largest_share < 1:
        yield f"One question may use at most {policy.largest_share:g} of an allowance."
    if policy.quotas:
        shares = ", ".join(f"{name} {share:g}" for name, share in policy.quotas.items())
        yield f"Over all questions of an analyst, at most: {shares}."
    if policy.largest_delta:
        yield f"All answers together may add a δ of at most {policy.largest_delta:g}."
    if policy.float_arithmetic:
        yield "Allowed: mechanisms without an exact sampler."
    if policy.individual:
        yield "Allowed: model `individual`, which is NOT differential privacy."


def _role(table: Table, column: str) -> str:
    if column == table.person:
        return "the person"
    if column == table.epsilon:
        return "their preference"
    if column in table.bounds:
        low, high = table.bounds[column]
        return f"{low:,.12g} to {high:,.12g}"
    if column in table.spans:
        return " to ".join(table.spans[column])
    return ", ".join(map(str, table.keys[column])) if column in table.keys else ""


def _use(table: Table, column: str) -> str:
    if column in (table.person, table.epsilon):
        return "COUNT(DISTINCT ...)" if column == table.person else ""
    kind, (low, high) = table.columns[column].upper(), table.bounds.get(column, (0.0, float(MOST_GROUPS)))
    few = "INT" in kind and high - low < MOST_GROUPS
    grouped = column in table.keys or kind == "BOOLEAN" or few
    uses = ["WHERE"]
    dated = "GROUP BY day, month, year, ..." if column in table.spans else "GROUP BY month, ..."
    uses += ["GROUP BY"] if grouped else [dated] if kind.startswith(("DATE", "TIMESTAMP")) else []
    uses += ["SUM, AVG, ..."] if column in table.bounds else []
    return ", ".join(uses)


class TableList(tuple[Table, ...]):
    """Protected tables, which a notebook and a terminal show as one table."""

    __slots__ = ()

    def sheets(self) -> list[Sheet]:
        """Return one row for each table: what it protects, and what is declared about it."""
        rows = tuple(
            (
                one.name,
                one.protects,
                one.person,
                f"{one.rows_per_person:,}",
                ", ".join(
                    [f"{column} {low:,.12g} to {high:,.12g}" for column, (low, high) in one.bounds.items()]
                    + [f"{column} {first} to {last}" for column, (first, last) in one.spans.items()]
                ),
                ", ".join(f"{column} ({len(values):,})" for column, values in one.keys.items()),
                ", ".join(one.columns),
            )
            for one in self
        )
        return [Sheet(columns=COLUMNS, rows=rows, numbers=frozenset({"rows per person"}))]

    def __str__(self) -> str:
        return to_text(self.sheets())

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return to_html(self.sheets())
