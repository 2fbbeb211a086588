"""Everything as JSON for programs, and as sheets for people what has none of its own: balance, history, findings.

The command line prints sheets with Rich (terminal.py); web pages can fill the same ones into HTML.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict
from math import isfinite
from typing import Any

from discretion.declaration.table import Table
from discretion.errors import DiscretionError
from discretion.ledger import Receipt
from discretion.ledger.audit import LedgerAudit
from discretion.plan import Candidate, Plan
from discretion.preference import MICRO
from discretion.release import Release
from discretion.render.listing import Listing
from discretion.render.sheet import Sheet, amount, when

# Answers ------------------------------------------------------------------------------------------------------------


def release_json(release: Release) -> str:
    """The answer as rows, with error, interval and guarantee."""
    rows = [dict(zip(release.columns, row, strict=True)) for row in release]
    errors = {
        name: [
            {"bias": e.bias, "noise": e.noise, "unit": e.unit, "interval": e.interval(value) if _known(value) else None}
            for value, e in zip(release.columns[name], column, strict=True)
        ]
        for name, column in release.errors.items()
    }
    assumptions = sorted({e.assumption for column in release.errors.values() for e in column if e.assumption})
    return to_json(
        {
            "rows": rows,
            "errors": errors,
            "mechanism": release.mechanism,
            "assumes": assumptions,
            "remarks": release.remarks(),
            "related": {name: [asdict(one) for one in found] for name, found in release.relations().items()},
            "guarantee": {**release.guarantee.to_dict(), "text": str(release.guarantee)},
            "entry": release.entry,
        }
    )


# Plans --------------------------------------------------------------------------------------------------------------


def plan_json(plan: Plan) -> str:
    """Every mechanism considered for every aggregate, and what each level pays for all of them together."""
    losses = plan.guarantee.losses
    aggregates = [
        {
            "aggregate": choice.label,
            "mechanism": choice.chosen.name,
            "candidates": [_candidate_json(candidate) for candidate in choice.candidates],
            "assumptions": [
                {
                    "assume": one.assume,
                    "mechanism": one.mechanism,
                    "error": one.error.total,
                    "unit": one.error.unit,
                    "pay": one.most,
                }
                for one in choice.predictions
            ],
        }
        for choice in plan.choices
    ]
    heads = enumerate(plan.specification.people)
    levels = [{"people": people, "pays": losses[cohort].micro_epsilon / MICRO} for cohort, people in heads]
    return to_json({"aggregates": aggregates, "levels": levels, "guarantee": str(plan.guarantee)})


def _candidate_json(candidate: Candidate) -> dict[str, Any]:
    error = candidate.error
    if error is None:
        return {"mechanism": candidate.name, "unsuitable": candidate.reason}
    sizes = {"error": error.total, "bias": error.bias, "noise": error.noise, "unit": error.unit}
    return {"mechanism": candidate.name, **sizes}


# The ledger ---------------------------------------------------------------------------------------------------------


def balance_sheets(balance: Listing) -> list[Sheet]:
    """What each level has spent and has left; columns that say nothing are left out."""
    rows = list(balance)
    if not rows:
        return [Sheet(title="Balance", notes=("Nobody is enrolled yet: see `register` and `protect`.",))]
    columns = ["register", "people", "epsilon", "spent", "remaining"]
    columns += [extra for extra in ("delta", "individual_spent") if any(row.get(extra) for row in rows)]
    columns += ["in_source"] if not all(row.get("in_source", True) for row in rows) else []
    places = [balance.columns.index(column) for column in columns]
    texts = tuple(tuple(row[place] for place in places) for row in balance.rows())
    numbers = frozenset(columns) - {"register", "in_source"}
    return [Sheet(title="Balance", columns=tuple(columns), rows=texts, numbers=numbers)]


def history_sheets(history: Listing) -> list[Sheet]:
    """Every entry, in order; a delivery is told beside its charge."""
    rows = [row for row in history if row["kind"] != "deliver"]
    analysts = any(row["analyst"] for row in rows)
    return [
        Sheet(
            title="History",
            columns=("entry", "time", "most ε", *(["analyst"] if analysts else []), "what"),
            rows=tuple(
                (
                    row["entry"].partition("-")[0],
                    when(row["time"]),
                    "" if row["largest_epsilon"] is None else amount(row["largest_epsilon"]),
                    *([row["analyst"] or ""] if analysts else []),
                    _what(row),
                )
                for row in rows
            ),
            numbers=frozenset({"entry", "most ε"}),
        )
    ]


def refresh_sheets(entry: str, history: Listing) -> list[Sheet]:
    """What accepting a changed source changed."""
    texts = [row["text"] for row in history if row["entry"] == entry]
    return [Sheet(title=f"Entry {entry}: {', '.join(texts)}." if entry else "Nothing changed.")]


def change_sheets(entry: str, receipt: Receipt) -> list[Sheet]:
    """What somebody who chose anew is told."""
    allowed, spent, left = map(amount, (receipt.allowance, receipt.spent, receipt.remaining))
    title = f"Entry {entry}: from now on ε = {allowed} at most; {spent} is spent, {left} is left."
    stated = receipt.statements[-1].epsilon
    rounded = stated is not None and stated > receipt.allowance
    note = f"The choice of {amount(stated or 0)} was rounded down to {allowed}, the next level on offer."
    return [Sheet(title=title, notes=(note,) if rounded else ())]


def resume_sheets(entry: str, stops: Listing) -> list[Sheet]:
    """Return what the steward is told who resumed a register: which questions had failed."""
    ended = tuple((when(one["time"]), one["charge"], one["shape"]) for one in stops if one["resumed"] == entry)
    title = f"Entry {entry}: questions are allowed again. These failed; their form stays refused."
    return [Sheet(title=title, columns=("time", "charge", "form of the question"), rows=ended)]


def audit_sheets(audit: LedgerAudit) -> list[Sheet]:
    """What the audit found."""
    verdict = "every promise on record was kept" if audit.passed else f"{len(audit.findings)} finding(s)"
    return [
        Sheet(
            title=f"Audit of {audit.place}: {verdict}",
            columns=("entry", "finding") if audit.findings else (),
            rows=tuple(("" if one.entry is None else str(one.entry), one.text) for one in audit.findings),
            notes=(
                f"{audit.entries} {'entry' if audit.entries == 1 else 'entries'}; head {audit.head}",
                "Keep the head elsewhere: given to the next audit, it shows an older copy put back.",
                *audit.notes,
            ),
        )
    ]


def tables_sheets(tables: Sequence[Table]) -> list[Sheet]:
    """Everything that can be asked about."""
    found = [sheet for table in tables for sheet in table.sheets()]
    return found or [Sheet(title="No table is protected yet.")]


def to_json(content: Any) -> str:
    """JSON without infinities; a refusal becomes its kind and its message."""
    if isinstance(content, DiscretionError):
        content = {"error": type(content).__name__, "message": str(content)}
    elif isinstance(content, Receipt | LedgerAudit | Table):
        content = asdict(content)
    elif isinstance(content, Listing):
        content = list(content)
    return json.dumps(_finite(content), indent=2, ensure_ascii=False, default=str)


def _what(entry: dict[str, Any]) -> str:
    text = entry["text"] or entry["table"] or ""
    if entry["kind"] != "charge":
        return f"{entry['kind']}: {text}" if text else entry["kind"]
    return f"{text} (no answer was delivered)" if entry["answered"] is False else text


def _known(value: Any) -> bool:
    return isinstance(value, int | float)


def _finite(content: Any) -> Any:
    if isinstance(content, dict):
        return {str(name): _finite(value) for name, value in content.items()}
    if isinstance(content, list | tuple):
        return [_finite(value) for value in content]
    return None if isinstance(content, float) and not isfinite(content) else content
