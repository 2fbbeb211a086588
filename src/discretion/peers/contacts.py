"""Contacts: the address book of one peer, and how it reaches the peers in it."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass, field
from itertools import islice

from discretion.errors import PeerRefused
from discretion.noise import Rng, coins
from discretion.peers.account import Account
from discretion.peers.channel import Channel, Place, Record, dial, ignore
from discretion.peers.identity import Identity
from discretion.peers.message import MOST_MEMBERS

NOWHERE = Place(host="127.0.0.1", port=1)
TRIES = 3  # failed calls in a row after which a peer is taken out of the address book


@dataclass(kw_only=True)
class Contacts:
    """Says whom a peer knows. Names are proved at every call; addresses are only hints where to call."""

    identity: Identity
    account: Account
    terms: str
    home: Place = NOWHERE  # where this peer listens, once it does
    record: Record = ignore
    _failures: dict[str, int] = field(default_factory=dict)

    async def join(self, place: Place, expected: str = "") -> None:
        """Introduce this peer to one that listens at `place`, and learn whom that one knows.

        Without an expected name whoever answers is trusted at first contact and remembered.
        """
        async with self._dial(place, expected) as channel:
            if channel.peer == self.identity.name:
                raise PeerRefused(f"This peer itself listens at {place}. Join another one.")
            if not expected:
                self.account.pin(str(place), channel.peer)
            await self._swap_members(channel)
            self.account.meet(channel.peer, place.host, place.port)

    async def mingle(self, count: int, rng: Rng = None) -> None:
        """Swap address books with up to `count` random peers."""
        known = sorted(self.account.members())
        order = sorted(zip(coins(len(known), rng).tolist(), known, strict=True))
        for _, name in order[:count]:
            with suppress(PeerRefused):
                async with self.call(name) as channel:
                    await self._swap_members(channel)

    async def say_goodbye(self) -> None:
        """Tell everybody known that this peer leaves."""
        await asyncio.gather(*(self._say_goodbye(name) for name in self.account.members()))

    @asynccontextmanager
    async def call(self, name: str) -> AsyncIterator[Channel]:
        """Connect to a known peer; one that does not answer several times in a row is forgotten until it calls."""
        where = self.account.members().get(name)
        if where is None:
            raise PeerRefused("This peer is not known.")
        try:
            async with self._dial(Place(host=where[0], port=where[1]), name) as channel:
                yield channel
        except PeerRefused:
            self._failures[name] = self._failures.get(name, 0) + 1
            if self._failures[name] >= TRIES:
                self.account.forget(name)
            raise
        self._failures.pop(name, None)

    def addresses(self, names: Iterable[str]) -> list[list[str | int]]:
        """Return where these peers listen, as it is sent; who is not known is left out."""
        members = self.account.members()
        return [[name, *members[name]] for name in islice(names, MOST_MEMBERS) if name in members]

    def introduce(self, name: str, home: Place) -> None:
        """Remember where a peer that proved who it is says it listens."""
        self._failures.pop(name, None)
        if self.account.members().get(name) != (home.host, home.port):
            self.account.meet(name, home.host, home.port)

    def note(self, addresses: Sequence[Sequence[str | int]]) -> None:
        """Remember addresses heard from others, unless the peer is known already: nobody moves somebody else."""
        known = {*self.account.members(), self.identity.name}
        for name, host, port in addresses:
            if name not in known and len(known) < MOST_MEMBERS:
                self.account.meet(str(name), str(host), int(port))
                known.add(str(name))

    def _dial(self, place: Place, expected: str) -> AbstractAsyncContextManager[Channel]:
        return dial(self.identity, self.terms, self.home, place, expected=expected, record=self.record)

    async def _swap_members(self, channel: Channel) -> None:
        await channel.send("members", addresses=self.addresses(self.account.members()))
        kind, fields = await channel.receive("members", "refused")
        if kind == "refused":
            raise PeerRefused("That network has other terms: another catalogue, method or epsilon.")
        self.note(fields["addresses"])

    async def _say_goodbye(self, name: str) -> None:
        with suppress(PeerRefused):
            async with self.call(name) as channel:
                await channel.send("goodbye")
                await channel.receive("done")
