"""Sentence: a question in SQL becomes one plain sentence without literals, for people who do not read SQL."""

from collections.abc import Iterable, Iterator
from functools import lru_cache

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

UNKNOWN = "a question that cannot be shown in words"
COMPUTED = "a computed value"
PEOPLE = "the number of people"
NOUNS: dict[type[exp.Expr], str] = {
    exp.Avg: "the average of {}",
    exp.Sum: "the total of {}",
    exp.Min: "the smallest {}",
    exp.Max: "the largest {}",
    exp.Median: "the median (the middle value) of {}",
    exp.Mode: "the most frequent {}",
    exp.Quantile: "a quantile of {}",
    exp.PercentileCont: "a quantile of {}",
    exp.PercentileDisc: "a quantile of {}",
    exp.Variance: "the spread (variance) of {}",
    exp.VariancePop: "the spread (variance) of {}",
    exp.Stddev: "the spread (standard deviation) of {}",
    exp.StddevPop: "the spread (standard deviation) of {}",
    exp.StddevSamp: "the spread (standard deviation) of {}",
    exp.Corr: "how {} are related",
    exp.CovarPop: "how {} are related",
    exp.CovarSamp: "how {} are related",
}


@lru_cache(maxsize=4_096)
def sentence(sql: str, known: frozenset[str], persons: frozenset[tuple[str, str]] = frozenset()) -> str:
    """Return a question in words: "the average of age by region among patients with a condition on smoker".

    Only names of `known`, which stewards declared, are shown; what an analyst wrote or made up is not. `persons` are
    tables with the column that names people in them, in small letters.
    """
    try:
        tree = sqlglot.parse_one(sql, dialect="duckdb")
        select = tree if isinstance(tree, exp.Select) else tree.find(exp.Select)
        if select is None:
            return UNKNOWN
        return _told(tree, select, known, persons)
    except (SqlglotError, RecursionError, ValueError, AttributeError):
        return UNKNOWN


def _told(tree: exp.Expr, select: exp.Select, known: frozenset[str], persons: frozenset[tuple[str, str]]) -> str:
    found = [node for one in select.expressions for node in _figures(one)]
    figures = list(
        dict.fromkeys(PEOPLE if _counts_people(one, tree, persons) else _figure(one, known) for one in found)
    )
    keys = list(dict.fromkeys(_key(one, select, known) for one in _grouped(select)))
    tables = list(dict.fromkeys(one.name for one in tree.find_all(exp.Table) if one.name.lower() in known))
    asked = _columns((one.this for one in tree.find_all(exp.Where)), known)
    asked += [COMPUTED] * (not asked and tree.find(exp.Where) is not None)
    what = _listed(figures) if figures else "a figure"
    by = f" by {_listed(keys)}" if keys else ""
    among = f" among {_listed(tables, 'with')}" if tables else ""
    condition = f" with a condition on {_listed(asked)}" if asked else ""
    return f"{what}{by}{among}{condition}"


def _figures(column: exp.Expr) -> Iterator[exp.AggFunc]:
    """Return the aggregates that are released for one column of the answer; keys release nothing."""
    for node in column.find_all(exp.AggFunc):
        if node.find_ancestor(exp.Select) is not column.find_ancestor(exp.Select) or node.find_ancestor(exp.AggFunc):
            continue
        if isinstance(node, exp.WithinGroup):
            continue
        yield node


def _counts_people(node: exp.AggFunc, tree: exp.Expr, persons: frozenset[tuple[str, str]]) -> bool:
    """Tell whether it is COUNT(DISTINCT x), x the column that names people in its table and not another of its name."""
    over = node.this.expressions if isinstance(node, exp.Count) and isinstance(node.this, exp.Distinct) else []
    if len(over) != 1 or not isinstance(over[0], exp.Column):
        return False
    name, of = over[0].name.lower(), over[0].table.lower()
    made_up = any(one.alias.lower() == name and one.this.name.lower() != name for one in tree.find_all(exp.Alias))
    tables = [one for one in tree.find_all(exp.Table) if of in ("", one.alias_or_name.lower())]
    return not made_up and any((one.name.lower(), name) in persons for one in tables)


def _figure(node: exp.AggFunc, known: frozenset[str]) -> str:
    inside = _columns([node, *([node.parent] if isinstance(node.parent, exp.WithinGroup) else [])], known)
    about = _listed(inside or [COMPUTED])
    if isinstance(node, exp.Count):
        if isinstance(node.this, exp.Distinct):
            return f"how many different {about} there are"
        return "the number of rows" if not inside else f"the number of rows with {about}"
    return NOUNS.get(type(node), "a figure about {}").format(about)


def _grouped(select: exp.Select) -> list[exp.Expr]:
    group = select.args.get("group")
    if group is None:
        return []
    if group.args.get("all"):  # GROUP BY ALL: every column without an aggregate
        return [one for one in select.expressions if one.find(exp.AggFunc) is None]
    return list(group.expressions)


def _key(key: exp.Expr, select: exp.Select, known: frozenset[str]) -> str:
    """Return what one GROUP BY term is about; a number stands for a column of the answer, an alias for its meaning."""
    if isinstance(key, exp.Literal) and not key.is_string and key.name.isdigit():
        place = int(key.name) - 1
        key = select.expressions[place] if 0 <= place < len(select.expressions) else key
    if isinstance(key, exp.Column) and key.name.lower() not in known:
        meant = [one for one in select.expressions if one.alias_or_name.lower() == key.name.lower()]
        key = meant[0] if meant else key
    return _listed(_columns([key], known) or [COMPUTED])


def _columns(parts: Iterable[exp.Expr], known: frozenset[str]) -> list[str]:
    """Return the declared columns that expressions mention, each once, in their order."""
    found = (one for part in parts for one in part.find_all(exp.Column, bfs=False))
    return list(dict.fromkeys(one.name.lower() for one in found if one.name.lower() in known))


def _listed(words: list[str], last: str = "and") -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} {last} {words[-1]}"
