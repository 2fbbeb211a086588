"""Backend: what a database must do so that `Engine` can answer questions with it."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import pyarrow as pa
from sqlglot import exp

from discretion.declaration.source import Source
from discretion.engines.dialect import Dialect
from discretion.engines.rehearsal import MadeUp
from discretion.engines.rows import Rows
from discretion.engines.statement import Beside
from discretion.engines.survey import PART

CHANGED = "A source changed while it was read. Ask again when nobody writes to it."


@dataclass(frozen=True, kw_only=True)
class Admission:
    """Describe what is to be admitted: who owns its rows, which types are final, and where a copy may be kept."""

    source: Source
    person: str = ""
    known: Mapping[str, str] = field(default_factory=dict)  # column -> SQL type that is final
    folder: Path | None = None
    label: str = ""  # what the name of a copy begins with


@dataclass(frozen=True, kw_only=True)
class Held:
    """Hold the sources of a statement by the names it uses: places that the backend reads, and tables in memory."""

    places: Mapping[str, str]
    tables: Mapping[str, pa.Table]
    states: Mapping[str, str]  # the fingerprint of each


class Backend(Protocol):
    """One database: it reads sources and runs statements. It knows nothing of cohorts, coins or statistics.

    Whatever fails inside it becomes an `EngineFailed` without the database's own words: they may quote a row. The last
    three methods are optional. A backend that lists `Backend` as its base class inherits them.
    """

    dialect: Dialect
    part: int = PART  # rows whose people are counted together
    windowed: bool = False  # rows are bounded by windows (see Facts)
    joins_people: bool = True  # protected tables may be joined on the person

    def admit(self, admission: Admission) -> tuple[str, tuple[str, ...]]:
        """Return where questions read a source, and hints for the steward; copy it if a value could make one fail."""

    def sound(self, table: pa.Table, person: str) -> pa.Table:
        """Return a table in memory with NULL for every value that could make a question fail."""

    def columns(self, source: str | pa.Table) -> Mapping[str, str]:
        """Return the columns of a place, or of a table in memory, with their types by the names in query/kind.py."""

    def fingerprint(self, place: str) -> str:
        """Return a digest of the whole content of a place: another one after any edit."""

    def run(self, select: exp.Expr, sources: Mapping[str, str], tables: Mapping[str, pa.Table]) -> pa.Table:
        """Run a SELECT over places and tables in memory, both by the names it uses."""

    def rehearse(
        self, selects: Iterable[exp.Expr], rows: Mapping[str, MadeUp], tables: Mapping[str, pa.Table], like: str
    ) -> None:
        """Run every SELECT over made-up rows, stored as in place `like` ("" for memory); refuse if one fails."""

    def identity(self, place: str) -> frozenset[str]:
        """Return the marks of a place, however it is spelled: two places that share one hold the same rows."""
        return frozenset({self.fingerprint(place)})

    def beside(self, rows: Rows, register: Mapping[str, str], held: Held, single: Collection[str]) -> Beside | None:
        """Return the cohorts next to the rows, if the database can read them faster than it joins the register.

        Of tables joined on the person in which nobody has two rows, `single`, it may return the columns, too.
        """
        return None

    def exceeds(self, person: exp.Expr, most: int, rows: int, held: Held) -> bool | None:
        """Tell whether somebody has more than `most` rows; None if a SELECT should count everybody's rows instead."""
        return None

    def busy(self, select: exp.Expr, held: Held) -> str:
        """Return the place of the list that this SELECT gives, if that makes bounding rows cheaper."""
        return ""
