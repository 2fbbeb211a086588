"""Channel: an encrypted connection to a peer whose identity was proved, carrying checked messages only."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

from discretion.errors import PeerRefused
from discretion.noise import coin_key
from discretion.peers.identity import Identity, answering, client_context, verify
from discretion.peers.message import LONGEST, Fields, decode, encode

PATIENCE = 20.0  # seconds to wait for a message
Record = Callable[[str, str, str, Fields], None]  # who sends, to whom, kind, fields: before encryption
BROKEN = (OSError, asyncio.IncompleteReadError, TimeoutError, ssl.SSLError)


def ignore(*_: Any) -> None:
    """Record nothing."""


@dataclass(frozen=True, kw_only=True)
class Place:
    """Says where a peer listens."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


@dataclass(kw_only=True)
class Channel:
    """One connection. `peer` is empty until the other side proved who it is."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    own: str
    peer: str = ""
    record: Record = ignore

    async def send(self, kind: str, **fields: Any) -> None:
        """Send one message; anything that is not a message of this kind is refused here already."""
        text = encode(kind, fields)
        self.record(self.own, self.peer, kind, fields)
        self.writer.write(text)
        async with asyncio.timeout(PATIENCE):
            await self.writer.drain()

    async def receive(self, *kinds: str) -> tuple[str, dict[str, Any]]:
        """Return the next message, which must be of one of these kinds."""
        async with asyncio.timeout(PATIENCE):
            length = int.from_bytes(await self.reader.readexactly(4), "big")
            if length > LONGEST:
                raise PeerRefused(f"The other side announced a message of {length:,} bytes, more than {LONGEST:,}.")
            kind, fields = decode(await self.reader.readexactly(length))
        if kind not in kinds:
            raise PeerRefused(f"The other side sent {kind!r} where only {' or '.join(map(repr, kinds))} is expected.")
        return kind, fields

    async def close(self) -> None:
        self.writer.close()
        with suppress(*BROKEN):
            async with asyncio.timeout(PATIENCE):
                await self.writer.wait_closed()


@asynccontextmanager
async def dial(
    identity: Identity, terms: str, home: Place, place: Place, *, expected: str = "", record: Record = ignore
) -> AsyncIterator[Channel]:
    """Connect to the peer `expected` (anybody if empty) at `place`, and prove to it who this peer is."""
    try:
        async with asyncio.timeout(PATIENCE):
            reader, writer = await asyncio.open_connection(place.host, place.port, ssl=client_context())
    except BROKEN:
        raise PeerRefused(f"No peer answers at {place}.") from None
    channel = Channel(reader=reader, writer=writer, own=identity.name, record=record)
    try:
        secured = writer.get_extra_info("ssl_object")
        channel.peer = answering(secured.getpeercert(binary_form=True))
        if expected not in ("", channel.peer):
            raise PeerRefused(f"Another peer than {expected[:12]} answers at {place}.")
        _, challenge = await channel.receive("challenge")
        text = signed_text(channel.peer, challenge["nonce"], terms, home)
        hello = {"key": identity.public.hex(), "signature": identity.sign(text).hex(), "terms": terms}
        await channel.send("hello", host=home.host, port=home.port, **hello)
        yield channel
    except BROKEN:
        raise PeerRefused(f"The connection to the peer at {place} broke.") from None
    finally:
        await channel.close()


async def greet(identity: Identity, channel: Channel) -> tuple[str, Place]:
    """Have the dialling side prove who it is; set its name, and return its terms and where it listens.

    It signs the name of this peer and a fresh number, so that the proof is of no use to anybody else.
    """
    nonce = coin_key()
    await channel.send("challenge", nonce=nonce)
    _, hello = await channel.receive("hello")
    home = Place(host=hello["host"], port=hello["port"])
    text = signed_text(identity.name, nonce, hello["terms"], home)
    channel.peer = verify(bytes.fromhex(hello["key"]), bytes.fromhex(hello["signature"]), text)
    return hello["terms"], home


def signed_text(listener: str, nonce: str, terms: str, home: Place) -> bytes:
    """Return what the dialling side signs."""
    return f"discretion peer 1\n{listener}\n{nonce}\n{terms}\n{home}".encode()
