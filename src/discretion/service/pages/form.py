"""Form: a question as it is typed in on a page."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from discretion.answer import Question
from discretion.errors import InvalidDeclaration

ASSUMPTIONS = ("", "gradual", "independent")


@dataclass(frozen=True, kw_only=True)
class AskForm:
    """A question as it was typed in."""

    sql: str = ""
    percent: str = "10"
    within: str = ""
    assume: str = ""
    mechanism: str = "auto"
    with_interval: bool = False
    partial: bool = False

    @classmethod
    def of(cls, said: Mapping[str, Any]) -> "AskForm":
        """Return what a form says."""
        texts = {name: said[name].strip() for name in ("percent", "within", "assume", "mechanism") if name in said}
        sql = said.get("sql", "").replace("\r\n", "\n")
        return cls(sql=sql, with_interval="with_interval" in said, partial="partial" in said, **texts)

    @classmethod
    def asking(cls, question: Question) -> "AskForm":
        """Return a question as a form would have it."""
        return cls(
            sql=question.sql,
            percent=f"{100 * question.share:.10g}",
            within="" if question.within is None else f"{question.within:.10g}",
            assume=str(question.assume or ""),
            mechanism=question.mechanism,
            with_interval=question.with_interval,
            partial=question.partial,
        )

    def question(self, analyst: str) -> Question:
        """Return the question that is asked; refuse what is not one."""
        if not self.sql.strip():
            raise InvalidDeclaration("Write a question first: one SELECT about protected tables.")
        share = _number(self.percent.rstrip("% "), "The share must be a number of percent, such as 10") / 100
        within = _number(self.within, "The error must be a number, such as 2.5") if self.within else None
        if self.assume not in ASSUMPTIONS:
            raise InvalidDeclaration(f"The assumption must be gradual, independent or nothing, got {self.assume!r}.")
        return Question(
            sql=self.sql,
            share=float(f"{share:.12g}"),
            mechanism=self.mechanism or "auto",
            assume=self.assume or None,  # type: ignore[arg-type]  # it is one of ASSUMPTIONS
            with_interval=self.with_interval,
            partial=self.partial,
            analyst=analyst,
            within=within,
        )


def _number(text: str, must: str) -> float:
    try:
        return float(text.replace(",", "."))
    except ValueError:
        raise InvalidDeclaration(f"{must}, got {text!r}.") from None
