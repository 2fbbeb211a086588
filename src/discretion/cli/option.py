"""Option: the options and arguments of commands, with the help that they show."""

import os
import sys
from collections.abc import Callable, Mapping
from functools import wraps
from getpass import getuser
from inspect import Parameter, signature
from pathlib import Path
from typing import Annotated, Any

import typer

from discretion.cli import typed


def user() -> str:
    """Return who asks, if it is not said."""
    try:
        return getuser()
    except (KeyError, OSError):  # a process without a user name
        return ""


def token() -> str:
    """Return the token for a service, which is never given on the command line: others could read it there."""
    return os.environ.get("DISCRETION_TOKEN", "")


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
Seed = Annotated[int, option("N", "Seed of the invented data and of the noise.", typed.whole)]

Sql = Annotated[str, argument("[SQL]", "One SELECT about protected tables; - reads it from the standard input.")]
File = Annotated[
    Path | None, typer.Option("--file", "-f", metavar="FILE", help="Read the question from a file, instead of SQL.")
]
Param = Annotated[
    list[Any],
    option("NAME=VALUE", "A value for $NAME: a number, true, null, [0.1, 0.9], else a text. Repeatable.", typed.value),
]
Option = Annotated[
    list[Any], option("NAME=VALUE", "An option of the mechanism, such as threshold=mean. Repeatable.", typed.value)
]
Model = Annotated[str, option("personalized|individual", "`individual` is NOT differential privacy; see docs.")]
Within = Annotated[
    float | None,
    option(
        "ERROR",
        "Use the smallest share whose 95% error is at most this, predicted as if everybody had one row in it.",
        typed.number,
    ),
]
AnswerFile = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Write the answer to answer.csv, .parquet, .arrow or .json.")
]
Format = Annotated[
    str, option("csv|parquet|arrow|json", "Format of that file. Without --output, print the answer in this format.")
]
Share = Annotated[
    float,
    option("SHARE", "The largest part of each person's own allowance that this may use: 0.1 is a tenth.", typed.number),
]
Mechanism = Annotated[str, option("NAME", "One mechanism, instead of the best one.")]
BELIEF = (
    "Believe that people of similar ε are alike (the relation is estimated), that preferences are unrelated to values, "
    "or that levels differ by at most B of the range."
)
Assume = Annotated[
    Any, option("gradual|independent|B", f"{BELIEF} More accurate; wrong if it is not so.", typed.assumption)
]
Expect = Annotated[Any, option("LOW:HIGH", "Range in which you believe the mean of every level lies.", typed.interval)]
Interval = Annotated[
    bool, flag("--with-interval", "For medians and quantiles: spend a third of the share on an interval.")
]
Partial = Annotated[
    bool, flag("--partial", "Let people who have too little left pay what they have, instead of refusing.")
]
Analyst = Annotated[
    str,
    option(
        "NAME",
        "Who asks; it is written into the ledger. Without it, the name of the user.",
        envvar="DISCRETION_ANALYST",
    ),
]

AnswerEvery = Annotated[
    float,
    option(
        "SECONDS",
        "Answer only every so many seconds, which hides how long a question took.",
        typed.number,
        envvar="DISCRETION_ANSWER_EVERY",
    ),
]

Source = Annotated[
    str,
    argument(
        "SOURCE", "A file, pattern, folder or URL; a table of a database as shop.duckdb#sales. See docs/sources.md."
    ),
]
Delimiter = Annotated[str, option("SIGN", "CSV: the sign between fields, if it is not found by itself.")]
Encoding = Annotated[str, option("NAME", "CSV: the encoding, such as cp1252, if it is not UTF-8.")]
Decimal = Annotated[str, option("SIGN", "Text files: the decimal sign. Give , for numbers like 1,5.")]
Null = Annotated[
    list[str],
    option("TEXT", "Text files: what means NULL besides an empty field, such as n/a. Repeatable."),
]
Sheet = Annotated[str, option("NAME", "Excel: the sheet, if it is not the first.")]
Types = Annotated[
    list[Any],
    option("COLUMN=TYPE", "The type of a column, instead of a guess: zip=VARCHAR. Repeatable.", typed.sql_type),
]
Zones = Annotated[
    list[Any],
    option("COLUMN=ZONE", "The time zone of a column's times, if not UTC: at=Europe/Berlin. Repeatable.", typed.zone),
]
Copies = Annotated[
    Path | None,
    typer.Option(
        metavar="FOLDER", help="Folder for copies of sources, if not next to the ledger.", envvar="DISCRETION_COPIES"
    ),
]
Level = Annotated[
    list[Any], option("NAME=EPSILON", "A level of privacy by name, such as strict=0.1. Repeatable.", typed.level)
]
Menu = Annotated[Any, option("E,E,...", "Round every choice down to one of these levels.", typed.menu)]
Default = Annotated[
    str, option("EPSILON|NAME", "The level of people who stated none. Without it they get the strictest level offered.")
]
Separate = Annotated[bool, flag("--separate", "The same identifier in another register is another person.")]
Bounds = Annotated[
    list[Any],
    option(
        "COLUMN=LOW:HIGH",
        "What values can be, for SUM, AVG ...: other numbers are clamped, other dates left out. Repeatable.",
        typed.bounds,
    ),
]
Grid = Annotated[
    list[Any], option("COLUMN=STEP", "Step between the possible answers of a median. Repeatable.", typed.step)
]
Keys = Annotated[
    list[Any],
    option("COLUMN=A,B,...", "All values that GROUP BY shows, whether they occur or not. Repeatable.", typed.keys),
]
Rows = Annotated[
    int, option("K", "How many rows of one person count at most; more are left out at random.", typed.whole)
]
Required = Annotated[list[str], option("COLUMN", "A column that is never NULL. Repeatable.")]
PublicLookup = Annotated[
    list[str],
    option("NAME", "A lookup that was not made from people's rows: GROUP BY may show its values. Repeatable."),
]
Lookup = Annotated[
    list[Any],
    option("NAME=FILE:KEY", "An unprotected table that may be joined on its unique KEY. Repeatable.", typed.lookup),
]
LargestShare = Annotated[float, option("SHARE", "Policy: the largest share that one question may use.", typed.number)]
Quota = Annotated[
    list[Any],
    option(
        "ANALYST=SHARE",
        "Policy: for all questions of an analyst together; * is everybody else. Repeatable.",
        typed.quota,
    ),
]
LargestDelta = Annotated[float, option("DELTA", "Policy: the largest δ of all answers together.", typed.number)]
AllowFloat = Annotated[bool, flag("--allow-float", "Policy: allow mechanisms without an exact sampler.")]
AllowIndividual = Annotated[
    bool, flag("--allow-individual", "Policy: allow model `individual`, which is NOT differential privacy.")
]

# Options that several commands have ---------------------------------------------------------------------------------


def choices(*, level: Level = [], menu: Menu = None, default: Default = "") -> dict[str, Any]:  # noqa: B006
    """Return how preferences are read: named levels, a menu, a default."""
    named: Mapping[str, float] = dict(level)
    stated: str | float | None = default if default in named else None
    if default and stated is None:
        stated = typed.number_or(default, "a number or a level's name", "'--default'")
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
    try:
        if sql == "-" or str(file) == "-":
            return sys.stdin.read()
        return sql if file is None else file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise typer.BadParameter("the question is not written in UTF-8. Save it in that encoding.") from None


def shared(**groups: Callable[..., Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Replace a parameter of a command by the options of a function that makes its value: `reading=reading`."""

    def having(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def run(**said: Any) -> None:
            made = {name: make(**{one: said.pop(one) for one in _options(make)}) for name, make in groups.items()}
            command(**made, **said)

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
