"""Turn SQL into a Query: one protected table, an allow-list, everything else refused with a reason."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from sqlglot import exp

from discretion.errors import QueryRefused
from discretion.noise import Floats
from discretion.statistics import Aggregate
from discretion.table import Table


@dataclass(frozen=True, kw_only=True)
class Key:
    """One GROUP BY key and every value it shows; rows with another value are left out."""

    name: str
    expression: exp.Expression  # over the table's columns
    values: tuple[Any, ...]


@dataclass(frozen=True, kw_only=True)
class Asked:
    """One distinct aggregate: its public shape, and the row expression it is over."""

    text: str  # as in the canonical query, e.g. AVG(age)
    aggregate: Aggregate
    value: exp.Expression | None = None  # over the table's columns; None: every row counts (or every person)
    fill: int | None = None  # the grid step a missing value counts as, for a column declared never NULL


@dataclass(frozen=True, kw_only=True)
class Column:
    """One column of the answer: arithmetic on released aggregates (placeholders :0, :1, ...) and keys."""

    name: str
    expression: exp.Expression
    asked: int | None = None  # the number of the aggregate, where the column is that aggregate and nothing else


@dataclass(frozen=True, kw_only=True)
class Query:
    """A question in known parts. `asked` is what mechanisms must release; the rest is done to released values."""

    text: str  # canonical: the same question has the same text
    table: Table
    asked: tuple[Asked, ...]
    columns: tuple[Column, ...]
    keys: tuple[Key, ...] = ()
    where: exp.Expression | None = None
    lookups: tuple[Any, ...] = ()
    having: exp.Expression | None = None
    order: tuple[Any, ...] = ()
    limit: int | None = None
    offset: int = 0

    @property
    def aggregates(self) -> tuple[Aggregate, ...]:
        """What is to be planned, one each."""
        return tuple(asked.aggregate for asked in self.asked)

    @property
    def groups(self) -> tuple[tuple[Any, ...], ...]:
        """Every group of the answer, in the order statistics are in; one empty tuple without GROUP BY."""
        return tuple(product(*(key.values for key in self.keys)))

    def evaluate(self, released: Sequence[Floats]) -> dict[str, tuple[Any, ...]]:
        """Every column of the answer for every group, from released values only."""
        raise NotImplementedError

    def shown(self, released: Sequence[Floats]) -> tuple[int, ...]:
        """The numbers of the groups that HAVING, ORDER BY and LIMIT leave, in their order."""
        raise NotImplementedError

    def finish(self, released: Sequence[Floats]) -> dict[str, tuple[Any, ...]]:
        """The answer: `released` has one array (a value a group) for each of `asked`."""
        shown = self.shown(released)
        return {name: tuple(values[g] for g in shown) for name, values in self.evaluate(released).items()}


def parse(sql: str, tables: Mapping[str, Table]) -> Query:
    """The question `sql` asks, or QueryRefused with what to write instead."""
    raise QueryRefused("SQL is not understood yet.")
