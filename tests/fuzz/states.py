"""People's states: rows that hold the extremes of every type, and calm rows for everybody else."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from math import isnan
from typing import Any

import pyarrow as pa

from discretion.noise import simulation

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("epsilon", pa.float64()),
        ("d", pa.float64()),
        ("f", pa.float32()),
        ("i", pa.int64()),
        ("n", pa.int32()),
        ("u", pa.uint64()),
        ("h", pa.decimal128(38, 0)),
        ("m", pa.decimal128(10, 2)),
        ("r", pa.float64()),  # required
        ("q", pa.int16()),  # required
        ("t", pa.string()),
        ("k", pa.string()),
        ("e", pa.string()),
        ("b", pa.bool_()),
        ("day", pa.date32()),
        ("at", pa.timestamp("us")),
        ("ms", pa.timestamp("ms")),
        ("ns", pa.timestamp("ns")),
        ("sec", pa.timestamp("s")),
        ("z", pa.timestamp("ms", tz="UTC")),
    ]
)
Row = Mapping[str, Any]  # times as whole numbers since 1970 in the column's own unit, so that every one can be written
LONG, FAR = 2**63 - 1, 1_704_067_200  # 2024-01-01
FIRST, LAST = -62_135_596_800, 253_402_300_800  # seconds from 1970 to the year 1, and to the year 10000
CALM: Row = {
    "d": 5.0,
    "f": 2.5,
    "i": 7,
    "n": 3,
    "u": 9,
    "h": 40,
    "m": 2.5,
    "r": 4.0,
    "q": 2,
    "t": "12",
    "k": "a",
    "e": "x",
    "b": True,
    "day": 19_723,
    "at": FAR * 10**6,
    "ms": FAR * 1000,
    "ns": FAR * 10**9,
    "sec": FAR,
    "z": FAR * 1000,
}
_NAN, _INF = float("nan"), float("inf")
_DOUBLES = (
    None,
    _NAN,
    _INF,
    -_INF,
    -0.0,
    0.0,
    1.7976931348623157e308,
    -1.7976931348623157e308,
    5e-324,
    1e17,
    55.0,
    -3.5,
)
_TEXTS = (
    *(None, "", "a", "b", "A", "nan", "1e400", "-9223372036854775809", "0.5", "2024-02-30", "infinity", "true"),
    *("x" * 9_000, "é" * 300, "\u0130\u00df\U0001f600", "it's", "%_\\", " ", "294247-01-10 04:00:54.775807", "\x00"),
)
EXTREMES: Mapping[str, Sequence[Any]] = {
    "d": _DOUBLES,
    "f": (None, _NAN, _INF, -_INF, -0.0, 3.4028234663852886e38, -3.4028234663852886e38, 1e-45, 55.0),
    "i": (None, LONG, -LONG - 1, 0, -1, 2**53 + 1, 255),
    "n": (None, 2**31 - 1, -(2**31), 0, -1),
    "u": (None, 2**64 - 1, 2**63, 0),
    "h": (None, 10**38 - 1, -(10**38) + 1, 0, 10),
    "m": (None, 99_999_999.99, -99_999_999.99, 0.0, 0.01),
    "r": (None, *_DOUBLES[1:]),
    "q": (None, 0, 32_767, -32_768),
    "t": _TEXTS,
    "k": (None, "", "b", "A", "other"),
    "e": (None, "y", "\u0130", "12"),
    "b": (None, False),
    "day": (None, 2**31 - 2, -(2**31) + 2, -2_147_483_648, 2_147_483_647, 0, -719_528, 2_932_896, -719_162),
    "at": (None, LONG - 1, -LONG + 1, LONG, -LONG, -LONG - 1, 0, -62_135_596_800_000_000, 253_402_300_799_999_999),
    "ms": (None, LONG, -LONG, LONG - 1, 9_223_372_036_854_775, -9_223_372_036_854_775, 10**16, 0),
    "ns": (None, LONG, -LONG, LONG - 1, -LONG + 1, -LONG - 1, 0, -1),
    "sec": (None, LONG, -LONG, 9_223_372_036_854, -9_223_372_036_855, 10**14, 0),
    "z": (None, LONG, -LONG, LONG - 1, 9_223_372_036_854_775, -9_223_372_036_854_776, 0, 253_402_300_799_999),
}
UNSOUND: Row = {**CALM, "ms": LONG}  # a row that makes every source a copy
State = Sequence[Row]  # all rows of one person


def states(count: int, seed: int = 14) -> list[State]:
    """Return `count` states: one extreme among calm values, extremes in every column, and several rows."""
    rng = simulation(seed)
    single = [{**CALM, name: value} for name, values in EXTREMES.items() for value in values]
    chosen = [single[place] for place in rng.permutation(len(single))]

    def wild() -> Row:
        return {name: values[int(rng.integers(len(values)))] for name, values in EXTREMES.items()}

    made: list[State] = [[CALM]]
    while len(made) < count:
        kind = len(made) % 5
        if kind < 3 and chosen:
            made.append([chosen.pop()])
        elif kind == 3:
            made.append([wild()])
        else:
            made.append([wild() for _ in range(1 + int(rng.integers(4)))] + [CALM])
    return made


def sound(row: Row) -> Row:
    """Return a row without what becomes NULL at admission: NaN, and times outside the years 1 to 9999."""
    units = {"at": 10**6, "ms": 1000, "ns": 10**9, "sec": 1, "z": 1000, "day": Fraction(1, 86_400)}
    kept = dict(row)
    for name, value in row.items():
        unit = units.get(name)
        if value is not None and unit is not None and not (FIRST * unit <= value < LAST * unit and abs(value) < LONG):
            kept[name] = None
        if isinstance(value, float) and isnan(value):
            kept[name] = None
    return kept


def table(people: Mapping[int, State]) -> pa.Table:
    """Return the rows of these people; everybody's preference is their own number, a cohort each."""
    rows = [{"id": who, "epsilon": float(who), **row} for who, state in people.items() for row in state]
    return pa.table({field.name: _column(field, [row[field.name] for row in rows]) for field in SCHEMA}, schema=SCHEMA)


def _column(field: pa.Field, values: list[Any]) -> pa.Array:
    if pa.types.is_date32(field.type):
        return pa.array(values, pa.int32()).view(field.type)
    if pa.types.is_timestamp(field.type):
        return pa.array(values, pa.int64()).view(field.type)
    if pa.types.is_decimal(field.type):
        return (
            pa.array([None if value is None else round(value, 2) for value in values], pa.float64()).cast(field.type)
            if field.name == "m"
            else _wide(values)
        )
    return pa.array(values, field.type)


def _wide(values: list[Any]) -> pa.Array:
    return pa.array([None if value is None else Decimal(value) for value in values], pa.decimal128(38, 0))
