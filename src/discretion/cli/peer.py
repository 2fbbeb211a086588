"""The commands `discretion peer ...`. This file loads without the extra `peers`, and says what to install."""

from importlib import import_module
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discretion.cli import option
from discretion.cli.later import Later
from discretion.errors import require
from discretion.render.sheet import Sheet, amount

if TYPE_CHECKING:
    import asyncio
    import signal

    from discretion import preference
    from discretion.render import terminal as screen
else:
    asyncio, signal = Later("asyncio"), Later("signal")
    preference, screen = Later("discretion.preference"), Later("discretion.render.terminal")

app = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Compare profiles with other people, without a server."
)


def _load(name: str) -> Any:
    """Import a part that needs the extra, or say how to install it."""
    require("peers", "Comparing profiles with peers")
    return import_module(f"discretion.peers.{name}")


Method = Annotated[
    str, typer.Option(metavar="METHOD", help="How two peers compare: response (published once) or product (encrypted).")
]
Epsilon = Annotated[
    float | None,
    typer.Option(metavar="EPSILON", help="What a publication (default 1) or one product (default 0.1) costs.", min=0),
]
Cycles = Annotated[int, typer.Option(metavar="N", help="How many cycles to explore.", min=0)]
Asked = Annotated[int, typer.Option("--peers", metavar="N", help="How many others to ask in a cycle.", min=1, max=3)]
Seconds = Annotated[float, typer.Option("--seconds", metavar="SECONDS", help="How long a cycle takes.", min=0.1)]
Neighbours = Annotated[int, typer.Option(metavar="K", help="How many nearest peers to keep.", min=1)]


@app.command()
def serve(
    profile: Annotated[Path, typer.Option(metavar="FILE", help="Your items, in columns item and weight.")],
    catalogue: Annotated[Path, typer.Option(metavar="FILE", help="All items there are, in a column item. Public.")],
    budget: Annotated[float, typer.Option(metavar="EPSILON", help="The most an item of weight 1 may ever lose.")],
    join: Annotated[
        str, typer.Option(metavar="[NAME@]HOST:PORT", help="A peer to join. Without it, a new network is started.")
    ] = "",
    account: Annotated[Path, typer.Option(metavar="FOLDER", help="Your identity and account.")] = Path("peer"),
    host: Annotated[str, typer.Option(metavar="HOST", help="Address at which others reach you.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(metavar="PORT", help="Port to listen on; 0 is any free one.", min=0, max=65_535)
    ] = 0,
    weight: Annotated[
        float | None, typer.Option(metavar="WEIGHT", help="Weight of all items, if the file has no weights.")
    ] = None,
    method: Method = "response",
    epsilon: Epsilon = None,
    publish: Annotated[
        float,
        typer.Option(
            metavar="EPSILON", help="With --method product: also publish the profile at this cost, for recommendations."
        ),
    ] = 0,
    neighbours: Neighbours = 10,
    cycles: Cycles = 20,
    peers: Asked = 1,
    seconds: Seconds = 10.0,
    recommend: Annotated[
        int, typer.Option(metavar="N", help="Print this many recommended items at the end.", min=0)
    ] = 0,
    begin: Annotated[Path | None, typer.Option(metavar="FILE", help="Wait for a start time in this file.")] = None,
) -> None:
    """Take part with your own profile until interrupted.

    \b
    Examples:
      discretion peer serve --profile mine.parquet --catalogue items.csv --budget 4
      discretion peer serve --profile mine.parquet --catalogue items.csv \\
          --budget 4 --join 192.0.2.7:7000
    """
    service, holding, peer = _load("service"), _load("holding"), _load("peer")
    mine = holding.Holding.read(profile, catalogue, weight=weight)
    price = epsilon if epsilon is not None else {"response": 1.0, "product": 0.1}.get(method, 0.0)
    terms = holding.Terms.of(mine.catalogue, method=method, epsilon=price, publish=publish)
    identity = _load("identity").Identity.open(account)
    book = _load("account").Account(account / "account.sqlite", budget=budget)
    me = peer.Peer(identity=identity, account=book, holding=mine, terms=terms, neighbours=neighbours)
    rhythm = service.Rhythm(cycles=cycles, peers=peers, seconds=seconds)
    place = _load("channel").Place(host=host, port=port)
    options = {"join": join, "rhythm": rhythm, "begin": begin, "recommended": recommend}
    asyncio.run(_until_told(service.serve(me, place=place, tell=_tell, **options)))


@app.command()
def receipt(
    account: Annotated[Path, typer.Option(metavar="FOLDER", help="Your identity and account.")] = Path("peer"),
    json: option.Json = False,
) -> None:
    """List everything that your profile was used for, and what it cost."""
    book = _load("account").Account(account / "account.sqlite")
    charges = [
        {"moment": moment, "epsilon": micro / preference.MICRO, "purpose": what}
        for moment, micro, what in book.charges()
    ]
    found = {"budget": book.budget / preference.MICRO, "spent": book.spent / preference.MICRO, "charges": charges}
    book.close()
    if json:
        typer.echo(dumps(found))
    else:
        rows = tuple((charge["moment"], amount(charge["epsilon"]), charge["purpose"]) for charge in charges)
        notes = (
            f"An item of weight 1 has lost {amount(found['spent'])} of {amount(found['budget'])}; weight v: v times.",
        )
        columns = ("when (UTC)", "ε", "what for")
        screen.show(
            [Sheet(title="Your profile was used for", columns=columns, rows=rows, notes=notes)], screen.terminal()
        )


@app.command()
def demo(
    folder: Annotated[Path, typer.Argument(metavar="[FOLDER]", help="Where to keep profiles, accounts, picture.")] = (
        Path("peer-demo")
    ),
    number: Annotated[int, typer.Option("--number", metavar="N", help="How many peers.", min=4, max=200)] = 30,
    method: Method = "response",
    epsilon: Epsilon = None,
    budget: Annotated[float, typer.Option(metavar="EPSILON", help="Budget of each peer.")] = 4.0,
    neighbours: Neighbours = 10,
    cycles: Cycles = 20,
    peers: Asked = 1,
    seconds: Seconds = 3.0,
    seed: option.Seed = 0,
    json: option.Json = False,
) -> None:
    """Start peers as processes on this machine; draw who found whom and what everybody spent.

    \b
    Example:
      discretion peer demo --number 30 --method product
    """
    crowd = _load("crowd")
    rhythm = _load("service").Rhythm(cycles=cycles, peers=peers, seconds=seconds)
    price = epsilon if epsilon is not None else budget / (1 if method == "response" else 25)
    outcome = crowd.run(
        folder,
        number=number,
        method=method,
        epsilon=price,
        budget=budget,
        neighbours=neighbours,
        rhythm=rhythm,
        seed=seed,
    )
    drawn = outcome.draw(folder / "clusters.png")
    if json:
        typer.echo(outcome.to_json())
    else:
        screen.show(outcome.sheets(), screen.terminal())
        typer.echo(drawn)


async def _until_told(work: Any) -> None:
    """Run until it ends or a signal asks to stop; then let it say goodbye."""
    task, loop = asyncio.ensure_future(work), asyncio.get_running_loop()
    for told in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(told, task.cancel)
    try:
        await task
    except asyncio.CancelledError:
        return


def _tell(text: str) -> None:
    typer.echo(text)
