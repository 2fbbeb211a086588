"""The commands `discretion serve`, `member` and `invite`. This file loads without the extra `serve`."""

import csv
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import discretion as dn
from discretion.cli import option, typed
from discretion.cli.later import Later
from discretion.cli.session import PLACE, SERVICE
from discretion.errors import InvalidDeclaration, require
from discretion.render.sheet import Sheet, to_json

if TYPE_CHECKING:
    from discretion import ledger as ledgers
    from discretion.render import terminal as screen
else:
    ledgers = Later("discretion.ledger")
    screen = Later("discretion.render.terminal")

TOKEN_DAYS, LETTER_DAYS = 90.0, 60.0
HERE = "http://127.0.0.1:8000"

members = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Manage who may use the service.")

Days = Annotated[float, option.option("DAYS", "Days until it expires.", typed.number)]
Url = Annotated[str, option.option("URL", "Address at which people reach the service.", envvar="DISCRETION_URL")]


def load(name: str) -> Any:
    """Import a part that needs the extra, or say how to install it."""
    require("serve", "The service")
    return import_module(f"discretion.service.{name}")


def serve(
    ledger: Annotated[
        str,
        typer.Argument(metavar="PLACE", help="The ledger: a file or a PostgreSQL URL.", envvar="DISCRETION_LEDGER"),
    ] = PLACE,
    place: Annotated[str, typer.Option("--ledger", hidden=True)] = "",  # as the other commands have it
    host: Annotated[str, option.option("ADDRESS", "Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, option.option("PORT", "Port to listen on.", typed.whole)] = 8000,
    tls: Annotated[
        tuple[Path, Path] | None, typer.Option(metavar="CERT KEY", help="Encrypt with this certificate and key.")
    ] = None,
    behind_proxy: Annotated[
        bool, option.flag("--behind-proxy", "A proxy on this machine encrypts; believe the addresses it tells.")
    ] = False,
    url: Url = "",
    data: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", help="Folder of the files that stewards may protect from a browser. Without it, none."
        ),
    ] = None,
    workers: Annotated[int, option.option("N", "Processes that compute questions.", typed.whole)] = 4,
    memory: Annotated[float, option.option("GB", "Memory for the questions of one process.", typed.number)] = 2.0,
    temp: Annotated[
        float, option.option("GB", "Disk space for the temporary files of one process.", typed.number)
    ] = 16.0,
    seconds: Annotated[float, option.option("SECONDS", "The longest a question may take.", typed.number)] = 600.0,
    answer_every: option.AnswerEvery = 1.0,
    copies: option.Copies = None,
    key: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The key that signs sessions; made if it is not there.")
    ] = None,
    oidc: Annotated[
        str, option.option("ISSUER", "An OpenID provider that people sign in with.", envvar="DISCRETION_OIDC")
    ] = "",
    oidc_register: Annotated[str, option.option("NAME", "The register whose people it names.")] = "",
    oidc_claim: Annotated[str, option.option("CLAIM", "The claim that names the person.")] = "sub",
) -> None:
    """Let stewards, analysts and people use a ledger in a browser.

    The service owns the data and the ledger. It prints a link that signs the
    steward in, once.

    \b
    Examples:
      discretion serve clinic.discretion
      discretion serve clinic.discretion --host 0.0.0.0 --tls cert.pem key.pem
    """
    server, house, pool = load("server"), load("house"), load("pool")
    ledger = place or ledger
    if "://" not in ledger and not Path(ledger).exists():
        typer.echo(f"New ledger {ledger}.", err=True)
    with dn.connect(ledger, copies=copies) as db:  # makes a new ledger, and refuses what is not one
        for caution in db.cautions():
            typer.echo(f"Caution: {caution}", err=True)
    settings = house.Settings(
        ledger=ledger,
        url=url,
        data=data,
        copies=None if copies is None else str(copies),
        provider=_provider(oidc, oidc_register, oidc_claim),
        key=key if key is not None or "://" in ledger else Path(f"{ledger}.key"),
        answer_every=answer_every,
        memory=int(memory * (1 << 30)),
        temp=int(temp * (1 << 30)),
        limits=pool.Limits(workers=workers, seconds=seconds),
    )
    server.serve(settings, host=host, port=port, tls=tls, behind_proxy=behind_proxy, tell=typer.echo)


def _provider(issuer: str, register: str, claim: str) -> Any:
    """Return the OpenID provider; the client's secret is in the environment, where others cannot read it."""
    if not issuer:
        return None
    client, secret = (os.environ.get(f"DISCRETION_OIDC_{name}", "") for name in ("CLIENT", "SECRET"))
    if not (client and secret and register):
        raise InvalidDeclaration(
            "An OpenID provider needs --oidc-register, and DISCRETION_OIDC_CLIENT and DISCRETION_OIDC_SECRET in the "
            "environment."
        )
    require("oidc", "Signing in with OpenID")
    return load("oidc").Provider(issuer=issuer, client=client, secret=secret, register=register, claim=claim)


@members.command("add")
def add(
    name: Annotated[str, option.argument("NAME", "Who; this name stands beside their questions.")],
    role: Annotated[str, option.option("ROLE", "steward or analyst.")] = "analyst",
    label: Annotated[str, option.option("TEXT", "What the token is for.")] = "",
    days: Days = TOKEN_DAYS,
    ledger: option.Ledger = PLACE,
    json: option.Json = False,
) -> None:
    """Give somebody a role and a token. A member who has one gets one more token.

    The token is shown once. It is for programs: dn.connect(url, token=...).

    \b
    Example:
      discretion member add ada --role analyst --label notebook
    """
    with _access(ledger) as access:
        if not any(one.name == name and not one.revoked for one in access.members()):
            access.add(name, role)
        token = access.token(name, label=label, lasts=timedelta(days=days))
    if json:
        typer.echo(to_json({"member": name, "token": token}))
    else:
        typer.echo(f"Token of {name}, valid {days:g} days. It is not shown again:\n{token}")


@members.command("list")
def listed(ledger: option.Ledger = PLACE, json: option.Json = False) -> None:
    """Show every member and token.

    \b
    Example:
      discretion member list
    """
    with _access(ledger) as access:
        found, tokens = access.members(), access.tokens()
    rows = tuple((one.name, one.role, "revoked" if one.revoked else "") for one in found)
    kept = tuple((one.id, one.kind, one.member, one.label, one.expires[:16], one.ended) for one in tokens)
    if json:
        plain = [dict(zip(("name", "role", "revoked"), row, strict=True)) for row in rows]
        names = ("id", "kind", "member", "label", "expires", "ended")
        typer.echo(to_json({"members": plain, "tokens": [dict(zip(names, row, strict=True)) for row in kept]}))
        return
    sheets = [Sheet(title="Members", columns=("name", "role", ""), rows=rows)]
    sheets += [Sheet(title="Tokens", columns=("id", "kind", "member", "label", "expires", ""), rows=kept)]
    screen.show(sheets, screen.terminal())


@members.command("revoke")
def revoke(
    name: Annotated[str, option.argument("NAME", "The member, or the id of one token.")],
    token: Annotated[bool, option.flag("--token", "NAME is the id of a token, link or invitation.")] = False,
    ledger: option.Ledger = PLACE,
    json: option.Json = False,
) -> None:
    """Take a role back, with all tokens and sessions; or only one token.

    \b
    Examples:
      discretion member revoke ada
      discretion member revoke 0a1b2c3d4e5f --token
    """
    with _access(ledger) as access:
        entry = access.withdraw(name) if token else access.revoke(name)
    typer.echo(to_json({"entry": entry}) if json else f"Entry {entry}: {name} is revoked.")


def invite(
    register: Annotated[str, option.option("NAME", "The register whose people are invited.")] = "",
    out: Annotated[Path, typer.Option(metavar="FILE", help="Where to write the codes; only you may read it.")] = Path(
        "letters.csv"
    ),
    person: Annotated[list[str], option.option("PERSON", "Invite only this person. Repeatable.")] = [],  # noqa: B006
    days: Days = LETTER_DAYS,
    revoke: Annotated[str, option.option("ENTRY", "Revoke the invitations that this entry made, instead.")] = "",
    url: Url = HERE,
    ledger: option.Ledger = PLACE,
    json: option.Json = False,
) -> None:
    """Make a personal link and code for each person of a register.

    Each code signs in one person, once. Send them by letter, then delete the file.

    \b
    Example:
      discretion invite --register patients --out letters.csv
    """
    with _access(ledger) as access:
        if revoke:
            entry = access.withdraw_all(revoke)
            typer.echo(to_json({"entry": entry}) if json else f"Entry {entry}: these invitations are revoked.")
            return
        if out.exists():
            raise InvalidDeclaration(f"{str(out)!r} exists. Codes cannot be shown again, so nothing is overwritten.")
        entry, letters = access.invite(register, person, lasts=timedelta(days=days))
    with os.fdopen(os.open(out, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("person", "code", "link"))
        writer.writerows((who, code, f"{url.rstrip('/')}/sign-in?code={code}") for who, code in letters)
    told = {"entry": entry, "people": len(letters), "file": str(out)}
    typer.echo(to_json(told) if json else f"Entry {entry}: {len(letters):,} codes are in {out}.")


@contextmanager
def _access(ledger: str) -> Iterator[Any]:
    """Open the members of a ledger, or of a service."""
    if ledger.startswith(SERVICE):
        with dn.connect(ledger, token=option.token()) as db:
            yield db.access  # type: ignore[attr-defined]
        return
    with ledgers.Ledger(ledger, create=False) as opened:
        yield ledgers.Access(opened)
