"""Individual: the plan of a question under model `individual`, which is NOT differential privacy. Nothing is chosen."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from discretion.errors import InvalidDeclaration, QueryRefused, Unsuitable, did_you_mean
from discretion.mechanisms.individual import coarser
from discretion.mechanisms.individual import propose as local
from discretion.mechanisms.local import WARNING
from discretion.plan import Plan
from discretion.plan.choice import Candidate, Choice
from discretion.plan.flow import Manner
from discretion.plan.interval import W
from discretion.plan.option import as_type
from discretion.preference import Specification

OPTIONS: Mapping[str, Any] = {"place": int}


def checked_options(mechanism: str, options: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the options of a question under model `individual`; refuse unknown ones and values of another type."""
    if mechanism not in ("auto", "local"):
        raise InvalidDeclaration(f"Model `individual` has one mechanism, 'local', got mechanism={mechanism!r}.")
    for name in options or {}:
        if name not in OPTIONS:
            raise InvalidDeclaration(
                f"Model `individual` has no option {name!r}; it has {', '.join(map(repr, OPTIONS))}."
                f"{did_you_mean(name, OPTIONS)}"
            )
    return {name: as_type(name, value, OPTIONS[name]) for name, value in (options or {}).items()}


def refuse_unfit(manner: Manner, *, allowed: bool, within: float | None) -> None:
    """Refuse model `individual` where the steward does not allow it, or with choices that mean nothing under it."""
    if not allowed:
        raise QueryRefused(f"The table's policy does not allow model `individual`, which is {WARNING}")
    if manner.with_interval or manner.belief.assume is not None or manner.belief.expect is not None or within:
        raise InvalidDeclaration(
            "Under model `individual` the noise follows the data and is never shown, so assume, expect, with_interval "
            "and within have no meaning. Leave them out."
        )


def on_grid(wanted: Sequence[W]) -> tuple[W, ...]:
    """Return what is asked for on grids whose values can be counted one by one."""
    found = []
    for one in wanted:
        made = replace(one, aggregate=coarser(one.aggregate))
        if getattr(one, "fill", None) is not None:  # the step that stands for a missing value
            made = replace(made, fill=made.aggregate.nearest(0))  # type: ignore[call-arg]
        found.append(made)
    return tuple(found)


def propose(
    wanted: Sequence[W], specification: Specification, options: Mapping[str, Any]
) -> tuple[tuple[W, ...], Plan]:
    """Return everything to be computed, and the plan for it: each answer by `local`, with its part of the ε."""
    asked = on_grid(wanted)
    choices = []
    for one in asked:
        try:
            found = Candidate(name="local", mechanism=local(one.aggregate, specification, **options))
        except Unsuitable as refusal:
            raise Unsuitable(f"Model `individual` cannot answer {one.text}. {refusal}") from None
        how: dict[str, Any] = {"aggregate": one.aggregate, "specification": specification, "label": one.text}
        choices.append(Choice(chosen=found, candidates=(found,), **how))
    return asked, Plan(specification=specification, choices=tuple(choices), options=dict(options))
