"""The commands that check a promise: audit or restore a ledger, attack, demonstrate, reproduce the papers."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from discretion.cli import option, typed
from discretion.cli.later import Later
from discretion.cli.session import PLACE, SERVICE, opened, show
from discretion.errors import InvalidDeclaration, LedgerCorrupt
from discretion.render.sheet import Sheet

if TYPE_CHECKING:
    from discretion.cli import demo as demonstration
    from discretion.cli import research
    from discretion.ledger import audit as auditing
    from discretion.ledger import restore as restoring
    from discretion.papers import attack as attacking
    from discretion.papers import command as papers
    from discretion.render import terminal as screen
else:
    attacking = Later("discretion.papers.attack")
    auditing = Later("discretion.ledger.audit")
    demonstration = Later("discretion.cli.demo")
    papers = Later("discretion.papers.command")
    research = Later("discretion.cli.research")
    restoring = Later("discretion.ledger.restore")
    screen = Later("discretion.render.terminal")

audits = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Check that promises were kept.")
attacks = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Show why model `individual` is not differential privacy."
)


@audits.command("ledger")
def audit_the_ledger(
    head: Annotated[
        str,
        option.option("HEAD", "A head that was printed earlier: it shows if an older copy of the ledger was put back."),
    ] = "",
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
            with opened(ledger) as db:
                found = db.audit(head=head, witnesses=witness)
        else:
            found = auditing.audit_ledger(ledger, head=head or None, witnesses=witness, migrate=migrate)
    show(json, found)
    raise typer.Exit(0 if found.passed else LedgerCorrupt.exit_code)


def restore(
    copy: Annotated[str, option.option("FILE", "The copy; leave it out if it is in place already.")] = "",
    head: Annotated[str, option.option("HEAD", "The last head that anybody has kept.")] = "",
    witness: option.Witness = [],  # noqa: B006
    unknown: Annotated[bool, option.flag("--unknown", "Neither a head nor an entry is known: do not ask.")] = False,
    ledger: option.Ledger = PLACE,
    json: option.Json = False,
) -> None:
    """Put a copy of the ledger back, and record what the copy lacks.

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
    show(json, asdict(found), [Sheet(title=str(found))])


@attacks.command("idp")
def attack_individual(
    epsilon: Annotated[
        float, typer.Option(metavar="EPSILON", help="Privacy loss of all queries together.", min=0.001)
    ] = 0.01,
    people: Annotated[int, typer.Option(metavar="N", help="Number of people, each with a secret bit.", min=2)] = 101,
    seed: option.Seed = 1,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw the result into this file (needs Matplotlib).")
    ] = None,
    json: option.Json = False,
) -> None:
    """Reconstruct a secret column from answers under model `individual`.

    Then try the same on differential privacy.

    \b
    Example:
      discretion attack idp --epsilon 0.01 --plot attack.png
    """
    with screen.working("Attacking"):
        found = attacking.attack_idp(epsilon=epsilon, people=people, seed=seed)
    if plot is not None:
        attacking.draw(found, plot)
    show(json, [asdict(row) for row in found], research.attack_sheets(found))


def demo(
    output: option.Output = Path("demo-output"),
    serve: Annotated[bool, option.flag("--serve", "Serve the clinic, with a ready link for each role.")] = False,
    port: Annotated[int, option.option("PORT", "Port to listen on, with --serve.", typed.whole)] = 8000,
) -> None:
    """Invent a clinic, protect it and ask it four questions.

    It also draws how accurate the mechanisms are. With --serve, the clinic
    is in a folder that is thrown away, and you look at it in a browser.

    \b
    Examples:
      discretion demo --output clinic
      discretion demo --serve
    """
    if serve:
        demonstration.serve_clinic(screen.terminal(), port)
    else:
        demonstration.demonstrate(output, screen.terminal())


def reproduce(
    ids: Annotated[list[str], option.argument("ID", "The figures; all of them if left out.")] = [],  # noqa: B006
    listed: Annotated[bool, typer.Option("--list", help="Only list the figures.")] = False,
    runs: Annotated[int | None, typer.Option(metavar="N", help="How often each figure is repeated.", min=2)] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Few runs: all figures in some minutes.")] = False,
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder for data, plots and verdicts.")] = Path(
        "reproduced"
    ),
    seed: option.Seed = 0,
    data: Annotated[Path | None, typer.Option(metavar="FILE", help="A census extract or a user-item file.")] = None,
    page: Annotated[Path | None, typer.Option(metavar="FILE", help="A Markdown page to fill with the results.")] = None,
    processes: Annotated[int, typer.Option(metavar="N", help="How many figures to compute at once.", min=1)] = 2,
    resume: Annotated[bool, typer.Option("--resume", help="Keep what was computed before in the same way.")] = False,
    json: option.Json = False,
) -> None:
    """Compute the figures of the papers; say which reproduce.

    \b
    Example:
      discretion reproduce pdp-1a --runs 200 --out figures
    """
    jobs = papers.plan(ids, runs=runs, quick=quick, seed=seed, data=data)
    found = papers.catalogue(jobs) if listed else papers.run(jobs, out, page=page, processes=processes, resume=resume)
    show(json, found, research.figure_sheets(found))
