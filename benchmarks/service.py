"""The service under load: 4 workers, 64 clients of all roles, and kill -9 of workers and of the service meanwhile.

Every answer must have been charged what its guarantee says, balances must be the exact sums of the charges, the audit
must pass, and no question may be answered twice. BENCH_MINUTES says how long each run takes (1 if it is not set; the
full run is 10).
"""

import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from statistics import median, quantiles
from threading import Event, Lock
from time import monotonic, perf_counter, sleep
from typing import Any

import httpx
import numpy as np
import pyarrow as pa
from pyarrow import parquet
from rich.console import Console
from rich.table import Table as Shown

import discretion as dn
from benchmarks.ledger import server as postgresql
from discretion.errors import DiscretionError
from discretion.ledger import Access, Ledger, Receipt
from discretion.ledger.audit import audit_ledger
from discretion.noise import simulation
from discretion.preference import MICRO
from discretion.release import Release
from discretion.service.client import RemoteConnection
from discretion.service.pool import AGAIN

MINUTES = float(os.environ.get("BENCH_MINUTES", "1"))
WORKERS, ANALYSTS, PEOPLE, STEWARDS = 4, 48, 12, 4  # 64 clients
ROWS = 20_000
LEVELS = (10.0, 50.0, 100.0)
STEADY = len(LEVELS)  # the last people of the table, one a level: nobody changes what they chose
SHARE = 2e-5  # so small that ten minutes use nobody up
PAIRS = 40
numbers = count()


@dataclass
class Seen:
    """What the clients saw."""

    seconds: list[float] = field(default_factory=list)  # of answers
    entries: list[tuple[str, str]] = field(default_factory=list)  # question, entry that paid for it
    losses: dict[str, tuple[int, int]] = field(default_factory=dict)  # entry -> the least and the largest, in micro-ε
    others: Counter[str] = field(default_factory=Counter)
    lock: Lock = field(default_factory=Lock)

    def answered(self, seconds: float, sql: str, release: Release) -> None:
        paid = [loss.micro_epsilon for loss in release.guarantee.losses.values()]
        with self.lock:
            self.seconds.append(seconds)
            self.entries.append((sql, release.entry))
            self.losses[release.entry] = min(paid), max(paid)

    def other(self, what: str) -> None:
        with self.lock:
            self.others[what] += 1


def main() -> None:
    console = Console()
    with tempfile.TemporaryDirectory(prefix="discretion-") as name:
        folder = Path(name)
        console.print(_overhead(folder))
        table = Shown(title=f"{WORKERS} workers, 64 clients, {MINUTES:g} min each, kill -9 of workers and service")
        for heading in ("ledger", "tick", "answers/s", "p50 s", "p99 s", "kills", "charges", "lost", "other", "audit"):
            table.add_column(heading, justify="left" if heading == "ledger" else "right")
        table.add_row("SQLite", *_load(folder / "ticking", "", tick=1.0))
        table.add_row("SQLite", *_load(folder / "quick", "", tick=0.0))
        with postgresql() as url:
            table.add_row("PostgreSQL", *_load(folder / "postgresql", url, tick=1.0))
        console.print(table)


def prepare(folder: Path, ledger: str) -> dict[str, str]:
    """Protect a table, and return the tokens of stewards and analysts."""
    folder.mkdir()
    rng = simulation(1)
    epsilon = np.concatenate([rng.choice(LEVELS, ROWS - STEADY), LEVELS])
    rows = {"id": range(ROWS), "age": rng.integers(18, 95, ROWS), "epsilon": epsilon}
    parquet.write_table(pa.table(rows), folder / "people.parquet")
    with dn.connect(ledger, copies=folder) as db:
        db.protect("people", folder / "people.parquet", person="id", epsilon="epsilon", bounds={"age": (0, 120)})
    with Ledger(ledger) as opened:
        access = Access(opened)
        roles = {f"analyst {n}": "analyst" for n in range(ANALYSTS)} | {
            f"steward {n}": "steward" for n in range(STEWARDS)
        }
        for name, role in roles.items():
            access.add(name, role)
        return {name: access.token(name) for name in roles}


class Service:
    """The real command, which can be killed and started again at the same address."""

    def __init__(self, folder: Path, ledger: str, *, tick: float, workers: int = WORKERS) -> None:
        with socket.socket() as found:
            found.bind(("127.0.0.1", 0))
            port = found.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        self._log = (folder / "log").open("a")
        self._words = [
            sys.executable,
            "-m",
            "discretion",
            "serve",
            ledger,
            "--port",
            str(port),
            "--workers",
            str(workers),
        ]
        self._words += ["--answer-every", str(tick), "--key", str(folder / "key"), "--copies", str(folder)]
        self.start()

    def start(self) -> None:
        self._process = subprocess.Popen(self._words, stdout=self._log, stderr=self._log)
        for _ in range(600):
            try:
                if httpx.get(f"{self.url}/health", timeout=5).json()["status"] == "ok":
                    return
            except (httpx.HTTPError, ValueError, KeyError):
                sleep(0.1)
        raise SystemExit("The service did not start.")

    def workers(self) -> list[int]:
        """Return the processes that compute questions: children of the process that forks them."""
        return [pid for child in _children(self._process.pid) for pid in _children(child)]

    def kill_worker(self) -> None:
        """Kill one, but none that tries a question again: its death counts as a failure and stops the register."""
        if found := [pid for pid in self.workers() if not _spared(pid)]:
            os.kill(min(found), signal.SIGKILL)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait()
        self._log.close()


def _children(pid: int) -> list[int]:
    try:
        return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def _spared(pid: int) -> bool:
    """Say whether a process runs in the folder of one that tries again, is only starting, or is gone."""
    try:
        place = Path(os.readlink(f"/proc/{pid}/cwd")).name
    except OSError:
        return True
    return not place.startswith("discretion-") or place.startswith(AGAIN)


def _load(folder: Path, ledger: str, *, tick: float) -> Iterator[str]:
    place = ledger or str(folder / "clinic.discretion")
    tokens = prepare(folder, place)
    service, seen, over = Service(folder, place, tick=tick), Seen(), Event()
    browsers = [_signed_in(service.url, code) for code in _letters(service.url, tokens["steward 0"])]
    with ThreadPoolExecutor(64) as pool:
        done = [pool.submit(_analyst, service.url, tokens[f"analyst {n}"], seen, over) for n in range(ANALYSTS)]
        done += [pool.submit(_steward, service.url, tokens[f"steward {n}"], seen, over) for n in range(STEWARDS)]
        done += [pool.submit(_person, browser, seen, over) for browser in browsers]
        kills = _trouble(service, 60 * MINUTES)
        over.set()
        for one in done:
            one.result()
    service.stop()
    yield from _verdict(place, seen, tick, kills)


def _trouble(service: Service, seconds: float) -> int:
    """Kill a worker every few seconds, and the service itself twice."""
    end, kills = monotonic() + seconds, 0
    services = [monotonic() + seconds / 3, monotonic() + 2 * seconds / 3]
    while monotonic() < end:
        sleep(min(4.0, max(0.0, end - monotonic())))
        kills += 1
        if services and monotonic() > services[0]:
            services.pop(0)
            service.kill()
            service.start()
        else:
            service.kill_worker()
    return kills


def _verdict(place: str, seen: Seen, tick: float, kills: int) -> Iterator[str]:
    """Check what must hold after all this, or end the run."""
    with dn.connect(place) as db:
        history = list(db.history())
        strictest, most_open = db.receipt(ROWS - STEADY), db.receipt(ROWS - 1)
    charges = [row for row in history if row["kind"] == "charge"]
    lost = sum(not row["answered"] for row in charges)
    paid = {row["entry"]: row["text"] for row in charges}
    if uncharged := [entry for sql, entry in seen.entries if paid.get(entry) != sql]:
        raise SystemExit(f"{len(uncharged)} answers were not charged.")
    if len(set(seen.entries)) != len(seen.entries):
        raise SystemExit("One charge paid for two questions.")
    _refuse_wrong_balances(charges, seen, strictest, most_open)
    audit = audit_ledger(place, witnesses=[entry for _, entry in seen.entries])
    if not audit.passed:
        raise SystemExit(str(audit))
    if stops := [row for row in history if row["kind"] == "stop"]:
        raise SystemExit(f"{len(stops)} stops, though nothing was wrong with the rows.")
    p99 = quantiles(seen.seconds, n=100)[98]
    yield f"{tick:g} s"
    yield f"{len(seen.seconds) / (60 * MINUTES):.1f}"
    yield from (f"{median(seen.seconds):.2f}", f"{p99:.2f}", str(kills), str(len(charges)), str(lost))
    yield ", ".join(f"{name} {number}" for name, number in sorted(seen.others.items()))
    yield f"{audit.entries:,} entries, passed"


def _refuse_wrong_balances(charges: list[dict[str, Any]], seen: Seen, strictest: Receipt, most_open: Receipt) -> None:
    """End the run unless answers, charges and the balances of two people agree to the last micro-ε."""
    paid = {
        row["entry"]: (round(row["least_epsilon"] * MICRO), round(row["largest_epsilon"] * MICRO)) for row in charges
    }
    if wrong := [entry for entry, losses in seen.losses.items() if paid[entry] != losses]:
        raise SystemExit(f"{len(wrong)} answers cost another amount than they promise.")
    for place, receipt in enumerate((strictest, most_open)):
        spent, total = round(receipt.spent * MICRO), sum(losses[place] for losses in paid.values())
        if spent != total or len(receipt.releases) != len(charges):
            raise SystemExit(f"A balance of {spent} micro-ε should be {total}.")


def _analyst(url: str, token: str, seen: Seen, over: Event) -> None:
    """Ask one question after the other, each of them new."""
    with RemoteConnection(url, token=token) as db:
        while not over.is_set():
            number = next(numbers)
            sql = f"SELECT COUNT(*) FROM people WHERE age > {number % 77 + 18} AND id <> {number}"
            start = perf_counter()
            try:
                release = db.sql(sql, share=SHARE)
            except DiscretionError as refusal:
                seen.other(type(refusal).__name__)
                sleep(0.5)
            else:
                seen.answered(perf_counter() - start, sql, release)


def _steward(url: str, token: str, seen: Seen, over: Event) -> None:
    """Look at balances and members, and change preferences."""
    with RemoteConnection(url, token=token) as db:
        while not over.wait(2.0):
            try:
                db.balance(), db.access.members(), db.prefer(next(numbers) % (ROWS - STEADY), 50.0)
                seen.other("steward")
            except DiscretionError as refusal:
                seen.other(type(refusal).__name__)


def _letters(url: str, token: str) -> list[str]:
    with RemoteConnection(url, token=token) as db:
        return [code for _, code in db.access.invite("people", list(range(PEOPLE)))[1]]


def _signed_in(url: str, code: str) -> httpx.Client:
    browser = httpx.Client(base_url=url, timeout=60)
    browser.post("/sign-in", data={"code": code})
    browser.headers["X-CSRF-Token"] = browser.get("/v1/me").json()["csrf"]
    return browser


def _person(browser: httpx.Client, seen: Seen, over: Event) -> None:
    """Read the receipt and choose anew, in a browser."""
    with closing(browser):
        while not over.wait(1.0):
            try:
                told = [browser.get("/v1/receipt")]
                if next(numbers) % 10 == 0:  # more often would be refused: every change is an entry
                    told.append(browser.post("/v1/prefer", json={"epsilon": 50}))
                seen.other("person" if all(one.is_success for one in told) else f"status {told[-1].status_code}")
            except httpx.HTTPError:
                seen.other("ServiceFailed")


def _overhead(folder: Path) -> Shown:
    """Ask the same questions of a local ledger and of a service, in turn, with the tick off."""
    table = Shown(title=f"milliseconds of db.sql, median of {PAIRS} questions each, tick off")
    for heading in ("local", "service", "added"):
        table.add_column(heading, justify="right")
    place = str(folder / "near" / "clinic.discretion")
    tokens = prepare(folder / "near", place)
    service = Service(folder / "near", place, tick=0.0, workers=1)
    times = np.zeros((PAIRS + 10, 2))
    with dn.connect(place) as local, RemoteConnection(service.url, token=tokens["analyst 0"]) as remote:
        for row in times:
            for place_, db in enumerate((local, remote)):
                sql = f"SELECT COUNT(*) FROM people WHERE age > 40 AND id <> {next(numbers)}"
                start = perf_counter()
                db.sql(sql, share=1e-4)
                row[place_] = 1_000 * (perf_counter() - start)
    service.stop()
    near, far = np.median(times[10:], axis=0)  # the first ones fill caches
    table.add_row(f"{near:.1f}", f"{far:.1f}", f"{far - near:.1f}")
    return table
