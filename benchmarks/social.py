"""Item-level privacy: recall against its honest per-item total on real profiles, ways of ranking, and speed."""

import resource
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import perf_counter, process_time

import numpy as np
import pyarrow.parquet as pq
from matplotlib import pyplot
from rich.console import Console
from rich.progress import track
from rich.table import Table

from discretion.noise import Rng, simulation
from discretion.preference import MICRO
from discretion.social import Cosine, Exact, Exchange, Profiles, Response, ScalarProduct, explore, gossip, recommend
from discretion.social.dataset import NETWORKS, Network
from discretion.social.gossip import expected_peers, split_total
from discretion.social.recall import (
    Achievement,
    Preparation,
    compare,
    grouped,
    hdp,
    homogeneous,
    naive,
    non_private,
    split,
)

DATA = Path("../shared/data")
POLL = {"unconcerned": 0.23, "pragmatists": 0.43, "fundamentalists": 0.34}  # [AGK16]: shares found by a poll
MIXES = {
    "poll": POLL,
    "open": {"unconcerned": 0.7, "pragmatists": 0.2, "fundamentalists": 0.1},
    "strict": {"unconcerned": 0.1, "pragmatists": 0.1, "fundamentalists": 0.8},
}
TOTALS = (1.0, 3.0, 10.0, 30.0)
RUNS = 4
SHOWN = Console().is_terminal  # progress bars


def main() -> None:
    console = Console()
    networks = {"msweb": visits(console), "food": likes(console)}
    for name, profiles in networks.items():
        console.print(_mixes(name, profiles))
        console.print(_baselines(name, profiles))
    curves = {name: _curves(profiles) for name, profiles in networks.items()}
    for name, outcomes in curves.items():
        console.print(_rankings(name, outcomes))
    console.print(f"plot: {_plot(curves)}")
    console.print(_recommendations(networks))
    console.print(_speed())


def visits(console: Console, people: int = 1_200) -> Profiles:
    """People with at least six visited areas of a web site, the first 1,200; generated if the file is missing."""
    if not (DATA / "msweb_visits.parquet").exists():
        console.print("msweb: the file is missing, generated profiles are used")
        return _like_msweb(people, mean=8)
    every = everybody()
    active = np.flatnonzero(every.sizes >= 6)[:people]
    return every.keep(np.isin(np.arange(every.people), active))


def everybody() -> Profiles:
    """All 37,711 visitors."""
    table = pq.read_table(DATA / "msweb_visits.parquet", columns=["user_id", "area_id"])
    people, areas = (table[name].unique().to_pylist() for name in ("user_id", "area_id"))  # the file is public
    return Profiles.from_arrow(table, person="user_id", item="area_id", people=people, catalogue=areas)


def _like_msweb(people: int, mean: int) -> Profiles:
    made = Network(people=people, items=286, mean=mean, communities=8, outside=0.05, popularity=1.0, activity=0.5)
    return made.generate(simulation(0))


def likes(console: Console) -> Profiles:
    """Whose food people like (4 or 5 of 5), for people who like anything; generated if the file is missing."""
    if not (DATA / "food_world_cup.parquet").exists():
        console.print("food: the file is missing, generated profiles are used")
        made = Network(people=1_200, items=40, mean=9, communities=4, outside=0.2, popularity=0.5, activity=0.5)
        return made.generate(simulation(0))
    table = pq.read_table(DATA / "food_world_cup.parquet")
    rated = table.select([name for name in table.column_names if name.startswith("like_")])
    liked = np.column_stack([column.fill_null(0).to_numpy() for column in rated.columns]) >= 4
    liked = liked[liked.any(axis=1)]
    return Profiles.of(*np.nonzero(liked), people=liked.shape[0], items=liked.shape[1])


def _mixes(name: str, profiles: Profiles) -> Table:
    table = _table(
        f"{name}: {profiles.people:,} people, {profiles.items} items; gossip, k = 10, 20 rounds, {RUNS} runs; "
        "recall ± 99%; total = ε that an item of weight 1 lost over all releases (weight v: v times that)",
        "groups", "method", "recall", "U", "P", "F", "random", "total mean", "total max",
    )  # fmt: skip
    for mix, shares in MIXES.items():
        private = [hdp(epsilon) for epsilon in (0.1, 1.0, 3.0)]
        printed = hdp(1.0, coefficient="product", public_sizes=True, name="paper's cosine, sizes public, ε=1")
        contenders = [grouped(c, shares) for c in (non_private(), *private, printed)]
        found = compare(profiles, contenders, runs=RUNS, progress=SHOWN)
        for contender in contenders:
            group = {o.group: o for o in found if o.name == contender.name}
            whole = group["all"]
            each = [f"{group[g].recall:.3f}" for g in ("unconcerned", "pragmatists", "fundamentalists")]
            table.add_row(mix, contender.name, _recall(whole), *each, f"{whole.random:.3f}", *_totals(whole))
        table.add_section()
    return table


def _baselines(name: str, profiles: Profiles) -> Table:
    table = _table(
        f"{name}: HDP against dropping the fundamentalists (poll shares; Naive and ε/2 average over who is left)",
        "method", "recall", "random", "total mean", "total max",
    )  # fmt: skip
    rivals = [grouped(hdp(1.0), POLL), naive(1.0, POLL), homogeneous(1.0, POLL)]
    for outcome in compare(profiles, rivals, runs=RUNS, progress=SHOWN):
        if outcome.group == "all":
            table.add_row(outcome.name, _recall(outcome), f"{outcome.random:.3f}", *_totals(outcome))
    return table


def ways(total: float, people: int) -> list[Preparation]:
    """Every way of ranking that costs an item of weight 1 at most `total` over everything."""
    peers = expected_peers(explore, people, simulation(0))
    price, dear = split_total(total, peers), split_total(0.8 * total, peers)

    def product(profiles: Profiles, micro: int, coefficient: str = "min") -> ScalarProduct:
        return ScalarProduct(profiles=profiles, micro_epsilon=micro, coefficient=coefficient)  # type: ignore[arg-type]

    def sized(profiles: Profiles, rng: Rng) -> Exchange:
        cosine = Cosine.charged(product(profiles, dear), size_epsilon=0.2 * total)
        return Exchange(cosine, budget=total, rng=rng)

    def published(profiles: Profiles, rng: Rng) -> Response:
        return Response.publish(profiles, epsilon=total)

    builds: dict[str, Callable[[Profiles, Rng], Exchange]] = {
        "scalar, min": lambda p, rng: Exchange(product(p, price), budget=total, rng=rng),
        "scalar, product": lambda p, rng: Exchange(product(p, price, "product"), budget=total, rng=rng),
        "cosine, sizes charged": sized,
        "randomised response": lambda p, rng: Exchange(published(p, rng), budget=total, rng=rng),
        "response, shrunk": lambda p, rng: Exchange(published(p, rng).shrunk(), budget=total, rng=rng),
    }
    return [grouped(Preparation(name=name, build=build), POLL) for name, build in builds.items()]


def _curves(profiles: Profiles) -> dict[float, list[Achievement]]:
    """All ways at all totals. Exploration of one peer a round spends least; published copies may be gossiped freely."""
    best = compare(profiles, [grouped(non_private(), POLL)], runs=RUNS, progress=SHOWN)
    found = {}
    for total in TOTALS:
        contenders = ways(total, profiles.people)
        paid = compare(profiles, contenders[:3], protocol=explore, runs=RUNS, progress=SHOWN)
        free = compare(profiles, contenders[3:], protocol=gossip, runs=RUNS, progress=SHOWN)
        found[total] = [o for o in (*best, *paid, *free) if o.group == "all"]
    return found


def _rankings(name: str, outcomes: dict[float, list[Achievement]]) -> Table:
    ranked = list(dict.fromkeys(o.name for o in outcomes[TOTALS[0]]))
    table = _table(
        f"{name}: recall when everything together may cost an item of weight 1 at most this ε (poll shares)",
        "method", *(f"total {total:g}" for total in TOTALS), "largest spent / total",
    )  # fmt: skip
    for method in ranked:
        row = [next(o for o in outcomes[total] if o.name == method) for total in TOTALS]
        worst = max(o.largest_total / total for o, total in zip(row, TOTALS, strict=True))
        table.add_row(method, *(_recall(o) for o in row), f"{worst:.3f}")
    table.add_row("random (exact)", *(f"{outcomes[total][0].random:.3f}" for total in TOTALS), "0")
    return table


def _plot(curves: dict[str, dict[float, list[Achievement]]]) -> Path:
    figure, panels = pyplot.subplots(1, len(curves), figsize=(12, 4.5), constrained_layout=True)
    for panel, (name, outcomes) in zip(panels, curves.items(), strict=True):
        for method in dict.fromkeys(o.name for o in outcomes[TOTALS[0]]):
            row = [next(o for o in outcomes[total] if o.name == method) for total in TOTALS]
            panel.errorbar(
                TOTALS, [o.recall for o in row], yerr=[o.half_width for o in row], marker="o", capsize=3, label=method
            )
        panel.axhline(outcomes[TOTALS[0]][0].random, color="black", linestyle=":", label="random (exact)")
        panel.set(xscale="log", xlabel="total ε of an item of weight 1", ylabel="recall", title=name)
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize=8)
    path = Path("bench-output") / "social_recall.png"
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, dpi=120)
    pyplot.close(figure)
    return path


def _recommendations(networks: dict[str, Profiles]) -> Table:
    table = _table(
        "ten recommendations each, 200 people: hidden items found; noisy counts at ε more for each neighbour's item",
        "data", "ε a recommendation", "found, exact neighbours", "found, HDP neighbours (ε = 1 a pair)", "ten random",
    )  # fmt: skip
    for name, profiles in networks.items():
        parts = split(profiles.westin(POLL, simulation(1)), rng=simulation(2))
        tested = np.flatnonzero(np.diff(parts.hidden.indptr))[:200]
        chance = np.mean(10 / (profiles.items - parts.training.sizes[tested]))
        for epsilon in (0.1, 1.0, 10.0):
            found = []
            for similarity in (
                Exact(profiles=parts.training),
                ScalarProduct(profiles=parts.training, micro_epsilon=MICRO),
            ):
                exchange = Exchange(similarity, rng=simulation(3))
                clustering = gossip(exchange)
                hits = []
                for person in tested:
                    shown = recommend(exchange, clustering, parts.training, int(person), epsilon=epsilon)
                    hits.append(np.isin(parts.hidden[[person]].indices, shown.items).mean())
                found.append(f"{np.mean(hits):.3f}")
            table.add_row(name, f"{epsilon:g}", *found, f"{chance:.3f}")
    return table


def _speed() -> Table:
    table = _table(
        "speed, one run of 20 rounds, k = 10", "network", "protocol", "pairs", "seconds", "CPU seconds", "peak, GB"
    )
    small = Network(people=500, items=1_000, mean=60, communities=8, outside=0.2, popularity=0.7, activity=0.5)
    generated = {
        f"{n.people} people, {n.mean} items each": n.generate(simulation(0)) for n in (small, NETWORKS["Digg"])
    }
    networks = {name: profiles.weigh(1_000) for name, profiles in generated.items()}
    if (DATA / "msweb_visits.parquet").exists():
        networks["37,711 people, msweb"] = everybody().weigh(1_000)
    else:
        networks["30,000 people, generated"] = _like_msweb(30_000, mean=3).weigh(1_000)
    jobs = [(n, p, w) for n, p in networks.items() for w in ("explore", "gossip")]
    for name, profiles, way in track(jobs, description="speed", transient=True, disable=not SHOWN):
        exchange = Exchange(ScalarProduct(profiles=profiles, micro_epsilon=MICRO), rng=simulation(1))
        protocol = {"explore": partial(explore, peers=1), "gossip": gossip}[way]
        start, busy = perf_counter(), process_time()
        clustering = protocol(exchange)
        seconds, busy = perf_counter() - start, process_time() - busy
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6  # kilobytes on Linux
        table.add_row(name, way, f"{clustering.releases.sum() // 2:,}", f"{seconds:.2f}", f"{busy:.2f}", f"{peak:.2f}")
    return table


def _table(title: str, *headings: str) -> Table:
    table = Table(title=title)
    for place, heading in enumerate(headings):
        table.add_column(heading, justify="left" if place < 2 and not heading.startswith("total") else "right")
    return table


def _recall(outcome: Achievement) -> str:
    return f"{outcome.recall:.3f} ± {outcome.half_width:.3f}"


def _totals(outcome: Achievement) -> tuple[str, str]:
    return f"{outcome.mean_total:.1f}", f"{outcome.largest_total:.1f}"


if __name__ == "__main__":
    main()
