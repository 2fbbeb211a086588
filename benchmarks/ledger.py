"""The ledger: does anything grow with the number of people, and how many charges a second do writers get through?"""

import multiprocessing
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.table import Table as Shown

from discretion.declaration.table import Table
from discretion.guarantee import Guarantee
from discretion.ledger import Ledger
from discretion.ledger.audit import audit_ledger
from discretion.noise import simulation

LEVELS = np.arange(1, 101) * 10_000  # ε from 0.01 to 1
CHANGES = 10_000
SECONDS = 5.0
VISITS = Table(name="visits", source="v", person="p", register="people", protects="presence", columns={"p": "BIGINT"})


def main() -> None:
    console = Console()
    with tempfile.TemporaryDirectory(prefix="discretion-") as folder, server() as url:
        console.print(_growth(Path(folder)))
        console.print(_throughput({"SQLite": str(Path(folder) / "race"), "PostgreSQL": url}))


@contextmanager
def server() -> Iterator[str]:
    """A throw-away PostgreSQL server with its default, durable settings."""
    with tempfile.TemporaryDirectory(prefix="discretion-") as name:
        folder = Path(name)
        folder.chmod(0o755)  # the server runs as a user of its own when we are root
        (folder / "runtime").mkdir(mode=0o700)
        os.environ["XDG_RUNTIME_DIR"] = str(folder / "runtime")  # its lock files; read when it is imported
        import pgserver

        started = pgserver.get_server(folder / "data", cleanup_mode="delete")
        yield started.get_uri().replace("postgresql://", "postgresql+psycopg://")
        started.cleanup()


def ask(ledger: Ledger, share: float, *, partial: bool = False) -> str:
    """Offer, the simplest plan, charge."""
    offer = ledger.offer("people", share=share, partial=partial)
    guarantee = Guarantee.of(offer.specification, offer.specification.epsilons, protects="presence")
    return ledger.charge(offer, guarantee, table="visits", analyst="ada", memo="SELECT COUNT(*) FROM visits")


def register(people: int, seed: int | None = None) -> pa.Table:
    preferences = LEVELS[np.arange(people) % len(LEVELS)]
    if seed is not None:
        rng = simulation(seed)
        preferences[rng.choice(people, CHANGES, replace=False)] = rng.choice(LEVELS, CHANGES)
    return pa.table({"person": np.arange(people), "micro_epsilon": preferences})


def prepare(place: str, people: int) -> None:
    with Ledger(place) as ledger:
        ledger.enroll("people", register(people), source="p", fingerprint="0")
        ledger.declare(VISITS)


def _timed(action: Callable[[], Any], repetitions: int = 1) -> float:
    times = []
    for _ in range(repetitions):
        start = perf_counter()
        action()
        times.append(perf_counter() - start)
    return 1000 * min(times)


def _growth(folder: Path) -> Shown:
    table = Shown(title="milliseconds on SQLite: 100 levels, by number of people")
    few, many = 20_000, 1_000_000
    columns = {people: _operations(str(folder / str(people)), people) for people in (few, many)}
    for heading in ("operation", f"{few:,} people", f"{many:,} people", "ratio"):
        table.add_column(heading, justify="left" if heading == "operation" else "right")
    for name, first in columns[few].items():
        second = columns[many][name]
        table.add_row(name, f"{first:,.1f}", f"{second:,.1f}", f"{second / first:.1f}x")
    return table


def _operations(place: str, people: int) -> dict[str, float]:
    times = {"enrol everybody": _timed(lambda: prepare(place, people))}
    with Ledger(place) as ledger:
        times["charge, 100 cohorts"] = _timed(lambda: ask(ledger, 0.01), 20)
        edited = register(people, seed=1)
        times[f"refresh with {CHANGES:,} changes"] = _timed(lambda: ledger.refresh("people", edited, fingerprint="1"))
        times[f"charge, {CHANGES:,} changes"] = _timed(lambda: ask(ledger, 0.01, partial=True), 10)
        times["prefer"] = _timed(lambda: ledger.prefer("people", 5, 0.5), 10)
    times["open"] = _timed(lambda: Ledger(place).close(), 10)
    with Ledger(place) as ledger:
        times["balance"] = _timed(lambda: ledger.balance("people"), 10)
        times["receipt"] = _timed(lambda: ledger.receipt("people", 7), 10)
        times["changes for the engine"] = _timed(lambda: ledger.changes("people"), 5)
    times["audit"] = _timed(lambda: audit_ledger(place))
    return times


def _throughput(places: dict[str, str]) -> Shown:
    table = Shown(title=f"charges a second, each durable, in {SECONDS:g} s")
    for heading in ("database", "1 writer", "8 writers", "ratio"):
        table.add_column(heading, justify="left" if heading == "database" else "right")
    for name, place in places.items():
        prepare(place, 1_000)
        one, eight = (_charges_per_second(place, writers) for writers in (1, 8))
        if not audit_ledger(place).passed:
            raise SystemExit("The ledger does not add up: the race is lost.")
        table.add_row(name, f"{one:,.0f}", f"{eight:,.0f}", f"{eight / one:.2f}x")
    return table


def _charges_per_second(place: str, writers: int) -> float:
    context = multiprocessing.get_context("spawn")
    start, counts = context.Barrier(writers), context.Queue()
    processes = [context.Process(target=_write, args=(place, start, counts)) for _ in range(writers)]
    for process in processes:
        process.start()
    total = sum(counts.get() for _ in processes)
    for process in processes:
        process.join()
    return float(total / SECONDS)


def _write(place: str, start: Any, counts: Any) -> None:
    with Ledger(place) as ledger:
        start.wait()
        end, charged = perf_counter() + SECONDS, 0
        while perf_counter() < end:
            ask(ledger, 0.0001)
            charged += 1
    counts.put(charged)
