"""Release: the answer, its guarantee and its error, never one without the others."""

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import date
from math import ceil, inf, isfinite
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from discretion.errors import InvalidDeclaration, require
from discretion.guarantee import Guarantee
from discretion.release.calendar import days, outwards
from discretion.release.error import Error as Error
from discretion.release.relation import Relation, draw
from discretion.render.explanation import Explanation
from discretion.render.listing import as_frame
from discretion.render.number import KEPT, between, ends, number, percent, rounded, upwards
from discretion.render.sheet import Sheet, Shown

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True, kw_only=True, repr=False)
class Release(Shown):
    """An answer, as a small table: keys, answered columns, and an error for every answer."""

    columns: Mapping[str, tuple[Any, ...]]
    errors: Mapping[str, tuple[Error, ...]]  # for every answered column, one error a row
    mechanism: str
    guarantee: Guarantee
    simulated: bool = False  # made with a seeded generator: protects nobody
    entry: str = ""  # the ledger's entry that paid for it
    explanation: str = ""
    comparison: tuple[str, ...] = ()  # who is left out; if an interval is wide, what assumptions would have given
    share: float | None = None  # of everybody's allowance, where there is a ledger
    within: float | None = None  # the largest 95% error that was asked for

    def __post_init__(self) -> None:
        lengths = {len(values) for values in (*self.columns.values(), *self.errors.values())}
        if len(lengths) > 1 or not set(self.errors) <= set(self.columns) or not self.errors:
            raise InvalidDeclaration("A release needs columns of one length and an error for what it answers.")

    @property
    def value(self) -> Any:
        """The one number asked for; a tuple for one answered column; else a tuple of rows."""
        return self._shaped(self.columns)

    @property
    def error(self) -> Any:
        """The error of `value`, in the same shape."""
        return self._shaped(self.errors)

    def interval(self, confidence: float = 0.95) -> Any:
        """Return the interval of `value`, in the same shape; in ranks where the error is in ranks."""
        return self._shaped(self._by_cell(lambda value, error: _interval(value, error, confidence)))

    @property
    def low(self) -> Any:
        """Return the lower end of the 95% interval of `value`, in the same shape.

        None where the error is in ranks: ask for a median with `with_interval` to have an interval in its own units.
        """
        return self._shaped(self._by_cell(lambda value, error: _end(value, error, 0)))

    @property
    def high(self) -> Any:
        """Return the upper end of the 95% interval of `value`; see `low`."""
        return self._shaped(self._by_cell(lambda value, error: _end(value, error, 1)))

    def explain(self) -> Explanation:
        """Say why this mechanism: the candidates, what each cohort is charged, and plain DP for comparison."""
        return Explanation.of(self.explanation)

    def to_arrow(self) -> pa.Table:
        """Return the answer as an Arrow table.

        Next to an answered column `x` are `x_low` and `x_high`, the ends of its 95% interval, and `x_rmse`, the root
        mean squared error that was predicted. Where the error is in ranks (a share of the rows), their names say so:
        `x_rank_low`, `x_rank_high`, `x_rank_rmse`. Where the question has a column of that name, `_` is added to it.
        Whole numbers beyond 64 bits are doubles.
        """
        table: dict[str, list[Any]] = {name: _in_64_bits(values) for name, values in self.columns.items()}
        intervals = self._by_cell(_interval)
        for name, errors in self.errors.items():
            stem = f"{name}_rank" if any(error.unit == "rank" for error in errors) else name
            for place, end in enumerate(("low", "high")):
                ends_found = [None if found is None else found[place] for found in intervals[name]]
                table[_free(f"{stem}_{end}", table)] = ends_found
            table[_free(f"{stem}_rmse", table)] = [error.total for error in errors]
        return pa.table(table)

    def to_pandas(self) -> "pandas.DataFrame":
        """Return the answer as a pandas data frame, with the columns of `to_arrow` (needs pandas)."""
        return as_frame(self.to_arrow())

    def stored(self, **more: object) -> str:
        """Return everything, as the text that the ledger keeps, and what it was computed from."""
        content = {f.name: getattr(self, f.name) for f in fields(self)}
        content["errors"] = {name: [asdict(error) for error in column] for name, column in self.errors.items()}
        content["guarantee"] = self.guarantee.to_dict()
        content["explanation"] = self.explain().plain()
        return json.dumps(content | more)

    @classmethod
    def from_stored(cls, text: str) -> "Release":
        """Return the release that `stored` wrote down."""
        content = json.loads(text)
        for name in ("parts", "drawn"):  # what it was computed from
            content.pop(name, None)
        content["columns"] = {name: tuple(values) for name, values in content["columns"].items()}
        content["comparison"] = tuple(content.get("comparison", ()))
        content["explanation"] = Explanation.of(content.get("explanation", ""))
        content["errors"] = {
            name: tuple(Error.from_dict(error) for error in column) for name, column in content["errors"].items()
        }
        guarantee = Guarantee.from_dict(content["guarantee"])
        return kind_of(guarantee)(**{**content, "guarantee": guarantee})

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return zip(*self.columns.values(), strict=True)

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def __float__(self) -> float:
        return float(self.value)

    def rows(self) -> list[dict[str, str]]:
        """Every row as text, answers with their 95% error: what repr, HTML and the terminal show."""
        return [{name: self._cell(name, row) for name in self.columns} for row in range(len(self))]

    def promise(self) -> str:
        """Guarantee and assumptions in one line each."""
        lines = [f"{self.mechanism}; {self.guarantee}", *(f"assumes {assumption}" for assumption in self._assumed())]
        if self.simulated:
            lines.append("simulated: drawn from a seeded generator, protects nobody")
        return "\n".join(lines)

    def remarks(self) -> list[str]:
        """Return warnings about columns: numbers that are not possible, intervals that say nothing."""
        remarks = []
        for name, errors in self.errors.items():
            if any(error.simulated for error in errors):
                remarks.append(
                    f"{name}: computed from released values; its error is simulated, by draws from their noise."
                )
            answers = [(v, e) for v, e in zip(self.columns[name], errors, strict=True) if isinstance(v, int | float)]
            outside = [error.limits for value, error in answers if error.is_outside(value)]
            if outside and outside[0]:
                remarks.append(
                    f"{name}: the truth lies from {ends(outside[0])}; noise took an answer outside. It is "
                    "shown as drawn, because answers moved back inside would be wrong on average. Its interval is "
                    "that of the nearest number that is possible."
                )
            if self.within is not None and (far := sum(e.reach(v) > KEPT * self.within for v, e in answers)):
                remarks.append(f"{name}: {missed(self.within, far, len(self), estimated=name in self.relations())}")
            within = [(value, error) for value, error in answers if error.limits is not None]
            if within and all(error.says_nothing(value) for value, error in within):
                remarks.append(f"{name}: too much noise to say anything; the truth may be anywhere that is possible. ")
                remarks[-1] += self._helps([error for _, error in within])
        return remarks

    def _helps(self, errors: list[Error]) -> str:
        """Say what would make an answer that says nothing better; noise shrinks in proportion to the share."""
        ratios = [2 * e.width / (e.limits[1] - e.limits[0]) for e in errors if e.limits and e.unit == "value"]
        known = [ratio for ratio in ratios if 1 < ratio < inf]
        larger = larger_share(max(known), self.share) if known else "a larger share"
        fewer = "fewer columns or groups" if len(self.errors) > 1 or len(self) > 1 else ""
        assumption = "an assumption you can defend" if any(error.assumable for error in errors) else ""
        ways = [way for way in (larger, fewer, assumption) if way]
        said = "" if larger else "No share would be enough, not even 1."
        if not ways:
            return said
        listed = ", ".join([*ways[:-1], f"or {ways[-1]}"]) if len(ways) > 1 else ways[0]
        return f"{said} What would help: {listed}.".strip()

    def relations(self) -> dict[str, tuple[Relation, ...]]:
        """For every column whose release estimated it, how choices and values are related, one a row."""
        found = {name: tuple(e.relation for e in errors if e.relation) for name, errors in self.errors.items()}
        return {name: relations for name, relations in found.items() if relations and len(relations) == len(self)}

    def related(self) -> list[str]:
        """Say in one line a column whether choices and values are visibly related, and by how much."""
        lines = []
        for name, relations in self.relations().items():
            visible = sum(relation.is_visible for relation in relations)
            lines.append(
                f"{name}: {relations[0]}"
                if len(relations) == 1
                else f"{name}: related: visible in {visible} of {len(relations)} rows; see `relations()`"
            )
        return lines

    @property
    def is_wide(self) -> bool:
        """Say whether an interval is so wide that another assumption is worth a look."""
        return any(
            error.is_wide(value)
            for name, errors in self.errors.items()
            for value, error in zip(self.columns[name], errors, strict=True)
        )

    def plot_relation(self, column: str = "", row: int = 0) -> Any:
        """Draw the estimated means against ε with their 95% intervals; return the figure (needs Matplotlib)."""
        require("plots", "A plot")
        from matplotlib.figure import Figure  # an extra: only pictures need it

        relations = self.relations()
        if not relations or (column and column not in relations):
            raise InvalidDeclaration(
                'There is no relation to draw: ask with assume="gradual" for a count, sum or mean.'
            )
        figure = Figure(figsize=(6, 4), layout="constrained")
        draw(figure.subplots(), relations[column or next(iter(relations))][row])
        return figure

    def to_dict(self) -> dict[str, Any]:
        """Return the answer as rows, with errors, intervals and guarantee."""
        errors = {
            name: [
                {"bias": e.bias, "noise": e.noise, "unit": e.unit, "interval": _interval(v, e)}
                for v, e in zip(self.columns[name], column, strict=True)
            ]
            for name, column in self.errors.items()
        }
        return {
            "rows": [dict(zip(self.columns, row, strict=True)) for row in self],
            "errors": errors,
            "mechanism": self.mechanism,
            "assumes": self._assumed(),
            "remarks": self.remarks(),
            "related": {name: [asdict(one) for one in found] for name, found in self.relations().items()},
            "guarantee": {**self.guarantee.to_dict(), "text": str(self.guarantee)},
            "entry": self.entry,
        }

    def sheets(self) -> list[Sheet]:
        """Return the answer, every number with its 95% error, and under it remarks, promise and payment."""
        paid = [f"paid by entry {self.entry}"] if self.entry else []
        return [
            Sheet(
                title="Answer",
                columns=tuple(self.columns),
                rows=tuple(tuple(row.values()) for row in self.rows()),
                notes=(*self.remarks(), *self.related(), *self.comparison, *self.promise().split("\n"), *paid),
                numbers=frozenset(self.errors),
            )
        ]

    def _by_cell(self, of: Callable[[Any, Error], Any]) -> dict[str, tuple[Any, ...]]:
        """Return something about every answer and its error, for every answered column."""
        return {name: tuple(map(of, self.columns[name], errors)) for name, errors in self.errors.items()}

    def _assumed(self) -> list[str]:
        """Return what was assumed, once: one column may assume all that another one does, and more."""
        every = {error.assumption for column in self.errors.values() for error in column if error.assumption}
        return sorted(one for one in every if not any(f"; {one}; " in f"; {more}; " for more in every - {one}))

    def _cell(self, name: str, row: int) -> str:
        value = self.columns[name][row]
        if name not in self.errors:
            return str(value)
        error = self.errors[name][row]
        half, within = error.half_width(), inf if self.within is None else self.within
        if error.shortfall and value is not None:
            return f"{value} (at most {percent(half, within)} short)"
        if isinstance(value, bool):  # computed from released values
            return f"{value} (error unknown)" if error.total else str(value)
        if isinstance(value, date):
            return f"{value} ({_dates(value, error) if error.unit == 'value' else f'rank ± {percent(half, within)}'})"
        if not isinstance(value, int | float):  # a category
            return f"{value} (at most {percent(half, within)} short)" if error.unit == "rank" else str(value)
        if not (isfinite(half) and isfinite(value)):
            return f"{number(value)} ({f'within {ends(error.limits)}' if error.limits else 'error unknown'})"
        if error.unit == "rank":
            rows = None if error.rows is None else ceil(min(half, 1.0) * error.rows)
            least = "" if rows is None else f", at least {rows:,} row{'s' * (rows != 1)}"
            steps = f", in steps of {number(error.step)}" if error.step else ""
            return f"{number(value)} (rank ± {percent(half, within)}{least}{steps})"
        if error.bought:
            return f"{value:,.12g} ({ends(error.interval(value))})"
        if error.fits(value):
            return rounded(value, half, within)
        return between(value, half, error.interval(value), error.limits, within)

    def _shaped(self, table: Mapping[str, tuple[Any, ...]]) -> Any:
        answers = [table[name] for name in self.errors]
        if len(answers) > 1:
            return tuple(zip(*answers, strict=True))
        return answers[0][0] if len(self) == 1 and len(self.columns) == 1 else answers[0]


@dataclass(frozen=True, kw_only=True, repr=False)
class IndividualRelease(Release):
    """An answer under model `individual`, which is not differential privacy: its text says what it does not promise."""

    def promise(self) -> str:
        return f"{super().promise()}\n{self.guarantee.note}"


def kind_of(guarantee: Guarantee) -> type[Release]:
    """Return the type of release for what is promised."""
    return Release if guarantee.is_differential_privacy else IndividualRelease


def _free(name: str, taken: Collection[str]) -> str:
    """Return a name that no column has."""
    return _free(f"{name}_", taken) if name in taken else name


def _in_64_bits(values: Sequence[Any]) -> list[Any]:
    """Return a column that Arrow can hold."""
    if not any(isinstance(value, int) and abs(value) >= 2**63 for value in values):
        return list(values)
    return [float(str(value)) if isinstance(value, int) else value for value in values]  # of a text, not OverflowError


def _interval(value: Any, error: Error, confidence: float = 0.95) -> tuple[Any, Any] | None:
    """Return the interval of one answer; None for a category, which has none."""
    if isinstance(value, date) and error.asked is None:
        return outwards(*error.interval(float(days(value)), confidence), value)
    if isinstance(value, bool):
        return None
    known = isinstance(value, int | float) or error.asked is not None
    return error.interval(value, confidence) if known else None


def _end(value: Any, error: Error, end: int) -> Any:
    """Return one end of the 95% interval in the units of the value, None if there is none."""
    found = _interval(value, error) if error.unit == "value" else None
    return None if found is None else found[end]


def _dates(value: date, error: Error) -> str:
    return " to ".join(str(end) for end in outwards(*error.interval(float(days(value))), value))


def larger_share(times: float, share: float | None) -> str:
    """Say how much more must be spent before an interval is half of what is possible; '' if nobody has that much."""
    half = "the interval would then be about half of what is possible"
    if share is None:
        return f"about {ceil(times):,} times the epsilon ({half})"
    if times * share > 1:
        return ""
    return f"share={min(upwards(times * share, 2), 1.0):g} instead of {share:g} ({half})"


def missed(within: float, cells: int, rows: int, *, estimated: bool) -> str:
    """Say that an error is larger than the one asked for, and why; `estimated`: from the release itself."""
    where = f" in {cells:,} of {rows:,} rows" if rows > 1 else ""
    also = "; under `gradual` it also depends on the relation that is found" if estimated else ""
    return (
        f"the error asked for, within={within:g}, was missed{where}. It was planned as if everybody had one row in the "
        "answer and groups were equally large, because a plan sees no data: WHERE, groups and missing values leave "
        f"fewer rows{also}."
    )
