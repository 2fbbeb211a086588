import asyncio
from itertools import pairwise

import pytest
from crowd import CATALOGUE, SHORT, acquaint, cycle, holding, listening, rehearsing, terms, two_villages

from discretion.errors import BudgetExhausted, InvalidDeclaration, PeerRefused
from discretion.noise import simulation
from discretion.peers import peer as peers_file
from discretion.peers.account import Account
from discretion.peers.channel import Channel, Place, dial
from discretion.peers.identity import Identity, client_context
from discretion.peers.message import KEY_BITS
from discretion.peers.peer import Peer
from discretion.preference import MICRO


def crowd(folder, agreed=None, **options):
    return [
        rehearsing(folder, number, profile, agreed or terms(), **options)
        for number, profile in enumerate(two_villages())
    ]


def run(story):
    return asyncio.run(asyncio.wait_for(story, 60))


def test_both_sides_keep_one_score_and_pay_once(tmp_path):
    async def story():
        async with listening(crowd(tmp_path)[:2]) as (one, other):
            await one.meet([other.name])
            await other.meet([one.name])  # known already
            (mine,) = one.account.scores(one.terms.digest).values()
            (theirs,) = other.account.scores(one.terms.digest).values()
            assert mine == theirs
            assert [500_000, 500_000] == [one.account.spent, other.account.spent]
            assert [f"product with {other.name}"] == [row[2] for row in one.account.charges()]

    run(story())


@pytest.mark.parametrize("method", ["product", "response"])
def test_at_a_large_epsilon_the_score_is_the_weighted_product(tmp_path, method):
    async def story():
        profiles = [holding([0, 1, 2], [1.0, 0.5, 1.0]), holding([1, 2, 3], [1.0, 0.5, 1.0])]
        agreed = terms(method, epsilon=400.0)
        made = [rehearsing(tmp_path, n, p, agreed, budget=1000.0) for n, p in enumerate(profiles)]
        async with listening(made) as (one, other):
            await one.meet([other.name])
            (score,) = one.account.scores(agreed.digest).values()
            expected = 1.0 if method == "product" else 2.0  # ½·1 + 1·½; responses at this ε report even weight ½
            assert abs(expected - score) < 0.05

    run(story())


def test_nothing_is_sent_or_drawn_before_it_is_paid_for(tmp_path, monkeypatch):
    """What each side has spent is noted at every message and every draw."""
    happened = []
    drawn = peers_file.discrete_laplace
    monkeypatch.setattr(
        peers_file, "discrete_laplace", lambda *given: happened.append(("draw", "", spent())) or drawn(*given)
    )

    def note(sender, receiver, kind, fields):
        happened.append((kind, sender, spent()))

    def spent():
        return {each.name: each.account.spent for each in made}

    made = crowd(tmp_path, record=note)[:2]

    async def story():
        async with listening(made) as (one, other):
            await one.meet([other.name])
            return one.name, other.name

    one, other = run(story())
    kinds = [kind for kind, _, _ in happened]
    assert ["challenge", "hello", "compare", "accept", "vector", "draw", "masked", "draw", "score"] == kinds
    for kind, sender, paid in happened:
        if kind in ("accept", "vector", "masked", "score"):
            assert 500_000 == paid[sender]
        if kind in ("challenge", "hello", "compare"):
            assert {one: 0, other: 0} == paid
    assert all({one: 500_000, other: 500_000} == paid for kind, _, paid in happened if kind == "draw")


def test_two_who_ask_each_other_at_once_are_compared_once(tmp_path):
    async def story(folder):
        async with listening(crowd(folder)[:2]) as (one, other):
            for _ in range(3):
                await asyncio.gather(one.meet([other.name]), other.meet([one.name]))
            assert one.account.scores(one.terms.digest)[other.name] == other.account.scores(one.terms.digest)[one.name]
            assert [500_000, 500_000] == [one.account.spent, other.account.spent]

    for number in range(5):
        run(story(tmp_path / str(number)))


def test_nobody_exceeds_the_budget_and_who_has_none_left_stops_answering(tmp_path):
    async def story():
        async with listening(crowd(tmp_path, budget=1.2)) as peers:  # two comparisons at 0.5
            for _ in range(6):
                await cycle(peers, count=3)
            assert all(peer.account.spent <= peer.account.budget for peer in peers)
            assert max(len(peer.account.scores(peer.terms.digest)) for peer in peers) == 2
            poor = next(peer for peer in peers if peer.account.spent == MICRO)
            rich = rehearsing(tmp_path, "rich", two_villages()[0], terms())
            async with listening([rich]):
                acquaint([rich, poor])
                await rich.meet([poor.name])
                assert 0 == rich.account.spent  # the other side refused before this one paid
                assert {} == rich.account.scores(rich.terms.digest)

    run(story())


def test_a_publication_is_paid_once_and_stays_the_same(tmp_path):
    async def story():
        agreed = terms("response", epsilon=1.0)
        async with listening(crowd(tmp_path, agreed, budget=1.5)) as peers:
            before = peers[0].publication()
            for _ in range(4):
                await cycle(peers, count=2)
            assert before == peers[0].publication()
            assert [MICRO] * 6 == [peer.account.spent for peer in peers]
            assert min(len(peer.account.scores(agreed.digest)) for peer in peers) >= 2

    run(story())
    poor = rehearsing(tmp_path, "poor", holding([0]), terms("response", epsilon=1.0), budget=0.5)
    with pytest.raises(BudgetExhausted):
        run(poor.start())


def test_a_peer_that_crashes_comes_back_with_its_account_and_pays_nothing_twice(tmp_path):
    def durable(number):
        profile = two_villages()[number]
        account = Account(tmp_path / f"{number}.sqlite", budget=4.0)
        identity = Identity.open(tmp_path / str(number))
        return Peer(identity=identity, account=account, holding=profile, terms=terms(), neighbours=2)

    async def story():
        others = [durable(number) for number in (1, 2)]
        async with listening(others):
            crashed = durable(0)
            await crashed.start()
            await crashed.contacts.join(others[0].contacts.home)
            await crashed.contacts.join(others[1].contacts.home, expected=others[1].name)
            await crashed.meet([others[0].name])
            spent, scores = crashed.account.spent, crashed.account.scores(crashed.terms.digest)
            await crashed.stop()  # without a goodbye
            crashed.account.close()
            with pytest.raises(PeerRefused):
                async with others[0].contacts.call(crashed.name):
                    pass
            back = durable(0)
            await back.start()
            assert (crashed.name, spent, scores) == (
                back.name,
                back.account.spent,
                back.account.scores(back.terms.digest),
            )
            assert back.view == list(scores)
            await back.meet([others[0].name])  # known: nothing happens
            assert spent == back.account.spent
            await back.contacts.mingle(2)  # it listens elsewhere now, and says so
            await others[0].meet([back.name])
            await others[1].meet([back.name])
            assert 2 * spent == back.account.spent
            await back.leave()
            assert back.name not in others[0].account.members()
            back.account.close()

    run(story())


def test_a_peer_that_lost_a_score_in_a_crash_gets_it_from_the_other_side_for_nothing(tmp_path):
    async def story():
        async with listening(crowd(tmp_path)[:2]) as (one, other):
            await one.meet([other.name])
            score = one.account.scores(one.terms.digest)
            one.account._do("DELETE FROM score")
            await one.meet([other.name])
            assert score == one.account.scores(one.terms.digest)
            assert [500_000, 500_000] == [one.account.spent, other.account.spent]

    run(story())


def test_a_comparison_that_breaks_off_is_paid_and_the_next_one_is_paid_again(tmp_path, monkeypatch):
    async def story():
        async with listening(crowd(tmp_path)[:2]) as (one, other):
            with monkeypatch.context() as broken:
                broken.setattr(peers_file, "masked_product", lambda *given: 1 / 0)
                asyncio.get_running_loop().set_exception_handler(lambda *_: None)
                await one.meet([other.name])
            assert {} == one.account.scores(one.terms.digest)
            assert [500_000, 500_000] == [one.account.spent, other.account.spent]
            await one.meet([other.name])
            assert [MICRO, MICRO] == [one.account.spent, other.account.spent]
            assert {other.name} == set(one.account.scores(one.terms.digest))

    run(story())


def test_peers_that_do_not_answer_are_forgotten_and_the_others_go_on(tmp_path):
    async def story():
        peers = crowd(tmp_path)
        async with listening(peers[:4]):
            gone = peers[4]
            await gone.start()
            acquaint(peers[:5])
            await gone.stop()
            for _ in range(3):
                await peers[0].meet([gone.name])
            assert gone.name not in peers[0].account.members()
            assert 0 == peers[0].account.spent
            for _ in range(5):
                await cycle(peers[:4], count=2)
            assert all(len(peer.view) == 2 for peer in peers[:4])

    run(story())


def test_everybody_learns_of_everybody_through_one_member(tmp_path):
    async def story():
        peers = crowd(tmp_path)
        for peer in peers:
            await peer.start()
        for peer in (*peers[1:], *peers[1:]):
            await peer.contacts.join(peers[0].contacts.home)
        assert [5] * 6 == [len(peer.account.members()) for peer in peers]
        with pytest.raises(PeerRefused, match="itself"):
            await peers[0].contacts.join(peers[0].contacts.home)
        for peer in peers:
            await peer.leave()
        assert {} == peers[0].account.members() or peers[0].name not in peers[-1].account.members()

    run(story())


def test_a_network_with_other_terms_refuses(tmp_path):
    async def story():
        one = rehearsing(tmp_path, 0, holding([0]), terms())
        other = rehearsing(tmp_path, 1, holding([0]), terms(epsilon=0.4))
        async with listening([one]), listening([other]):
            with pytest.raises(PeerRefused, match="other terms"):
                await other.contacts.join(one.contacts.home)
            assert {} == one.account.members()

    run(story())


@pytest.mark.parametrize("publish", [0.0, 20.0])
def test_recommendations_come_from_what_friends_published(tmp_path, publish):
    async def story():
        agreed = terms(epsilon=20.0, publish=publish)
        profiles = [holding([0, 1, 2]), holding([0, 1, 2, 7]), holding([0, 1, 2, 7]), holding([9])]
        async with listening([rehearsing(tmp_path, n, p, agreed) for n, p in enumerate(profiles)]) as peers:
            for _ in range(4):
                await cycle(peers, count=2)
            before = peers[1].account.spent
            found = await peers[0].recommend(3)
            again = await peers[0].recommend(3)
            assert found == again
            assert not {CATALOGUE[item] for item in (0, 1, 2)} & {item for item, _ in found}
            assert before + publish * MICRO == peers[1].account.spent  # paid once by the friend
            assert CATALOGUE[7] == found[0][0] if publish else [] == found

    run(story())


def test_hostile_guests_end_their_own_connection_only(tmp_path):
    async def raw(home, *texts):
        reader, writer = await asyncio.open_connection(home.host, home.port, ssl=client_context())
        for text in texts:
            writer.write(text)
        rest = await reader.read(1 << 16)
        writer.close()
        await writer.wait_closed()
        return rest

    async def speak(stranger, home, *messages):
        async with dial(stranger, terms().digest, Place(host="127.0.0.1", port=2), home) as channel:
            for kind, fields in messages:
                await channel.send(kind, **fields)
            return await channel.receive("accept", "refused", "masked", "publication")

    async def story():
        async with listening(crowd(tmp_path, budget=2.0)[:2]) as (one, other):
            home, stranger = one.contacts.home, Identity.open(tmp_path / "stranger")
            for text in (b"GET / HTTP/1.1\r\n\r\n", b"\xff\xff\xff\xff", b"\0\0\0\2{}", b"\0\0\0\5hello"):
                await raw(home, text)
            vectors = [
                {"modulus": "f" * 16, "values": ["1"] * 12},  # too short a key
                {"modulus": "f" * (SHORT // 4), "values": ["1"] * 11},  # too few numbers
                {"modulus": "f" * (SHORT // 4), "values": ["0"] * 12},  # not encrypted
            ]
            for vector in vectors:
                async with dial(stranger, terms().digest, Place(host="127.0.0.1", port=2), home) as channel:
                    await channel.send("compare")
                    await channel.receive("accept")
                    await channel.send("vector", **vector)
                    with pytest.raises(asyncio.IncompleteReadError):
                        await channel.receive("masked")
            assert 1_500_000 == one.account.spent  # each of them was paid for, and nothing was said
            kind, fields = await speak(stranger, home, ("publication of", {}))
            assert ("refused", {"reason": "nothing published"}) == (kind, fields)
            await other.meet([one.name])
            assert [2_000_000, 500_000] == [one.account.spent, other.account.spent]
            kind, fields = await speak(stranger, home, ("compare", {}))
            assert ("refused", {"reason": "spent"}) == (kind, fields)

    run(story())


def test_a_guest_who_is_silent_is_shown_out(tmp_path, monkeypatch):
    monkeypatch.setattr("discretion.peers.channel.PATIENCE", 0.2)

    async def story():
        async with listening(crowd(tmp_path)[:1]) as (one,):
            home = one.contacts.home
            reader, writer = await asyncio.open_connection(home.host, home.port, ssl=client_context())
            channel = Channel(reader=reader, writer=writer, own="")
            await channel.receive("challenge")
            with pytest.raises(asyncio.IncompleteReadError):
                await reader.readexactly(1)
            await channel.close()

    run(story())


def test_addresses_heard_from_others_never_move_a_known_peer(tmp_path):
    async def story():
        async with listening(crowd(tmp_path)[:2]) as (one, other):
            before = one.account.members()[other.name]
            one.contacts.note([[other.name, "evil.example", 1], [one.name, "evil.example", 1], ["cd" * 32, "h", 5]])
            assert before == one.account.members()[other.name]
            assert one.name not in one.account.members()
            assert ("h", 5) == one.account.members()["cd" * 32]

    run(story())


def test_views_are_the_nearest_peers_best_first(tmp_path):
    async def story():
        async with listening(crowd(tmp_path, terms(epsilon=50.0), budget=1000.0)) as peers:
            for _ in range(8):
                await cycle(peers, count=2)
            for number, peer in enumerate(peers):
                scores = peer.account.scores(peer.terms.digest)
                assert all(scores[a] >= scores[b] for a, b in pairwise(peer.view))
                village = {other.name for other in peers[:3]} if number < 3 else {other.name for other in peers[3:]}
                assert set(peer.view) == village - {peer.name}

    run(story())


def test_seeds_and_short_keys_are_for_rehearsals_only(tmp_path):
    made = {"identity": Identity.open(tmp_path / "me"), "holding": holding([0]), "terms": terms()}
    account = Account(tmp_path / "a.sqlite", budget=1.0)
    for options in ({"rng": simulation(1)}, {"key_bits": KEY_BITS // 2}):
        with pytest.raises(InvalidDeclaration, match="rehearsals"):
            Peer(account=account, **made, **options)
    with pytest.raises(InvalidDeclaration, match="same catalogue"):
        Peer(account=account, **{**made, "terms": terms(catalogue=["a"])})
    account.close()
