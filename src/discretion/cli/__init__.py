"""The command line: commands only. Exit codes: 0 answered, 2 refused or wrong usage, 3 budget, 4 engine or ledger."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

import discretion as dn
from discretion.cli import option, serve
from discretion.cli.later import Later
from discretion.cli.peer import app as peers
from discretion.errors import DiscretionError, InvalidDeclaration, LedgerCorrupt
from discretion.render.sheet import Sheet, to_json

if TYPE_CHECKING:
    from discretion.cli import demo as demonstration
    from discretion.cli import message, research
    from discretion.ledger import audit as auditing
    from discretion.ledger import restore as restoring
    from discretion.papers import attack as attacking
    from discretion.papers import command as papers
    from discretion.render import terminal as screen
else:
    attacking = Later("discretion.papers.attack")
    auditing = Later("discretion.ledger.audit")
    demonstration = Later("discretion.cli.demo")
    message = Later("discretion.cli.message")
    papers = Later("discretion.papers.command")
    research = Later("discretion.cli.research")
    restoring = Later("discretion.ledger.restore")
    screen = Later("discretion.render.terminal")

PLACE, SERVICE = serve.PLACE, serve.SERVICE


class Commands(TyperGroup):
    """Turns whatever discretion refuses into a message and an exit code, in one place."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except (PermissionError, FileNotFoundError, FileExistsError, NotADirectoryError, IsADirectoryError) as failure:
            refusal: DiscretionError = InvalidDeclaration(f"Cannot use {failure.filename!r}: {failure.strerror}.")
        except DiscretionError as told:
            refusal = told
        if ctx.meta.get("json"):
            typer.echo(to_json({"error": type(refusal).__name__, "message": str(refusal)}))
        else:
            typer.secho(f"{type(refusal).__name__}: ", err=True, nl=False, fg="red", bold=True)
            typer.echo(refusal, err=True)
        raise typer.Exit(refusal.exit_code)


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    rich_markup_mode=None,  # help is plain text: it is read in pipes and pagers, too, and examples can be copied
    pretty_exceptions_enable=False,  # they could show what is in memory
    context_settings={"help_option_names": ["-h", "--help"]},
)
audits = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Check that promises were kept.")
app.add_typer(audits, name="audit")
app.add_typer(peers, name="peer")
app.add_typer(serve.members, name="member")
app.command()(serve.serve)
app.command()(serve.invite)
attacks = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Show why some promises are fenced off.")
app.add_typer(attacks, name="attack")


@app.callback()
def about(version: option.Version = False) -> None:
    """Answer questions about people so that each of them gets the privacy they chose.

    Begin with `discretion demo`, or with a file of your own:

    \b
      discretion protect patients patients.parquet --person patient_id \\
          --epsilon epsilon --bounds age=0:120
      discretion query "SELECT AVG(age) FROM patients"
    """


@app.command()
def register(
    name: Annotated[str, option.argument("NAME", "What to call these people.")],
    source: option.Source,
    person: Annotated[str, option.option("COLUMN", "The column that names the person.")],
    epsilon: Annotated[str, option.option("COLUMN", "The column with what they chose: a number or a level's name.")],
    level: option.Level = [],  # noqa: B006  Typer copies it
    menu: option.Menu = None,
    default: option.Default = "",
    separate: option.Separate = False,
    delimiter: option.Delimiter = "",
    encoding: option.Encoding = "",
    decimal: option.Decimal = "",
    null: option.Null = [],  # noqa: B006
    sheet: option.Sheet = "",
    types: option.Types = [],  # noqa: B006
    copies: option.Copies = None,
    ledger: option.Ledger = PLACE,
    json: option.Json = False,
) -> None:
    """Enrol people and the privacy they chose.

    Several tables can share them, and so one allowance per person.

    \b
    Example:
      discretion register people people.csv --person id --epsilon privacy \\
          --level strict=0.1 --level open=1
    """
    choices = option.choices(level, menu, default)
    reading = option.reading(
        delimiter=delimiter, encoding=encoding, decimal=decimal, null=null, sheet=sheet, types=types
    )
    with _opened(ledger, create=True, copies=copies, steward=True) as db:
        with screen.working("Enrolling people"):
            people = db.register(name, source, person=person, epsilon=epsilon, separate=separate, **choices, **reading)
        _warn(db)
    _print(json, people)


@app.command()
def protect(
    name: Annotated[str, option.argument("NAME", "What analysts call the table.")],
    source: option.Source,
    person: Annotated[str, option.option("COLUMN", "Whose row each row is.")] = "",
    epsilon: Annotated[str, option.option("COLUMN", "What each person chose: the table is its own register.")] = "",
    register: Annotated[str, option.option("NAME", "People enrolled before, instead of --epsilon.")] = "",
    bounds: option.Bounds = [],  # noqa: B006
    grid: option.Grid = [],  # noqa: B006
    keys: option.Keys = [],  # noqa: B006
    rows_per_person: option.Rows = 1,
    required: option.Required = [],  # noqa: B006
    lookup: option.Lookup = [],  # noqa: B006
    level: option.Level = [],  # noqa: B006
    menu: option.Menu = None,
    default: option.Default = "",
    separate: option.Separate = False,
    largest_share: option.LargestShare = 1.0,
    quota: option.Quota = [],  # noqa: B006
    largest_delta: option.LargestDelta = 0.0,
    allow_float: option.AllowFloat = False,
    allow_individual: option.AllowIndividual = False,
    delimiter: option.Delimiter = "",
    encoding: option.Encoding = "",
    decimal: option.Decimal = "",
    null: option.Null = [],  # noqa: B006
    sheet: option.Sheet = "",
    types: option.Types = [],  # noqa: B006
    copies: option.Copies = None,
    ledger: option.Ledger = PLACE,
    json: option.Json = False,
) -> None:
    """Let analysts ask about a table, and show what becomes public.

    \b
    Examples:
      discretion protect patients patients.parquet --person patient_id \\
          --epsilon epsilon --bounds age=0:120 --keys region=N,S
      discretion protect visits visits.parquet --person patient_id \\
          --register people --rows-per-person 10
    """
    declared: dict[str, Any] = {"person": person, "epsilon": epsilon, "register": register, "required": required}
    declared |= {"bounds": dict(bounds), "grid": dict(grid), "keys": dict(keys), "lookups": dict(lookup)}
    allowed: dict[str, Any] = {"individual": allow_individual, "float_arithmetic": allow_float}
    policy = dn.Policy(largest_share=largest_share, quotas=dict(quota), largest_delta=largest_delta, **allowed)
    declared |= {**option.choices(level, menu, default), "separate": separate}
    reading = option.reading(
        delimiter=delimiter, encoding=encoding, decimal=decimal, null=null, sheet=sheet, types=types
    )
    with _opened(ledger, create=True, copies=copies, steward=True) as db:
        with screen.working("Reading preferences"):
            table = db.protect(name, source, rows_per_person=rows_per_person, policy=policy, **declared, **reading)
        balance, warnings = db.balance(table.register), [] if not json else list(db.warnings())
        if not json:
            _warn(db)
    _print(json, {**table.to_dict(), "warnings": warnings}, [*table.sheets(), *balance.sheets()])


@app.command()
def refresh(
    name: Annotated[str, option.argument("NAME", "A register or a table.")],
    source: Annotated[str, option.option("SOURCE", "Where it is now, if it moved.")] = "",
    delimiter: option.Delimiter = "",
    encoding: option.Encoding = "",
    decimal: option.Decimal = "",
    null: option.Null = [],  # noqa: B006
    sheet: option.Sheet = "",
    types: option.Types = [],  # noqa: B006
    copies: option.Copies = None,
    ledger: option.Ledger = PLACE,
    json: option.Json = False,
) -> None:
    """Admit the state a source is in now.

    Every difference becomes an individual change; what is spent stays spent.

    \b
    Example:
      discretion refresh people
    """
    reading = option.reading(
        delimiter=delimiter, encoding=encoding, decimal=decimal, null=null, sheet=sheet, types=types
    )
    with _opened(ledger, copies=copies, steward=True) as db:
        with screen.working("Comparing"):
            entry = db.refresh(name, source or None, **reading)
        history, warnings = db.history(), list(db.warnings()) if json else []
        if not json:
            _warn(db)
    _print(json, {"entry": entry, "warnings": warnings}, message.refreshed(entry, history))


@app.command()
def notices(ledger: option.Ledger = PLACE, json: option.Json = False) -> None:
    """Show which entries an earlier version answered wrongly.

    \b
    Example:
      discretion notices
    """
    with _opened(ledger) as db:
        found = db.notices()
    _print(json, found, [Sheet(title="Notices"), *found.sheets()])


@app.command()
def query(
    sql: option.Sql,
    share: option.Share = 0.1,
    mechanism: option.Mechanism = "auto",
    assume: option.Assume = None,
    expect: option.Expect = None,
    interval: option.Interval = False,
    partial: option.Partial = False,
    analyst: option.Analyst = "",
    answer_every: option.AnswerEvery = 0.0,
    ledger: option.Ledger = PLACE,
    json: option.Json = False,
) -> None:
    """Answer a question.

    Charged before a row is read; free if the same was asked before.

    \b
    Example:
      discretion query --share 0.2 \\
          "SELECT region, AVG(age) FROM patients GROUP BY region"
    """
    with (
        _opened(ledger, analyst=analyst or option.user(), answer_every=answer_every) as db,
        screen.working("Answering"),
    ):
        release = db.sql(
            sql, share=share, mechanism=mechanism, assume=assume, expect=expect, with_interval=interval, partial=partial
        )
    _print(json, release)


@app.command()
def explain(
    sql: option.Sql,
    share: option.Share = 0.1,
    mechanism: option.Mechanism = "auto",
    assume: option.Assume = None,
    expect: option.Expect = None,
    interval: option.Interval = False,
    partial: option.Partial = False,
    ledger: option.Ledger = PLACE,
    json: option.Json = False,
) -> None:
    """Show what a question would cost and how good it would be. Free.

    \b
    Example:
      discretion explain --assume independent "SELECT MEDIAN(age) FROM patients"
    """
    with _opened(ledger) as db, screen.working("Planning"):
        plan = db.explain(
            sql, share=share, mechanism=mechanism, assume=assume, expect=expect, with_interval=interval, partial=partial
        )
    _print(json, plan)


@app.command()
def tables(ledger: option.Ledger = PLACE, json: option.Json = False) -> None:
    """Show what can be asked about: tables, columns, bounds, keys.

    \b
    Example:
      discretion tables
    """
    with _opened(ledger) as db:
        found = db.tables()
    _print(json, list(found), message.tables(found))


@app.command()
def balance(
    register: Annotated[str, option.argument("REGISTER", "One register; all of them if left out.")] = "",
    ledger: option.Ledger = PLACE,
    json: option.Json = False,
) -> None:
    """Show what each level has spent and has left.

    \b
    Example:
      discretion balance
    """
    with _opened(ledger) as db:
        found = db.balance(register)
    _print(json, found)


@app.command()
def receipt(
    person: option.Person, register: option.Register = "", ledger: option.Ledger = PLACE, json: option.Json = False
) -> None:
    """Show one person what was promised and what was spent on what.

    \b
    Example:
      discretion receipt 17
    """
    with _opened(ledger) as db:
        found = db.receipt(person, register=register)
    _print(json, found)


@app.command()
def history(ledger: option.Ledger = PLACE, json: option.Json = False) -> None:
    """Show every entry of the ledger, and the head of its chain.

    \b
    Example:
      discretion history --json
    """
    with _opened(ledger) as db:
        found, head = db.history(), db.head()
    _print(json, found, [*found.sheets(), Sheet(title=f"head {head}")])


@app.command()
def prefer(
    person: option.Person,
    epsilon: Annotated[
        str, option.argument("EPSILON", "What they choose now: a number, or a level's name; 0 withdraws.")
    ],
    register: option.Register = "",
    ledger: option.Ledger = PLACE,
    json: option.Json = False,
) -> None:
    """Record that somebody chose anew. What is spent stays spent.

    \b
    Example:
      discretion prefer 17 0.2
    """
    with _opened(ledger) as db:
        entry = db.prefer(person, epsilon, register=register)
        found = db.receipt(person, register=register)
    _print(json, {"entry": entry}, message.chosen(entry, found))


@app.command()
def restore(
    copy: Annotated[str, option.option("FILE", "The copy; leave it out if it is in place already.")] = "",
    head: Annotated[str, option.option("HEAD", "The last head that anybody has kept.")] = "",
    witness: option.Witness = [],  # noqa: B006
    unknown: Annotated[bool, option.flag("--unknown", "Neither a head nor an entry is known: do not ask.")] = False,
    ledger: option.Ledger = PLACE,
    json: option.Json = False,
) -> None:
    """Put a copy of the ledger back, and record what it does not know.

    Everything charged after the copy was made is forgotten. The more heads and
    entries of released answers you give, the more of that is on record.

    \b
    Example:
      discretion restore --copy backup.discretion --head 12:9f3c...
    """
    if ledger.startswith(SERVICE):
        raise InvalidDeclaration("A service cannot be restored from afar. Run this where its ledger is.")
    if not (head or witness or unknown):
        known = typer.prompt("Last known head, or entries of released answers (nothing if unknown)", default="").split()
        head = next((one for one in known if ":" in one), "")
        witness = [one for one in known if ":" not in one]
    found = restoring.restore(ledger, copy=copy, head=head, witnesses=witness)
    _print(json, asdict(found), [Sheet(title=str(found))])


@app.command()
def join(
    person: option.Person,
    epsilon: Annotated[str, option.argument("EPSILON", "What they choose: a number, or a level's name.")],
    register: option.Register = "",
    ledger: option.Ledger = PLACE,
    json: option.Json = False,
) -> None:
    """Add somebody who is not in the source of a register.

    \b
    Example:
      discretion join 2001 0.5 --register people
    """
    with _opened(ledger) as db:
        entry = db.join(person, epsilon, register=register)
        found = db.receipt(person, register=register)
    _print(json, {"entry": entry}, message.chosen(entry, found))


@app.command()
def resume(
    register: Annotated[str, option.argument("REGISTER", "May be left out if there is one.")] = "",
    ledger: option.Ledger = PLACE,
    json: option.Json = False,
) -> None:
    """Allow questions again after one failed. Find out first why it did.

    \b
    Example:
      discretion resume patients
    """
    with _opened(ledger) as db:
        entry, found = db.resume(register), db.stops()
    _print(json, {"entry": entry}, message.resumed(entry, found))


@audits.command("ledger")
def audit_the_ledger(
    head: Annotated[str, option.option("HEAD", "One printed earlier: an older copy put back will show.")] = "",
    witness: option.Witness = [],  # noqa: B006
    migrate: Annotated[bool, option.flag("--migrate", "First bring a ledger of an older version up to date.")] = False,
    ledger: option.Ledger = PLACE,
    json: option.Json = False,
) -> None:
    """Add every balance up again from the entries, and check their seals.

    The exit code is 4 if anything is wrong.

    \b
    Example:
      discretion audit ledger --head 12:9f3c... --witness 7-0a1b2c3d4e5f
    """
    with screen.working("Auditing"):
        if ledger.startswith(SERVICE):
            if migrate:
                raise InvalidDeclaration("A service cannot be migrated from afar. Run this where its ledger is.")
            with _opened(ledger) as db:
                found = db.audit(head=head, witnesses=witness)
        else:
            found = auditing.audit_ledger(ledger, head=head or None, witnesses=witness, migrate=migrate)
    _print(json, found)
    raise typer.Exit(0 if found.passed else LedgerCorrupt.exit_code)


@attacks.command("idp")
def attack_individual(
    epsilon: Annotated[float, typer.Option(metavar="EPSILON", help="Over all queries together.", min=0.001)] = 0.01,
    people: Annotated[int, typer.Option(metavar="N", help="How many have a secret bit.", min=2)] = 101,
    seed: option.Seed = 1,
    plot: Annotated[Path | None, typer.Option(metavar="FILE", help="Where to draw it (needs Matplotlib).")] = None,
    json: option.Json = False,
) -> None:
    """Read a secret column off answers under model `individual`.

    Then try the same on differential privacy.

    \b
    Example:
      discretion attack idp --epsilon 0.01 --plot attack.png
    """
    with screen.working("Attacking"):
        found = attacking.attack_idp(epsilon=epsilon, people=people, seed=seed)
    if plot is not None:
        attacking.draw(found, plot)
    _print(json, [asdict(row) for row in found], research.attack_sheets(found))


@app.command()
def demo(output: option.Output = Path("demo-output")) -> None:
    """Invent a clinic, protect it and ask it four questions.

    It also draws how accurate the mechanisms are.

    \b
    Example:
      discretion demo --output clinic
    """
    demonstration.demonstrate(output, screen.terminal())


@app.command()
def reproduce(
    ids: Annotated[list[str], option.argument("ID", "Which figures; all if left out.")] = [],  # noqa: B006
    listed: Annotated[bool, typer.Option("--list", help="Only say which there are.")] = False,
    runs: Annotated[int | None, typer.Option(metavar="N", help="How often each is repeated.", min=2)] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Few runs: all figures in some minutes.")] = False,
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="For data, plots and verdicts.")] = Path("reproduced"),
    seed: option.Seed = 0,
    data: Annotated[Path | None, typer.Option(metavar="FILE", help="A census extract or a user-item file.")] = None,
    page: Annotated[Path | None, typer.Option(metavar="FILE", help="A Markdown page to fill with them.")] = None,
    processes: Annotated[int, typer.Option(metavar="N", help="How many to compute at once.", min=1)] = 2,
    json: option.Json = False,
) -> None:
    """Compute the papers' figures and say what reproduces.

    \b
    Example:
      discretion reproduce pdp-1a --runs 200 --out figures
    """
    jobs = papers.plan(ids, runs=runs, quick=quick, seed=seed, data=data)
    found = papers.catalogue(jobs) if listed else papers.run(jobs, out, page=page, processes=processes)
    _print(json, found, research.figure_sheets(found))


@contextmanager
def _opened(ledger: str, *, create: bool = False, steward: bool = False, **how: Any) -> "Iterator[dn.Connection]":
    new = create and "://" not in ledger and not Path(ledger).exists()
    if ledger.startswith(SERVICE):  # the service knows who asks, when it answers and where copies are
        create, how = False, {"token": option.token()}
    with dn.connect(ledger, create=create, **how) as db:
        if new:
            typer.echo(f"New ledger {ledger}.", err=True)
        for caution in db.cautions() if steward else ():
            typer.echo(f"Caution: {caution}", err=True)
        if steward and (wrong := db.notices()):
            entries = ", ".join(notice["entry"] for notice in wrong)
            typer.echo(
                f"An earlier version answered {len(wrong):,} question(s) wrongly: {entries}. Run `discretion notices`, "
                "and read docs/known-vulnerabilities.md.",
                err=True,
            )
        yield db


def _warn(db: "dn.Connection") -> None:
    """Tell the steward what seems wrong; it depends on rows, so it is written nowhere else."""
    for warning in db.warnings():
        typer.echo(f"Warning: {warning['text']}", err=True)


def _print(json: bool, content: Any, sheets: Sequence[Sheet] | None = None) -> None:
    """Print JSON for programs, or sheets for people: those that `content` has unless others are given."""
    if json:
        typer.echo(to_json(content))
    else:
        screen.show(content.sheets() if sheets is None else sheets, screen.terminal())


def _forgive_signs() -> None:
    """Print ? for a sign that the output cannot take: an answer that was paid for must not be lost to a ±."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")


def main() -> None:
    """The `discretion` command."""
    _forgive_signs()
    app()
