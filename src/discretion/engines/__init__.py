"""Engines turn rows into statistics. This file has the protocol, and the description of rows every engine reads."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from discretion.declaration.source import Source
from discretion.declaration.table import Table
from discretion.query import Query
from discretion.statistics import Request, Statistics


@dataclass(frozen=True, kw_only=True)
class Cohorts:
    """Which cohort each person is in: their preference by column or register, unless they changed it since.

    Cohorts are numbered in the order of the plan's Specification. Left out, whatever their rows say: a person whose
    preference is not in `levels`, who is not in the register, or whose change says −1; and rows of nobody.
    """

    count: int  # how many cohorts there are
    levels: Mapping[float | str | None, int]  # a preference as `Engine.people` gives it -> cohort
    register: str = ""  # where the register is, in the engine's words; empty: the table's own column
    person: str = ""  # the register's columns
    epsilon: str = ""
    changes: pa.Table | None = None  # person (text), cohort (integer; −1: left out): wins over the levels


@dataclass(frozen=True, kw_only=True)
class Rows:
    """Which rows a request is about: what goes into `Request.source`."""

    query: Query
    cohorts: Cohorts


@dataclass(frozen=True, kw_only=True)
class Admission:
    """What is to be admitted: the source, who owns its rows, which types are final, and where a copy may be kept."""

    source: Source
    person: str = ""
    known: Mapping[str, str] = field(default_factory=dict)  # column -> SQL type that is final
    folder: Path | None = None
    label: str = ""  # what the name of a copy begins with


class Engine(Protocol):
    """Rows in, statistics out. Knows SQL; knows nothing of ε's meaning, mechanisms or balances."""

    def attach(self, name: str, table: Any, person: str = "") -> str:
        """Take an Arrow, pandas or Polars object as a source; returns its name in the engine's words."""

    def admit(self, request: Admission) -> tuple[str, tuple[str, ...]]:
        """Return where questions read a source, in the engine's words, and hints for the steward."""

    def schema(self, source: str) -> Mapping[str, str]:
        """The columns of a source and their SQL types."""

    def fingerprint(self, source: str) -> str:
        """A digest of the whole content of a source: another one after any edit."""

    def identity(self, source: str) -> frozenset[str]:
        """Return the marks of a source, however it is spelled: two sources that share one hold the same rows."""

    def tentative(self) -> AbstractContextManager[None]:
        """Forget what was attached inside the block if it fails."""

    def people(self, source: str, person: str, epsilon: str = "") -> pa.Table:
        """Everybody in a source once: person (text), rows, and epsilon (a number or a name) where it is asked for."""

    def survey(self, table: Table, register: str, person: str) -> Mapping[tuple[str, str], int]:
        """Return counts about a table that its steward should know: (measure, column or key) -> count."""

    def check(self, request: Request) -> None:
        """Refuse what could not be computed over any rows. It reads none: a charge for it would be wasted."""

    def compute(self, request: Request) -> tuple[Statistics, ...]:
        """Statistics for every measure of a request, whose source is a `Rows`."""


__all__ = ["Admission", "Cohorts", "Engine", "Rows"]
