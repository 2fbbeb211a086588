"""One question about arrays: preferences and groups → plan → statistics → release. No ledger."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike

from discretion.engines.arrays import ArrayColumn, ArrayRows, compute, limited
from discretion.engines.values import NOBODY, Column, Grouping, categories_of, people_of
from discretion.errors import InvalidDeclaration, InvalidPreference
from discretion.guarantee import Model, Protects
from discretion.mechanisms import Belief
from discretion.mechanisms.belief import Assume
from discretion.mechanisms.local import fence, release_individual
from discretion.mechanisms.option import MechanismName, Options
from discretion.noise import Floats, Rng
from discretion.plan import flow, individual
from discretion.plan.family import Family, of_pairs, of_quantiles
from discretion.plan.flow import Manner
from discretion.preference import Integers, Specification, epsilons
from discretion.release import IndividualRelease, Release
from discretion.statistics import MOST_CELLS, Aggregate, Pair, Wanted

# One number or level for everybody; one per row; or one per person, by the names that `person` has.
Epsilon = float | str | ArrayLike | Sequence[str] | Mapping[Any, float] | Mapping[Any, str]
By = Column | Mapping[str, Column]
Keys = Sequence[Any] | Mapping[str, Sequence[Any]]


@dataclass(frozen=True, kw_only=True, eq=False)
class ArrayChoices:
    """Hold what every question about arrays can be told besides its values: see `discretion.arrays`."""

    epsilon: Epsilon
    levels: Mapping[str, float] | None
    by: By | None
    keys: Keys | None
    person: Column | None
    rows_per_person: int | None
    assume: Assume
    protects: Protects
    rng: Rng
    mechanism: MechanismName = "auto"
    options: Options | None = None
    expect: tuple[float, float] | None = None
    model: Model = "personalized"
    acknowledged: bool = False
    with_interval: bool = False


def answer(
    name: str,
    shapes: Sequence[Aggregate],
    column: ArrayColumn,
    asking: ArrayChoices,
    *groupings: Grouping,
    pairs: Sequence[Pair] = (),
) -> Release:
    """Plan, compute, release. The plan sees the shape of the question and the preferences, never the column."""
    if asking.protects not in ("value", "presence"):
        raise InvalidDeclaration(f'protects must be "value" or "presence", got {asking.protects!r}.')
    specification, cohort, person = _enrolled(asking, len(column))
    groups = _groups(asking, groupings, len(column))
    shapes = [_grouped(name, _shaped(one, asking), groups) for one in shapes]
    shape, column = shapes[0], column if groups is None else column.grouped(groups.place, groups.place != NOBODY)
    if asking.model != "personalized":
        rows = ArrayRows(column=column, cohort=cohort, cohorts=len(specification.epsilons), person=person)
        counted = len(shapes) == 1 and (groups is not None or shape.kind == "mode" or "place" in (asking.options or {}))
        if not counted:
            return _individual(name, shape, column, asking)
        return _individually(name, shape, rows, specification, asking, groups)
    if asking.with_interval and shape.kind != "quantile":
        raise InvalidDeclaration(f"with_interval is for medians and other quantiles, not for a {shape.kind}.")
    if person is not None:
        column = limited(column, person, shape.rows_per_person, asking.rng)
    belief = Belief(assume=asking.assume, expect=asking.expect)
    manner = Manner(
        mechanism=asking.mechanism, belief=belief, with_interval=asking.with_interval, options=asking.options
    )
    wanted, families = _together(name, shapes, pairs)
    _, plan = flow.propose(wanted, specification.divided(flow.parts(wanted, manner)), manner, families)
    rows = ArrayRows(column=column, cohort=cohort, cohorts=len(specification.epsilons), person=person)
    statistics = compute(replace(plan.request, source=rows), asking.rng)  # the only line that reads values
    shown = 1 if pairs else len(shapes)  # of nine sums about two columns the first one has the answer
    released, errors = flow.draw(plan, shown, statistics, asking.rng)
    columns = {key: values * shown for key, values in (groups.columns if groups is not None else {}).items()}
    columns[name] = tuple(value for each in released for value in each.tolist())
    return flow.conclude(plan, columns, {name: tuple(one for each in errors for one in each)}, rng=asking.rng)


def _together(name: str, shapes: Sequence[Aggregate], pairs: Sequence[Pair]) -> tuple[list[Wanted], Sequence[Family]]:
    """Return what is asked for, and what of it can come from one release: quantiles, or nine sums about two columns."""
    if pairs:
        wanted = [Wanted(text=name, aggregate=one, pair=pair) for one, pair in zip(shapes, pairs, strict=True)]
        return wanted, of_pairs(wanted)
    names = [name] if len(shapes) == 1 else [f"{name} {float(one.rank or 0):g}" for one in shapes]
    wanted = [Wanted(text=text, aggregate=one) for text, one in zip(names, shapes, strict=True)]
    return wanted, of_quantiles({place: one.rank for place, one in enumerate(shapes)})


def _shaped(shape: Aggregate, asking: ArrayChoices) -> Aggregate:
    """Return the shape with what protects people: how many rows one of them has, and whether that is public."""
    rows = most_rows(asking)
    complete = shape.complete and asking.protects == "value" and asking.person is None and asking.by is None
    return replace(shape, protects=asking.protects, complete=complete, rows_per_person=rows)


def most_rows(asking: ArrayChoices) -> int:
    """Return the most rows of one person that count; refuse what is not a number of rows."""
    rows = asking.rows_per_person
    if (asking.person is None) != (rows is None):
        raise InvalidDeclaration(
            "person= says whose each row is, and rows_per_person= the most rows of one person that count, which you "
            "must know without looking at the data. Give both or neither."
        )
    if rows is not None and (not isinstance(rows, int) or rows < 1):
        raise InvalidDeclaration(f"rows_per_person must be a whole number from 1, got {rows!r}.")
    return rows or 1


# Who --------------------------------------------------------------------------------------------------------------


def _enrolled(asking: ArrayChoices, rows: int) -> tuple[Specification, Integers, Integers | None]:
    """Return the specification, the cohort of each person, and whose each row is (None: one row per person)."""
    if asking.person is None:
        return *Specification.assign(_each(asking, rows, "person")), None
    people, person = people_of(asking.person)
    refuse_other_length("person", len(person), rows)
    if isinstance(asking.epsilon, Mapping):
        return _registered(asking.epsilon, asking.levels, people, person)
    if np.ndim(asking.epsilon) == 0:
        return *Specification.assign(_each(asking, len(people), "person")), person
    chosen, owned = _each(asking, rows, "row"), person != NOBODY
    strictest = np.full(len(people), np.inf)
    np.minimum.at(strictest, person[owned], chosen[owned])  # rows that disagree: the strictest counts
    return *Specification.assign(strictest), person


def _each(asking: ArrayChoices, number: int, what: str) -> Floats:
    """Return an epsilon for each person or row."""
    if isinstance(asking.epsilon, Mapping):
        raise InvalidDeclaration("An epsilon for each name needs person=, which says whose each row is.")
    chosen = epsilons(asking.epsilon, asking.levels)
    if chosen.ndim == 0:
        return np.full(number, chosen)
    if chosen.shape != (number,):
        raise InvalidDeclaration(
            f"Give one epsilon per {what}, or one for everybody. Got {chosen.size:,} epsilons for {number:,} "
            f"{'people' if what == 'person' else 'rows'}."
        )
    return chosen


def _registered(
    epsilon: Mapping[Any, Any], levels: Mapping[str, float] | None, people: Sequence[Any], person: Integers
) -> tuple[Specification, Integers, Integers]:
    """Return the same for a register: people who have no row are in it too."""
    if not epsilon:
        raise InvalidPreference("There must be at least one person with an epsilon, got none.")
    specification, cohort = Specification.assign(epsilons(list(epsilon.values()), levels))
    place: dict[Hashable, int] = {name: number for number, name in enumerate(epsilon)}
    if any(name not in place for name in people):
        raise InvalidPreference("Everybody whose rows are given must have an epsilon; at least one person has none.")
    places = np.array([place[name] for name in people] + [NOBODY], dtype=np.int64)  # NOBODY stays the last one
    return specification, cohort, places[person]


def refuse_other_length(what: str, found: int, rows: int) -> None:
    if found != rows:
        raise InvalidDeclaration(f"{what} must have one entry per row, got {found} for {rows} rows.")


# Which groups -----------------------------------------------------------------------------------------------------


def _groups(asking: ArrayChoices, groupings: Sequence[Grouping], rows: int) -> Grouping | None:
    """Return every group that the answer shows, those of `by` first; None if there is one only."""
    every = [*_by(asking), *groupings]
    for one in every:
        refuse_other_length(next(iter(one.columns)), len(one.place), rows)
    return reduce(Grouping.times, every) if every else None


def _by(asking: ArrayChoices) -> list[Grouping]:
    by, keys = asking.by, asking.keys
    if (by is None) != (keys is None):
        raise InvalidDeclaration(
            "by= says which group each row is in, and keys= which groups the answer shows, known without looking at "
            "the data. Give both or neither."
        )
    if by is None or keys is None:
        return []
    columns = by if isinstance(by, Mapping) else {str(getattr(by, "name", None) or "key"): by}
    named = keys if isinstance(keys, Mapping) else dict.fromkeys(columns, keys)
    if set(columns) != set(named) or not columns or (len(columns) > 1 and not isinstance(keys, Mapping)):
        raise InvalidDeclaration("by= and keys= must have the same names: by={'sex': ...}, keys={'sex': ['f', 'm']}.")
    return [categories_of(column, named[name], name=name, given="keys") for name, column in columns.items()]


def _grouped(name: str, shape: Aggregate, groups: Grouping | None) -> Aggregate:
    """Return the shape with these groups."""
    if groups is None:
        return shape
    if name in groups.columns:
        raise InvalidDeclaration(f"A column of by= cannot be called {name!r}: the answer is. Give it another name.")
    cells = len(groups) * (shape.upper - shape.lower + 1 if shape.kind in ("quantile", "mode") else 1)
    if cells > MOST_CELLS:
        raise InvalidDeclaration(f"{cells:,} groups and candidate answers are too many. Use a coarser grid or bins.")
    return replace(shape, groups=len(groups))


# Model individual -------------------------------------------------------------------------------------------------


def _individually(
    name: str,
    shape: Aggregate,
    rows: ArrayRows,
    specification: Specification,
    asking: ArrayChoices,
    groups: Grouping | None,
) -> Release:
    """Ask about groups, modes and places under model `individual`, as SQL does."""
    fence(asking.model, asking.acknowledged)
    if asking.person is not None:
        raise InvalidDeclaration(f"Model `individual` does not answer this {shape.kind} about rows of people.")
    options = individual.checked_options(asking.mechanism, cast(Mapping[str, Any] | None, asking.options))
    _, plan = individual.propose([Wanted(text=name, aggregate=shape)], specification, options)
    statistics = compute(replace(plan.request, source=rows), asking.rng)
    (released,), (errors,) = flow.draw(plan, 1, statistics, asking.rng)
    columns = {**(groups.columns if groups is not None else {}), name: tuple(released.tolist())}
    return flow.conclude(plan, columns, {name: errors}, rng=asking.rng)


def _individual(name: str, shape: Aggregate, column: ArrayColumn, asking: ArrayChoices) -> IndividualRelease:
    """Ask `local`, which fences model `individual`: it is not differential privacy."""
    if shape.groups > 1 or shape.kind not in ("count", "sum", "mean", "quantile") or asking.person is not None:
        raise InvalidDeclaration(f"Model `individual` does not answer this {shape.kind}.")
    asked: dict[str, Any] = {"model": asking.model, "acknowledged": asking.acknowledged, **(asking.options or {})}
    values, bounds = column.counted * 1.0, (0.0, 1.0)
    if shape.kind == "count":
        asked |= {"inside": (1.0, 1.0)}
    else:
        values = np.where(column.counted, column.steps(shape) * float(shape.step) + float(shape.origin), np.nan)
        bounds = float(shape.value(shape.lower)), float(shape.value(shape.upper))
        asked |= {"q": float(shape.rank)} if shape.rank is not None else {}
    chosen, kind = _each(asking, len(column), "person"), shape.kind
    how: dict[str, Any] = {"bounds": bounds, "protects": asking.protects, "rng": asking.rng, **asked}
    release = release_individual(values, statistic=kind, epsilon=chosen, **how)
    (answers,), (errors,) = release.columns.values(), release.errors.values()
    return replace(release, columns={name: answers}, errors={name: errors})
