"""A crowd of peers in one process, over real TLS connections, that move from cycle to cycle together."""

import asyncio
from contextlib import asynccontextmanager

from discretion.peers.account import Account
from discretion.peers.channel import Channel, ignore
from discretion.peers.holding import Holding, Terms
from discretion.peers.identity import Identity
from discretion.peers.peer import Peer

SHORT = 256  # bits of a key that protects nobody: rehearsals only
CATALOGUE = [f"item {number}" for number in range(12)]


def terms(method="product", epsilon=0.5, publish=0.0, catalogue=CATALOGUE):
    return Terms.of(catalogue, method=method, epsilon=epsilon, publish=publish)


def holding(items, weight=1.0, catalogue=CATALOGUE):
    """The profile with these numbers of items; one weight for all, or one for each."""
    weights = [weight] * len(items) if isinstance(weight, float) else weight
    return Holding.of(catalogue, [catalogue[item] for item in items], weights)


def two_villages(people=6):
    """Half of the people hold the first half of the items, the others the second half."""
    half = len(CATALOGUE) // 2
    return [holding(range(half) if person < people // 2 else range(half, 2 * half)) for person in range(people)]


def rehearsing(folder, number, profile, agreed, *, budget=100.0, neighbours=2, rng=None, record=ignore):
    return Peer(
        identity=Identity.open(folder / str(number)),
        account=Account.rehearsal(budget=budget),
        holding=profile,
        terms=agreed,
        neighbours=neighbours,
        key_bits=SHORT,
        rng=rng,
        record=record,
    )


@asynccontextmanager
async def listening(peers):
    """Start these peers and introduce everybody to everybody."""
    started = []
    try:
        for peer in peers:
            await peer.start()
            started.append(peer)
        acquaint(peers)
        yield peers
    finally:
        for peer in started:
            await peer.stop()
            peer.account.close()


def acquaint(peers):
    for peer in peers:
        for other in peers:
            if other is not peer:
                peer.contacts.introduce(other.name, other.contacts.home)


async def cycle(peers, *, count=1, friends=0.5):
    """One cycle of all these peers: everybody chooses, everybody compares, then everybody tells new friends."""
    chosen = await asyncio.gather(*(peer.choose(count, friends) for peer in peers))
    await asyncio.gather(*(peer.meet(names) for peer, names in zip(peers, chosen, strict=True)))
    for peer in peers:
        peer.settle()


class _Writer:
    """The writing end of a connection in memory."""

    def __init__(self, reader):
        self.reader = reader

    def write(self, text):
        self.reader.feed_data(text)

    async def drain(self):
        pass

    def close(self):
        self.reader.feed_eof()

    async def wait_closed(self):
        pass


def without_sockets(monkeypatch, peers):
    """Connect these peers in memory: the same messages and answers without TLS, many times faster."""
    by_name = {peer.name: peer for peer in peers}

    @asynccontextmanager
    async def dial(identity, terms, home, place, *, expected="", record=ignore):
        there, here = asyncio.StreamReader(), asyncio.StreamReader()
        mine = Channel(reader=here, writer=_Writer(there), own=identity.name, peer=expected, record=record)
        host = by_name[expected]
        theirs = Channel(reader=there, writer=_Writer(here), own=expected, peer=identity.name, record=host.record)
        serving = asyncio.ensure_future(host._answer(theirs))
        try:
            yield mine
        finally:
            await serving

    monkeypatch.setattr("discretion.peers.contacts.dial", dial)


def prepare(peers):
    """What `start` does before listening."""
    for peer in peers:
        peer.prepare()
    for peer in peers:
        for other in peers:
            if other is not peer:
                peer.account.meet(other.name, "127.0.0.1", 1)
