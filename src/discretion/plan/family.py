"""Families: aggregates of one column that can be computed from one release, and whether that is better."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from sqlglot import exp

from discretion.mechanisms.paired import PARTS
from discretion.query import Asked
from discretion.query.scalar import unbracketed
from discretion.statistics import Kind, Pair, Wanted

MOMENTS: tuple[Kind, ...] = ("sum", "mean", "variance")
FINEST: tuple[Kind, ...] = (
    "variance",
    "mean",
    "sum",
)  # whose grid is shared: squares need theirs, a sum's is the coarsest


@dataclass(frozen=True, kw_only=True)
class Family:
    """The places of aggregates over the same rows and column."""

    places: tuple[int, ...]
    base: int  # the place whose grid all share
    wide: int | None = None  # the place of a count of all rows, also of those without a value
    pairs: tuple[Pair, ...] = ()  # of nine sums about two columns: always released together
    smaller: tuple["Family", ...] = ()  # what else may be released together: less its variances, less that count


def families(asked: Sequence[Asked]) -> tuple[Family, ...]:
    """Return the families of at least two; nobody is in two of them."""
    found: list[Family] = []
    taken: set[int] = set()
    for place, one in enumerate(asked):
        if one.pair is None and one.aggregate.kind in MOMENTS and place not in taken:
            family = _family(place, asked, taken)
            if len(family.places) > 1:
                found.append(family)
                taken.update(family.places)
    ranks: dict[tuple[str, str], dict[int, Fraction | None]] = {}
    for place, one in enumerate(asked):
        if one.aggregate.kind == "quantile":
            ranks.setdefault(_over(one), {})[place] = one.aggregate.rank
    return (*found, *of_pairs(asked), *(family for column in ranks.values() for family in of_quantiles(column)))


def of_pairs(asked: Sequence[Wanted]) -> list[Family]:
    """Return the families of nine sums about two columns; nine that follow each other are one."""
    firsts = [place for place, one in enumerate(asked) if one.pair is not None and one.pair.part == 0]
    found = []
    for first in firsts:
        places = tuple(range(first, first + PARTS))
        pairs = tuple(pair for place in places if (pair := asked[place].pair) is not None)
        found.append(Family(places=places, base=first, pairs=pairs))
    return found


def of_quantiles(ranks: Mapping[int, Fraction | None]) -> tuple[Family, ...]:
    """Return the family of quantiles of the same values, by their places: different ranks, without the extremes."""
    distinct = {rank: place for place, rank in reversed(list(ranks.items())) if rank is not None and 0 < rank < 1}
    places = tuple(sorted(distinct.values()))
    return (Family(places=places, base=places[0]),) if len(places) > 1 else ()


def _family(place: int, asked: Sequence[Asked], taken: set[int]) -> Family:
    one = asked[place]
    free = [(p, other) for p, other in enumerate(asked) if p not in taken and other.pair is None]
    alike = [p for p, other in free if other.aggregate.kind in MOMENTS and _over(other) == _over(one)]
    counts = [(p, other) for p, other in free if other.aggregate.kind == "count" and not other.aggregate.size_is_public]
    same = [p for p, other in counts if _counts_the_same(other, one)]
    wide = next((p for p, other in counts if p not in same and _counts_more(other, one)), None)
    kinds = {p: asked[p].aggregate.kind for p in alike}
    plain = [p for p in alike if kinds[p] != "variance"]
    whole, *smaller = dict.fromkeys(
        _made(some, same, kinds, more) for more in (wide, None) for some in (alike, plain) if some
    )
    return replace(whole, smaller=tuple(family for family in smaller if len(family.places) > 1))


def _made(alike: list[int], same: list[int], kinds: dict[int, Kind], wide: int | None) -> Family:
    base = min(alike, key=lambda place: FINEST.index(kinds[place]))
    return Family(places=tuple(sorted([*alike, *same, *([] if wide is None else [wide])])), base=base, wide=wide)


def _over(one: Asked) -> tuple[str, str]:
    """Return the column and the condition that an aggregate is over, as text."""
    bare, condition = (one.plain.this, one.plain.expression) if isinstance(one.plain, exp.Filter) else (one.plain, None)
    return unbracketed(bare.this).sql("duckdb"), condition.sql("duckdb") if condition is not None else ""


def _counts_the_same(count: Asked, one: Asked) -> bool:
    """Tell whether it counts the rows that have a value: COUNT(x) beside AVG(x), or any count if x is never NULL."""
    return _over(count) == _over(one) or (one.fill is not None and count.value is None)


def _counts_more(count: Asked, one: Asked) -> bool:
    """Tell whether it counts every row that has a value, and others: COUNT(*) without a condition, or with the same."""
    star, condition = _over(count)
    return count.value is None or (star == "*" and condition == _over(one)[1])
