"""Drawn: what was released for the aggregates of a question; any statement about the same ones is answered from it."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from math import isfinite, nan
from typing import Any

import numpy as np
from sqlglot import exp

from discretion.noise import Floats
from discretion.query import Query
from discretion.query.uncertainty import propagate
from discretion.release import Error


@dataclass(frozen=True, kw_only=True)
class Drawn:
    """Hold the values of all aggregates in all groups, with noise, and their errors."""

    released: Sequence[Floats]  # by aggregate: a value a group
    errors: Sequence[Sequence[Error]]  # likewise
    together: Sequence[Sequence[int]] = ()  # the numbers of aggregates that come from one release

    def columns(self, query: Query) -> dict[str, tuple[Any, ...]]:
        """Return the answer to a question about these aggregates."""
        return query.finish(self.released)

    def column_errors(self, query: Query) -> dict[str, tuple[Error, ...]]:
        """Return, for every answered column, the error in every group shown."""
        shown = query.shown(self.released)
        environments = {
            group: dict(zip((key.name for key in query.keys), query.groups[group], strict=True))
            | {str(number): float(values[group]) for number, values in enumerate(self.released)}
            for group in shown
        }
        return {
            column.name: tuple(
                propagate(column.expression, environments[group], [each[group] for each in self.errors], self.together)
                for group in shown
            )
            for column in query.columns
            if column.expression.find(exp.Placeholder)
        }

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values; an error that many groups share is told once."""
        known: dict[Error, int] = {}
        places = [[known.setdefault(error, len(known)) for error in each] for each in self.errors]
        return {
            "released": [[value if isfinite(value) else None for value in each.tolist()] for each in self.released],
            "errors": [asdict(error) for error in known],
            "places": places,
            "together": [list(each) for each in self.together],
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> "Drawn":
        """Return what `to_dict` made plain."""
        errors = [Error.from_dict(one) for one in plain["errors"]]
        return cls(
            released=[
                np.array([nan if one is None else one for one in each], dtype=float) for each in plain["released"]
            ],
            errors=[[errors[place] for place in each] for each in plain["places"]],
            together=plain["together"],
        )
