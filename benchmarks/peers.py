"""How long two peers take to compare, by each method: over TLS on this machine, both sides in one process."""

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time

from rich.console import Console
from rich.table import Table

from discretion.noise import simulation
from discretion.peers.account import Account
from discretion.peers.holding import Holding, Method, Terms
from discretion.peers.identity import Identity
from discretion.peers.peer import Peer

PEERS = 8
ITEMS = (68, 196)


def main() -> None:
    table = Table("method", "items", "start of a peer, CPU s", "comparison, both sides, CPU ms", title="Peers")
    for items in ITEMS:
        for method in ("response", "product"):
            start, each = asyncio.run(_measure(method, items))
            table.add_row(method, str(items), f"{start:.2f}", f"{1000 * each:.1f}")
    Console().print(table)


async def _measure(method: Method, items: int) -> tuple[float, float]:
    """Return the CPU seconds that a peer needs to start, and that one comparison takes on both sides together."""
    catalogue, rng = [str(item) for item in range(items)], simulation(1)
    terms = Terms.of(catalogue, method=method, epsilon=0.1)
    with TemporaryDirectory() as name:
        peers = []
        for number in range(PEERS):
            held = [item for item in catalogue if rng.random() < 0.35]
            folder = Path(name) / str(number)
            identity, holding = Identity.open(folder), Holding.of(catalogue, held, [1.0] * len(held))
            account = Account(folder / "account.sqlite", budget=10.0)
            peers.append(Peer(identity=identity, account=account, holding=holding, terms=terms))
        begun = process_time()
        for peer in peers:
            await peer.start()
        start = (process_time() - begun) / PEERS
        for peer in peers[1:]:
            await peers[0].contacts.join(peer.contacts.home)
        begun = process_time()
        await peers[0].meet([peer.name for peer in peers[1:]])
        each = (process_time() - begun) / (PEERS - 1)
        for peer in peers:
            await peer.leave()
            peer.account.close()
    return start, each
