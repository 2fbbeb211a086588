"""Scalar expressions and extreme rows: what every engine must compute alike."""

from datetime import date, datetime
from decimal import Decimal
from math import inf, nan
from typing import Any

import pyarrow as pa

TYPES = {
    "id": pa.int64(),
    "epsilon": pa.float64(),
    "x": pa.float64(),
    "y": pa.float64(),
    "f": pa.float32(),
    "i": pa.int64(),
    "n": pa.int32(),
    "k": pa.int8(),
    "m": pa.decimal128(38, 2),
    "d": pa.decimal128(9, 2),
    "t": pa.string(),
    "u": pa.string(),
    "day": pa.date32(),
    "at": pa.timestamp("us"),
    "b": pa.bool_(),
}
VALUES: dict[str, list[Any]] = {
    "x": [
        *(0.0, -0.0, 0.5, -0.5, 1.5, 2.5, -2.5, 2.675, 1.005, 0.49999999999999994, 1e15 + 0.5, 4503599627370497.0),
        *(
            1e20,
            1e300,
            -1e308,
            5e-324,
            255.0,
            9.3e18,
            -9.3e18,
            2147483647.5,
            127.5,
            -128.5,
            nan,
            inf,
            -inf,
            0.1,
            12345.678,
        ),
        *(9007199254740993.0, 1e-5, 1e7, 0.001, 3.7, -3.7, -2147483648.5, 4503599627370495.5, -0.49999999999999994),
    ],
    "y": [1.0, 0.0, -1.0, 2.0, 0.3, -7.25, 1e-300, nan, inf, 3.0],
    "f": [0.1, 1.5, -2.5, 3.4e38, 1e-45, nan, 16777217.0],
    "i": [0, 1, -1, 5, 7, 2**31, 2**53 + 1, 2**63 - 1, -(2**63), -7, 10**15],
    "n": [0, 1, -1, 5, 2**31 - 1, -(2**31), 100, -7],
    "k": [0, 1, 127, -128],
    "m": [Decimal(one) for one in ("0", "1.50", "-1.50", "2.49", "-2.51", "9" * 35 + ".99", "12345678901234567.89")],
    "d": [Decimal(one) for one in ("0", "0.50", "-0.50", "1.25", "2.50", "-2.50", "9999999.99", "-9999999.99", "0.01")],
    "t": [
        *(
            "",
            "12",
            "12.7",
            "1e3",
            "1d",
            "1f",
            "2024",
            " 12 ",
            "\t7\n",
            "-0.5",
            "0.5",
            ".5",
            "5.",
            "1e",
            "1e400",
            "inf",
        ),
        *("2024-02-30", "2024-02-29", "2024-02-29 10:11:12", "2024-02-29T10:11:12.5", "true", "TRUE", "t", "no", "2"),
        *("9" * 400, "x" * 2000, "ß" * 30, "9223372036854775807", "9223372036854775808", "12.5", "-12.5", "+5", "007"),
    ],
    "u": [
        *(
            "",
            "abc",
            "ABC",
            "a_b",
            "axb",
            "a%b",
            "a\\b",
            "a\\_b",
            "ΑΣ",
            "İi",
            "straße",
            "ŉﬁǆ",
            "é👍🏽",
            " pad ",
            "'quote'",
        ),
        *("$var", "line\nbreak", "\t tab\t", "\u00a0nbsp\u00a0", "a!b#c", "日本", "ẞ", "e\u0301", "aB👍"),
    ],
    "day": [
        *(
            date(1, 1, 1),
            date(9999, 12, 31),
            date(2024, 2, 29),
            date(1970, 1, 1),
            date(1969, 12, 31),
            date(2023, 12, 31),
        ),
        *(
            date(2024, 1, 7),
            date(2024, 1, 8),
            date(1900, 2, 28),
            date(1582, 10, 10),
            date(2020, 12, 28),
            date(999, 5, 6),
        ),
    ],
    "at": [
        *(datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999), datetime(2024, 2, 29, 12, 30, 59, 900000)),
        *(
            datetime(1970, 1, 1),
            datetime(1969, 12, 31, 23, 59, 59, 500000),
            datetime(2024, 3, 31, 2, 30),
            datetime(1582, 10, 10),
        ),
        *(datetime(1969, 12, 31, 22, 30), datetime(2023, 12, 31, 23, 0, 0, 1), datetime(1900, 1, 1, 0, 0, 0, 120)),
    ],
    "b": [True, False],
}


def rows() -> pa.Table:
    """Return every value of every column at least once, in two different combinations, and a row of NULLs."""
    columns: dict[str, list[Any]] = {}
    size = 2 * max(map(len, VALUES.values())) + 1
    for place, (name, values) in enumerate(VALUES.items()):
        cycled = [
            values[(row * (1 if row < size // 2 else place + 1) + row // len(values)) % len(values)]
            for row in range(size - 1)
        ]
        columns[name] = [*cycled, None]
    columns |= {"id": list(range(size)), "epsilon": [0.1] * size}
    return pa.table({name: pa.array(columns[name], kind) for name, kind in TYPES.items()})


_UNITS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")
EXPRESSIONS = (
    *(
        "i + 1",
        "n + n",
        "k + k",
        "i + n",
        "i - n",
        "i * i",
        "n * n * n",
        "i * i * i",
        "-n",
        "-i",
        "-k",
        "ABS(i)",
        "ABS(n)",
    ),
    *("i // n", "i // -1", "n // 7", "i % n", "i % -1", "n % 7", "i % 0.001", "m % 7", "x % y", "k * k", "i - 1 > n"),
    *(
        "m + 1",
        "m * 2",
        "m * m",
        "m - n",
        "d * d",
        "d + i",
        "d * 0.125",
        "d - m",
        "d % 0.3",
        "-m",
        "ABS(m)",
        "ABS(d)",
        "CAST(m AS DECIMAL(37, 2)) + 1",
        "CAST(m AS DECIMAL(37, 2)) * 3",
        "-(i * i)",
        "ABS(i * n) + i",
        "d * n",
    ),
    *("x + y", "x - y", "x * y", "x / y", "i / n", "d / 3", "x / 0", "x * 2", "f + 1", "f * f", "x + i", "m / d"),
    *(
        "SQRT(x)",
        "SQRT(ABS(d))",
        "FLOOR(x)",
        "CEIL(x)",
        "ROUND(x)",
        "TRUNC(x)",
        "ROUND(x, 2)",
        "ROUND(x, -2)",
        "TRUNC(x, 1)",
    ),
    *("ROUND(x, 15)", "ROUND(x, -15)", "ROUND(i, -2)", "FLOOR(m)", "CEIL(m)", "ROUND(m, 1)", "TRUNC(m)", "FLOOR(d)"),
    *("CEIL(d)", "ROUND(d)", "ROUND(d, 1)", "TRUNC(d)", "SIGN(x)", "SIGN(i)", "SIGN(m)", "FLOOR(f)", "ROUND(n)"),
    *("WIDTH_BUCKET(x, -1.5, 100, 7)", "WIDTH_BUCKET(i, 0, 9, 3)", "WIDTH_BUCKET(f, 0.1, 0.7, 6)"),
    *("x > y", "x <> y", "x = x", "i < n", "m > i", "d <= m", "x IS NULL", "t = u", "t < u", "u >= 'a'", "b", "NOT b"),
    *("x IS DISTINCT FROM y", "n IS NOT DISTINCT FROM k", "x BETWEEN y AND 100", "n IN (1, 5, -7)", "u IN ('abc', '')"),
    *("b AND x > 1", "b OR x > 1", "b IS TRUE", "b IS FALSE", "x > 1 IS NULL", "day > at", "day = DATE '2024-02-29'"),
    *("u LIKE 'a_b'", "u LIKE 'a\\_b'", "u LIKE 'a%'", "u LIKE '%\\%'", "u LIKE '%👍%'", "u LIKE '_'", "u ILIKE 'a%'"),
    *("u ILIKE 'ασ'", "u ILIKE '%SS%'", "u ILIKE 'STRASSE'", "u NOT LIKE 'a%'", "u ILIKE 'i%'", "u LIKE 'a!b#c'"),
    *(
        "LOWER(u)",
        "UPPER(u)",
        "LENGTH(u)",
        "TRIM(u)",
        "u || '!'",
        "CONCAT(u, t)",
        "SUBSTRING(u, 2, 2)",
        "SUBSTRING(u, 2)",
    ),
    *(
        "LEFT(u, 2)",
        "RIGHT(u, 2)",
        "LEFT(u, 0)",
        "RIGHT(u, 0)",
        "STARTS_WITH(u, 'a')",
        "ENDS_WITH(u, 'b')",
        "CONTAINS(u, '_')",
    ),
    *("u = '''quote'''", "u = '$var'", "CONTAINS(u, '\\')", "LENGTH(t) > 5", "t || u = '12'"),
    *(f"{unit.upper()}(day)" for unit in _UNITS),
    *(f"{unit.upper()}(at)" for unit in _UNITS),
    *("EXTRACT(DOW FROM day)", "EXTRACT(ISODOW FROM day)", "EXTRACT(DOY FROM at)", "EXTRACT(DOW FROM at)"),
    *(f"DATE_TRUNC('{unit}', at)" for unit in _UNITS),
    *(f"DATE_TRUNC('{unit}', day)" for unit in _UNITS[:5]),
    *(f"DATE_DIFF('{unit}', day, at)" for unit in _UNITS),
    *(f"DATE_DIFF('{unit}', day, DATE '2024-01-31')" for unit in _UNITS[:5]),
    *(f"day + INTERVAL 13 {unit.upper()}" for unit in _UNITS),
    *(f"at - INTERVAL 999999 {unit.upper()}" for unit in _UNITS),
    *("at + INTERVAL 1 MONTH", "at + INTERVAL 200 YEAR", "day - day", "day - DATE '2024-01-01'", "NULLIF(day, at)"),
    *(
        f"CAST(x AS {kind})"
        for kind in ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "FLOAT", "BOOLEAN", "DECIMAL(9, 2)")
    ),
    *(
        f"CAST(i AS {kind})"
        for kind in ("TINYINT", "INTEGER", "DOUBLE", "FLOAT", "VARCHAR", "BOOLEAN", "DECIMAL(9, 4)")
    ),
    *(
        f"CAST(d AS {kind})"
        for kind in ("TINYINT", "INTEGER", "DOUBLE", "VARCHAR", "BOOLEAN", "DECIMAL(5, 1)", "DECIMAL(2, 2)")
    ),
    *(f"CAST(m AS {kind})" for kind in ("BIGINT", "INTEGER", "DOUBLE", "VARCHAR", "DECIMAL(38, 1)", "DECIMAL(4, 0)")),
    *(
        f"CAST(t AS {kind})"
        for kind in ("TINYINT", "INTEGER", "BIGINT", "DOUBLE", "FLOAT", "BOOLEAN", "DATE", "TIMESTAMP")
    ),
    *(
        "CAST(t AS DECIMAL(9, 2))",
        "CAST(t AS DECIMAL(38, 10))",
        "CAST(b AS INTEGER)",
        "CAST(b AS VARCHAR)",
        "CAST(b AS DOUBLE)",
    ),
    *(
        "CAST(day AS VARCHAR)",
        "CAST(at AS VARCHAR)",
        "CAST(at AS DATE)",
        "CAST(day AS TIMESTAMP)",
        "CAST(f AS INTEGER)",
    ),
    *(f"CAST(ROUND(x) AS {kind})" for kind in ("TINYINT", "INTEGER", "BIGINT")),
    *("CAST(x AS DECIMAL(18, 0))", "CAST(CAST(d AS DECIMAL(2, 2)) AS VARCHAR)", "CAST(x AS DECIMAL(18, 9))"),
    *(
        "COALESCE(n, i)",
        "COALESCE(x, 0)",
        "COALESCE(t, u, 'none')",
        "NULLIF(x, y)",
        "NULLIF(u, 'abc')",
        "LEAST(x, y, 3)",
    ),
    *(
        "GREATEST(x, y)",
        "LEAST(m, i, 0.125)",
        "GREATEST(day, at)",
        "LEAST(t, u)",
        "CASE WHEN x > 1 THEN n ELSE 2.5 END",
    ),
    *("CASE u WHEN 'abc' THEN 1 WHEN 'ABC' THEN 2 END", "IF(b, x, y)", "CASE WHEN b THEN m ELSE 1e30 END > i"),
    *("x / (x - 1) > SQRT(x)", "FLOOR(x / 10) * 10", "YEAR(at) * 100 + MONTH(at)", "ROUND(x * 1.19, 2)", "id = 3"),
)
LAST_DIGIT = ("LN(x)", "EXP(x)", "CBRT(x)", "x ** 2", "x ** 0.5", "x ** y", "POWER(y, 3)")  # Java's may differ
REFUSED = ("CAST(x AS VARCHAR)", "CAST(x AS DECIMAL(38, 37))", "TRUNC(d, 1)", "(i * i) // (n * i)")
