"""Session: what commands have in common: they open a ledger, and print what they found."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

import discretion as dn
from discretion.cli import option
from discretion.cli.later import Later
from discretion.render.sheet import Sheet, to_json

if TYPE_CHECKING:
    from discretion.render import terminal as screen
else:
    screen = Later("discretion.render.terminal")

PLACE = "ledger.discretion"
SERVICE = ("http://", "https://")


@contextmanager
def opened(ledger: str, *, create: bool = False, steward: bool = False, **how: Any) -> "Iterator[dn.Connection]":
    """Open a ledger or a service; tell its steward, on stderr, what they should know about it."""
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
            answers = "1 wrong answer" if len(wrong) == 1 else f"{len(wrong):,} wrong answers"
            typer.echo(
                f"An earlier version gave {answers}: {entries}. Run `discretion notices`, "
                "and read docs/known-vulnerabilities.md.",
                err=True,
            )
        yield db


def warn(db: "dn.Connection") -> None:
    """Tell the steward what seems wrong; it depends on rows, so it is written nowhere else."""
    for warning in db.warnings():
        typer.echo(f"Warning: {warning['text']}", err=True)


def show(json: bool, content: Any, sheets: Sequence[Sheet] | None = None) -> None:
    """Print JSON for programs, or sheets for people: those that `content` has unless others are given."""
    if json:
        typer.echo(to_json(content))
    else:
        screen.show(content.sheets() if sheets is None else sheets, screen.terminal())
