"""Plan, Release, balance, receipt and history as sheets for people, or as JSON for programs.

The command line prints sheets with Rich (terminal.py); web pages can fill the same ones into HTML.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from math import isfinite
from typing import Any

from discretion.audit import LedgerAudit
from discretion.errors import DiscretionError
from discretion.ledger import Receipt
from discretion.listing import Listing
from discretion.plan import Candidate, Choice, Plan
from discretion.preference import MICRO
from discretion.release import Error, Release
from discretion.render.terminal import Sheet, amount, when
from discretion.table import Policy, Table

MOST_GROUPS = 10_000  # that GROUP BY can have
MOST_LEVELS = 8  # levels of preference shown before a sheet says how many more there are


# Answers ------------------------------------------------------------------------------------------------------------


def release_sheets(release: Release, title: str = "Answer") -> list[Sheet]:
    """The answer, every number with its 95% error, and under it the promise."""
    paid = [f"paid by entry {release.entry}"] if release.entry else []
    sheet = Sheet(
        title=title,
        columns=tuple(release.columns),
        rows=tuple(tuple(row.values()) for row in release.rows()),
        notes=(*release.remarks(), *release.promise().split("\n"), *paid),
        numbers=frozenset(release.errors),
    )
    return [sheet]


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
            "guarantee": {**release.guarantee.to_dict(), "text": str(release.guarantee)},
            "entry": release.entry,
        }
    )


# Plans --------------------------------------------------------------------------------------------------------------


def plan_sheets(plan: Plan) -> list[Sheet]:
    """Every mechanism considered for every aggregate, then what each level pays for all of them together."""
    return [*map(_choice_sheet, plan.choices), _charge_sheet(plan)]


def plan_json(plan: Plan) -> str:
    """The same as data."""
    losses = plan.guarantee.losses
    aggregates = [
        {
            "aggregate": choice.label,
            "mechanism": choice.chosen.name,
            "candidates": [_candidate_json(candidate) for candidate in choice.candidates],
        }
        for choice in plan.choices
    ]
    heads = zip(plan.specification.epsilons, plan.specification.people, strict=True)
    levels = [{"people": people, "pays": losses[cohort].micro_epsilon / MICRO} for cohort, people in heads]
    return to_json({"aggregates": aggregates, "levels": levels, "guarantee": str(plan.guarantee)})


def _choice_sheet(choice: Choice) -> Sheet:
    suitable = [candidate for candidate in choice.candidates if candidate.error is not None]
    ranked = choice.chosen.error is not None and choice.chosen.error.unit == "rank"
    ranks = ("errors are in ranks: a share of the rows that are asked about",) if ranked else ()
    return Sheet(
        title=f"{choice.label}: {choice.chosen.name}",
        columns=("mechanism", "error", "bias", "noise", "compared"),
        rows=tuple(_candidate_row(candidate, choice.chosen) for candidate in suitable),
        notes=(*ranks, *(f"not {c.name}: {c.reason}" for c in choice.candidates if c.error is None)),
        numbers=frozenset({"error", "bias", "noise", "compared"}),
    )


def _candidate_row(candidate: Candidate, chosen: Candidate) -> tuple[str, ...]:
    error, best = candidate.error, chosen.error
    if error is None or best is None:
        return candidate.name, "", "", "", ""
    ratio = f"{error.total / best.total:.3g}×" if best.total > 0 and isfinite(error.total) else ""
    sizes = (_size(error.total, error), _size(error.bias, error), _size(error.noise, error))
    return candidate.name, *sizes, "chosen" if candidate is chosen else ratio


def _candidate_json(candidate: Candidate) -> dict[str, Any]:
    error = candidate.error
    if error is None:
        return {"mechanism": candidate.name, "unsuitable": candidate.reason}
    sizes = {"error": error.total, "bias": error.bias, "noise": error.noise, "unit": error.unit}
    return {"mechanism": candidate.name, **sizes}


def _charge_sheet(plan: Plan) -> Sheet:
    """What everybody pays; the middle of a long list of levels is left out."""
    losses = plan.guarantee.losses
    offered = {
        cohort: sum(choice.specification.epsilons[place] for choice in plan.choices)
        for place, cohort in enumerate(plan.specification.epsilons)
    }
    rows = [
        (f"{people:,}", _epsilon(offered[cohort]), _epsilon(losses[cohort].micro_epsilon))
        for cohort, people in zip(plan.specification.epsilons, plan.specification.people, strict=True)
    ]
    parts = len(plan.choices)
    split = (f"the share is split over {parts} aggregates",) if parts > 1 else ()
    return Sheet(
        title="What people pay",
        columns=("people", "at most", "pay"),
        rows=_shortened(rows),
        notes=(*split, str(plan.guarantee)),
        numbers=frozenset({"people", "at most", "pay"}),
    )


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
            ),
        )
    ]


def tables_sheets(tables: Sequence[Table]) -> list[Sheet]:
    """Everything that can be asked about."""
    found = [sheet for table in tables for sheet in table_sheets(table)]
    return found or [Sheet(title="No table is protected yet.")]


def table_sheets(table: Table) -> list[Sheet]:
    """What a declaration makes public, and what it protects."""
    rows = [(column, kind, _role(table, column), _use(table, column)) for column, kind in table.columns.items()]
    protects = (
        "Protected: everybody's values. Public: who is in the table."
        if table.protects == "value"
        else "Protected: whether somebody is in the table at all, and everything about them in it."
    )
    k = table.rows_per_person
    limit = "At most 1 row of a person counts" if k == 1 else f"At most {k:,} rows of a person count"
    return [
        Sheet(
            title=f"Table {table.name!r}, paid for by register {table.register!r}",
            columns=("column", "type", "declared", "may be used in"),
            rows=tuple(rows),
            notes=(
                "Public: all of the above, and how many people chose which level of privacy.",
                protects,
                f"{limit}; others are left out at random.",
                *(
                    f"Lookup {name!r}, not protected: {', '.join(lookup.columns)}; joined on {lookup.key}."
                    for name, lookup in table.lookups.items()
                ),
                *_policy(table.policy),
            ),
        )
    ]


def _policy(policy: Policy) -> Iterator[str]:
    """What the steward allows beyond, or less than, what everybody gets."""
    if policy.largest_share < 1:
        yield f"One question may use at most {policy.largest_share:g} of an allowance."
    if policy.quotas:
        shares = ", ".join(f"{name} {share:g}" for name, share in policy.quotas.items())
        yield f"Over all questions of an analyst, at most: {shares}."
    if policy.largest_delta:
        yield f"All answers together may add a δ of at most {policy.largest_delta:g}."
    if policy.float_arithmetic:
        yield "Allowed: mechanisms without an exact sampler."
    if policy.individual:
        yield "Allowed: model `individual`, which is NOT differential privacy."


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


def _role(table: Table, column: str) -> str:
    if column == table.person:
        return "the person"
    if column == table.epsilon:
        return "their preference"
    if column in table.bounds:
        low, high = table.bounds[column]
        return f"{low:,.12g} to {high:,.12g}"
    return ", ".join(map(str, table.keys[column])) if column in table.keys else ""


def _use(table: Table, column: str) -> str:
    if column in (table.person, table.epsilon):
        return "COUNT(DISTINCT ...)" if column == table.person else ""
    kind, (low, high) = table.columns[column].upper(), table.bounds.get(column, (0.0, float(MOST_GROUPS)))
    few = "INT" in kind and high - low < MOST_GROUPS
    grouped = column in table.keys or kind == "BOOLEAN" or few
    uses = ["WHERE"]
    uses += ["GROUP BY"] if grouped else ["GROUP BY month, ..."] if kind.startswith(("DATE", "TIMESTAMP")) else []
    uses += ["SUM, AVG, ..."] if column in table.bounds else []
    return ", ".join(uses)


def _shortened(rows: Sequence[tuple[str, ...]]) -> tuple[tuple[str, ...], ...]:
    if len(rows) <= MOST_LEVELS:
        return tuple(rows)
    half = MOST_LEVELS // 2
    gap = (f"... {len(rows) - 2 * half} more levels", *[""] * (len(rows[0]) - 1))
    return (*rows[:half], gap, *rows[-half:])


def _size(amount: float, error: Error) -> str:
    if not isfinite(amount):
        return "no bound"
    if error.unit == "rank":
        return f"{amount:.2%}"
    return f"{amount:,.0f}" if amount >= 100 else f"{amount:.3g}"


def _epsilon(micro: int) -> str:
    return amount(micro / MICRO)


def _known(value: Any) -> bool:
    return isinstance(value, int | float)


def _finite(content: Any) -> Any:
    if isinstance(content, dict):
        return {str(name): _finite(value) for name, value in content.items()}
    if isinstance(content, list | tuple):
        return [_finite(value) for value in content]
    return None if isinstance(content, float) and not isfinite(content) else content
