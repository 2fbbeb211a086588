"""The command line: commands only. Exit codes: 0 answered, 2 refused or wrong usage, 3 budget, 4 engine or ledger."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from getpass import getuser
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from typer.core import TyperGroup

from discretion import option, render
from discretion.attack import attack_idp, draw
from discretion.audit import audit_ledger
from discretion.connection import Connection, connect
from discretion.demo import demonstrate
from discretion.errors import BudgetExhausted, DiscretionError, EngineFailed, LedgerCorrupt, LedgerFailed
from discretion.render import Sheet
from discretion.table import Policy

REFUSED, EXHAUSTED, FAILED = 2, 3, 4


class Commands(TyperGroup):
    """Turns whatever discretion refuses into a message and an exit code, in one place."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except DiscretionError as refusal:
            if ctx.meta.get("json"):
                typer.echo(render.to_json(refusal))
            else:
                typer.secho(f"{type(refusal).__name__}: ", err=True, nl=False, fg="red", bold=True)
                typer.echo(refusal, err=True)
            raise typer.Exit(_exit_code(refusal)) from None


def _exit_code(refusal: DiscretionError) -> int:
    if isinstance(refusal, BudgetExhausted):
        return EXHAUSTED
    return FAILED if isinstance(refusal, EngineFailed | LedgerFailed | LedgerCorrupt) else REFUSED


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="""Answer questions about people so that each of them gets the privacy they chose.

    Begin with `discretion demo`, or with a file of your own:

    discretion protect patients patients.parquet --person patient_id --epsilon epsilon --bounds age=0:120

    discretion query "SELECT AVG(age) FROM patients"
    """,
)
audits = typer.Typer(no_args_is_help=True, help="Check that promises were kept.")
app.add_typer(audits, name="audit")
attacks = typer.Typer(no_args_is_help=True, help="Show why some published promises are fenced off.")
app.add_typer(attacks, name="attack")


def _remember(context: typer.Context, value: bool) -> bool:
    context.meta["json"] = value  # so that a refusal is printed in the same form
    return value


Ledger = Annotated[str, typer.Option(envvar="DISCRETION_LEDGER", help="The ledger: a file or a PostgreSQL URL.")]
Analyst = Annotated[str, typer.Option(envvar="DISCRETION_ANALYST", help="Who asks; written into the ledger.")]
Json = Annotated[bool, typer.Option("--json", callback=_remember, help="Print JSON, for programs.")]
Source = Annotated[str, typer.Argument(help="A Parquet or CSV file, or a table in a DuckDB file.")]
Level = Annotated[list[str], typer.Option(metavar="NAME=EPSILON", help="A name for a preference. Repeatable.")]
Menu = Annotated[str, typer.Option(metavar="E,E,...", help="Round every preference down to one of these.")]
Default = Annotated[str, typer.Option(help="For people who stated no preference; else the strictest offered.")]
Sql = Annotated[str, typer.Argument(help="One SELECT about one protected table.")]
Share = Annotated[float, typer.Option(help="The most of each person's own allowance that this may use.")]
Mechanism = Annotated[str, typer.Option(help="A mechanism by name instead of the best one.")]
Assume = Annotated[str, typer.Option(metavar="independent|B", help="Preferences unrelated to values; or a number.")]
Expect = Annotated[str, typer.Option(metavar="LOW:HIGH", help="Where every level's mean is believed to lie.")]
Interval = Annotated[bool, typer.Option("--with-interval", help="Medians: a third of the share buys an interval.")]
Partial = Annotated[bool, typer.Option("--partial", help="Let people with too little left pay what they have.")]
Register = Annotated[str, typer.Option(help="Which register, where the ledger holds several.")]
Place = "ledger.discretion"


@app.command()
def register(
    name: Annotated[str, typer.Argument(help="What to call these people.")],
    source: Source,
    person: Annotated[str, typer.Option(help="The column that names the person.")],
    epsilon: Annotated[str, typer.Option(help="The column with what they chose: a number or a level's name.")],
    level: Level = [],  # noqa: B006  Typer copies it
    menu: Menu = "",
    default: Default = "",
    ledger: Ledger = Place,
    json: Json = False,
) -> None:
    """Enrol people and the privacy they chose; several tables can share them and so one allowance.

    Example: discretion register people people.csv --person id --epsilon privacy --level strict=0.1 --level open=1
    """
    choices = option.choices(level, menu, default)
    with _opened(ledger, create=True) as db, _working("Enrolling people"):
        people = db.register(name, source, person=person, epsilon=epsilon, **choices)
    _print(json, render.to_json(people), render.balance_sheets(people))


@app.command()
def protect(
    name: Annotated[str, typer.Argument(help="What analysts call the table.")],
    source: Source,
    person: Annotated[str, typer.Option(help="The column that says whose row it is.")] = "",
    epsilon: Annotated[str, typer.Option(help="The column of preferences: the table is its own register.")] = "",
    register: Annotated[str, typer.Option(help="People enrolled before, instead of --epsilon.")] = "",
    bounds: Annotated[list[str], typer.Option(metavar="COLUMN=LOW:HIGH", help="Repeatable.")] = [],  # noqa: B006
    grid: Annotated[list[str], typer.Option(metavar="COLUMN=STEP", help="Repeatable.")] = [],  # noqa: B006
    keys: Annotated[list[str], typer.Option(metavar="COLUMN=A,B,...", help="Repeatable.")] = [],  # noqa: B006
    rows_per_person: Annotated[int, typer.Option(help="The most rows of one person that count.")] = 1,
    required: Annotated[list[str], typer.Option(metavar="COLUMN", help="Never NULL. Repeatable.")] = [],  # noqa: B006
    lookup: Annotated[list[str], typer.Option(metavar="NAME=FILE:KEY", help="May be joined. Repeatable.")] = [],  # noqa: B006
    level: Level = [],  # noqa: B006
    menu: Menu = "",
    default: Default = "",
    largest_share: Annotated[float, typer.Option(help="The most one question may use of an allowance.")] = 1.0,
    quota: Annotated[list[str], typer.Option(metavar="ANALYST=SHARE", help="Repeatable.")] = [],  # noqa: B006
    ledger: Ledger = Place,
    json: Json = False,
) -> None:
    """Let analysts ask about a table, and show what becomes public by it.

    Example: discretion protect patients patients.parquet --person patient_id --epsilon epsilon
    --bounds age=0:120 --keys region=N,S

    Example: discretion protect visits visits.parquet --person patient_id --register people --rows-per-person 10
    """
    quotas = {analyst: option.number(share) for analyst, share in option.pairs(quota, "ANALYST=SHARE").items()}
    declared = {
        "person": person,
        "epsilon": epsilon,
        "register": register,
        "bounds": {column: option.interval(text) for column, text in option.pairs(bounds, "COLUMN=LOW:HIGH").items()},
        "grid": {column: option.number(step) for column, step in option.pairs(grid, "COLUMN=STEP").items()},
        "keys": {column: text.split(",") for column, text in option.pairs(keys, "COLUMN=A,B,...").items()},
        "rows_per_person": rows_per_person,
        "required": required,
        "lookups": {named: option.last_colon(text) for named, text in option.pairs(lookup, "NAME=FILE:KEY").items()},
        "policy": Policy(largest_share=largest_share, quotas=quotas),
        **option.choices(level, menu, default),
    }
    with _opened(ledger, create=True) as db, _working("Reading preferences"):
        table = db.protect(name, source, **declared)
        balance = db.balance(table.register)
    _print(json, render.to_json(table), [*render.table_sheets(table), *render.balance_sheets(balance)])


@app.command()
def refresh(
    name: Annotated[str, typer.Argument(help="A register or a table.")],
    source: Annotated[str, typer.Option(help="Where it is now, if it moved.")] = "",
    ledger: Ledger = Place,
    json: Json = False,
) -> None:
    """Accept that a source changed: differences become individual changes, and spent stays spent.

    Example: discretion refresh people
    """
    with _opened(ledger) as db, _working("Comparing"):
        entry = db.refresh(name, source or None)
    _print(json, render.to_json({"entry": entry}), [Sheet(title=f"Entry {entry}." if entry else "Nothing changed.")])


@app.command()
def query(
    sql: Sql,
    share: Share = 0.1,
    mechanism: Mechanism = "auto",
    assume: Assume = "",
    expect: Expect = "",
    with_interval: Interval = False,
    partial: Partial = False,
    analyst: Analyst = "",
    ledger: Ledger = Place,
    json: Json = False,
) -> None:
    """Answer a question; charged before a row is read, free if the same was asked before.

    Example: discretion query "SELECT region, AVG(age) FROM patients GROUP BY region" --share 0.2
    """
    with _opened(ledger, analyst=analyst or _user()) as db, _working("Answering"):
        release = db.sql(
            sql,
            share=share,
            mechanism=mechanism,
            assume=option.assumption(assume),
            expect=option.interval(expect) if expect else None,
            with_interval=with_interval,
            partial=partial,
        )
    _print(json, render.release_json(release), render.release_sheets(release))


@app.command()
def explain(
    sql: Sql,
    share: Share = 0.1,
    mechanism: Mechanism = "auto",
    assume: Assume = "",
    expect: Expect = "",
    with_interval: Interval = False,
    partial: Partial = False,
    ledger: Ledger = Place,
    json: Json = False,
) -> None:
    """Show what a question would cost whom and how good the answer would be. Free.

    Example: discretion explain "SELECT MEDIAN(age) FROM patients" --assume independent
    """
    with _opened(ledger) as db, _working("Planning"):
        plan = db.explain(
            sql,
            share=share,
            mechanism=mechanism,
            assume=option.assumption(assume),
            expect=option.interval(expect) if expect else None,
            with_interval=with_interval,
            partial=partial,
        )
    _print(json, render.plan_json(plan), render.plan_sheets(plan))


@app.command()
def balance(
    register: Annotated[str, typer.Argument(help="One register; all of them if left out.")] = "",
    ledger: Ledger = Place,
    json: Json = False,
) -> None:
    """Show what each level has spent and has left.

    Example: discretion balance
    """
    with _opened(ledger) as db:
        found = db.balance(register)
    _print(json, render.to_json(found), render.balance_sheets(found))


@app.command()
def receipt(
    person: Annotated[str, typer.Argument(help="The person, as the register names them.")],
    register: Register = "",
    ledger: Ledger = Place,
    json: Json = False,
) -> None:
    """Show one person what they were promised and what was spent on what.

    Example: discretion receipt 17
    """
    with _opened(ledger) as db:
        found = db.receipt(person, register=register)
    _print(json, render.to_json(found), render.receipt_sheets(found))


@app.command()
def history(ledger: Ledger = Place, json: Json = False) -> None:
    """Show every entry of the ledger.

    Example: discretion history --json
    """
    with _opened(ledger) as db:
        found, head = db.history(), db.head()
    _print(json, render.to_json(found), [*render.history_sheets(found), Sheet(title=f"head {head}")])


@app.command()
def prefer(
    person: Annotated[str, typer.Argument(help="The person, as the register names them.")],
    epsilon: Annotated[str, typer.Argument(help="What they choose now, a number or a level; 0 withdraws.")],
    register: Register = "",
    ledger: Ledger = Place,
    json: Json = False,
) -> None:
    """Record that somebody chose anew. What is spent stays spent.

    Example: discretion prefer 17 0.2
    """
    with _opened(ledger) as db:
        entry = db.prefer(person, epsilon, register=register)
    _print(json, render.to_json({"entry": entry}), [Sheet(title=f"Entry {entry}.")])


@audits.command("ledger")
def audit_the_ledger(
    head: Annotated[str, typer.Option(help="One printed earlier: an older copy put back will show.")] = "",
    ledger: Ledger = Place,
    json: Json = False,
) -> None:
    """Add every balance up again from the entries, and check their seals. Exit code 4 if anything is wrong.

    Example: discretion audit ledger --head 12:9f3c...
    """
    with _working("Auditing"):
        found = audit_ledger(ledger, head=head or None)
    _print(json, render.to_json(found), render.audit_sheets(found))
    raise typer.Exit(0 if found.passed else FAILED)


@attacks.command("idp")
def attack_individual(
    epsilon: Annotated[float, typer.Option(help="Over all queries together.", min=0.001)] = 0.01,
    people: Annotated[int, typer.Option(help="How many have a secret bit.", min=2)] = 101,
    seed: Annotated[int, typer.Option(help="Of the invented data and the noise.")] = 1,
    plot: Annotated[Path | None, typer.Option(help="Where to draw it (needs Matplotlib).")] = None,
    json: Json = False,
) -> None:
    """Read a secret column off answers under model `individual`, then try the same on differential privacy.

    Example: discretion attack idp --epsilon 0.01 --plot attack.png
    """
    with _working("Attacking"):
        found = attack_idp(epsilon=epsilon, people=people, seed=seed)
    if plot is not None:
        draw(found, plot)
    _print(json, render.to_json([asdict(row) for row in found]), render.attack_sheets(found))


@app.command()
def demo(
    output: Annotated[Path, typer.Option(help="Where to write the clinic and the plot.")] = Path("demo-output"),
) -> None:
    """Invent a clinic, protect it, ask four questions, and draw how accurate the answers are.

    Example: discretion demo --output /tmp/clinic
    """
    demonstrate(output, Console())


@app.command()
def reproduce(
    ids: Annotated[list[str], typer.Argument(metavar="[ID]...", help="Which figures; all if left out.")] = [],  # noqa: B006
    listed: Annotated[bool, typer.Option("--list", help="Only say which there are.")] = False,
    runs: Annotated[int | None, typer.Option(help="How often each experiment is repeated.", min=2)] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Few runs: all figures in some minutes.")] = False,
    out: Annotated[Path, typer.Option(help="Where to write data, plots and verdicts.")] = Path("reproduced"),
    seed: Annotated[int, typer.Option(help="Of the invented data and the noise.")] = 0,
    data: Annotated[Path | None, typer.Option(help="A census extract or a user-item file.")] = None,
    page: Annotated[Path | None, typer.Option(help="A Markdown page to fill with verdicts and plots.")] = None,
    processes: Annotated[int, typer.Option(help="How many to compute at once.", min=1)] = 2,
    json: Json = False,
) -> None:
    """Compute the papers' figures and say, claim by claim, what reproduces.

    Example: discretion reproduce pdp-1a --runs 200 --out figures
    """
    papers = import_module("discretion.papers.command")  # every experiment: too much to load for other commands
    jobs = papers.plan(ids, runs=runs, quick=quick, seed=seed, data=data)
    found = papers.catalogue(jobs) if listed else papers.run(jobs, out, page=page, processes=processes)
    _print(json, render.to_json(found), render.figure_sheets(found))


@contextmanager
def _opened(ledger: str, *, create: bool = False, analyst: str = "") -> Iterator[Connection]:
    if create and "://" not in ledger and not Path(ledger).exists():
        typer.echo(f"New ledger {ledger}.", err=True)
    with connect(ledger, create=create, analyst=analyst) as db:
        yield db


@contextmanager
def _working(text: str) -> Iterator[None]:
    """A spinner with the time, for people who look at a terminal."""
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        progress.add_task(text, total=None)
        yield


def _print(json: bool, text: str, sheets: Sequence[Sheet]) -> None:
    if json:
        typer.echo(text)
    else:
        render.show(sheets, Console())


def _user() -> str:
    try:
        return getuser()
    except (KeyError, OSError):  # a process without a user name
        return ""


def main() -> None:
    """The `discretion` command."""
    app()
