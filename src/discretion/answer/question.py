"""Question: what an analyst asks, and how. Complete and checked, or refused."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, cast, get_args

import numpy as np

from discretion.errors import InvalidDeclaration
from discretion.guarantee import Model
from discretion.ledger.offer import exact
from discretion.mechanisms.belief import Assume
from discretion.mechanisms.option import Options
from discretion.plan import individual
from discretion.plan.option import checked


@dataclass(frozen=True, kw_only=True)
class Question:
    """Hold what an analyst asks, and how."""

    sql: str
    share: float = 0.1  # of each person's allowance, at most
    mechanism: str = "auto"
    assume: Assume = None
    expect: tuple[float, float] | None = None
    with_interval: bool = False  # quantiles: spend a third on an interval in value units
    partial: bool = False  # let people who cannot pay the share pay what they have left
    analyst: str = ""
    options: Options | None = None  # of the mechanism
    within: float | None = None  # the largest error: the smallest share that is enough is used
    model: Model = "personalized"  # or "individual", which is not differential privacy

    def __post_init__(self) -> None:
        if self.model not in get_args(Model):
            raise InvalidDeclaration(
                f"model must be one of {', '.join(map(repr, get_args(Model)))}, got {self.model!r}."
            )
        exact(self.share)
        if isinstance(self.share, np.generic):
            object.__setattr__(self, "share", self.share.item())
        check = checked if self.model == "personalized" else individual.checked_options
        object.__setattr__(self, "options", check(self.mechanism, cast(Mapping[str, Any] | None, self.options)))

    def manner(self) -> dict[str, Any]:
        """Return how it is asked, as plain values: all that is not usual, without the text and the analyst."""
        said = {field.name: getattr(self, field.name) for field in fields(self) if field.name not in ("sql", "analyst")}
        usual = {field.name: field.default for field in fields(self)}
        plain = {name: dict(value) if isinstance(value, Mapping) else value for name, value in said.items()}
        told = {name: value for name, value in plain.items() if value not in (usual[name], None, {})}
        found: dict[str, Any] = json.loads(json.dumps(told, default=str))
        return found

    @classmethod
    def again(cls, sql: str, manner: Mapping[str, Any], *, analyst: str = "") -> "Question":
        """Return a question that was asked before, from its text and what `manner` told of it."""
        known = {field.name for field in fields(cls)} - {"sql", "analyst"}
        said: dict[str, Any] = {name: value for name, value in manner.items() if name in known}
        if "expect" in said:
            said["expect"] = tuple(said["expect"])  # JSON has lists
        return cls(sql=sql, analyst=analyst, **said)

    def facts(self) -> dict[str, Any]:
        """Return everything that an answer depends on; what version 0.2 did not know is left out if nobody said it."""
        said = {field.name: getattr(self, field.name) for field in fields(self)}
        if self.within is not None:
            del said["share"]  # the most that was allowed: it decides whether there is an answer, not which one
        usual: dict[str, Any] = {"options": {}, "within": None, "model": "personalized"}
        return {name: value for name, value in said.items() if name not in usual or value != usual[name]}
