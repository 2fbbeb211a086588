"""Drawn: what was released for the aggregates of a question; any statement about the same ones is answered from it."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from math import isfinite, nan
from typing import Any

import numpy as np
from sqlglot import exp

from discretion.noise import Floats
from discretion.preference import Integers
from discretion.query import Query
from discretion.query.key import bare
from discretion.query.uncertainty import UNKNOWN, propagate
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

    def to_dict(self, query: Query) -> dict[str, Any]:
        """Return everything as plain values, by the texts of aggregates and keys; equal errors are told once."""
        known: dict[Error, int] = {}
        places = [[known.setdefault(error, len(known)) for error in each] for each in self.errors]
        return {
            "labels": list(query.labels),
            "keys": [bare(key.plain) for key in query.keys],
            "released": [[value if isfinite(value) else None for value in each.tolist()] for each in self.released],
            "errors": [asdict(error) for error in known],
            "places": places,
            "together": [list(each) for each in self.together],
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any], query: Query) -> "Drawn":
        """Return what `to_dict` made plain, for a question about some of the same aggregates, in any order."""
        errors = [Error.from_dict(one) for one in plain["errors"]]
        groups = _places(plain["keys"], query)
        found = [plain["labels"].index(label) if label else None for label in query.labels]
        values = [np.array([nan if one is None else one for one in each], dtype=float) for each in plain["released"]]
        number = {place: n for n, place in enumerate(found) if place is not None}
        nothing = np.full(len(groups), nan), [UNKNOWN] * len(groups)  # a sum that stands for no statistic is not used
        return cls(
            released=[nothing[0] if place is None else values[place][groups] for place in found],
            errors=[
                nothing[1] if place is None else [errors[plain["places"][place][group]] for group in groups]
                for place in found
            ],
            together=[[number[place] for place in each if place in number] for each in plain["together"]],
        )


def _places(keys: Sequence[str], query: Query) -> Integers:
    """Return for every group of a question its place among the same groups by keys in another order."""
    own = [bare(key.plain) for key in query.keys]
    sizes = {text: len(key.values) for text, key in zip(own, query.keys, strict=True)}
    places = np.arange(len(query.groups)).reshape([sizes[text] for text in keys])
    return np.asarray(places.transpose([keys.index(text) for text in own]).ravel())
