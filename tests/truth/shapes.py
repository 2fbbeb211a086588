"""Shapes of tables: hypothesis draws the structure, a seeded generator fills in the values."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from math import inf, isfinite, nan
from typing import Any
from zlib import crc32

import pyarrow as pa
from hypothesis import strategies as st

from discretion.noise import simulation

EPSILON = 1000.0  # the largest allowance there is
NAMES = [
    *("zeta", "Age", "amount", "is smoker", "when", "select", "Group", "count", "file_row_number", "rowid"),
    *(
        "Größe (cm)",
        "日本語",
        "it's",
        'a "quoted" name',
        "semi;colon",
        "a,comma",
        "100%_",
        "b",
        "v0",
        "epsilon",
        "person",
    ),
    *("p", "c", "n", "t", "order by", "null", "Ünïcödé", "x.y", "1st", "-", "index", "coin", "step", "key"),
]
TEXTS = [
    "N",
    "S",
    "n",
    "e, w",
    'say "hi"',
    "it's",
    "two\nlines",
    "Ærø",
    "日本",
    " lead",
    "trail ",
    "NULL",
    "a;b\tc",
    "%_",
]
PADDED = ["007", "7", "0007", "010", "10", "000"]
START = datetime(2019, 12, 30, 22, 30)
NUMBERS = {  # name -> (Arrow type, smallest value, largest value)
    "int8": (pa.int8(), -100, 100),
    "int16": (pa.int16(), -300, 300),
    "int32": (pa.int32(), 99_900, 100_100),
    "int64": (pa.int64(), 0, 9),
    "uint8": (pa.uint8(), 0, 255),
    "uint16": (pa.uint16(), 60_000, 60_050),
    "uint32": (pa.uint32(), 0, 1),
    "uint64": (pa.uint64(), 0, 50),
}
TYPES = (
    *NUMBERS,
    "huge",
    "decimal",
    "float",
    "single",
    "bool",
    "date",
    "time",
    "micro",
    "zoned",
    "category",
    "text",
    "padded",
)
AGGREGATED = (*NUMBERS, "decimal", "float", "single")


@dataclass(frozen=True, kw_only=True)
class Column:
    """One generated column of a known type."""

    name: str
    type: str
    values: list[Any]

    def __repr__(self) -> str:
        return f"{self.name!r} {self.type}"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(repr(self))  # hypothesis would print every value

    @property
    def sql(self) -> str:
        return '"' + self.name.replace('"', '""') + '"'

    @property
    def bounds(self) -> tuple[float, float]:
        """Return bounds that some values exceed, so that clamping shows."""
        if self.type in NUMBERS:
            _, low, high = NUMBERS[self.type]
            return (low, high) if high - low < 10 else (low + (high - low) // 8, high - (high - low) // 8)
        return (-2.0, 6.0)

    def arrow(self) -> pa.Array:
        kinds = {
            **{name: kind for name, (kind, *_) in NUMBERS.items()},
            "huge": pa.int64(),
            "decimal": pa.decimal128(12, 2),
            "float": pa.float64(),
            "single": pa.float32(),
            "bool": pa.bool_(),
            "date": pa.date32(),
            "time": pa.timestamp("s"),
            "micro": pa.timestamp("us"),
            "zoned": pa.timestamp("us", tz="Europe/Berlin"),
            "text": pa.string(),
            "padded": pa.string(),
            "category": pa.string(),
            "number": pa.int64(),
        }
        array = pa.array(self.values, kinds[self.type])
        return array.dictionary_encode() if self.type == "category" else array


@dataclass(frozen=True, kw_only=True)
class Shape:
    """One table, whose rows they are, and how it is protected."""

    person: Column
    columns: list[Column]
    order: list[str]
    rows_per_person: int
    protects: str
    enrolled: list[Any] = field(default_factory=list, repr=False)  # the people of the register, under presence
    epsilon: str = ""  # the column of preferences, under value
    rng: Any = field(default=None, compare=False)  # chooses the questions

    def __repr__(self) -> str:
        return f"{len(self.person.values)} rows of {self.person}, {self.protects}, {self.columns[:9]}"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(repr(self))

    def table(self) -> pa.Table:
        """Return the whole table, its columns in the drawn order."""
        rows = len(self.person.values)
        found = {column.name: column.arrow() for column in (self.person, *self.columns)}
        if self.epsilon:
            found[self.epsilon] = pa.array([EPSILON] * rows)
        return pa.table({name: found[name] for name in self.order})

    def counted(self) -> list[bool]:
        """Return which rows belong to somebody who can be asked about."""
        known = set(self.enrolled)
        return [who is not None and (self.protects == "value" or who in known) for who in self.person.values]


def value(kind: str, rng: Any) -> Any:
    """Return one value of a type."""
    if kind in NUMBERS:
        _, low, high = NUMBERS[kind]
        return int(rng.integers(low, high + 1))
    day = START + timedelta(minutes=int(rng.integers(0, 4000)))
    makers = {
        "huge": lambda: 2**60 + int(rng.integers(0, 4)),
        "decimal": lambda: Decimal(int(rng.integers(-300, 700))) / 100,
        "float": lambda: (
            [nan, inf, -inf][int(rng.integers(3))] if rng.random() < 0.1 else float(rng.integers(-300, 700)) / 100
        ),
        "single": lambda: float(rng.integers(-12, 28)) / 4,
        "bool": lambda: bool(rng.random() < 0.4),
        "date": lambda: day.date() + timedelta(days=int(rng.integers(0, 40))),
        "time": lambda: day,
        "micro": lambda: day + timedelta(microseconds=int(rng.integers(0, 10**6))),
        "zoned": lambda: day.replace(tzinfo=UTC),
        "category": lambda: TEXTS[int(rng.integers(0, 5))],
        "text": lambda: TEXTS[int(rng.integers(len(TEXTS)))],
        "padded": lambda: PADDED[int(rng.integers(len(PADDED)))],
    }
    return makers[kind]()


def filled(name: str, kind: str, rows: int, missing: float, rng: Any) -> Column:
    """Return a column of `rows` values, some of them missing."""
    values = [None if rng.random() < missing else value(kind, rng) for _ in range(rows)]
    if all(one is None for one in values):
        values[0] = value(kind, rng)
    return Column(name=name, type=kind, values=values)


PEOPLE = {
    "number": lambda i: 3 * i + 1,
    "text": lambda i: f"p{i:05d}",
    "padded": lambda i: f"{i:04d}",
    "words": lambda i: f"{TEXTS[i % 10]} {i}",
}


@st.composite
def shapes(draw: Any, salt: int = 0, most_columns: int = 200, people: tuple[int, int] = (20, 50)) -> Shape:
    """Draw a table; what comes first in a list is drawn more often, and finds most."""
    protects = draw(st.sampled_from(["value", "presence"]), label="protects")
    k = draw(st.integers(1, 3), label="rows per person")
    most = draw(st.sampled_from([15, 8, 1]), label="types")
    missing = draw(st.sampled_from([0.1, 0.0, 0.5]), label="missing")
    style = draw(st.sampled_from(sorted(PEOPLE)), label="identifiers")
    ids = [PEOPLE[style](i) for i in range(draw(st.integers(*people), label="people"))]
    is_wide = draw(st.sampled_from([False, False, False, True]), label="wide")
    seed = draw(st.integers(0, 2**32 - 1), label="seed")
    rng = simulation(crc32(repr((salt, protects, k, most, missing, style, len(ids), is_wide, seed)).encode()))
    names = [NAMES[i] for i in rng.permutation(len(NAMES))]
    several = [*TYPES, "int64", "text"]
    used = [several[i] for i in rng.permutation(len(several))][:most]
    owners = [who for who in ids for _ in range(int(rng.integers(1, k + 1)))]
    if missing and protects == "presence":
        owners += [None] * 2
    owners = [owners[i] for i in rng.permutation(len(owners))]
    columns = [filled(names[i + 2], kind, len(owners), missing, rng) for i, kind in enumerate(used)]
    more = most_columns - len(columns) - 2 if is_wide else 0
    columns += [filled(f"filler {i}", "int64", len(owners), 0.0, rng) for i in range(more)]
    epsilon = names[1] if protects == "value" else ""
    order = [names[0], *(column.name for column in columns), *([epsilon] if epsilon else [])]
    return Shape(
        person=Column(name=names[0], type="number" if style == "number" else "text", values=owners),
        columns=columns,
        order=[order[i] for i in rng.permutation(len(order))],
        rows_per_person=k,
        protects=protects,
        enrolled=[who for i, who in enumerate(ids) if i % 5] + [PEOPLE[style](i) for i in (9001, 9002)],
        epsilon=epsilon,
        rng=rng,
    )


def cleaned(column: Column, *, is_text: bool) -> list[Any]:
    """Return the values as they count: NaN and infinities are missing; in text files, empty texts too."""
    return [
        None if (isinstance(one, float) and not isfinite(one)) or (is_text and one == "") else one
        for one in column.values
    ]
