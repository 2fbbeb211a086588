"""The commands of analysts, and of people: ask, and see what can be asked, what it costs and what was spent."""

from typing import TYPE_CHECKING, Annotated, Any

from discretion.cli import option
from discretion.cli.later import Later
from discretion.cli.session import PLACE, opened, show
from discretion.render.sheet import Sheet

if TYPE_CHECKING:
    from discretion.cli import message
    from discretion.cli import output as files
    from discretion.render import terminal as screen
else:
    files = Later("discretion.cli.output")
    message = Later("discretion.cli.message")
    screen = Later("discretion.render.terminal")


@option.shared(question=option.question)
def query(
    question: dict[str, Any],
    output: option.AnswerFile = None,
    format: option.Format = "",
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
      discretion query -f question.sql --param oldest=65 --output answer.csv
    """
    form = files.format_of(output, format) if output or format else ""
    with (
        opened(ledger, analyst=analyst or option.user(), answer_every=answer_every) as db,
        screen.working("Answering"),
    ):
        release = db.sql(**question)
    if form:
        files.write(release, output, form)
    if output or not form:
        show(json, release)


@option.shared(question=option.question)
def explain(
    question: dict[str, Any],
    ledger: option.Ledger = PLACE,
    json: option.Json = False,
) -> None:
    """Show what a question would cost and how good it would be. Free.

    \b
    Example:
      discretion explain --assume independent "SELECT MEDIAN(age) FROM patients"
    """
    with opened(ledger) as db, screen.working("Planning"):
        plan = db.explain(**question)
    show(json, plan)


def tables(ledger: option.Ledger = PLACE, json: option.Json = False) -> None:
    """Show what can be asked about: tables, columns, bounds, keys.

    \b
    Example:
      discretion tables
    """
    with opened(ledger) as db:
        found = db.tables()
    show(json, list(found), message.tables(found))


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
    with opened(ledger) as db:
        found = db.balance(register)
    show(json, found)


def history(ledger: option.Ledger = PLACE, json: option.Json = False) -> None:
    """Show every entry of the ledger, and the head of its chain.

    \b
    Example:
      discretion history --json
    """
    with opened(ledger) as db:
        found, head = db.history(), db.head()
    show(json, found, [*found.sheets(), Sheet(title=f"head {head}")])


def receipt(
    person: option.Person, register: option.Register = "", ledger: option.Ledger = PLACE, json: option.Json = False
) -> None:
    """Show one person what was promised and what was spent on what.

    \b
    Example:
      discretion receipt 17
    """
    with opened(ledger) as db:
        found = db.receipt(person, register=register)
    show(json, found)
