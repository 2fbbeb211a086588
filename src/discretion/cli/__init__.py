"""The command line: commands only. Exit codes: 0 answered, 2 refused or wrong usage, 3 budget, 4 engine or ledger."""

import sys
from io import TextIOWrapper
from typing import Any

import typer
from typer.core import TyperGroup

from discretion.cli import analyst, check, option, peer, serve, steward
from discretion.errors import DiscretionError, InvalidDeclaration, QueryRefused
from discretion.render.sheet import to_json


class Commands(TyperGroup):
    """Turns whatever discretion refuses into a message and an exit code, in one place."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except (PermissionError, FileNotFoundError, FileExistsError, NotADirectoryError, IsADirectoryError) as failure:
            refusal: DiscretionError = InvalidDeclaration(f"Cannot use {failure.filename!r}: {failure.strerror}.")
        except DiscretionError as told:
            refusal = told
        place = refusal if isinstance(refusal, QueryRefused) and refusal.line is not None else None
        if ctx.meta.get("json"):
            found = {"error": type(refusal).__name__, "message": str(refusal)}
            typer.echo(to_json(found | ({"line": place.line, "column": place.column} if place else {})))
        else:
            typer.secho(f"{type(refusal).__name__}: ", err=True, nl=False, fg="red", bold=True)
            typer.echo(refusal, err=True)
            if place:
                typer.echo(f"line {place.line}, column {place.column}:\n{place.excerpt}", err=True)
        raise typer.Exit(refusal.exit_code)


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    rich_markup_mode=None,  # help is plain text: it is read in pipes and pagers, too, and examples can be copied
    pretty_exceptions_enable=False,  # they could show what is in memory
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def about(version: option.Version = False) -> None:
    """Answer questions about people so that each of them gets the privacy they chose.

    Begin with `discretion demo`, or with a file of your own:

    \b
      discretion protect patients patients.parquet --person patient_id \\
          --epsilon epsilon --bounds age=0:120
      discretion query "SELECT AVG(age) FROM patients"
    """


COMMANDS = (  # in the order that help shows them
    *(check.demo, steward.protect, steward.register, steward.refresh),
    *(analyst.tables, analyst.explain, analyst.query, analyst.balance, analyst.receipt, analyst.history),
    *(steward.prefer, steward.join, steward.resume, steward.notices, check.restore),
    *(serve.serve, serve.invite, check.reproduce),
)
GROUPS = {"audit": check.audits, "member": serve.members, "peer": peer.app, "attack": check.attacks}
for command in COMMANDS:
    app.command()(command)
for name, group in GROUPS.items():
    app.add_typer(group, name=name)


def _forgive_signs() -> None:
    """Print ? for a sign that the output cannot take: an answer that was paid for must not be lost to a ±."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")


def main() -> None:
    """The `discretion` command."""
    _forgive_signs()
    app()
