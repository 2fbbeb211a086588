"""Ledger: registers, declarations and charges in one database; every change is an entry of a hash chain."""

from collections.abc import Sequence
from types import TracebackType
from typing import Self

import pyarrow as pa

from discretion.guarantee import Guarantee, Model
from discretion.ledger.offer import Cohort, Offer
from discretion.table import Table


class Ledger:
    """SKELETON: the signatures to build on; being filled in."""

    def __init__(self, place: str, *, create: bool = True) -> None:
        """Open the SQLite file or PostgreSQL URL `place`; a path that does not exist becomes a new ledger."""
        raise NotImplementedError

    def close(self) -> None: ...
    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # registers: `people` has the columns person (int, text or UUID) and micro_epsilon (int64)
    def enroll(
        self,
        register: str,
        people: pa.Table,
        *,
        source: str,
        fingerprint: str,
        menu: Sequence[float] = (),
        separate: bool = False,
    ) -> str: ...  # returns an entry id; the same name, fingerprint and people again: does nothing
    def refresh(self, register: str, people: pa.Table, *, fingerprint: str, source: str = "") -> str: ...
    def register(self, name: str) -> "Register": ...  # .source .fingerprint .levels .people
    def registers(self) -> tuple["Register", ...]: ...
    def prefer(self, register: str, person: object, epsilon: float) -> str: ...  # 0 withdraws
    def join(self, register: str, person: object, epsilon: float) -> str: ...
    def cohorts(self, register: str) -> tuple[Cohort, ...]: ...
    def changes(self, register: str, *, at: int | None = None) -> pa.Table: ...  # person: string, cohort: int64

    # tables
    def declare(self, table: Table) -> str: ...
    def table(self, name: str) -> Table: ...
    def tables(self) -> tuple[Table, ...]: ...

    # one question: offer -> (plan) -> charge -> (compute) -> deliver
    def offer(
        self,
        register: str,
        *,
        share: float = 0.1,
        parts: int = 1,
        partial: bool = False,
        model: Model = "personalized",
    ) -> Offer: ...
    def charge(
        self,
        offer: Offer,
        guarantee: Guarantee,
        *,
        table: str,
        analyst: str,
        memo: str,
        plan: str = "",
        question: str = "",
    ) -> str: ...  # raises BudgetExhausted, QueryRefused (policy) or PlanOutdated (plan again)
    def deliver(self, entry: str, answer: str) -> str: ...  # JSON text
    def answered(self, question: str) -> str | None: ...  # the stored JSON text

    # what everybody may see
    def balance(self, register: str) -> pa.Table: ...
    def receipt(self, register: str, person: object) -> "Receipt": ...
    def history(self) -> pa.Table: ...
    def head(self) -> str: ...
