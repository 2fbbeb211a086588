"""Who is on the other side: proved by TLS and by a signature, pinned by name."""

import asyncio
import ssl

import pytest
from crowd import holding, listening, rehearsing, terms

from discretion.errors import InvalidDeclaration, PeerRefused
from discretion.peers.channel import Channel, Place, dial, greet, signed_text
from discretion.peers.identity import FILE, Identity, answering, client_context, name_of, verify

HOME = Place(host="127.0.0.1", port=9)


def test_an_identity_is_kept_and_its_file_is_private(tmp_path):
    first = Identity.open(tmp_path / "me")
    assert first.name == Identity.open(tmp_path / "me").name == name_of(first.public)
    assert 0o600 == (tmp_path / "me" / FILE).stat().st_mode & 0o777
    assert first.name != Identity.open(tmp_path / "you").name
    (tmp_path / "me" / FILE).write_text("nothing")
    with pytest.raises(InvalidDeclaration, match="not the identity of a peer"):
        Identity.open(tmp_path / "me")


def test_a_signature_proves_the_name_and_nothing_else_does(tmp_path):
    me, you = Identity.open(tmp_path / "me"), Identity.open(tmp_path / "you")
    assert me.name == verify(me.public, me.sign(b"text"), b"text")
    for public, signature, text in (
        (you.public, me.sign(b"text"), b"text"),
        (me.public, me.sign(b"text"), b"other"),
        (b"no key", me.sign(b"text"), b"text"),
        (me.public, b"\0" * 64, b"text"),
    ):
        with pytest.raises(PeerRefused, match="prove its identity"):
            verify(public, signature, text)
    for certificate in (None, b"", b"rubbish"):
        with pytest.raises(PeerRefused, match="no identity"):
            answering(certificate)


def test_connections_are_tls_13_with_the_identity_of_the_peer_and_nothing_older(tmp_path):
    async def story():
        async with listening([rehearsing(tmp_path, 0, holding([0]), terms())]) as (peer,):
            home = peer.contacts.home
            _, writer = await asyncio.open_connection(home.host, home.port, ssl=client_context())
            secured = writer.get_extra_info("ssl_object")
            assert "TLSv1.3" == secured.version()
            assert peer.name == answering(secured.getpeercert(binary_form=True))
            writer.close()
            await writer.wait_closed()
            old = client_context()
            old.minimum_version, old.maximum_version = ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_2
            with pytest.raises(OSError):  # noqa: PT011  the handshake is refused, or the connection is cut first
                await asyncio.open_connection(home.host, home.port, ssl=old)

    asyncio.run(story())


def test_a_peer_with_another_name_than_expected_is_told_nothing(tmp_path):
    async def story():
        peers = [rehearsing(tmp_path, number, holding([0]), terms()) for number in range(2)]
        said = []
        stranger = Identity.open(tmp_path / "stranger")
        async with listening(peers):
            with pytest.raises(PeerRefused, match="Another peer"):
                async with dial(
                    stranger,
                    terms().digest,
                    HOME,
                    peers[0].contacts.home,
                    expected=peers[1].name,
                    record=lambda *message: said.append(message),
                ):
                    pass
        assert [] == said

    asyncio.run(story())


def test_a_proof_cannot_be_relayed_to_another_peer(tmp_path):
    """A man in the middle gets a proof that names himself and his own number: of no use at the victim's door."""

    async def attempt(forge):
        me, victim, thief = (Identity.open(tmp_path / name) for name in ("me", "victim", "thief"))
        outcome = []

        async def door(reader, writer):
            channel = Channel(reader=reader, writer=writer, own=victim.name)
            try:
                await greet(victim, channel)
                outcome.append(channel.peer)
            except PeerRefused as refusal:
                outcome.append(str(refusal))
            await channel.close()

        server = await asyncio.start_server(door, "127.0.0.1", 0, ssl=victim.server_context())
        port = server.sockets[0].getsockname()[1]
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=client_context())
        channel = Channel(reader=reader, writer=writer, own=thief.name)
        _, challenge = await channel.receive("challenge")
        text = forge(me, victim, thief, challenge["nonce"])
        signature = me.sign(text).hex()
        await channel.send(
            "hello", key=me.public.hex(), signature=signature, terms="a" * 64, host=HOME.host, port=HOME.port
        )
        while not outcome:
            await asyncio.sleep(0.01)
        await channel.close()
        server.close()
        await server.wait_closed()
        return outcome[0] == me.name

    honest = asyncio.run(attempt(lambda me, victim, thief, nonce: signed_text(victim.name, nonce, "a" * 64, HOME)))
    relayed = asyncio.run(attempt(lambda me, victim, thief, nonce: signed_text(thief.name, nonce, "a" * 64, HOME)))
    replayed = asyncio.run(attempt(lambda me, victim, thief, nonce: signed_text(victim.name, "b" * 64, "a" * 64, HOME)))
    moved = asyncio.run(attempt(lambda me, victim, thief, nonce: signed_text(victim.name, nonce, "c" * 64, HOME)))
    assert [True, False, False, False] == [honest, relayed, replayed, moved]


def test_nobody_at_an_address_is_said_so(tmp_path):
    async def story():
        async with dial(Identity.open(tmp_path / "me"), "a" * 64, HOME, Place(host="127.0.0.1", port=1)):
            pass

    with pytest.raises(PeerRefused, match=r"No peer answers at 127\.0\.0\.1:1"):
        asyncio.run(story())
