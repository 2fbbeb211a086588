"""Gossip: people find the peers most like them by asking few others, each answer a charged release ([AGK16] 4)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from rich.progress import track

from discretion.errors import InvalidDeclaration
from discretion.guarantee import Guarantee
from discretion.noise import Floats, Rng, coins
from discretion.preference import MICRO, Integers, allowance
from discretion.social.exchange import Exchange, distinct, places
from discretion.social.similarity import Draw
from discretion.social.strangers import NOBODY, Strangers, anyone, chances, fill

VIEW = 10  # entries of a random view
SENT = 5  # entries exchanged

Protocol = Callable[[Exchange], "Clustering"]
Queue = Literal["best", "overwriting"]
Seen = Sequence[tuple[Integers, Integers]]  # (person, peer) arrays that broadcast to one shape


@dataclass(frozen=True, kw_only=True, eq=False)
class Clustering:
    """Everybody's nearest peers as far as gossip found them, and what finding them cost."""

    neighbours: Integers  # (person, place): best first, NOBODY where none was found
    releases: Integers  # per person: answered pairs
    spent: Integers  # per person: micro-ε an item of weight 1 has lost; weight v: v times that
    guarantee: Guarantee | None  # None: not private
    simulated: bool

    @classmethod
    def of(cls, exchange: Exchange, neighbours: Integers) -> "Clustering":
        return cls(
            neighbours=neighbours,
            releases=exchange.releases.copy(),
            spent=exchange.spent.copy(),
            guarantee=exchange.guarantee,
            simulated=exchange.rng is not None,
        )

    def __str__(self) -> str:
        return (
            f"{len(self.releases):,} people, {self.releases.mean():.1f} peers compared on average "
            f"({self.releases.max()} at most); an item of weight 1 lost ε = {self.spent.mean() / MICRO:g} on average, "
            f"{self.spent.max() / MICRO:g} at most"
        )


def explore(
    exchange: Exchange,
    *,
    neighbours: int = 10,
    rounds: int = 20,
    peers: int = 1,
    friends: float = 0.5,
    progress: bool = False,
) -> Clustering:
    """Everybody asks `peers` others a round: a friend's friend with chance `friends`, else anyone. Both remember."""
    people, rng = exchange.people, exchange.rng
    row = np.arange(people)[:, None]
    view = np.full((people, neighbours), NOBODY)
    for _ in track(range(rounds), description="rounds", disable=not progress, transient=True):
        friend = view[row, _column(people, peers, neighbours, rng)]
        theirs = view[friend, _column(people, peers, neighbours, rng)]
        known = (friend != NOBODY) & (theirs != NOBODY) & (theirs != row) & (chances(friend.shape, rng) < friends)
        asked = np.where(known, theirs, anyone(np.broadcast_to(row, friend.shape), people, rng))
        view = nearest(exchange, [(row, view), (row, asked), (asked, row)], neighbours)
    return Clustering.of(exchange, view)


def gossip(
    exchange: Exchange, *, neighbours: int = 10, rounds: int = 20, queue: Queue = "best", progress: bool = False
) -> Clustering:
    """Two layers: Cyclon keeps a changing random view; Vicinity swaps the best peers with the one met longest ago.

    All people act at once in a round. Everybody keeps the best of own peers, own random view and what was received,
    and sends the peers that are best for themselves, as the authors' simulator does; its faulty queue, in which a
    newcomer replaces the first peer it beats, is `queue="overwriting"`.
    """
    people, rng = exchange.people, exchange.rng
    strangers = Strangers.meet(people, VIEW, rng)
    row = np.arange(people)[:, None]
    view, waited = np.full((people, neighbours), NOBODY), np.zeros((people, neighbours), dtype=np.int64)
    for _ in track(range(rounds), description="rounds", disable=not progress, transient=True):
        strangers = strangers.shuffle(SENT, rng)
        oldest = np.argmax(np.where(view == NOBODY, -1, waited), axis=1)[:, None]
        friend = view[row, oldest]
        partner = np.where(friend == NOBODY, anyone(row, people, rng), friend)
        np.put_along_axis(waited, oldest, 0, axis=1)
        sent = np.column_stack([row, view[:, :SENT]])  # oneself and one's best
        seen = [(row, view), (row, strangers.peers), (row, sent[partner[:, 0]]), (partner, sent)]
        before, view = view, nearest(exchange, seen, neighbours, queue)
        waited = _carry(before, waited + 1, view)
    return Clustering.of(exchange, view)


def nearest(exchange: Exchange, seen: Seen, neighbours: int, queue: Queue = "best") -> Integers:
    """Everybody's most similar peers among those seen, (person, place), ties to the smaller number."""
    people = exchange.people
    key = np.concatenate([np.where((b == NOBODY) | (a == b), NOBODY, a * people + b).ravel() for a, b in seen])
    person, peer = np.divmod(distinct(key[key != NOBODY]), people)
    score = exchange.ask(person, peer)
    answered = ~np.isnan(score)  # who no longer answers is forgotten
    person, peer, score = person[answered], peer[answered], score[answered]
    if queue == "overwriting":
        return _overwriting(person, peer, score, (people, neighbours), exchange.rng)
    order = np.lexsort((-score, person))  # stable: equal scores stay in the order of peers
    return fill(person[order], (people, neighbours), peer[order], NOBODY)


def expected_peers(protocol: Protocol, people: int, rng: Rng = None) -> int:
    """Estimate with how many peers one person is compared, from a rehearsal without profiles. Public."""
    return max(1, int(np.ceil(protocol(Exchange(_Rehearsal(people=people), rng=rng)).releases.mean())))


def split_total(total: float, peers: int) -> int:
    """The micro-ε of one answer, so that `peers` answers together cost an item of weight 1 at most `total`."""
    price = int(allowance(total)) // peers
    if price <= 0:
        raise InvalidDeclaration(f"A total of ε = {total:g} cannot be split over {peers} peers in whole millionths.")
    return price


@dataclass(frozen=True, kw_only=True)
class _Rehearsal:
    """A similarity that looks at no profile."""

    people: int
    micro_epsilon: int = 0
    joining: int = 0

    def promise(self, micro_epsilon: int) -> None:
        return

    def join(self, rng: Rng) -> Draw:
        return lambda left, right, rng: chances(left.size, rng)


def _overwriting(person: Integers, peer: Integers, score: Floats, shape: tuple[int, int], rng: Rng) -> Integers:
    """The queue of the authors' simulator: in random order, each peer replaces the first one it beats."""
    order = np.argsort(chances(person.size, rng))
    person, peer, score = person[order], peer[order], score[order]
    turn = places(person)
    view, held = np.full(shape, NOBODY), np.full(shape, -np.inf)
    for now in range(int(turn.max(initial=-1)) + 1):
        who, whom, how = person[turn == now], peer[turn == now], score[turn == now]
        beaten = held[who] < how[:, None]
        first, enters = np.argmax(beaten, axis=1), beaten.any(axis=1)
        view[who[enters], first[enters]], held[who[enters], first[enters]] = whom[enters], how[enters]
    return np.take_along_axis(view, np.argsort(-held, axis=1), axis=1)


def _column(people: int, peers: int, width: int, rng: Rng) -> Integers:
    return (coins(people * peers, rng) % np.uint64(width)).astype(np.int64).reshape(people, peers)


def _carry(before: Integers, waited: Integers, after: Integers) -> Integers:
    """Return how long each entry of the new view has waited: as before if it was there, else 0."""
    same = (after[:, :, None] == before[:, None, :]) & (after[:, :, None] != NOBODY)
    return np.asarray((same * waited[:, None, :]).max(axis=2))
