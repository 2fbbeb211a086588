"""Strangers: a changing random view of the network for everybody (the Cyclon protocol, all people at once)."""

from dataclasses import dataclass

import numpy as np

from discretion.noise import Floats, Rng, coins
from discretion.preference import Integers
from discretion.social.exchange import places

NOBODY = -1


@dataclass(frozen=True, kw_only=True, eq=False)
class Strangers:
    """Says whom everybody happens to know, and for how many rounds. Nobody's profile plays a part."""

    peers: Integers  # (person, place), NOBODY where empty
    ages: Integers

    @classmethod
    def meet(cls, people: int, width: int, rng: Rng) -> "Strangers":
        """Random views to start with."""
        person = np.repeat(np.arange(people), 2 * width)
        peer = anyone(person, people, rng)
        return cls._of(person, peer, np.zeros_like(person), chances(person.size, rng), (people, width))

    def shuffle(self, sent: int, rng: Rng) -> "Strangers":
        """Everybody swaps `sent` entries, themselves among them, with the peer they know longest.

        New entries take the places of those given away; only where too few came are given ones kept.
        """
        people, width = self.peers.shape
        row, ages = np.arange(people)[:, None], self.ages + 1
        oldest = np.argmax(np.where(self.peers == NOBODY, -1, ages), axis=1)[:, None]
        partner = np.where(self.peers[row, oldest] == NOBODY, anyone(row, people, rng), self.peers[row, oldest])
        chance = chances((people, width), rng)
        np.put_along_axis(chance, oldest, 2.0, axis=1)  # nobody is sent their own number
        offer = np.argsort(chance, axis=1)[:, : sent - 1]
        reply = np.argsort(chances((people, width), rng), axis=1)[:, :sent]  # columns the partner sends back
        given = np.zeros((people, width), dtype=bool)
        given[row, offer] = given[partner, reply] = True
        kept = self.peers.copy()
        np.put_along_axis(kept, oldest, NOBODY, axis=1)
        entries = [
            (row, kept, ages, 2.0 * given),
            (partner, row, np.zeros_like(row), np.ones_like(row)),
            (partner, self.peers[row, offer], ages[row, offer], np.ones(offer.shape)),
            (row, self.peers[partner, reply], ages[partner, reply], np.ones(reply.shape)),
        ]
        person, peer, age, rank = (
            np.concatenate([np.broadcast_to(entry[part], entry[1].shape).ravel() for entry in entries])
            for part in range(4)
        )
        return self._of(person, peer, age, rank + chances(rank.size, rng), (people, width))

    @classmethod
    def _of(cls, person: Integers, peer: Integers, age: Integers, rank: Floats, shape: tuple[int, int]) -> "Strangers":
        """The entries of lowest rank, each peer once."""
        real = (peer != NOBODY) & (peer != person)
        person, peer, age, rank = person[real], peer[real], age[real], rank[real]
        order = np.lexsort((rank, person))
        person, peer, age = person[order], peer[order], age[order]
        _, first = np.unique(person * shape[0] + peer, return_index=True)
        first.sort()
        person, peer, age = person[first], peer[first], age[first]
        peers, ages = fill(person, shape, peer, NOBODY), fill(person, shape, age, 0)
        return cls(peers=peers, ages=ages)


def fill(person: Integers, shape: tuple[int, int], value: Integers, empty: int) -> Integers:
    """Values listed by person as one row each, cut at the width and filled up with `empty`."""
    place = places(person)
    fits = place < shape[1]
    rows = np.full(shape, empty, dtype=np.int64)
    rows[person[fits], place[fits]] = value[fits]
    return rows


def anyone(person: Integers, people: int, rng: Rng) -> Integers:
    """A uniformly random other person for each."""
    other = (coins(person.size, rng) % np.uint64(people - 1)).astype(np.int64).reshape(person.shape)
    return other + (other >= person)


def chances(shape: tuple[int, ...] | int, rng: Rng) -> Floats:
    """Uniform numbers in [0, 1); no privacy rests on them."""
    return (coins(int(np.prod(shape)), rng) >> np.uint64(11)).astype(np.float64).reshape(shape) * 2.0**-53
