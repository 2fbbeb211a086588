"""Queries from the grammar: a seed becomes one SELECT of what the product accepts, and of some things it refuses."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from discretion.noise import simulation

T = TypeVar("T")
NUMBERS = ("d", "f", "i", "n", "u", "h", "m", "r", "q")
TEXTS = ("t", "t", "k", "e")
TIMES = ("day", "at", "ms", "ns", "sec")
UNITS = ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND")
PARTS = (*UNITS, "DOY", "DOW", "ISODOW")
CASTS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL(38, 37)", "DECIMAL(4, 1)", "DECIMAL")
NUMBER_LITERALS = (
    *("0", "1", "2", "3", "0.1", "0.5", "50", "255", "1000000", "2147483648", "9223372036854775807"),
    *("9223372036854775808", "99999.999", "0.00000000000000001", "12345678901234567890123456789"),
)
ODD_NUMBERS = ("1e35", "1e-300", "1.5e3", "0.0000000000000000000000000000000000001")
TEXT_LITERALS = ("''", "'a'", "'12'", "'é'", "'A%'", "'_'", "'%'", "'2024-01-01'", "'nan'", "'it''s'", "'1e400'")
DATE_LITERALS = (
    *("'2024-01-01'", "'2024-12-31'", "'0001-01-01'", "'9999-12-31'"),
    *("'2024-01-01 10:11:12'", "'2024-01-01T10:11:12.123456'"),
)
ODD_DATES = ("'2024-W01-1'", "'20240101'", "'2024-W01'", "'2024-01-01T10'", "'2024-02-30'", "'20240101T101112'")
COMPARISONS = ("=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM")
GROUPS = ("k", "e", "b", "n % 3", "MONTH(day)", "EXTRACT(DOW FROM at)", "UPPER(k)", "q", "WEEK(day)", "k || e")
PERIODS = (
    *(
        "day",
        "DATE_TRUNC('month', day)",
        "YEAR(day)",
        "QUARTER(day)",
        "YEAR(day) * 100 + MONTH(day)",
        "DATE_TRUNC('year', ms)",
    ),
    *("TIME_BUCKET(INTERVAL 10 DAY, day)", "DATE_TRUNC('week', day)", "YEAR(ms)", "TIME_BUCKET(INTERVAL 5 YEAR, ms)"),
)


class Query:
    """One query, drawn from a seed. Every method returns a text of the grammar; `depth` bounds its nesting."""

    def __init__(self, seed: int) -> None:
        self._drawn = iter(simulation(seed).integers(0, 2**31, 4096).tolist())

    def below(self, limit: int) -> int:
        """Return a number below `limit`; 0 when the supply has run out, which ends every recursion."""
        return next(self._drawn, 0) % limit

    def one(self, options: Sequence[T]) -> T:
        """Return one of `options`."""
        return options[self.below(len(options))]

    def chance(self, percent: int) -> bool:
        """Return True in `percent` of 100 cases."""
        return self.below(100) >= 100 - percent

    def literal(self, usual: Sequence[str], odd: Sequence[str]) -> str:
        """Return a literal; one in eight is of a form that only some readers understand."""
        return self.one(odd) if self.below(8) == 7 else self.one(usual)

    def text_of_query(self) -> str:
        """Return a whole SELECT."""
        shape = self.below(100)
        if shape < 3:
            return self.long_chain()
        source, where = self.source()
        looked_up = [name for name, join in (("worth", "JOIN codes"), ("mark", "JOIN labels")) if join in source]
        keys = [
            looked_up[0] if looked_up and self.chance(60) else self.one(PERIODS if self.chance(30) else GROUPS)
            for _ in range(self.one((0, 0, 0, 1, 1, 2)))
        ]
        columns = [f"{self.column()} AS c{number}" for number in range(self.one((1, 1, 1, 2, 3)))]
        tail = f" GROUP BY {', '.join(keys)}" if keys else ""
        if self.chance(8):
            tail += f" HAVING {self.released(1)} {self.one(COMPARISONS[:6])} {self.released(1)}"
        if self.chance(8):
            tail += f" ORDER BY {self.released(1)}{self.one(('', ' DESC', ' NULLS FIRST'))} LIMIT 3"
        return f"SELECT {', '.join([*keys, *columns])} FROM {source}{where}{tail}"

    def source(self) -> tuple[str, str]:
        """Return FROM and WHERE: the table, a subquery that filters or puts rows together, or a join with a lookup."""
        where = f" WHERE {self.truth(3)}" if self.chance(60) else ""
        kind = self.below(20)
        if kind == 0:
            return f"(SELECT * FROM t WHERE {self.truth(2)}) s", where
        if kind == 1:
            return f"t {self.one(('', 'LEFT '))}JOIN codes ON {self.number(2)} = codes.code", where
        if kind == 2:
            return f"t {self.one(('', 'LEFT '))}JOIN labels ON {self.text(2)} = labels.label", where
        if kind in (3, 4):
            return self.per_person(), where
        return "t", where

    def per_person(self) -> str:
        """Return a subquery that puts each person's rows together; its columns have names of the table's columns."""
        keys = [key for key in ("k", "e", "b") if self.chance(20)]
        odd = self.one(NUMBERS)
        numbers = [f"{self.one(('MIN', 'MAX', 'SUM', 'AVG', 'COUNT'))}({name})" for name in NUMBERS]
        numbers[NUMBERS.index(odd)] = self.personal_number()
        columns = ["id", *keys, *(f"{number} AS {name}" for number, name in zip(numbers, NUMBERS, strict=True))]
        columns += [f"{self.one(('MIN', 'MAX'))}({name}) AS {name}" for name in TIMES]
        columns += [] if "b" in keys else [f"{self.one(('BOOL_OR', 'BOOL_AND'))}(b) AS b"]
        where = f" WHERE {self.truth(2)}" if self.chance(40) else ""
        having = f" HAVING {self.personal_number()} {self.one(COMPARISONS)} {self.number(0)}" if self.chance(15) else ""
        return f"(SELECT {', '.join(columns)} FROM t{where} GROUP BY {', '.join(['id', *keys])}{having}) s"

    def personal_number(self) -> str:
        """Return a number that a person's rows give."""
        filtered = f" FILTER (WHERE {self.truth(1)})" if self.chance(10) else ""
        kind = self.below(12)
        if kind < 2:
            return f"{self.one(('COUNT(*)', f'COUNT({self.any(1)})', f'COUNT(DISTINCT {self.any(1)})'))}{filtered}"
        if kind < 6:
            return f"{self.one(('SUM', 'AVG'))}({self.bounded()}){filtered}"
        if kind < 9:
            return f"{self.one(('MIN', 'MAX'))}({self.number(2)}){filtered}"
        if kind == 9:
            return f"{self.one(('ARG_MIN', 'ARG_MAX'))}({self.number(1)}, {self.one((self.moment, self.number))(1)})"
        if kind == 10:
            return f"{self.one(('FIRST', 'LAST'))}({self.number(1)} ORDER BY {self.moment(1)}{self.one(('', ' DESC'))})"
        return f"({self.personal_number()} {self.one(('+', '-', '*', '/'))} {self.personal_number()})"

    def long_chain(self) -> str:
        """Return a query that is wide: many terms, or many aggregates."""
        terms = self.one((20, 60, 90, 118, 158, 190))
        kind = self.below(6)
        if kind == 0:
            return f"SELECT SUM(LEAST(d{' + 1' * terms}, 9)) AS c FROM t"
        if kind == 1:
            return f"SELECT COUNT(*) AS c FROM t WHERE {' OR '.join(f'i = {n}' for n in range(terms))}"
        if kind == 2:
            return f"SELECT COUNT(*){' + 1' * terms} AS c FROM t"
        if kind == 3:
            return f"SELECT COUNT({' || '.join(['t'] * terms)}) AS c FROM t"
        if kind == 4:
            joined = " || ".join(["t"] * 90)
            counts = [f"COUNT(NULLIF({joined}, 'not {number}')) AS c{number}" for number in range(12)]
            return f"SELECT {', '.join(counts)} FROM t"
        return f"SELECT SUM(LEAST(d{' * 1e35' * self.one((1, 9, 12))}, 9)) AS c FROM t"

    # Aggregates and what is computed from them ----------------------------------------------------------------------

    def column(self) -> str:
        """Return one column of the answer: mostly an aggregate, sometimes arithmetic on released values."""
        return self.aggregate() if self.chance(75) else self.released(2)

    def aggregate(self) -> str:
        """Return an aggregate over a row expression."""
        filtered = f" FILTER (WHERE {self.truth(2)})" if self.chance(10) else ""
        kind = self.below(12)
        if kind < 2:
            return f"COUNT(*){filtered}"
        if kind < 4:
            return f"COUNT({self.any(3)}){filtered}"
        if kind == 4:
            return f"COUNT({self.known(2)})"
        if kind == 5:
            return f"COUNT(DISTINCT id){filtered}"
        if kind == 6:
            return f"COUNT_IF({self.truth(2)})" if self.chance(70) else f"MODE({self.one(GROUPS)}){filtered}"
        value = self.bounded()
        if kind == 7:
            share = self.one(("0", "0.1", "0.5", "0.9", "1", "[0.25, 0.5, 0.75]"))
            return self.one((f"QUANTILE_CONT({value}, {share})", f"QUANTILE_DISC({value}, {share})")) + filtered
        if kind == 8 and self.chance(40):
            name = self.one(("COVAR_POP", "COVAR_SAMP", "CORR", "REGR_SLOPE", "REGR_INTERCEPT"))
            return f"{name}({value}, {self.bounded()}){filtered}"
        name = self.one(("SUM", "AVG", "VARIANCE", "STDDEV", "MEDIAN", "MIN", "MAX", "SUM", "AVG"))
        return f"{name}({value}){filtered}"

    def bounded(self) -> str:
        """Return a number with bounds: a declared column, or any number between two literals."""
        if self.chance(30):
            return self.one(NUMBERS)
        if self.chance(30):
            return f"{self.one(NUMBERS)} {self.one(('+', '-', '*'))} {self.number(1)}"
        low = self.one(("0", "-1", "0.5", "100"))
        return f"LEAST(GREATEST({self.number(3)}, {low}), {self.one(('101', '1000', '1e6', '150.5'))})"

    def released(self, depth: int) -> str:
        """Return arithmetic on released values."""
        kind = self.below(14)
        if depth == 0 or kind < 4:
            return self.aggregate() if self.chance(70) else self.one(("1", "0", "'a'", "NULL", "1e30"))
        a = self.released(depth - 1)
        if kind == 4:
            return f"{a} {self.one(('+', '-', '*', '/', '%'))} {self.released(depth - 1)}"
        if kind == 5:
            return f"{self.one(('ABS', 'CEIL', 'EXP', 'FLOOR', 'LN', 'SQRT', 'ROUND', 'LOWER', 'UPPER', 'TRIM'))}({a})"
        if kind == 6:
            return f"{self.one(('COALESCE', 'GREATEST', 'LEAST', 'POW'))}({a}, {self.released(depth - 1)})"
        if kind == 7:
            return f"NULLIF({a}, {self.released(depth - 1)})"
        if kind == 8:
            name = self.one(("UPPER", "LN", "COALESCE", "ROUND"))
            inner = f"NULLIF({a}, 1)"
            return (
                f"COALESCE({inner}, {self.one((chr(39) + 'a' + chr(39), '0'))})"
                if name == "COALESCE"
                else f"{name}({inner})"
            )
        if kind == 9:
            other = self.released(depth - 1)
            return f"CASE WHEN {a} {self.one(COMPARISONS[:6])} {other} THEN {self.released(depth - 1)} ELSE {a} END"
        if kind == 10:
            return f"ROUND({a}, {self.one(('0', '2', '15'))})"
        if kind == 11:
            return f"({a} {self.one(('IN (1, 2)', 'BETWEEN 0 AND 5', 'IS NULL', 'IS NOT NULL'))})"
        return f"-({a})"

    # Row expressions ------------------------------------------------------------------------------------------------

    def any(self, depth: int) -> str:
        """Return an expression of any kind."""
        if self.chance(3):
            return "z"
        return self.one((self.number, self.number, self.text, self.moment, self.truth))(depth)

    def number(self, depth: int) -> str:
        """Return an expression that is a number."""
        kind = self.below(24)
        if depth == 0 or kind < 6:
            return self.one(NUMBERS) if self.chance(70) else self.literal(NUMBER_LITERALS, ODD_NUMBERS)
        less = depth - 1
        if kind < 11:
            a, b = self.number(less), self.number(less)
            return f"({a} {self.one(('+', '-', '*', '/', '%', '/', '*'))} {b})"
        if kind == 11:
            name = self.one(("ABS", "SIGN", "SQRT", "CBRT", "LN", "EXP", "FLOOR", "CEIL", "ROUND", "TRUNC"))
            return f"{name}({self.number(less)})"
        if kind == 12:
            return f"ROUND({self.number(less)}, {self.one(('0', '1', '15'))})"
        if kind == 13:
            return f"POW({self.number(less)}, {self.number(less)})"
        if kind == 14:
            return f"CAST({self.any(less)} AS {self.one(CASTS)})"
        if kind == 15:
            return f"LENGTH({self.text(less)})"
        if kind == 16:
            return f"EXTRACT({self.one(PARTS)} FROM {self.moment(less)})"
        if kind == 17:
            return f"DATE_DIFF('{self.one(UNITS).lower()}', {self.moment(less)}, {self.moment(less)})"
        if kind == 18:
            return f"({self.one(('i', 'n', 'u', 'h'))} // {self.one(('2', 'n', 'i', '0'))})"
        if kind == 19:
            return f"(-({self.number(less)}))"
        if kind == 20:
            return f"(day - {self.one(('day', 'CAST(at AS DATE)', 'DATE ' + self.literal(DATE_LITERALS, ODD_DATES)))})"
        if kind == 21:
            return f"{self.one(('YEAR', 'MONTH', 'WEEK', 'DAYOFYEAR', 'HOUR'))}({self.moment(less)})"
        return self.chosen(self.number, less)

    def known(self, depth: int) -> str:
        """Return a number over columns that are declared never NULL."""
        kind = self.below(6)
        if depth == 0 or kind < 2:
            return self.one(("r", "q", "q"))
        if kind < 4:
            return f"({self.known(depth - 1)} {self.one(('+', '-', '*', '/', '%'))} {self.known(depth - 1)})"
        if kind == 4:
            return f"{self.one(('LN', 'SQRT', 'ABS', 'EXP', 'ROUND'))}({self.known(depth - 1)})"
        return f"CAST({self.known(depth - 1)} AS {self.one(CASTS)})"

    def text(self, depth: int) -> str:
        """Return an expression that is a text."""
        kind = self.below(14)
        if depth == 0 or kind < 4:
            return self.one(TEXTS) if self.chance(75) else self.one(TEXT_LITERALS)
        less = depth - 1
        if kind == 4:
            return f"{self.one(('LOWER', 'UPPER', 'TRIM', 'LTRIM', 'RTRIM'))}({self.text(less)})"
        if kind == 5:
            return f"({self.text(less)} || {self.text(less)})"
        if kind == 6:
            return f"CONCAT({self.text(less)}, {self.text(less)})"
        if kind == 7:
            return f"SUBSTRING({self.text(less)}, {self.one(('1', '2', '1000000'))}, {self.one(('0', '1', '3'))})"
        if kind == 8:
            return f"{self.one(('LEFT', 'RIGHT'))}({self.text(less)}, {self.one(('0', '1', '7'))})"
        if kind in (9, 10, 11):
            return f"CAST({self.any(less)} AS VARCHAR)"
        return self.chosen(self.text, less)

    def moment(self, depth: int) -> str:
        """Return an expression that is a date or a time."""
        kind = self.below(12)
        if depth == 0 or kind < 4:
            if self.chance(70):
                return self.one(TIMES)
            return f"{self.one(('DATE', 'TIMESTAMP'))} {self.literal(DATE_LITERALS, ODD_DATES)}"
        less = depth - 1
        if kind < 7:
            return f"DATE_TRUNC('{self.one(UNITS).lower()}', {self.moment(less)})"
        if kind < 9:
            amount = self.one(("1", "30", "999999"))
            return f"({self.moment(less)} {self.one('+-')} INTERVAL {amount} {self.one(UNITS)})"
        if kind < 11:
            return f"CAST({self.one((self.moment, self.text))(less)} AS {self.one(('DATE', 'TIMESTAMP'))})"
        return self.chosen(self.moment, less)

    def truth(self, depth: int) -> str:
        """Return a condition."""
        kind = self.below(20)
        less = max(depth - 1, 0)
        if depth == 0 or kind == 0:
            return self.one(("b", "b", "TRUE", "FALSE"))
        if kind < 5:
            make = self.one((self.number, self.number, self.text, self.moment))
            return f"({make(less)} {self.one(COMPARISONS)} {make(less)})"
        if kind == 5:
            return f"(id = {self.one(('1', '7'))} {self.one(('AND', 'OR'))} {self.truth(less)})"
        if kind < 8:
            return f"({self.truth(less)} {self.one(('AND', 'OR'))} {self.truth(less)})"
        if kind == 8:
            return f"(NOT {self.truth(less)})"
        if kind < 12:
            make = self.one((self.number, self.number, self.text, self.moment))
            listed = ", ".join(make(less) for _ in range(1 + self.below(3)))
            return f"({make(less)} {self.one(('IN', 'NOT IN'))} ({listed}))"
        if kind < 15:
            make = self.one((self.number, self.number, self.moment))
            return f"({make(less)} BETWEEN {make(less)} AND {make(less)})"
        if kind == 15:
            return f"({self.text(less)} {self.one(('LIKE', 'ILIKE', 'NOT LIKE'))} {self.one(TEXT_LITERALS)})"
        if kind == 16:
            return f"{self.one(('STARTS_WITH', 'ENDS_WITH', 'CONTAINS'))}({self.text(less)}, {self.text(less)})"
        if kind == 17:
            return f"({self.any(less)} IS {self.one(('', 'NOT '))}NULL)"
        if kind == 18:
            return f"CAST({self.one((self.number, self.text))(less)} AS BOOLEAN)"
        return self.chosen(self.truth, less)

    def chosen(self, make: Callable[[int], str], depth: int) -> str:
        """Return CASE, COALESCE, NULLIF, LEAST or GREATEST over expressions of one kind."""
        kind = self.below(5)
        if kind == 0:
            return f"CASE WHEN {self.truth(depth)} THEN {make(depth)} ELSE {make(depth)} END"
        if kind == 1:
            return f"CASE {make(depth)} WHEN {make(depth)} THEN {make(depth)} END"
        name = ("COALESCE", "NULLIF", "LEAST" if self.chance(50) else "GREATEST")[kind - 2]
        return f"{name}({make(depth)}, {make(depth)})"


def query(seed: int) -> str:
    """Return the query of a seed, the same every time."""
    return Query(seed).text_of_query()
