"""Form: a question as it is typed in on a page."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from discretion.answer import Question
from discretion.errors import InvalidDeclaration
from discretion.mechanisms.belief import Assume
from discretion.mechanisms.option import Options

ASSUMPTIONS = ("gradual", "independent")
TEXTS = ("percent", "within", "assume", "mechanism", "expect_low", "expect_high", "options")


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
    expect_low: str = ""
    expect_high: str = ""
    options: str = ""  # of the mechanism: name=value, name=value

    @classmethod
    def of(cls, said: Mapping[str, Any]) -> "AskForm":
        """Return what a form says."""
        texts = {name: said[name].strip() for name in TEXTS if name in said}
        sql = said.get("sql", "").replace("\r\n", "\n")
        return cls(sql=sql, with_interval="with_interval" in said, partial="partial" in said, **texts)

    @classmethod
    def asking(cls, question: Question) -> "AskForm":
        """Return a question as a form would have it; the options of model `individual` are not asked for on pages."""
        low, high = ("", "") if question.expect is None else (f"{end:.12g}" for end in question.expect)
        options = dict(question.options or {}) if question.model == "personalized" else {}
        return cls(
            sql=question.sql,
            percent=f"{100 * question.share:.10g}",
            within="" if question.within is None else f"{question.within:.10g}",
            assume=str(question.assume or ""),
            mechanism=question.mechanism,
            with_interval=question.with_interval,
            partial=question.partial,
            expect_low=low,
            expect_high=high,
            options=", ".join(f"{name}={_typed(value)}" for name, value in options.items()),
        )

    def question(self, analyst: str) -> Question:
        """Return the question that is asked; refuse what is not one."""
        if not self.sql.strip():
            raise InvalidDeclaration("Write a question first: one SELECT about protected tables.")
        share = _number(self.percent.rstrip("% "), "The share must be a number of percent, such as 10") / 100
        within = _number(self.within, "The error must be a number, such as 2.5") if self.within else None
        return Question(
            sql=self.sql,
            share=float(f"{share:.12g}"),
            mechanism=self.mechanism or "auto",
            assume=self._assumption(),
            expect=self._expectation(),
            options=_options(self.options),
            with_interval=self.with_interval,
            partial=self.partial,
            analyst=analyst,
            within=within,
        )

    def _assumption(self) -> Assume:
        if self.assume in ASSUMPTIONS:
            return cast(Assume, self.assume)
        must = "The assumption must be gradual, independent, nothing or a number from 0 to 1"
        return _number(self.assume, must) if self.assume else None

    def _expectation(self) -> tuple[float, float] | None:
        if not (self.expect_low or self.expect_high):
            return None
        must = "What is expected must be two numbers, such as 0 and 0.3"
        return _number(self.expect_low, must), _number(self.expect_high, must)


def _options(text: str) -> Options | None:
    """Return the options of a mechanism that were typed in: numbers, true and false, or words."""
    found: dict[str, Any] = {}
    for part in filter(None, map(str.strip, text.split(","))):
        name, sign, value = (each.strip() for each in part.partition("="))
        if not (name and sign and value):
            raise InvalidDeclaration(f"Write options as name=value, separated by commas, got {part!r}.")
        try:
            found[name] = json.loads(value)
        except (ValueError, RecursionError):  # of thousands of brackets
            found[name] = value
    return cast(Options, found) or None


def _typed(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _number(text: str, must: str) -> float:
    try:
        return float(text.replace(",", "."))
    except ValueError:
        raise InvalidDeclaration(f"{must}, got {text!r}.") from None
