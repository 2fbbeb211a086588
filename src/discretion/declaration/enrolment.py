"""Enrolment: how the preferences found in a source become allowances."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from math import inf, isnan, nan
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from discretion.errors import InvalidPreference
from discretion.preference import Integers, Preference, allowance, round_down

MOST_LEVELS = 1_000  # more would only slow every question down; a menu makes them few


@dataclass(frozen=True, kw_only=True)
class Enrolment:
    """Says where a register comes from, and what each preference found there is worth.

    A preference is a number, or a name of `levels`. Somebody without one gets `default`, or else the strictest level
    offered. With a `menu`, everybody is rounded down to it.
    """

    source: str
    person: str  # the columns
    epsilon: str
    levels: Mapping[str, float] = field(default_factory=dict)
    menu: tuple[float, ...] = ()
    default: float | str | None = None
    worth: tuple[tuple[Any, int], ...] = ()  # (a preference as first found, micro-ε)
    origin: str = ""  # what the steward gave, as `Source.to_json` writes it; empty for objects and before version 0.2
    person_type: str = ""  # the SQL type of the person column, which is final; empty before version 0.2

    def __post_init__(self) -> None:
        for name, epsilon in {**self.levels, **{f"{e:g}": e for e in self.menu}}.items():
            Preference(name=name, epsilon=epsilon)
        if isinstance(self.default, str) and self.default not in self.levels:
            raise InvalidPreference(
                f"The default must be a number or one of the levels {', '.join(map(repr, self.levels)) or '(none)'}, "
                f"got {self.default!r}."
            )

    def appraise(self, people: pa.Table) -> tuple["Enrolment", pa.Table]:
        """Return what everybody's preference is worth: the enrolment that remembers it, and (person, micro_epsilon)."""
        coded = pc.dictionary_encode(people["epsilon"].combine_chunks(), null_encoding="encode")
        found = coded.dictionary.to_pylist()
        micro = self._round(self._worth(found))
        if np.unique(micro).size > MOST_LEVELS:
            raise InvalidPreference(
                f"Column {self.epsilon!r} holds more than {MOST_LEVELS:,} different preferences. "
                "Give a `menu` of levels to round them down to, for example 0.1, 0.2, 0.5 and 1."
            )
        enrolled = {"person": people["person"], "micro_epsilon": micro[np.asarray(coded.indices)]}
        # What was worth something when it was first found stays so: whoever it is worth less to now is a change.
        first = dict(self.worth)
        worth = [(one, first.get(one, now)) for one, now in zip(map(_plain, found), micro.tolist(), strict=True)]
        # In an order of their own: the order of the rows changes from one reading of the same source to the next.
        return replace(self, worth=tuple(sorted(worth, key=_place))), pa.table(enrolled)

    @property
    def has_unstated(self) -> bool:
        """Return whether somebody stated no preference when these were read."""
        return any(self._is_unstated(one) for one, _ in self.worth)

    def unstated(self, people: pa.Table) -> int:
        """Return how many of (person, epsilon) stated no preference."""
        counted = pc.value_counts(people["epsilon"].combine_chunks()).to_pylist()
        return sum(one["counts"] for one in counted if self._is_unstated(one["values"]))

    def _is_unstated(self, preference: Any) -> bool:
        stated = self._stated(preference)
        return stated is not None and isnan(stated)

    @property
    def names(self) -> dict[int, str]:
        """Return the names of levels, by micro-ε."""
        return {int(allowance(epsilon)): name for name, epsilon in self.levels.items()}

    def worth_of(self, preference: float | str) -> float:
        """The ε that somebody states by number or by name."""
        epsilon = self._stated(preference)
        if epsilon is None or isnan(epsilon):
            got = "none" if epsilon is not None else repr(preference)
            raise InvalidPreference(f"A new choice must be a number or the name of a level ({self._names}), got {got}.")
        return epsilon

    def _worth(self, found: Sequence[Any]) -> Integers:
        """Micro-ε of every different preference found."""
        read = [self._stated(preference) for preference in found]
        if None in read:
            raise InvalidPreference(
                f"Column {self.epsilon!r} has a choice that is neither a number nor the name of a level "
                f"({self._names}). Say what each name is worth: levels={{'strict': 0.1, ...}} (--level strict=0.1). "
                "If its numbers look like 0,5, give decimal=',' (--decimal ,)."
            )
        stated = np.array(read, dtype=np.float64)
        missing = np.isnan(stated)
        if missing.any():
            offered = [*self.levels.values(), *self.menu] or stated[~missing].tolist()
            if self.default is None and not offered:
                raise InvalidPreference(f"Column {self.epsilon!r} states no preference at all; give a default.")
            default = self.levels[self.default] if isinstance(self.default, str) else self.default
            stated[missing] = default if default is not None else min(offered)
        return allowance(stated)

    @property
    def _names(self) -> str:
        return ", ".join(map(repr, self.levels)) or "no level is declared"

    def _stated(self, preference: Any) -> float | None:
        """The ε somebody stated, nan where they stated none; None where it is neither a number nor a name."""
        if preference is None or (isinstance(preference, str) and not preference.strip()):
            return nan
        if isinstance(preference, str) and preference.strip() in self.levels:
            return self.levels[preference.strip()]
        try:
            epsilon = float(preference)
            return inf if isnan(epsilon) else epsilon  # not a number is not "none stated": refused further on
        except (TypeError, ValueError):
            return None

    def _round(self, micro: Integers) -> Integers:
        return round_down(micro, [*self.menu, *self.levels.values()]) if self.menu else micro

    @property
    def offered(self) -> tuple[float, ...]:
        """Levels that people may choose later on, beyond those found."""
        return (*self.menu, *self.levels.values())

    def at(self, source: str, *, origin: str, person_type: str) -> "Enrolment":
        """Return the same, found elsewhere."""
        return replace(self, source=source, origin=origin, person_type=person_type)

    def reads_like(self, other: "Enrolment") -> bool:
        """Return whether both say the same about the same source."""
        return (
            replace(self, source=other.source, worth=other.worth, origin=other.origin, person_type=other.person_type)
            == other
        )

    def to_json(self) -> str:
        """Canonical text: what the ledger keeps as a register's source."""
        stored = asdict(self)
        new = ("origin", "person_type")  # what version 0.1 did not know
        return json.dumps({name: kept for name, kept in stored.items() if kept or name not in new}, sort_keys=True)

    @staticmethod
    @lru_cache(maxsize=64)  # every question reads that of its register
    def from_json(text: str) -> "Enrolment":
        """The enrolment `to_json` wrote down."""
        stored = json.loads(text)
        worth = tuple((preference, micro) for preference, micro in stored.pop("worth"))
        return Enrolment(**{**stored, "menu": tuple(stored["menu"])}, worth=worth)

    def __str__(self) -> str:
        return f"{self.person}, {self.epsilon} of {self.source}"


def _place(worth: tuple[Any, int]) -> tuple[str, Any]:
    preference = worth[0]
    return type(preference).__name__, 0 if preference is None else preference


def _plain(preference: Any) -> Any:
    return preference if preference is None or isinstance(preference, str) else float(preference)
