"""Statements from the grammar: a seed becomes one of what the product accepts, or of some things it refuses."""

import re
from collections.abc import Collection, Mapping

from fuzz.expressions import COMPARISONS, NUMBER_LITERALS, NUMBERS, TIMES, Expressions
from fuzz.names import INTERNAL, JOINED, ODD, OWN, mapped, quoted, renamed

BUCKETS = "WIDTH_BUCKET(d, -1, 101, 3)"
GROUPS = ("k", "e", "b", "n % 3", "MONTH(day)", "EXTRACT(DOW FROM at)", "UPPER(k)", "q", "WEEK(day)", "k || e", BUCKETS)
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
JOINED_GROUPS = ("ok", "ob", "YEAR(oday)", "oday", "oi % 3", "UPPER(ok)")


class Query(Expressions):
    """One statement, drawn from a seed.

    Subqueries give their columns names. If it is `neutral`, these are names that nothing else has.
    """

    def __init__(self, seed: int, neutral: bool = False) -> None:
        super().__init__(seed)
        self.neutral = neutral
        self.names: Mapping[str, str] = {}  # of columns, where the SELECT that is being written calls them otherwise
        self.defined = ""  # its WITH
        self.keyed: tuple[str, ...] = ()  # keys of a subquery per person

    def text_of_query(self) -> str:
        """Return a whole statement."""
        shape = self.below(100)
        if shape < 3:
            return self.long_chain()
        return self.above() if shape < 13 else self.select()

    def select(self, named: bool = False, keys: int | None = None, columns: int | None = None) -> str:
        """Return one SELECT; if `named`, its keys are called g0, g1, ...; its columns are always called c0, c1, ..."""
        source, where = self.source()
        defined, self.defined = self.defined, ""
        looked_up = [name for name, join in (("worth", "JOIN codes"), ("mark", "JOIN labels")) if join in source]
        grouped = [self.group(looked_up) for _ in range(self.one((0, 0, 0, 1, 1, 2)) if keys is None else keys)]
        made = [self.column() for _ in range(columns or self.one((1, 1, 1, 2, 3)))]
        odd = self.chance(25) and not named
        labels = self.labels(len(made), odd)
        tail = f" GROUP BY {', '.join(grouped)}" if grouped else ""
        if self.chance(8):
            tail += f" HAVING {self.released(1)} {self.one(COMPARISONS[:6])} {self.released(1)}"
        if self.chance(8):
            tail += f" ORDER BY {self.released(1)}{self.one(('', ' DESC', ' NULLS FIRST'))} LIMIT 3"
        self.joined, tail = False, self.own(tail)
        if odd and "ORDER BY" not in tail and self.chance(30):
            tail += f" ORDER BY {labels[0]} LIMIT 3"
        shown = [f"{key} AS g{number}" if named or odd else key for number, key in enumerate(grouped)]
        values = [f"{self.own(one)} AS {label}" for one, label in zip(made, labels, strict=True)]
        return f"{defined}SELECT {', '.join([*map(self.own, shown), *values])} FROM {source}{where}{tail}"

    @property
    def groups(self) -> list[str]:
        """Return what can be grouped by."""
        return [one for one in GROUPS if not any(self.lacks(word) for word in re.findall(r"\b[ket]\b", one))]

    def lacks(self, name: str) -> bool:
        """Return whether a subquery does not give this column."""
        return self.names.get(name, "").startswith("no_")

    def own(self, text: str) -> str:
        """Return an expression with the names that its columns have where it stands."""
        return renamed(text, self.names)

    def labels(self, count: int, odd: bool) -> list[str]:
        """Return the names of an answer's columns."""
        pool, turn = self.one((OWN, INTERNAL, ODD)), self.below(100)
        usual = [f"c{number}" for number in range(count)]
        return (
            [quoted(pool[(turn + place) % len(pool)]) for place in range(count)] if odd and not self.neutral else usual
        )

    def called(self, columns: Collection[str], kept: Collection[str] = ()) -> dict[str, str]:
        """Return the names of a subquery's columns; those `kept` are declared keys, which stay keys by their name."""
        names = mapped(list(columns), self.one((0, 0, 1, 2, 3, 4, 5, 6, 7)), self.below(1000))
        if self.neutral:
            names = {
                column: column if names[column] == column and column in kept else f"v_{column}" for column in names
            }
        return {column: quoted(name) for column, name in names.items()}

    def group(self, looked_up: list[str]) -> str:
        """Return one key of GROUP BY."""
        if looked_up and self.chance(60):
            return looked_up[0]
        if self.keyed and self.chance(60):
            return self.one(self.keyed)
        if self.joined and self.chance(50):
            return self.one(JOINED_GROUPS)
        return self.one(PERIODS if self.chance(30) else self.groups)

    # SQL above released values --------------------------------------------------------------------------------------

    def above(self) -> str:
        """Return a statement that computes something from released values: of one private part, or of several."""
        kind = self.below(6)
        if kind == 0:
            return self.windowed()
        if kind == 1:
            inner = self.select(named=True, keys=self.one((1, 2)), columns=2)
            where = f" WHERE {self.outer()} {self.one(COMPARISONS)} {self.outer()}" if self.chance(30) else ""
            name = self.one(("SUM", "AVG", "MAX", "COUNT", "STDDEV", "MEDIAN"))
            return f"SELECT {name}({self.outer()}) AS x, COUNT(*) AS n FROM ({inner}) q{where}"
        if kind == 2:
            inner = self.select(named=True, keys=1, columns=2)
            return (
                f"SELECT g0, {self.outer()} AS x, {self.over('c0', 'g0')} AS y FROM ({inner}) q ORDER BY {self.outer()}"
            )
        if kind == 3:
            parts = [self.select(keys=0, columns=1) for _ in range(self.one((2, 2, 3)))]
            return f"SELECT {', '.join(f'({part}) AS x{number}' for number, part in enumerate(parts))}"
        if kind == 4:
            one, other = (self.select(named=True, keys=1, columns=2) for _ in range(2))
            on = self.one(("TRUE", "CAST(a.g0 AS VARCHAR) = CAST(b.g0 AS VARCHAR)"))
            return f"WITH a AS ({one}), b AS ({other}) SELECT a.g0, a.c0 - b.c1 AS x FROM a LEFT JOIN b ON {on}"
        one, other = (self.select(keys=0, columns=1) for _ in range(2))
        return f"({one}) {self.one(('UNION ALL', 'UNION', 'EXCEPT'))} ({other})"

    def outer(self) -> str:
        """Return an expression over the two columns of a released table."""
        a, b = self.one(("c0", "c1")), self.one(("c0", "c1", "1", "0", "1e300"))
        kind = self.below(6)
        if kind < 2:
            return f"({a} {self.one(('+', '-', '*', '/', '%'))} {b})"
        if kind == 2:
            return f"{self.one(('ABS', 'LN', 'SQRT', 'EXP', 'ROUND', 'FLOOR'))}({a})"
        if kind == 3:
            return f"CASE WHEN {a} > {b} THEN {a} ELSE {b} END"
        return self.one((f"COALESCE({a}, {b})", f"NULLIF({a}, {b})", f"CAST({a} AS INTEGER)", a))

    def over(self, value: str, order: str) -> str:
        """Return a window function."""
        kind = self.below(4)
        if kind == 0:
            return f"{value} / SUM({value}) OVER ()"
        if kind == 1:
            return f"{self.one(('LAG', 'LEAD'))}({value}) OVER (ORDER BY {order})"
        if kind == 2:
            return f"{self.one(('RANK', 'ROW_NUMBER', 'CUME_DIST'))}() OVER (ORDER BY {value}, {order})"
        return f"{self.one(('SUM', 'AVG', 'MIN'))}({value}) OVER (ORDER BY {order} ROWS 2 PRECEDING)"

    def windowed(self) -> str:
        """Return a SELECT whose windows are over its own aggregates."""
        source, where = self.source()
        defined, self.defined = self.defined, ""
        key, value, other = self.group([]), self.aggregate(), self.aggregate()
        self.joined = False
        columns = f"{key}, {value} AS c0, {self.over(value, key)} AS w0, {self.over(other, key)} AS w1"
        return f"{defined}SELECT {self.own(columns)} FROM {source}{where} GROUP BY {self.own(key)}"

    # What is read ---------------------------------------------------------------------------------------------------

    def source(self) -> tuple[str, str]:
        """Return FROM and WHERE: the table, a subquery that filters or puts rows together, or a join."""
        kind = self.below(24)
        self.joined, self.names, self.keyed = kind >= 20, {}, ()
        source = "t"
        if kind == 0:
            source = self.relation(self.projected() if self.chance(50) else f"SELECT * FROM t WHERE {self.truth(2)}")
        elif kind == 1:
            source = f"t {self.one(('', 'LEFT '))}JOIN codes ON {self.number(2)} = codes.code{self.also()}"
        elif kind == 2:
            source = f"t {self.one(('', 'LEFT '))}JOIN labels ON {self.text(2)} = labels.label"
        elif kind in (3, 4):
            source = self.relation(self.per_person())
        elif kind == 20:
            source = f"({self.per_person(self.partner())}) s"
            self.joined = False
        elif kind == 21:
            source = f"{self.partner()} LEFT JOIN codes ON {self.own(self.number(1))} = codes.code"
        elif kind == 22 and self.chance(50):
            self.joined = False
            source = f"({self.per_person()}) s"
            self.joined, self.names = True, {column: f"s.{name}" for column, name in self.names.items()}
            source += f" {self.one(('', 'LEFT '))}JOIN o ON {self.names['id']} = o.who"
        elif kind > 21:
            source = self.partner()
        return source, f" WHERE {self.own(self.truth(3))}" if self.chance(60) else ""

    def relation(self, subquery: str) -> str:
        """Return a subquery as what FROM names, itself or by WITH."""
        name, turn = self.one((*INTERNAL, "t", "codes", "o", "A b", "select")), self.below(10)
        if turn < 7:
            return f"({subquery}) s"
        name = "v_rows" if self.neutral else quoted(name)
        self.defined = f"WITH {name} AS ({subquery}) "
        return f"{name}{self.one((' s', ' AS s', ''))}"

    def projected(self) -> str:
        """Return a subquery that gives the table's columns other names."""
        names = self.called([column for column in OWN if column != "sec"])
        self.names = {**{column: f"no_{column}" for column in ("sec", "z")}, **names}
        columns = ", ".join(f"{column} AS {name}" for column, name in names.items())
        return f"SELECT {columns} FROM t WHERE {self.truth(2)}"

    def partner(self) -> str:
        """Return the table joined with another one about the same people."""
        other, who = self.summary() if self.chance(40) else ("o", "who")
        on = self.one((f"t.id = o.{who}", f"o.{who} = t.id"))
        return f"t {self.one(('', 'LEFT '))}JOIN {other} ON {on}{self.also()}"

    def also(self) -> str:
        """Return a further condition of a join, which a LEFT JOIN may not have."""
        return f" AND ({self.own(self.truth(1))})" if self.chance(10) else ""

    def summary(self) -> tuple[str, str]:
        """Return the other table's rows put together, and what the person is called there."""
        names = self.called(JOINED)
        values = {"who": "who"}
        values |= {name: f"{self.one(('MIN', 'MAX', 'SUM', 'AVG', 'COUNT'))}({name})" for name in ("od", "oi", "om")}
        values |= {name: f"{self.one(('MIN', 'MAX'))}({name})" for name in ("oday", "oat")}
        values |= {"ot": "CASE WHEN COUNT(*) > 1 THEN '12' ELSE 'a' END", "ok": "CASE WHEN MAX(oi) > 3 THEN 'a' END"}
        values["ob"] = f"{self.one(('BOOL_OR', 'BOOL_AND'))}(ob)"
        columns = [f"{value} AS {names[name]}" for name, value in values.items()]
        self.names = {column: f"t.{column}" for column in (*OWN, "z")} | {name: f"o.{names[name]}" for name in JOINED}
        where = self.one(("", " WHERE od > 1", " WHERE ok = 'a' OR ot < 'b'"))
        having = self.one(("", "", " HAVING COUNT(*) > 1", " HAVING MAX(oi) / MIN(od) < 3"))
        return f"(SELECT {', '.join(columns)} FROM o{where} GROUP BY o.who{having}) o", names["who"]

    def per_person(self, table: str = "t") -> str:
        """Return a subquery that puts each person's rows together."""
        keys = [key for key in ("k", "e", "b") if self.chance(20)]
        odd = self.one(NUMBERS)
        numbers = [f"{self.one(('MIN', 'MAX', 'SUM', 'AVG', 'COUNT'))}({name})" for name in NUMBERS]
        numbers[NUMBERS.index(odd)] = self.personal_number()
        values = {"id": "id", **{key: key for key in keys}, **dict(zip(NUMBERS, numbers, strict=True))}
        values |= {name: f"{self.one(('MIN', 'MAX'))}({name})" for name in TIMES}
        values |= {} if "b" in keys else {"b": f"{self.one(('BOOL_OR', 'BOOL_AND'))}(b)"}
        self.keyed = tuple(keys)
        changed = [key for key in ("k", "e") if key in keys and self.chance(25)]
        values |= {key: f"{self.one(('UPPER', 'LOWER'))}({key})" for key in changed}
        where = f" WHERE {self.own(self.truth(2))}" if self.chance(40) else ""
        compared = f"{self.one(COMPARISONS)} {self.one(NUMBER_LITERALS)}"
        having = f" HAVING {self.own(self.personal_number())} {compared}" if self.chance(15) else ""
        names = self.called(list(values), kept=[key for key in keys if key not in changed])
        columns = ", ".join(f"{self.own(value)} AS {names[name]}" for name, value in values.items())
        grouped = ", ".join(f"t.{key}" for key in ("id", *keys))
        self.names = {column: f"no_{column}" for column in (*OWN, "z") if column not in names} | names
        return f"SELECT {columns} FROM {table}{where} GROUP BY {grouped}{having}"

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
            return f"COUNT(DISTINCT {self.one(('id', *self.groups))}){filtered}"
        if kind == 6:
            return f"COUNT_IF({self.truth(2)})" if self.chance(70) else f"MODE({self.one(self.groups)}){filtered}"
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
            return self.one(self.numbers)
        if self.chance(30):
            return f"{self.one(self.numbers)} {self.one(('+', '-', '*'))} {self.number(1)}"
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


def query(seed: int, *, neutral: bool = False) -> str:
    """Return the query of a seed, the same every time; `neutral`: with names that nothing else has."""
    return Query(seed, neutral).text_of_query()
