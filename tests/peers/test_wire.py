"""What is on the wire, read before encryption: noisy products, noisy profiles, names and addresses. Nothing else."""

import asyncio
from contextlib import suppress

import numpy as np
import pytest
from crowd import CATALOGUE, cycle, holding, listening, prepare, rehearsing, terms, without_sockets

from discretion.errors import PeerRefused
from discretion.noise import simulation
from discretion.peers.channel import Channel
from discretion.peers.product import masked_product

ABOUT_NOBODY = {"challenge", "hello", "members", "compare", "accept", "wait", "refused", "friends of", "publication of"}
PROFILES = [[0, 1, 2], [0, 1, 2, 3], [1, 2, 4], [8, 9], [8, 9, 10]]


def traffic(folder, monkeypatch, method, extra=(), weight=1.0, spoil=None, **options):
    """Everything that five seeded peers say in four cycles; person 1 holds `extra` items of weight 0 as well."""
    said = []
    agreed = terms(method, publish=1.0 if method == "product" else 0.0)
    weights = [[weight] * len(items) for items in PROFILES]
    weights[1] += [0.0] * len(extra)
    peers = [
        rehearsing(
            folder,
            number,
            holding([*items, *(extra if number == 1 else ())], weights[number]),
            agreed,
            rng=simulation(number),
            record=lambda *message: said.append(message),
            **options,
        )
        for number, items in enumerate(PROFILES)
    ]
    if spoil is not None:
        spoil(peers)
    without_sockets(monkeypatch, peers)
    names = {peer.name: number for number, peer in enumerate(peers)}

    async def story():
        prepare(peers)
        for _ in range(4):
            await cycle(peers, count=2)
        for peer in peers:
            await peer.recommend(2)

    asyncio.run(story())
    keys = {peer.name: peer._keys for peer in peers}
    for peer in peers:
        peer.account.close()
    return [(names[a], names[b], kind, fields) for a, b, kind, fields in said], {
        number: keys[name] for name, number in names.items()
    }


def readable(said, keys):
    """The messages as their receiver can read them: encrypted vectors stay closed, masked sums are opened."""
    return [
        (a, b, kind, keys[b].decrypt(int(fields["value"], 16)) if kind == "masked" else fields)
        for a, b, kind, fields in said
        if kind not in ("vector", *ABOUT_NOBODY)
    ]


@pytest.mark.parametrize("method", ["product", "response"])
def test_an_item_of_weight_zero_changes_nothing_that_anybody_can_read(tmp_path, monkeypatch, method):
    """The promised loss is 0, so with the same random numbers every message must be the same, whoever reads it."""
    plain = traffic(tmp_path, monkeypatch, method)
    more = traffic(tmp_path, monkeypatch, method, extra=(6, 7, 8, 9))
    assert [message[:3] for message in plain[0]] == [message[:3] for message in more[0]]
    assert readable(*plain) == readable(*more)
    assert len(readable(*plain)) > 20


def test_the_check_finds_a_profile_that_ignores_weights(tmp_path, monkeypatch):
    def ignoring(peers):
        for peer in peers:
            peer.holding.weights[:] = 1000 * peer.holding.held

    plain = traffic(tmp_path, monkeypatch, "product", spoil=ignoring)
    more = traffic(tmp_path, monkeypatch, "product", extra=(6, 7, 8, 9), spoil=ignoring)
    assert readable(*plain) != readable(*more)


def test_only_known_kinds_are_sent_and_vectors_are_encrypted_under_the_sender_s_own_key(tmp_path, monkeypatch):
    said, keys = traffic(tmp_path, monkeypatch, "product")
    kinds = {kind for _, _, kind, _ in said}
    assert {"vector", "masked", "score", "friends", "publication"} <= kinds
    assert kinds <= {"vector", "masked", "score", "friends", "publication"} | ABOUT_NOBODY
    for a, b, kind, fields in said:
        if kind == "vector":
            assert keys[a].modulus == int(fields["modulus"], 16) != keys[b].modulus
            assert len(CATALOGUE) == len(set(fields["values"]))  # equal weights look different
    assert {"swap", "publication", "friends", *ABOUT_NOBODY} >= {
        kind for _, _, kind, _ in traffic(tmp_path, monkeypatch, "response")[0]
    }


def noises(said, keys):
    """The noise of both sides in every comparison, in items: what the asked and the asking side added."""
    found, masked = {"asked": [], "asking": []}, {}
    for a, b, kind, fields in said:
        if kind == "masked":
            true = 1_000_000 * len(set(PROFILES[a]) & set(PROFILES[b]))
            masked[b, a] = keys[b].decrypt(int(fields["value"], 16))
            found["asked"].append((masked[b, a] - true) / 1e6)
        elif kind == "score" and (a, b) in masked:
            found["asking"].append((fields["steps"] - masked.pop((a, b))) / 1e6)
    return {side: np.abs(values) for side, values in found.items()}


def too_quiet(values, scale):
    """Whether the mean of |noise| is far below its expectation: 6 deviations, a false alarm below 1e-9 each."""
    return np.mean(values) < scale - 6 * scale / np.sqrt(len(values)) * (1 - 6 / np.sqrt(len(values)))


def gathered(folder, monkeypatch, spoil=None):
    both = {"asked": [], "asking": []}
    for run in range(12):
        for side, values in noises(*traffic(folder / str(run), monkeypatch, "product", spoil=spoil)).items():
            both[side].extend(values)
    return both


def test_every_product_that_is_sent_carries_the_noise_of_both_sides(tmp_path, monkeypatch):
    both = gathered(tmp_path, monkeypatch)
    assert min(map(len, both.values())) >= 80
    for values in both.values():
        assert not too_quiet(values, scale=2.0)  # ε = 0.5
        assert np.mean(values) < 4.0


@pytest.mark.parametrize("side", ["asked", "asking"])
def test_the_check_finds_a_side_that_adds_no_noise(tmp_path, monkeypatch, side):
    def quiet(modulus, values, weights, noise):
        return masked_product(modulus, values, weights, 0)

    def forget(peers):
        for peer in peers:
            own = peer._multiply

            async def multiply(name, peer=peer, own=own):
                peer._noise = lambda: 0
                await own(name)
                del peer._noise

            peer._multiply = multiply

    if side == "asked":
        monkeypatch.setattr("discretion.peers.peer.masked_product", quiet)
    both = gathered(tmp_path, monkeypatch, spoil=forget if side == "asking" else None)
    assert too_quiet(both[side], scale=2.0)


def test_a_peer_cannot_send_its_profile_by_mistake(tmp_path):
    """A field that is not listed is refused before anything is written."""

    async def story():
        channel = Channel(reader=None, writer=None, own="me")
        with pytest.raises(PeerRefused, match="no others"):
            await channel.send("friends", addresses=[], profile=[1, 0, 1])
        with pytest.raises(PeerRefused, match="no message of this kind"):
            await channel.send("profile", weights=[1, 0, 1])

    asyncio.run(story())


def test_the_bytes_on_the_socket_hold_no_message(tmp_path):
    """A proxy between two peers sees TLS records: no kind, name, key or number of any message."""

    async def story():
        agreed, said, seen = terms("response", epsilon=1.0), [], bytearray()
        peers = [
            rehearsing(tmp_path, number, holding(items), agreed, record=lambda *message: said.append(message))
            for number, items in enumerate(PROFILES[:2])
        ]
        async with listening(peers) as (one, other):
            behind = other.contacts.home

            async def pass_on(reader, writer):
                while chunk := await reader.read(1 << 16):
                    seen.extend(chunk)
                    writer.write(chunk)
                writer.close()
                with suppress(OSError):
                    await writer.wait_closed()

            async def proxy(reader, writer):
                back, forth = await asyncio.open_connection(behind.host, behind.port)
                await asyncio.gather(pass_on(reader, forth), pass_on(back, writer))
                done.set()

            done = asyncio.Event()
            server = await asyncio.start_server(proxy, "127.0.0.1", 0)
            one.account.meet(other.name, "127.0.0.1", server.sockets[0].getsockname()[1])
            await one.meet([other.name])
            assert {other.name} == set(one.account.scores(agreed.digest))
            await done.wait()
            server.close()
            await server.wait_closed()
        assert len(seen) > 1_000
        for _, _, kind, fields in said:
            for text in (kind, *(str(value) for value in fields.values() if len(str(value)) > 4)):
                assert text.encode() not in seen

    asyncio.run(story())
