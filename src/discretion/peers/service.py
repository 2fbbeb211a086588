"""Service: one peer that runs on its own, from joining through its cycles until it is told to stop."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from time import time

from discretion.errors import InvalidDeclaration, PeerRefused
from discretion.peers.channel import Place
from discretion.peers.message import NAME, PORT
from discretion.peers.peer import Peer

ANNOUNCED = 10  # known peers that a peer calls when it comes back
RETRIES, PAUSE = 40, 0.5  # how often and how many seconds apart the peer to join is called
CHOOSING = 0.3  # the part of a cycle in which everybody chooses whom to ask; comparisons follow


@dataclass(frozen=True, kw_only=True)
class Rhythm:
    """Says how a peer explores. Cycles are counted by the clock, so that everybody's begin together."""

    cycles: int = 20
    peers: int = 1  # asked in a cycle
    seconds: float = 10.0  # of a cycle
    friends: float = 0.5  # the chance that a friend's friend is asked, and not anybody

    def __post_init__(self) -> None:
        if self.cycles < 0 or not 1 <= self.peers <= 3 or not 0.1 <= self.seconds <= 3600 or not 0 <= self.friends <= 1:
            raise InvalidDeclaration(
                "A peer explores 1 to 3 others a cycle, in cycles of 0.1 to 3,600 seconds, got "
                f"{self.peers} others and {self.seconds:g} seconds."
            )


def invitation(text: str) -> tuple[Place, str]:
    """Return the place and the name (empty if not given) in HOST:PORT or NAME@HOST:PORT."""
    name, _, address = text.rpartition("@")
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit() or not PORT(int(port)) or not (name == "" or NAME(name)):
        raise InvalidDeclaration(f"A peer to join is written HOST:PORT or NAME@HOST:PORT, got {text!r}.")
    return Place(host=host, port=int(port)), name


async def serve(
    peer: Peer,
    *,
    place: Place,
    join: str = "",
    rhythm: Rhythm,
    begin: Path | None = None,
    recommended: int = 0,
    tell: Callable[[str], None],
) -> None:
    """Listen, join, explore for the cycles of `rhythm`, then go on answering until cancelled.

    After the cycles it tells up to `recommended` items that friends seem to hold. With `begin`, the first cycle starts
    at the time (seconds since 1970) that somebody writes into that file.
    """
    await peer.start(place.host, place.port)
    try:
        tell(f"listening {peer.name}@{peer.contacts.home}")
        if join:
            await _join(peer, join)
            tell("joined")
        await peer.contacts.mingle(ANNOUNCED)  # who knows this peer from before learns where it listens now
        start = await _beginning(begin, rhythm.seconds)
        await _sleep_until(start - rhythm.seconds)
        if join:
            await _join(peer, join)  # who came later is known by now
        for cycle in range(rhythm.cycles):
            await _explore(peer, rhythm, start + cycle * rhythm.seconds)
        tell(f"explored {len(peer.account.scores(peer.terms.digest))} spent {peer.account.spent}")
        for item, score in await peer.recommend(recommended) if recommended else ():
            tell(f"recommended {item} {score:.2f}")
        await asyncio.Event().wait()
    finally:
        await peer.leave()


async def _explore(peer: Peer, rhythm: Rhythm, start: float) -> None:
    """Choose, compare and settle within one cycle; a comparison that takes longer counts in a later one."""
    await _sleep_until(start)
    peer.settle()
    await _sleep_until(start + CHOOSING / 3 * rhythm.seconds)  # everybody has settled
    chosen = await peer.choose(rhythm.peers, rhythm.friends)
    await _sleep_until(start + CHOOSING * rhythm.seconds)
    await peer.meet(chosen)
    await peer.contacts.mingle(1)
    await _sleep_until(start + rhythm.seconds)
    peer.settle()


async def _join(peer: Peer, text: str) -> None:
    place, name = invitation(text)
    for attempt in range(RETRIES):
        try:
            return await peer.contacts.join(place, name)
        except PeerRefused as refusal:
            if attempt == RETRIES - 1 or "No peer answers" not in str(refusal):
                raise
        await asyncio.sleep(PAUSE)
    return None


async def _beginning(begin: Path | None, seconds: float) -> float:
    """Return when the first cycle starts: at a whole multiple of its length, or when the file says so."""
    while begin is not None:
        with suppress(FileNotFoundError, ValueError):
            return float(begin.read_text())
        await asyncio.sleep(0.05)
    return (time() // seconds + 2) * seconds


async def _sleep_until(moment: float) -> None:
    await asyncio.sleep(max(0.0, moment - time()))
