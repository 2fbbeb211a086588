"""Declaring: what a steward typed into the form of a table becomes a declaration, and every problem at once."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from math import inf
from typing import Any

from discretion.declaration.declare import NUMBER
from discretion.declaration.span import TIMED
from discretion.declaration.table import LONGEST_TEXT, Policy
from discretion.errors import DiscretionError
from discretion.service.endpoint import Field

MOST_COLUMNS = 1_500
_SEVERAL = "array"
READING = {
    "delimiter": Field("string", "CSV: the sign between fields.", most=10),
    "encoding": Field("string", "CSV: such as cp1252.", most=100),
    "decimal": Field("string", "Texts: the decimal sign.", most=10),
    "null": Field("string", "Texts: what means NULL.", most=1_000),
    "sheet": Field("string", "Excel: which sheet.", most=1_000),
}
TYPES = {  # that a steward may say instead of the one that was found: SQL type -> its name on the page
    "BIGINT": "whole number",
    "DOUBLE": "number",
    "VARCHAR": "text",
    "BOOLEAN": "yes or no",
    "DATE": "date",
    "TIMESTAMP": "date and time",
}
COLUMNS = {
    "column": Field(_SEVERAL, "Every column, in order.", most=MOST_COLUMNS),
    "type": Field(_SEVERAL, "The type that each column is read as; empty: as found.", most=MOST_COLUMNS),
    "zone": Field(_SEVERAL, "The time zone that each column of times is read in.", most=MOST_COLUMNS),
    "low": Field(_SEVERAL, "The lower bound of each column.", most=MOST_COLUMNS),
    "high": Field(_SEVERAL, "The upper bound of each column.", most=MOST_COLUMNS),
    "step": Field(_SEVERAL, "The step between candidate answers of each column.", most=MOST_COLUMNS),
    "keys": Field(_SEVERAL, "The keys of each column, one a line.", most=MOST_COLUMNS),
    "required": Field(_SEVERAL, "Columns that are never NULL.", most=MOST_COLUMNS),
}
POLICY = {
    "largest_share": Field("string", "Of one question, in percent.", most=40),
    "quotas": Field("string", "One a line: analyst = percent.", most=10_000),
    "largest_delta": Field("string", "Of all answers together.", most=40),
    "float_arithmetic": Field("string", "Allow mechanisms without an exact sampler.", most=10),
    "individual": Field("string", "Allow the model `individual`.", most=10),
}
TABLE = {
    "name": Field("string", "What analysts call the table.", most=1_000),
    "person": Field("string", "The column that names the person.", most=1_000),
    "whose": Field("string", "'own' or 'register': where preferences come from.", most=20),
    "epsilon": Field("string", "The column of preferences.", most=1_000),
    "register": Field("string", "People enrolled before.", most=1_000),
    "levels": Field("string", "One a line: name = number.", most=20_000),
    "menu": Field("string", "Numbers that preferences are rounded down to.", most=20_000),
    "default": Field("string", "For people who stated none.", most=100),
    "separate": Field("string", "Equal identifiers elsewhere name other people.", most=10),
    "rows_per_person": Field("string", "The most rows of one person that count.", most=20),
    "longest_text": Field("string", "The most characters that count.", most=20),
    "lookups": Field("string", "One a line: name = file, its key, and `public` if its values are.", most=20_000),
} | COLUMNS


@dataclass
class TypedForm:
    """Hold what was typed: an unfinished declaration, and (field, problem) for everything that is wrong with it."""

    declared: dict[str, Any] = field(default_factory=dict)
    problems: list[tuple[str, str]] = field(default_factory=list)

    def number(self, field: str, text: str, what: str) -> float | None:
        """Return a number, None if nothing was typed; note what is no number."""
        plain = text.strip().replace(",", ".") if text.count(",") == 1 and "." not in text else text.strip()
        if not plain:
            return None
        try:
            return float(plain.replace("_", "").replace(" ", ""))
        except ValueError:
            self.problems.append((field, f"{what} must be a number, such as 0.5, got “{text.strip()}”."))
            return None

    def named(self, field: str, text: str, what: str, form: str) -> dict[str, float]:
        """Return lines such as `strict = 0.1` as a mapping."""
        found: dict[str, float] = {}
        for line in filter(None, map(str.strip, text.splitlines())):
            name, sign, number = line.rpartition("=")
            name = name.strip()
            if not sign or not name:
                self.problems.append((field, f"{what}: write one a line, as in “{form}”, got “{line}”."))
            elif name in found:
                self.problems.append((field, f"{what}: “{name}” is there twice."))
            elif (value := self.number(field, number, f"{what}: “{name}”")) is not None:
                found[name] = value
        return found


def draft(said: Mapping[str, Any], columns: Mapping[str, str]) -> TypedForm:
    """Return what the form of a table declares."""
    made = TypedForm()
    made.declared |= _owner(made, said, columns)
    made.declared |= _columns(made, said, columns)
    if lookups := _lookups(made, said.get("lookups", "")):
        made.declared["lookups"] = lookups
    made.declared |= {name: whole for name, whole in _wholes(made, said) if whole is not None}
    made.declared["policy"] = policy(made, said)
    return made


def policy(made: TypedForm, said: Mapping[str, Any]) -> Policy | None:
    """Return what the fields of a policy allow, None if something is wrong with them."""
    before = len(made.problems)
    share = made.number("largest_share", said.get("largest_share", ""), "The largest part")
    delta = made.number("largest_delta", said.get("largest_delta", ""), "The largest δ")
    quotas = made.named("quotas", said.get("quotas", ""), "Quotas", "ada = 20")
    if share is not None and not 0 < share <= 100:
        made.problems.append(("largest_share", "The largest part must be above 0 and at most 100 %."))
    if delta is not None and not 0 <= delta < 1:
        made.problems.append(("largest_delta", "The largest δ must be from 0 to below 1."))
    for name, percent in quotas.items():
        if not 0 <= percent <= 100:
            made.problems.append(("quotas", f"Quotas: “{name}” must have from 0 to 100 %, got {percent:g}."))
    if len(made.problems) > before:
        return None
    return Policy(
        largest_share=1.0 if share is None else share / 100,
        quotas={name: percent / 100 for name, percent in quotas.items()},
        largest_delta=delta or 0.0,
        float_arithmetic=bool(said.get("float_arithmetic")),
        individual=bool(said.get("individual")),
    )


def typed_policy(policy: Policy) -> dict[str, Any]:
    """Return a policy as the fields of its form show it."""
    return {
        "largest_share": f"{100 * policy.largest_share:.10g}",
        "quotas": "\n".join(f"{name} = {100 * share:.10g}" for name, share in policy.quotas.items()),
        "largest_delta": f"{policy.largest_delta:.10g}" if policy.largest_delta else "",
        "float_arithmetic": "yes" if policy.float_arithmetic else "",
        "individual": "yes" if policy.individual else "",
    }


def reading(said: Mapping[str, Any]) -> dict[str, Any]:
    """Return how a file is read, as far as anything was typed."""
    told: dict[str, Any] = {
        name: said[name] for name in ("delimiter", "encoding", "decimal", "sheet") if said.get(name)
    }
    null = [one.strip() for one in said.get("null", "").split(",") if one.strip()]
    names: Sequence[str] = said.get("column", [])
    types, zones = (
        {
            name: one.strip()
            for name, one in zip(names, _padded(said.get(field, []), len(names)), strict=True)
            if one.strip()
        }
        for field in ("type", "zone")
    )
    found = {"null": null, "types": types, "zones": zones}
    return told | {name: one for name, one in found.items() if one}


def is_number(kind: str) -> bool:
    """Tell whether a column may have bounds."""
    return bool(NUMBER.fullmatch(kind))


def is_dated(kind: str) -> bool:
    """Tell whether the bounds of a column are dates."""
    return bool(TIMED.fullmatch(kind))


def _owner(made: TypedForm, said: Mapping[str, Any], columns: Mapping[str, str]) -> dict[str, Any]:
    """Return whose rows these are, and where preferences come from."""
    name, person, whose = said.get("name", "").strip(), said.get("person", ""), said.get("whose", "")
    if not name:
        made.problems.append(("name", "Give the table a name. Analysts write it in their questions."))
    if person not in columns:
        made.problems.append(("person", "Choose the column that says whose row each row is."))
    if whose not in ("own", "register"):
        made.problems.append(("whose-own", "Choose where people's preferences come from."))
    if whose == "register":
        if not said.get("register"):
            made.problems.append(("register", "Choose whose preferences count."))
        return {"person": person, "register": said.get("register", "")}
    if whose == "own" and said.get("epsilon", "") not in columns:
        made.problems.append(("epsilon", "Choose the column with what people chose."))
    if whose == "own" and person and person == said.get("epsilon"):
        made.problems.append(("epsilon", "The person and the preference cannot be the same column."))
    levels = made.named("levels", said.get("levels", ""), "Levels", "strict = 0.1")
    wanted = said.get("menu", "").replace(";", " ").split()
    offered = [made.number("menu", one, "Each level of the menu") for one in wanted]
    menu = [one for one in offered if one is not None]
    stated = [*(("levels", *one) for one in levels.items()), *(("menu", f"{one:g}", one) for one in menu)]
    made.problems += [
        (place, f"“{level}” must be a number of 0 or more.")
        for place, level, epsilon in stated
        if not 0 <= epsilon < inf
    ]
    chosen = {"epsilon": said.get("epsilon", ""), "levels": levels, "menu": menu}
    chosen["separate"] = bool(said.get("separate"))
    default = said.get("default", "").strip()
    if default and default not in levels:
        value = made.number("default", default, "The default, which is none of the levels,")
        return {"person": person, **chosen, "default": value}
    return {"person": person, **chosen, "default": default or None}


def _columns(made: TypedForm, said: Mapping[str, Any], columns: Mapping[str, str]) -> dict[str, Any]:
    """Return bounds, steps, keys and required columns."""
    bounds: dict[str, tuple[Any, Any]] = {}
    keys: dict[str, list[str]] = {}
    grid: dict[str, float] = {}
    names: Sequence[str] = said.get("column", [])
    fields = ("low", "high", "step", "keys")
    for place, (name, low, high, step, listed) in enumerate(
        zip(names, *(_padded(said.get(one, []), len(names)) for one in fields), strict=True)
    ):
        if name not in columns:
            continue
        read = _date if is_dated(columns[name]) else TypedForm.number
        least: Any = read(made, f"low-{place}", low, f"The smallest value of “{name}”")
        most: Any = read(made, f"high-{place}", high, f"The largest value of “{name}”")
        if least is not None and most is not None:
            bounds[name] = (least, most)
            if not least < most:
                made.problems.append((f"low-{place}", f"The smallest value of “{name}” must be below its largest."))
        elif low.strip() == "" and most is not None:
            made.problems.append((f"low-{place}", f"“{name}” has a largest value, but no smallest one."))
        elif high.strip() == "" and least is not None:
            made.problems.append((f"high-{place}", f"“{name}” has a smallest value, but no largest one."))
        if (size := made.number(f"step-{place}", step, f"The step of “{name}”")) is not None:
            grid[name] = size
            if not 0 < size < inf:
                made.problems.append((f"step-{place}", f"The step of “{name}” must be above 0."))
        values = [one.strip() for one in listed.splitlines() if one.strip()]
        if values:
            keys[name] = values
        if len(set(values)) != len(values):
            made.problems.append((f"keys-{place}", f"The groups of “{name}” must differ from each other."))
    required = [name for name in said.get("required", []) if name in columns]
    return {"bounds": bounds, "keys": keys, "required": required} | ({"grid": grid} if grid else {})


def _lookups(made: TypedForm, text: str) -> dict[str, tuple[str, ...]]:
    """Return lines such as `departments = departments.csv, code` as (file, key) by name."""
    found: dict[str, tuple[str, ...]] = {}
    for line in filter(None, map(str.strip, text.splitlines())):
        name, _, rest = (part.strip() for part in line.partition("="))
        parts = tuple(part.strip() for part in rest.split(","))
        if not name or len(parts) not in (2, 3) or not all(parts) or parts[2:] not in ((), ("public",)):
            form = "departments = departments.csv, code” or “departments = departments.csv, code, public"
            made.problems.append(("lookups", f"Lookups: write one a line, as in “{form}”, got “{line}”."))
        elif name in found:
            made.problems.append(("lookups", f"Lookups: “{name}” is there twice."))
        else:
            found[name] = parts
    return found


def _date(made: TypedForm, field: str, text: str, what: str) -> str | None:
    """Return a date as text, None if nothing was typed; note what is no date."""
    try:
        return date.fromisoformat(text.strip()).isoformat() if text.strip() else None
    except ValueError:
        made.problems.append((field, f"{what} must be a date, such as 2025-12-31, got “{text.strip()}”."))
        return None


def _padded(values: Sequence[str], size: int) -> Sequence[str]:
    return [*values, *[""] * (size - len(values))][:size]


def _wholes(made: TypedForm, said: Mapping[str, Any]) -> Iterator[tuple[str, int | None]]:
    for name, least, most in (("rows_per_person", 1, 10**9), ("longest_text", 1, 10_000)):
        text = said.get(name, "").strip()
        if not text:
            yield name, None
        elif text.isascii() and text.isdigit() and least <= int(text) <= most:
            yield name, int(text)
        else:
            made.problems.append((name, f"This must be a whole number from {least:,} to {most:,}, got “{text}”."))


def told(refusal: DiscretionError) -> list[tuple[str, str]]:
    """Return what a declaration was refused for, one line each; all of it, though no field is known for it."""
    lines = str(refusal).splitlines()
    listed = [line.strip().removeprefix("- ") for line in lines if line.strip().startswith("- ")]
    return [("", text[:1].upper() + text[1:]) for text in listed] or [("", str(refusal))]


EMPTY = {name: [] if one.kinds == _SEVERAL else "" for name, one in (TABLE | POLICY | READING).items()} | {
    "rows_per_person": "1",
    "longest_text": str(LONGEST_TEXT),
    "largest_share": "100",
}
