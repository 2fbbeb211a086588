"""Recall: how many of the items hidden from people their neighbours bring back, for every way of finding neighbours."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from rich.progress import track
from scipy import sparse, stats

from discretion.errors import InvalidDeclaration
from discretion.noise import Floats, Rng, simulation
from discretion.preference import MICRO, Integers, allowance
from discretion.social.exchange import Exchange
from discretion.social.gossip import Clustering, Protocol, gossip
from discretion.social.profile import Profiles
from discretion.social.similarity import Coefficient, Cosine, Exact, ScalarProduct
from discretion.social.strangers import NOBODY, chances
from discretion.social.weight import WESTIN, WHOLE

CONFIDENCE = 0.99  # as in the paper


@dataclass(frozen=True, kw_only=True, eq=False)
class Split:
    """Profiles with a part of the items hidden from their owners."""

    whole: Profiles
    training: Profiles
    hidden: Any  # (person, item): the test items


def split(profiles: Profiles, *, share: float = 0.1, rng: Rng = None) -> Split:
    """Hide each held item with this probability if at least two people hold it."""
    holders = np.bincount(profiles.weights.indices, minlength=profiles.items)
    hidden = (chances(profiles.weights.nnz, rng) < share) & (holders[profiles.weights.indices] >= 2)
    training = Profiles(weights=profiles.entries(~hidden), groups=profiles.groups)
    return Split(whole=profiles, training=training, hidden=profiles.entries(hidden))


def recall(neighbours: Integers, held: Any, hidden: Any) -> Floats:
    """Each person's share of hidden items that some neighbour holds; NaN for people without any.

    It reads the neighbours' whole profiles: an experiment, outside every guarantee.
    """
    person, item = _entries(hidden)
    holder, has = _entries(held)
    known = np.sort(holder * held.shape[1] + has)
    asked = neighbours[person] * held.shape[1] + item[:, None]  # (hidden item, place)
    place = np.minimum(np.searchsorted(known, asked), known.size - 1)
    found = ((known[place] == asked) & (neighbours[person] != NOBODY)).any(axis=1)
    return _mean_by_person(person, found, held.shape[0])


def precision(neighbours: Integers, held: Any, known: Any, hidden: Any) -> Floats:
    """Return each person's share of hidden items among all that neighbours hold and the person does not know yet.

    0 where neighbours bring nothing new, NaN for people without hidden items. An experiment, like `recall`.
    """
    person, place = np.nonzero(neighbours != NOBODY)
    links = (np.ones(person.size, dtype=np.int32), (person, neighbours[person, place]))
    brought = _indicator(sparse.csr_array(links, shape=(held.shape[0],) * 2) @ _indicator(held))
    new = brought - brought.multiply(_indicator(known))
    hits = np.asarray(new.multiply(_indicator(hidden)).sum(axis=1), dtype=np.float64)
    shown = np.asarray(new.sum(axis=1), dtype=np.float64)
    return np.where(np.diff(hidden.indptr) > 0, hits / np.maximum(shown, 1), np.nan)


def f1(precision: Floats, recall: Floats) -> Floats:
    """Return the harmonic mean of precision and recall, 0 where both are."""
    total = precision + recall
    return np.where(total > 0, 2 * precision * recall / np.where(total > 0, total, 1), total)


def random_recall(held: Any, hidden: Any, neighbours: int) -> Floats:
    """The exact expectation of `recall` for k random neighbours: 1 − C(n−1−h, k)/C(n−1, k), h other holders."""
    people = held.shape[0]
    person, item = _entries(hidden)
    others = np.bincount(held.indices, minlength=held.shape[1])[item] - 1
    places = np.arange(min(neighbours, people - 1))
    missed = np.clip((people - 1 - others[:, None] - places) / (people - 1 - places), 0, None).prod(axis=1)
    return _mean_by_person(person, 1 - missed, people)


@dataclass(frozen=True, kw_only=True)
class Preparation:
    """One way of finding neighbours: how profiles are prepared, and what is asked of them."""

    name: str
    build: Callable[[Profiles, Rng], Exchange]
    prepare: Callable[[Profiles, Rng], Profiles] = lambda profiles, rng: profiles


@dataclass(frozen=True, kw_only=True)
class Achievement:
    """Says what one contender achieved for one group over all runs, and what an item of weight 1 paid for it."""

    name: str
    group: str
    recall: float
    half_width: float  # of the confidence interval of the mean recall over runs
    precision: float
    f1: float
    random: float  # the exact expectation of random neighbours on the same networks
    mean_total: float  # ε over all releases, mean over people; an item of weight v lost v times this
    largest_total: float
    mean_peers: float


def compare(
    profiles: Profiles,
    contenders: Sequence[Preparation],
    *,
    protocol: Protocol = gossip,
    neighbours: int = 10,
    runs: int = 5,
    seed: int = 0,
    untested: float = np.nan,
    progress: bool = False,
) -> list[Achievement]:
    """Run all contenders on the same groups and splits; one outcome per contender and group (`all` first).

    People without hidden items count as `untested`: NaN leaves them out (the paper), 0 is the authors' simulator.
    """
    if runs < 2:
        raise InvalidDeclaration(f"An interval needs at least two runs, got {runs}.")
    jobs = [(contender, run) for contender in contenders for run in range(runs)]
    rows: dict[str, list[dict[str, _Sample]]] = {contender.name: [] for contender in contenders}
    for contender, run in track(jobs, description="recall", disable=not progress, transient=True):
        clustered = _cluster(profiles, contender, protocol, 1000 * seed + run)
        rows[contender.name].append(_samples(*clustered, neighbours, untested))
    return [outcome for name, samples in rows.items() for outcome in _outcomes(name, samples)]


def non_private(measure: Any = "product") -> Preparation:
    """The true similarity."""
    return Preparation(
        name=f"non-private {measure}", build=lambda p, rng: Exchange(Exact(profiles=p, measure=measure), rng=rng)
    )


def hdp(
    epsilon: float,
    *,
    coefficient: Coefficient = "min",
    public_sizes: bool = False,
    squared: bool = False,
    budget: float | None = None,
    name: str | None = None,
) -> Preparation:
    """Noisy scalar products at this ε a pair, or cosines with sizes declared public, squared as in the simulator."""

    def build(profiles: Profiles, rng: Rng) -> Exchange:
        product = ScalarProduct(profiles=profiles, micro_epsilon=int(allowance(epsilon)), coefficient=coefficient)
        return Exchange(Cosine.public(product, squared=squared) if public_sizes else product, budget=budget, rng=rng)

    measure = "cosine" if public_sizes else "scalar"
    return Preparation(name=name or f"HDP {measure} {coefficient} ε={epsilon:g}", build=build)


def grouped(contender: Preparation, shares: Mapping[str, float], *, per: str = "item") -> Preparation:
    """The same with Westin groups in these shares."""
    return Preparation(
        name=contender.name, build=contender.build, prepare=lambda p, rng: p.westin(shares, rng, per=per)
    )


def naive(
    epsilon: float,
    shares: Mapping[str, float],
    *,
    dropped: float = 1.0,
    public_sizes: bool = False,
    squared: bool = False,
) -> Preparation:
    """[AGK16] Naive: this part of the fundamentalists leaves, everybody else gets weight 1/2 (signal ε/4 a pair)."""
    return Preparation(
        name=f"Naive ε={epsilon:g}",
        build=hdp(epsilon, coefficient="product", public_sizes=public_sizes, squared=squared).build,
        prepare=lambda p, rng: _without(p.westin(shares, rng), dropped, rng).weigh(WHOLE // 2),
    )


def homogeneous(
    epsilon: float,
    shares: Mapping[str, float],
    *,
    dropped: float = 1.0,
    public_sizes: bool = False,
    squared: bool = False,
) -> Preparation:
    """Return what Naive was meant to be: the same people at a true ε/2, weight 1."""
    return Preparation(
        name=f"homogeneous ε/2, ε={epsilon:g}",
        build=hdp(epsilon / 2, public_sizes=public_sizes, squared=squared).build,
        prepare=lambda p, rng: _without(p.westin(shares, rng), dropped, rng).weigh(WHOLE),
    )


@dataclass(frozen=True, kw_only=True)
class _Sample:
    recall: float
    precision: float
    f1: float
    random: float
    mean_total: float
    largest_total: float
    mean_peers: float


def _cluster(profiles: Profiles, contender: Preparation, protocol: Protocol, seed: int) -> tuple[Split, Clustering]:
    parts = split(contender.prepare(profiles, simulation(3 * seed)), rng=simulation(3 * seed + 1))
    return parts, protocol(contender.build(parts.training, simulation(3 * seed + 2)))


def _samples(parts: Split, clustering: Clustering, neighbours: int, untested: float) -> dict[str, _Sample]:
    held, hidden = parts.whole.weights, parts.hidden
    found = recall(clustering.neighbours, held, hidden)
    exact = precision(clustering.neighbours, held, parts.training.weights, hidden)
    every = {"recall": found, "precision": exact, "f1": f1(exact, found)}
    every["random"] = random_recall(held, hidden, neighbours)
    values = {name: np.where(np.isnan(each), untested, each) for name, each in every.items()}
    members = {"all": np.full(parts.whole.people, True)}
    if parts.whole.groups is not None:
        members |= {name: parts.whole.groups == number for number, name in enumerate(WESTIN)}
    return {name: _sample(values, clustering, who) for name, who in members.items() if who.any()}


def _sample(values: Mapping[str, Floats], clustering: Clustering, who: Any) -> _Sample:
    tested = who & ~np.isnan(values["recall"])
    spent = clustering.spent[who] / MICRO
    return _Sample(
        **{name: float(each[tested].mean()) if tested.any() else np.nan for name, each in values.items()},
        mean_total=float(spent.mean()),
        largest_total=float(spent.max()),
        mean_peers=float(clustering.releases[who].mean()),
    )


def _outcomes(name: str, samples: list[dict[str, _Sample]]) -> list[Achievement]:
    outcomes = []
    for group in samples[0]:
        rows = [sample[group] for sample in samples if group in sample]
        values = np.array([row.recall for row in rows])
        quantile = stats.t.ppf((1 + CONFIDENCE) / 2, max(1, values.size - 1))
        outcomes.append(
            Achievement(
                name=name,
                group=group,
                recall=float(values.mean()),
                half_width=float(quantile * values.std(ddof=1) / np.sqrt(values.size)) if values.size > 1 else np.nan,
                precision=float(np.mean([row.precision for row in rows])),
                f1=float(np.mean([row.f1 for row in rows])),
                random=float(np.mean([row.random for row in rows])),
                mean_total=float(np.mean([row.mean_total for row in rows])),
                largest_total=float(np.max([row.largest_total for row in rows])),
                mean_peers=float(np.mean([row.mean_peers for row in rows])),
            )
        )
    return outcomes


def _without(profiles: Profiles, dropped: float, rng: Rng) -> Profiles:
    if profiles.groups is None:
        raise InvalidDeclaration("Only profiles with groups can lose their fundamentalists.")
    strict = profiles.groups == list(WESTIN).index("fundamentalists")
    return profiles.keep(~(strict & (chances(profiles.people, rng) < dropped)))


def _entries(matrix: sparse.csr_array) -> tuple[Integers, Integers]:
    """Row and column of every stored entry, those of value 0 too."""
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    return rows, matrix.indices.astype(np.int64)


def _indicator(matrix: Any) -> Any:
    """Return 1 where an entry is stored, those of value 0 too."""
    stored = sparse.csr_array(matrix)
    return sparse.csr_array((np.ones(stored.nnz, dtype=np.int32), stored.indices, stored.indptr), shape=stored.shape)


def _mean_by_person(person: Integers, value: Any, people: int) -> Floats:
    count = np.bincount(person, minlength=people)
    total = np.bincount(person, weights=value, minlength=people)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)
