"""The commands of stewards: enrol people, protect tables, and record what people choose."""

from typing import TYPE_CHECKING, Annotated, Any

import discretion as dn
from discretion.cli import option
from discretion.cli.later import Later
from discretion.cli.session import PLACE, opened, show, warn
from discretion.render.sheet import Sheet

if TYPE_CHECKING:
    from discretion.cli import message
    from discretion.render import terminal as screen
else:
    message = Later("discretion.cli.message")
    screen = Later("discretion.render.terminal")


@option.shared(choices=option.choices, reading=option.reading)
def register(
    name: Annotated[str, option.argument("NAME", "What to call these people.")],
    source: option.Source,
    person: Annotated[str, option.option("COLUMN", "The column that names the person.")],
    epsilon: Annotated[str, option.option("COLUMN", "The column with what they chose: a number or a level's name.")],
    *,
    choices: dict[str, Any],
    separate: option.Separate = False,
    reading: dict[str, Any],
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
    with opened(ledger, create=True, copies=copies, steward=True) as db:
        with screen.working("Enrolling people"):
            people = db.register(name, source, person=person, epsilon=epsilon, separate=separate, **choices, **reading)
        warn(db)
    show(json, people)


@option.shared(choices=option.choices, reading=option.reading)
def protect(
    name: Annotated[str, option.argument("NAME", "What analysts call the table.")],
    source: option.Source,
    person: Annotated[str, option.option("COLUMN", "The column that says whose row it is.")] = "",
    epsilon: Annotated[
        str, option.option("COLUMN", "The column with what each person chose. The table is then its own register.")
    ] = "",
    register: Annotated[
        str, option.option("NAME", "People enrolled before with `discretion register`, instead of --epsilon.")
    ] = "",
    bounds: option.Bounds = [],  # noqa: B006  Typer copies it
    grid: option.Grid = [],  # noqa: B006
    keys: option.Keys = [],  # noqa: B006
    rows_per_person: option.Rows = 1,
    required: option.Required = [],  # noqa: B006
    lookup: option.Lookup = [],  # noqa: B006
    public_lookup: option.PublicLookup = [],  # noqa: B006
    *,
    choices: dict[str, Any],
    separate: option.Separate = False,
    largest_share: option.LargestShare = 1.0,
    quota: option.Quota = [],  # noqa: B006
    largest_delta: option.LargestDelta = 0.0,
    allow_float: option.AllowFloat = False,
    allow_individual: option.AllowIndividual = False,
    reading: dict[str, Any],
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
    declared["lookups"] |= {one: (*declared["lookups"].get(one, ()), "public") for one in public_lookup}
    allowed: dict[str, Any] = {"individual": allow_individual, "float_arithmetic": allow_float}
    policy = dn.Policy(largest_share=largest_share, quotas=dict(quota), largest_delta=largest_delta, **allowed)
    declared |= {**choices, "separate": separate}
    with opened(ledger, create=True, copies=copies, steward=True) as db:
        with screen.working("Reading preferences"):
            table = db.protect(name, source, rows_per_person=rows_per_person, policy=policy, **declared, **reading)
        balance, warnings = db.balance(table.register), [] if not json else list(db.warnings())
        if not json:
            warn(db)
    show(json, {**table.to_dict(), "warnings": warnings}, [*table.sheets(), *balance.sheets()])


@option.shared(reading=option.reading)
def refresh(
    name: Annotated[str, option.argument("NAME", "A register or a table.")],
    source: Annotated[str, option.option("SOURCE", "Its new place, if it moved.")] = "",
    *,
    reading: dict[str, Any],
    copies: option.Copies = None,
    ledger: option.Ledger = PLACE,
    json: option.Json = False,
) -> None:
    """Admit the current content of a source.

    Each new choice is recorded as a change of one person. What is spent stays spent.

    \b
    Example:
      discretion refresh people
    """
    with opened(ledger, copies=copies, steward=True) as db:
        with screen.working("Comparing"):
            entry = db.refresh(name, source or None, **reading)
        history, warnings = db.history(), list(db.warnings()) if json else []
        if not json:
            warn(db)
    show(json, {"entry": entry, "warnings": warnings}, message.refreshed(entry, history))


def prefer(
    person: option.Person,
    epsilon: Annotated[
        str, option.argument("EPSILON", "What they choose now: a number, or a level's name; 0 withdraws.")
    ],
    register: option.Register = "",
    ledger: option.Ledger = PLACE,
    json: option.Json = False,
) -> None:
    """Record a person's new choice. What is spent stays spent.

    \b
    Example:
      discretion prefer 17 0.2
    """
    with opened(ledger) as db:
        entry = db.prefer(person, epsilon, register=register)
        found = db.receipt(person, register=register)
    show(json, {"entry": entry}, message.chosen(entry, found))


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
    with opened(ledger) as db:
        entry = db.join(person, epsilon, register=register)
        found = db.receipt(person, register=register)
    show(json, {"entry": entry}, message.chosen(entry, found))


def resume(
    register: Annotated[
        str, option.argument("REGISTER", "The register that was stopped; may be left out if there is only one.")
    ] = "",
    ledger: option.Ledger = PLACE,
    json: option.Json = False,
) -> None:
    """Allow questions again after one failed. First find out why it failed.

    \b
    Example:
      discretion resume patients
    """
    with opened(ledger) as db:
        entry, found = db.resume(register), db.stops()
    show(json, {"entry": entry}, message.resumed(entry, found))


def notices(ledger: option.Ledger = PLACE, json: option.Json = False) -> None:
    """Show which entries an earlier version answered wrongly.

    \b
    Example:
      discretion notices
    """
    with opened(ledger) as db:
        found = db.notices()
    show(json, found, [Sheet(title="Notices"), *found.sheets()])
