"""Rows: which rows a request is about, and which cohort each person is in."""

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from discretion.query import Query


@dataclass(frozen=True, kw_only=True)
class Cohorts:
    """Say which cohort each person is in: by a column or a register, unless they changed their preference since.

    Cohorts are numbered in the order of the plan's Specification. Left out are rows without an owner, and the rows of
    a person whose preference is not in `levels`, who is not in the register, or whose change says −1.
    """

    count: int  # how many cohorts there are
    levels: Mapping[float | str | None, int]  # a preference as `Engine.people` gives it -> cohort
    register: str = ""  # where the register is, in the engine's words; empty: the table's own column
    person: str = ""  # the register's columns
    epsilon: str = ""
    changes: pa.Table | None = None  # person (text), cohort (integer; −1: left out): wins over the levels


@dataclass(frozen=True, kw_only=True)
class Rows:
    """Describe the rows of a request: what goes into `Request.source`."""

    query: Query
    cohorts: Cohorts

    @property
    def sources(self) -> dict[str, str]:
        """Return every source a statement may read, by the name it uses."""
        lookups = {joined.name: joined.lookup.source for joined in self.query.lookups}
        register = {"register": self.cohorts.register} if self.cohorts.register else {}
        partners = {one.name: one.table.source for one in self.query.partners}
        return {"protected": self.query.table.source, **register, **lookups, **partners}
