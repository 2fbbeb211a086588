"""Exchange: who has answered whom, one draw per pair, charged once to both until a budget is spent."""

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from discretion.errors import InvalidDeclaration
from discretion.guarantee import Guarantee
from discretion.noise import Floats, Rng, coins
from discretion.preference import MICRO, Integers, allowance
from discretion.social.profile import Profiles
from discretion.social.similarity import Similarity
from discretion.social.weight import WHOLE


class Exchange:
    """The memory and the ledger of one network of people who compare profiles.

    A pair asked again gets the same answer at no charge. `spent` is what an item of weight 1 has lost, per person;
    an item of weight v has lost v times that. With a budget, a person who cannot pay stops answering, so nobody's
    items ever lose more than budget·v. Who is asked and who still answers follows from earlier noisy answers and
    from prices alone, so composition simply adds ([AGK16] leaves it out; docs/errata.md).
    """

    def __init__(self, similarity: Similarity, *, budget: float | None = None, rng: Rng = None) -> None:
        people = similarity.people
        self.similarity, self.people, self.rng = similarity, people, rng
        self.budget = None if budget is None else int(allowance(budget))
        if self.budget is not None and self.budget < similarity.joining:
            raise InvalidDeclaration(
                f"Joining costs ε = {similarity.joining / MICRO:g}, more than the budget of {self.budget / MICRO:g}."
            )
        self.spent: Integers = np.full(people, similarity.joining, dtype=np.int64)  # before any profile is read
        self._draw = similarity.join(rng)
        self.releases: Integers = np.zeros(people, dtype=np.int64)
        self._pairs: Integers = np.zeros(0, dtype=np.int64)  # sorted smaller·people + larger
        self._scores: Floats = np.zeros(0)

    def ask(self, left: Integers, right: Integers) -> Floats:
        """The score of each pair; NaN where one side no longer answers."""
        if np.any(left == right):
            raise InvalidDeclaration("Nobody is compared with themselves: a pair needs two people.")
        pair = np.minimum(left, right) * self.people + np.maximum(left, right)
        scores = _look_up(pair, self._pairs, self._scores)
        unknown = np.isnan(scores)
        scores[unknown] = _look_up(pair[unknown], *self._answer(distinct(pair[unknown])))
        return scores

    def pay(self, person: Integers, micro_epsilon: int) -> NDArray[np.bool_]:
        """Charge each of these different people if they can pay; who did."""
        if distinct(person).size != person.size:
            raise InvalidDeclaration("Nobody is charged twice for one release: name each person once.")
        able = np.full(person.size, True) if self.budget is None else self.spent[person] + micro_epsilon <= self.budget
        self.spent[person[able]] += micro_epsilon
        return able

    @property
    def guarantee(self) -> Guarantee | None:
        """Return what everybody was promised: the budget, or without one the most that a person has paid."""
        return self.similarity.promise(self.budget if self.budget is not None else int(self.spent.max()))

    def item_totals(self, profiles: Profiles) -> sparse.csr_array:
        """Return what every held item has lost, in micro-ε, rounded up. For owners only: it shows their items."""
        owner = np.repeat(np.arange(self.people), profiles.sizes)
        lost = -(-self.spent[owner] * profiles.weights.data // WHOLE)
        return sparse.csr_array((lost, profiles.weights.indices, profiles.weights.indptr), shape=profiles.weights.shape)

    def _answer(self, fresh: Integers) -> tuple[Integers, Floats]:
        """Charge the fresh pairs that both sides can pay, then draw their scores; those pairs and scores."""
        fresh = fresh[self._payable(fresh)]
        left, right = np.divmod(fresh, self.people)
        asked = np.bincount(left, minlength=self.people) + np.bincount(right, minlength=self.people)
        self.releases += asked
        self.spent += asked * self.similarity.micro_epsilon  # before any profile is read
        scores = self._draw(left, right, self.rng)
        order = np.argsort(np.concatenate([self._pairs, fresh]), kind="stable")  # two sorted runs: linear
        self._pairs = np.concatenate([self._pairs, fresh])[order]
        self._scores = np.concatenate([self._scores, scores])[order]
        return fresh, scores

    def _payable(self, fresh: Integers) -> NDArray[np.bool_]:
        """Return which pairs both sides can pay, asked one after the other in random order."""
        price = self.similarity.micro_epsilon
        payable = np.full(fresh.size, True)
        if self.budget is None or price == 0 or not fresh.size:
            return payable
        left, right = np.divmod(fresh, self.people)
        affordable = (self.budget - self.spent) // price  # answers each person can still give
        asked = np.bincount(left, minlength=self.people) + np.bincount(right, minlength=self.people)
        if np.all(asked <= affordable):
            return payable
        remaining = affordable.tolist()
        for turn in np.argsort(coins(fresh.size, self.rng)).tolist():
            a, b = int(left[turn]), int(right[turn])
            payable[turn] = remaining[a] > 0 and remaining[b] > 0
            if payable[turn]:
                remaining[a] -= 1
                remaining[b] -= 1
        return payable


def _look_up(pair: Integers, pairs: Integers, scores: Floats) -> Floats:
    """The score of each pair in a sorted list; NaN where it is not there."""
    if not pairs.size:
        return np.full(pair.size, np.nan)
    place = np.minimum(np.searchsorted(pairs, pair), pairs.size - 1)
    return np.where(pairs[place] == pair, scores[place], np.nan)


def distinct(values: Integers) -> Integers:
    """Sorted and each once, by sorting: NumPy's hash-based unique is many times slower on keys like ours."""
    ordered = np.sort(values)
    return ordered[np.r_[True, ordered[1:] != ordered[:-1]]] if ordered.size else ordered


def places(labels: Integers) -> Integers:
    """For each entry, how many earlier entries have the same label."""
    order = np.argsort(labels, kind="stable")
    ordered = labels[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    place = np.arange(labels.size) - np.repeat(starts, np.diff(np.r_[starts, labels.size]))
    result = np.empty(labels.size, dtype=np.int64)
    result[order] = place
    return result
