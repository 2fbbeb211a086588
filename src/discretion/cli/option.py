"""Option: what is typed behind the options of a command becomes values, or wrong usage."""

import csv
import json
import os
import re
import sys
from collections.abc import Callable, Mapping
from functools import wraps
from getpass import getuser
from inspect import Parameter, signature
from pathlib import Path
from typing import Annotated, Any

import typer


def level(text: str) -> tuple[str, float]:
    """NAME=EPSILON."""
    return _pair(text, "NAME=EPSILON", number)


def bounds(text: str) -> tuple[str, tuple[float, float] | tuple[str, str]]:
    """COLUMN=LOW:HIGH, two numbers or two dates."""
    return _pair(text, "COLUMN=LOW:HIGH", _ends)


def step(text: str) -> tuple[str, float]:
    """COLUMN=STEP."""
    return _pair(text, "COLUMN=STEP", number)


def keys(text: str) -> tuple[str, list[str]]:
    """COLUMN=A,B,...; a value with a comma goes in double quotes, as in a CSV file."""
    return _pair(text, "COLUMN=A,B,...", lambda values: next(csv.reader([values])))


def lookup(text: str) -> tuple[str, tuple[str, str]]:
    """NAME=FILE:KEY; the last colon counts, a file's name may have one, too."""
    return _pair(text, "NAME=FILE:KEY", _last_colon)


def quota(text: str) -> tuple[str, float]:
    """ANALYST=SHARE."""
    return _pair(text, "ANALYST=SHARE", number)


def sql_type(text: str) -> tuple[str, str]:
    """COLUMN=TYPE."""
    return _pair(text, "COLUMN=TYPE", str)


def zone(text: str) -> tuple[str, str]:
    """COLUMN=ZONE."""
    return _pair(text, "COLUMN=ZONE", str)


def menu(text: str) -> tuple[float, ...]:
    """E,E,..."""
    return tuple(map(number, text.split(",")))


def value(text: str) -> tuple[str, Any]:
    """NAME=VALUE: a number, true, false or null as JSON writes them, or "a text"; anything else is a text, too."""

    def typed(text: str) -> Any:
        try:
            return json.loads(text)
        except ValueError:
            return text

    return _pair(text, "NAME=VALUE", typed)


def interval(text: str) -> tuple[float, float]:
    """LOW:HIGH."""
    low, colon, high = text.partition(":")
    if not colon:
        raise typer.BadParameter(f"expected LOW:HIGH, got {text!r}.")
    return number(low), number(high)


def _ends(text: str) -> tuple[float, float] | tuple[str, str]:
    """LOW:HIGH, two numbers or two dates."""
    dates = re.fullmatch(r"(\d{4}-\d{2}-\d{2}):(\d{4}-\d{2}-\d{2})", text, re.ASCII)
    return (dates[1], dates[2]) if dates else interval(text)


def number(text: str) -> float:
    """One number."""
    return _number(text, "a number")


def whole(text: str | int) -> int:
    """One whole number."""
    try:
        return int(text)
    except ValueError:
        raise typer.BadParameter(f"expected a whole number, got {text!r}.") from None


def assumption(text: str) -> Any:
    """`gradual`, `independent`, or how far levels may differ."""
    if text in ("gradual", "independent"):
        return text
    return _number(text, "`gradual`, `independent` or a number from 0 to 1")


def user() -> str:
    """Return who asks, if it is not said."""
    try:
        return getuser()
    except (KeyError, OSError):  # a process without a user name
        return ""


def token() -> str:
    """Return the token for a service, which is never given on the command line: others could read it there."""
    return os.environ.get("DISCRETION_TOKEN", "")


def _pair(text: str, form: str, value: Callable[[str], Any]) -> tuple[str, Any]:
    name, _, typed = text.partition("=")
    if not (name and typed):
        raise typer.BadParameter(f"expected {form}, got {text!r}.")
    return name, value(typed)


def _last_colon(text: str) -> tuple[str, str]:
    before, _, behind = text.rpartition(":")
    if not (before and behind):
        raise typer.BadParameter(f"expected FILE:KEY, got {text!r}.")
    return before, behind


def _number(text: str | float, expected: str, where: str | None = None) -> float:
    try:
        return float(text)
    except ValueError:
        raise typer.BadParameter(f"expected {expected}, got {text!r}.", param_hint=where) from None


# What commands share ------------------------------------------------------------------------------------------------


def argument(form: str, text: str) -> Any:
    """An argument that help shows as `form`."""
    return typer.Argument(metavar=form, help=text)


def option(form: str, text: str, parser: Callable[[str], Any] | None = None, **how: Any) -> Any:
    """An option whose value help shows as `form`; wrong usage names the option."""
    return typer.Option(metavar=form, help=text, parser=parser, **how)


def flag(name: str, text: str, **how: Any) -> Any:
    """An option that is there or not."""
    return typer.Option(name, help=text, **how)


def _remember(context: typer.Context, value: bool) -> bool:
    context.meta["json"] = value  # so that a refusal is printed in the same form
    return value


def _tell_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version  # slow to load

        typer.echo(f"discretion {version('discretion')}")
        raise typer.Exit


Version = Annotated[bool, flag("--version", "Say which version this is.", is_eager=True, callback=_tell_version)]
Json = Annotated[bool, flag("--json", "Print JSON, for programs.", callback=_remember)]
Ledger = Annotated[
    str, option("PLACE", "A file, a PostgreSQL URL, or the URL of a service.", envvar="DISCRETION_LEDGER")
]
Register = Annotated[str, option("NAME", "Which register, where the ledger holds several.")]
Witness = Annotated[list[str], option("ENTRY", "The entry of an answer that was released. Repeatable.")]
Person = Annotated[str, argument("PERSON", "The person, as the register names them.")]
Output = Annotated[Path, typer.Option(metavar="FOLDER", help="Where to write the clinic and the plot.")]
Seed = Annotated[int, option("N", "Of the invented data and the noise.", whole)]

Sql = Annotated[str, argument("[SQL]", "One SELECT about one protected table; - reads it from the standard input.")]
File = Annotated[
    Path | None, typer.Option("--file", "-f", metavar="FILE", help="Read the question from a file, instead of SQL.")
]
Param = Annotated[
    list[Any], option("NAME=VALUE", "A value for $NAME: a number, true, null, else a text. Repeatable.", value)
]
Option = Annotated[list[Any], option("NAME=VALUE", "Of the mechanism: threshold=mean. Repeatable.", value)]
Model = Annotated[str, option("personalized|individual", "`individual` is NOT differential privacy; see docs.")]
Within = Annotated[
    float | None,
    option(
        "ERROR", "The largest 95% error, if everybody is selected: the smallest share that is enough is used.", number
    ),
]
AnswerFile = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Write the answer to answer.csv, .parquet, .arrow or .json.")
]
Format = Annotated[str, option("csv|parquet|arrow|json", "Of that file; without a file, print the answer like this.")]
Share = Annotated[float, option("SHARE", "The most of each person's own allowance that this may use.", number)]
Mechanism = Annotated[str, option("NAME", "One mechanism, instead of the best one.")]
BELIEF = (
    "Believe that people of similar ε are alike (the relation is estimated), that preferences are unrelated to values, "
    "or that levels differ by at most B of the range."
)
Assume = Annotated[Any, option("gradual|independent|B", f"{BELIEF} More accurate; wrong if it is not so.", assumption)]
Expect = Annotated[Any, option("LOW:HIGH", "Where every level's mean is believed to lie.", interval)]
Interval = Annotated[bool, flag("--with-interval", "Medians: a third of the share buys an interval.")]
Partial = Annotated[bool, flag("--partial", "Let people with too little left pay what they have.")]
Analyst = Annotated[
    str, option("NAME", "Who asks; written into the ledger. Else the user's name.", envvar="DISCRETION_ANALYST")
]

AnswerEvery = Annotated[
    float,
    option(
        "SECONDS", "Answer, and write entries, on a tick only: hides times.", number, envvar="DISCRETION_ANSWER_EVERY"
    ),
]

Source = Annotated[
    str, argument("SOURCE", "A file, pattern, folder or URL; of a database: shop.duckdb#sales. See docs/sources.md.")
]
Delimiter = Annotated[str, option("SIGN", "CSV: the sign between fields, if it is not found.")]
Encoding = Annotated[str, option("NAME", "CSV: such as cp1252; else UTF-8.")]
Decimal = Annotated[str, option("SIGN", "Texts: the decimal sign, . or ,")]
Null = Annotated[list[str], option("TEXT", "Texts: what means NULL, besides nothing. Repeatable.")]
Sheet = Annotated[str, option("NAME", "Excel: which sheet; else the first.")]
Types = Annotated[list[Any], option("COLUMN=TYPE", "Not to be guessed: zip=VARCHAR. Repeatable.", sql_type)]
Zones = Annotated[
    list[Any],
    option("COLUMN=ZONE", "Times as clocks there show them, instead of UTC: at=Europe/Berlin. Repeatable.", zone),
]
Copies = Annotated[
    Path | None,
    typer.Option(metavar="FOLDER", help="For copies of sources; else beside the ledger.", envvar="DISCRETION_COPIES"),
]
Level = Annotated[list[Any], option("NAME=EPSILON", "A name for a preference. Repeatable.", level)]
Menu = Annotated[Any, option("E,E,...", "Round every preference down to one of these.", menu)]
Default = Annotated[str, option("EPSILON|NAME", "For people who stated none; else the strictest level offered.")]
Separate = Annotated[bool, flag("--separate", "Equal identifiers in other registers name other people.")]
Bounds = Annotated[
    list[Any],
    option(
        "COLUMN=LOW:HIGH", "Numbers are clamped to it, for SUM, AVG ...; other dates are left out. Repeatable.", bounds
    ),
]
Grid = Annotated[list[Any], option("COLUMN=STEP", "Between candidate answers of a median. Repeatable.", step)]
Keys = Annotated[list[Any], option("COLUMN=A,B,...", "Every value that GROUP BY shows. Repeatable.", keys)]
Rows = Annotated[int, option("K", "The most rows of one person that count.", whole)]
Required = Annotated[list[str], option("COLUMN", "Declared never NULL. Repeatable.")]
PublicLookup = Annotated[
    list[str], option("NAME", "A lookup not made from people's rows: GROUP BY may show its values. Repeatable.")
]
Lookup = Annotated[list[Any], option("NAME=FILE:KEY", "Not protected, may be joined on KEY. Repeatable.", lookup)]
LargestShare = Annotated[float, option("SHARE", "Policy: the most that one question may use.", number)]
Quota = Annotated[
    list[Any], option("ANALYST=SHARE", "Policy: over all questions of an analyst; * for others. Repeatable.", quota)
]
LargestDelta = Annotated[float, option("DELTA", "Policy: the most δ over all answers together.", number)]
AllowFloat = Annotated[bool, flag("--allow-float", "Policy: allow mechanisms without an exact sampler.")]
AllowIndividual = Annotated[bool, flag("--allow-individual", "Policy: allow model `individual`, which is not DP.")]

# Options that several commands have ---------------------------------------------------------------------------------


def choices(*, level: Level = [], menu: Menu = None, default: Default = "") -> dict[str, Any]:  # noqa: B006
    """Return how preferences are read: named levels, a menu, a default."""
    named: Mapping[str, float] = dict(level)
    stated: str | float | None = default if default in named else None
    if default and stated is None:
        stated = _number(default, "a number or a level's name", "'--default'")
    return {"levels": named, "menu": menu or (), "default": stated}


def reading(
    *,
    delimiter: Delimiter = "",
    encoding: Encoding = "",
    decimal: Decimal = "",
    null: Null = [],  # noqa: B006  Typer copies it
    sheet: Sheet = "",
    types: Types = [],  # noqa: B006
    zone: Zones = [],  # noqa: B006
) -> dict[str, Any]:
    """Return how a source is read: only the options that were given."""
    texts: dict[str, Any] = {"delimiter": delimiter, "encoding": encoding, "decimal": decimal, "sheet": sheet}
    return {
        name: given
        for name, given in {**texts, "null": null, "types": dict(types), "zones": dict(zone)}.items()
        if given
    }


def question(
    *,
    sql: Sql = "",
    file: File = None,
    param: Param = [],  # noqa: B006  Typer copies it
    share: Share = 0.1,
    within: Within = None,
    mechanism: Mechanism = "auto",
    option: Option = [],  # noqa: B006
    model: Model = "personalized",
    assume: Assume = None,
    expect: Expect = None,
    interval: Interval = False,
    partial: Partial = False,
) -> dict[str, Any]:
    """Return a question and how it is to be answered."""
    how: dict[str, Any] = {"assume": assume, "expect": expect, "with_interval": interval, "partial": partial}
    how |= {"options": dict(option), "params": dict(param) or None, "within": within, "model": model}
    return {"sql": _text(sql, file), "share": share, "mechanism": mechanism, **how}


def _text(sql: str, file: Path | None) -> str:
    """Return the text of a question, from where it is."""
    if bool(sql) == (file is not None):
        raise typer.BadParameter("give the question once: as SQL, with -f FILE, or - for the standard input.")
    if sql == "-" or str(file) == "-":
        return sys.stdin.read()
    return sql if file is None else file.read_text(encoding="utf-8-sig")


def shared(**groups: Callable[..., Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Replace a parameter of a command by the options of a function that makes its value: `reading=reading`."""

    def having(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def run(**typed: Any) -> None:
            made = {name: make(**{one: typed.pop(one) for one in _options(make)}) for name, make in groups.items()}
            command(**made, **typed)

        shown = [
            one.replace(kind=Parameter.KEYWORD_ONLY)
            for name, parameter in _options(command).items()
            for one in (_options(groups[name]).values() if name in groups else [parameter])
        ]
        run.__signature__ = signature(command).replace(parameters=shown)  # type: ignore[attr-defined]
        run.__annotations__ = {one.name: one.annotation for one in shown}
        return run

    return having


def _options(function: Callable[..., Any]) -> Mapping[str, Parameter]:
    return signature(function).parameters
