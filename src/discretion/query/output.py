"""Output: the columns and the order of an answer, as arithmetic on released aggregates and keys."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from discretion.errors import QueryRefused
from discretion.query.aggregation import AGGREGATES, DEVIATIONS, Asked, asked, refuse_aggregate
from discretion.query.category import counts_values, distinct, is_mode, mode
from discretion.query.expression import refuse, scalar
from discretion.query.function import FUNCTIONS
from discretion.query.key import bare
from discretion.query.pair import STATISTICS, pair
from discretion.query.place import placed
from discretion.query.rowset import Key, RowSet
from discretion.query.scalar import only, within

_SPELLED = (TokenType.VAR, TokenType.IDENTIFIER, TokenType.STRING)  # what the analyst named


@dataclass(frozen=True, kw_only=True)
class OutputColumn:
    """One column of the answer: arithmetic on released aggregates (placeholders 0, 1, ...) and keys (k0, k1, ...)."""

    name: str
    expression: exp.Expr

    @property
    def asked(self) -> int | None:
        """The number of the aggregate, where the column is that aggregate and nothing else."""
        return int(self.expression.name) if isinstance(self.expression, exp.Placeholder) else None

    @property
    def uses(self) -> tuple[int, ...]:
        """The numbers of the aggregates it is computed from; none for a key."""
        return tuple(sorted({int(found.name) for found in self.expression.find_all(exp.Placeholder)}))


@dataclass(frozen=True, kw_only=True)
class Order:
    """One ORDER BY term, over the same names as a column."""

    expression: exp.Expr
    descending: bool
    nulls_first: bool


def _header(node: exp.Expr) -> str:
    """Return the name of a column that has none: names and texts as they were written, all else in small letters."""
    text = node.sql("duckdb", comments=False, normalize_functions="lower")
    for token in sqlglot.tokenize(text, dialect="duckdb"):
        if token.token_type not in _SPELLED:
            text = text[: token.start] + text[token.start : token.end + 1].lower() + text[token.end + 1 :]
    return text


class Output:
    """Reads SELECT, HAVING and ORDER BY into arithmetic on aggregates and keys, and collects the aggregates."""

    def __init__(self, found: RowSet, keys: tuple[Key, ...], groups: int) -> None:
        self.found, self.keys, self.groups = found, keys, groups
        self.asked: dict[str, Asked] = {}
        self.named: list[OutputColumn] = []  # what ORDER BY and HAVING may refer to by name or number

    def columns(self, select: exp.Select) -> list[OutputColumn]:
        for item in select.expressions:
            node = item.this if isinstance(item, exp.Alias) else item
            expression = self.released(node)
            plain = isinstance(item, (exp.Alias, exp.Column))
            name = item.alias_or_name if plain else _header(node)
            if any(column.name.lower() == name.lower() for column in self.named):
                raise QueryRefused(f"Two columns are named {name!r}. Give one of them another name with AS.")
            self.named.append(OutputColumn(name=name, expression=expression))
        return self.named

    @placed
    def term(self, term: exp.Expr) -> Order:
        only(term, "this", "desc", "nulls_first")
        node = term.this
        if isinstance(node, exp.Literal) and not node.is_string:
            number = int(node.this) if str(node.this).isdigit() else 0
            if not 1 <= number <= len(self.named):
                raise QueryRefused(f"ORDER BY {node.this} names no column; there are {len(self.named)}.")
            expression = self.named[number - 1].expression
        else:  # by itself, a name is that of a column of the answer first; in an expression, of a column of the rows
            shown = self._shown(node) if isinstance(node, exp.Column) else None
            expression = self.released(node) if shown is None else shown.expression
        return Order(
            expression=expression.copy(),
            descending=bool(term.args.get("desc")),
            nulls_first=bool(term.args.get("nulls_first")),
        )

    @placed
    def released(self, node: exp.Expr) -> exp.Expr:
        """`node` over placeholders and keys."""
        if isinstance(node, AGGREGATES):
            return self._aggregate(node)
        key = self._key(node)
        if key is not None:
            return exp.column(f"k{key}")
        if isinstance(node, exp.Column):
            return self._by_name(node)
        if isinstance(node, exp.AggFunc):
            refuse_aggregate(node)
        if isinstance(node, exp.If):
            node = exp.Case(ifs=[exp.If(this=node.this, true=node.args["true"])], default=node.args.get("false"))
        if not isinstance(node, (exp.Literal, exp.Boolean, exp.Null, exp.Case, exp.Paren, *FUNCTIONS)):
            refuse(node)
        return type(node)(**{name: self._part(part) for name, part in node.args.items()})

    def _part(self, part: Any) -> Any:
        if isinstance(part, list):
            return [self._part(item) for item in part]
        if isinstance(part, exp.If):  # one WHEN of a CASE
            return exp.If(this=self.released(part.this), true=self.released(part.args["true"]))
        return self.released(part) if isinstance(part, exp.Expr) else part

    def _aggregate(self, node: exp.Expr) -> exp.Expr:
        kind = node.this if isinstance(node, exp.Filter) else node
        if is_mode(node):
            chosen = mode(node, self.found, self.groups)
            return chosen.shown(self._number(chosen.asked))
        if type(kind) in STATISTICS:
            return exp.Placeholder(this=str(self._paired(pair(node, self.found, self.groups))))
        if counts_values(node, self.found):
            return exp.Placeholder(this=str(self._number(distinct(node, self.found, self.groups))))
        number = self._number(asked(node, self.found, self.groups))
        placeholder = exp.Placeholder(this=str(number))
        if not isinstance(kind, DEVIATIONS):
            return placeholder
        nothing = exp.Literal.number(0)  # noise can take a small variance below 0
        return exp.Sqrt(this=exp.Greatest(this=placeholder, expressions=[nothing], ignore_nulls=True))

    def _paired(self, parts: Sequence[Asked]) -> int:
        """Return the number of a statistic of two columns: the sums of a pair are asked for once for all statistics."""
        name = parts[0].value.sql("duckdb") if parts[0].value is not None else ""
        keys = [f"{name} {number}" for number in range(len(parts))]
        for one, text in zip(parts, keys, strict=True):
            unused = one.pair and replace(one.pair, statistic=None)
            self.asked.setdefault(text, replace(one, pair=unused))
        wanted = parts[0].pair.statistic if parts[0].pair is not None else None
        for text in keys:
            known = self.asked[text]
            if known.pair is not None and known.pair.statistic in (None, wanted):
                shown = replace(known.pair, statistic=wanted)
                self.asked[text] = replace(known, pair=shown, text=parts[0].text, plain=parts[0].plain)
                return list(self.asked).index(text)
        raise QueryRefused("These are more statistics of two columns than there are.")

    def _number(self, one: Asked) -> int:
        """Return the number of an aggregate; the same one twice is one."""
        number = list(self.asked).index(one.text) if one.text in self.asked else len(self.asked)
        self.asked.setdefault(one.text, one)
        return number

    def _key(self, node: exp.Expr) -> int | None:
        """The number of the key that `node` is."""
        if not self.keys or isinstance(node, (exp.Literal, exp.Boolean, exp.Null)):
            return None
        try:
            text = bare(scalar(node, self.found.scope).plain)
        except QueryRefused:
            return None
        return next((i for i, key in enumerate(self.keys) if bare(key.plain) == text), None)

    def _shown(self, node: exp.Column) -> OutputColumn | None:
        """The column of the answer that has this name."""
        named = (column for column in self.named if not node.table and column.name.lower() == node.name.lower())
        return next(named, None)

    def _by_name(self, node: exp.Column) -> exp.Expr:
        shown = self._shown(node)
        if shown is not None:
            return within(node, shown.expression)
        self.found.scope.find(node)
        raise QueryRefused(
            f"{node.name} is a column of people's rows, which are never listed. Put it in an aggregate such as "
            f"AVG({node.name}), or in GROUP BY if its keys are declared."
        )
