"""Expressions over one row, drawn from a seed: numbers, texts, moments and conditions."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from discretion.noise import simulation

T = TypeVar("T")
NUMBERS = ("d", "f", "i", "n", "u", "h", "m", "r", "q")
TEXTS = ("t", "t", "k", "e")
TIMES = ("day", "at", "ms", "ns", "sec")
JOINED = {"number": ("od", "od", "oi", "om"), "text": ("ot", "ok"), "time": ("oday", "oat"), "truth": ("ob",)}
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


class Expressions:
    """Expressions, drawn from a seed. Every method returns a text of the grammar; `depth` bounds its nesting."""

    joined = False  # with the other table: its columns may be used, too

    def __init__(self, seed: int) -> None:
        self._drawn = iter(simulation(seed).integers(0, 2**31, 4096).tolist())

    @property
    def numbers(self) -> tuple[str, ...]:
        """Return the columns that are numbers."""
        return NUMBERS + self._others("number")

    @property
    def texts(self) -> tuple[str, ...]:
        """Return the columns that are texts."""
        return tuple(name for name in TEXTS + self._others("text") if not self.lacks(name))

    def lacks(self, name: str) -> bool:
        """Return whether what is read has no such column."""
        return False

    def _others(self, kind: str) -> tuple[str, ...]:
        return JOINED[kind] if self.joined else ()

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

    def any(self, depth: int) -> str:
        """Return an expression of any kind."""
        if self.chance(3) and not self.lacks("z"):
            return "z"
        return self.one((self.number, self.number, self.text, self.moment, self.truth))(depth)

    def number(self, depth: int) -> str:
        """Return an expression that is a number."""
        kind = self.below(24)
        if depth == 0 or kind < 6:
            return self.one(self.numbers) if self.chance(70) else self.literal(NUMBER_LITERALS, ODD_NUMBERS)
        less = depth - 1
        if kind < 11:
            a, b = self.number(less), self.number(less)
            return f"({a} {self.one(('+', '-', '*', '/', '%', '/', '*'))} {b})"
        if kind == 11:
            name = self.one(("ABS", "SIGN", "SQRT", "CBRT", "LN", "EXP", "FLOOR", "CEIL", "ROUND", "TRUNC"))
            return f"{name}({self.number(less)})"
        if kind == 12 and self.chance(40):
            ends = self.one(("0, 1", "-1.5, 1e30", "-2147483648, 9223372036854775807", "0.1, 0.3", "1e-99, 2e-99"))
            return f"WIDTH_BUCKET({self.number(less)}, {ends}, {self.one(('1', '3', '9998'))})"
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
            return self.one(self.texts) if self.texts and self.chance(75) else self.one(TEXT_LITERALS)
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
                return self.one(TIMES + self._others("time"))
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
            return self.one(("b", "b", "TRUE", "FALSE", *self._others("truth")))
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
