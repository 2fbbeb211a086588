"""Shown: plans, answers and listings become JSON, and come back as objects on the other side."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from discretion import errors
from discretion.declaration.table import Table
from discretion.guarantee import Guarantee
from discretion.plan import Plan
from discretion.preference import Specification
from discretion.release import Release
from discretion.render.listing import Listing
from discretion.render.sheet import Sheet, Shown

ARROW = "application/vnd.apache.arrow.stream"
FACTS = ("aggregates", "levels", "guarantee", "share", "options", "answered")  # of a plan, for programs
RELEASE = b"discretion.release"  # the key of an answer's whole text in the metadata of its Arrow table


@dataclass(frozen=True, kw_only=True, repr=False)
class ShownPlan(Shown):
    """A plan as the service shows it: what `explain` returns there."""

    text: str
    guarantee: Guarantee
    specification: Specification
    comparison: tuple[str, ...]
    shown: tuple[Sheet, ...]
    facts: Mapping[str, Any]  # every mechanism considered for every aggregate

    def sheets(self) -> list[Sheet]:
        """Return every mechanism considered, then what each level pays."""
        return list(self.shown)

    def to_dict(self) -> Any:
        """Return what the service said."""
        return dict(self.facts)

    @classmethod
    def from_facts(cls, facts: Mapping[str, Any]) -> "ShownPlan":
        """Restore what `plan_facts` made plain."""
        spec = facts["specification"]
        return cls(
            text=facts["text"],
            guarantee=Guarantee.from_dict(facts["promise"]),
            specification=Specification(epsilons=tuple(spec["epsilons"]), people=tuple(spec["people"])),
            comparison=tuple(facts["comparison"]),
            shown=tuple(map(Sheet.from_plain, facts["sheets"])),
            facts={name: facts[name] for name in FACTS if name in facts},
        )


def plan_facts(plan: Plan) -> dict[str, Any]:
    """Return a plan as plain values."""
    sheets = [sheet.plain() for sheet in plan.sheets()]
    told: dict[str, Any] = json.loads(plan.to_json())
    told |= {"text": str(plan), "comparison": list(plan.comparison), "sheets": sheets}
    told["promise"] = plan.guarantee.to_dict()
    told["specification"] = {
        "epsilons": list(plan.specification.epsilons),
        "people": list(plan.specification.people),
    }
    return told


def release_facts(release: Release) -> dict[str, Any]:
    """Return an answer as plain values: rows, errors, intervals, guarantee."""
    facts: dict[str, Any] = json.loads(release.to_json())
    return facts


def release_arrow(release: Release) -> pa.Table:
    """Return an answer as an Arrow table whose metadata holds all of it."""
    return release.to_arrow().replace_schema_metadata({RELEASE: release.stored()})


def release_from(table: pa.Table) -> Release:
    """Restore what `release_arrow` made a table."""
    return Release.from_stored(table.schema.metadata[RELEASE].decode())


def arrow_bytes(table: pa.Table) -> bytes:
    """Return a table as an Arrow stream."""
    copy = pa.BufferOutputStream()
    with pa.ipc.new_stream(copy, table.schema) as writer:
        writer.write_table(table)
    content: bytes = copy.getvalue().to_pybytes()
    return content


def listing_from(content: bytes) -> Listing:
    """Restore a listing from an Arrow stream."""
    return Listing(pa.ipc.open_stream(content).read_all())


def place_facts(refusal: Exception) -> dict[str, Any]:
    """Return line, column and excerpt of a refusal that knows the place of its reason in the question."""
    if not isinstance(refusal, errors.QueryRefused) or refusal.line is None:
        return {}
    return {"line": refusal.line, "column": refusal.column, "excerpt": refusal.excerpt}


def restored(kind: str, text: str, place: Mapping[str, Any]) -> errors.DiscretionError:
    """Return the error that a problem document, or another process, tells of."""
    known = getattr(errors, kind, None)
    is_error = isinstance(known, type) and issubclass(known, errors.DiscretionError)
    refusal: errors.DiscretionError = known(text) if is_error and known else errors.ServiceFailed(text)
    if isinstance(refusal, errors.QueryRefused) and place.get("line") is not None:
        refusal.line, refusal.column, refusal.excerpt = place["line"], place["column"], place["excerpt"]
        refusal.add_note(f"line {refusal.line}, column {refusal.column}:\n{refusal.excerpt}")
    return refusal


def table_facts(table: Table) -> dict[str, Any]:
    """Return a declaration without the places where rows are: these are for the steward."""
    facts: dict[str, Any] = json.loads(table.stored())
    for kept in (facts, *facts["lookups"].values()):
        kept |= {"source": "", "origin": "", "admitted": ""}
    return facts
