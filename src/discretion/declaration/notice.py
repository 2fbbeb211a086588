"""Notice: entries that an earlier version answered wrongly, for the steward of their table."""

import csv
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

SWAPPED = "columns of a CSV file were swapped: the answer is wrong and may have cost people more than was charged"
UNKNOWN = "columns of a CSV file may have been swapped; its header is not known any more"
_TEXT = (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz", ".txt.gz")
_SCHEMA = pa.schema([(name, pa.string()) for name in ("entry", "table", "question", "problem")])


def notices(charges: Iterable[Mapping[str, Any]]) -> pa.Table:
    """Return the entries of charges that version 0.1.0 answered from swapped columns.

    It read CSV files by position and kept columns in alphabetical order: a header in that order was read rightly.
    """
    rows = []
    for charge in charges:
        declared = charge["declaration"]
        if "origin" in declared or not declared["source"].lower().endswith(_TEXT):
            continue
        if problem := _problem(declared["source"], sorted(declared["columns"])):
            rows.append({name: charge[name] for name in ("entry", "table", "question")} | {"problem": problem})
    return pa.Table.from_pylist(rows, schema=_SCHEMA)


def _problem(place: str, columns: list[str]) -> str:
    path = Path(place)
    if place.endswith(".gz") or not path.is_file():
        return UNKNOWN
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as text:
        header = next(csv.reader(text, delimiter="\t" if path.suffix == ".tsv" else ","), [])
    if sorted(header) != columns:
        return UNKNOWN
    return "" if header == columns else SWAPPED
