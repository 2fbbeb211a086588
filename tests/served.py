"""A real service on a real clinic, for tests that speak HTTP with it."""

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Thread
from time import monotonic, sleep
from typing import Any

import httpx

import discretion as dn
from clinics import clinic, patients, write
from discretion.ledger import Access, Ledger
from discretion.service.house import House, Settings
from discretion.service.limit import Rate, Rates
from discretion.service.pool import Limits
from discretion.service.server import server

FAST = Rates(requests=Rate(second=1e6, burst=10**6), sign_in=Rate(second=1e6, burst=10**6))
FAST = replace(FAST, guesses=FAST.requests, changes=FAST.requests)
COUNT = "SELECT COUNT(*) FROM patients WHERE smoker"


@dataclass
class Served:
    """A running service, its address, and tokens of a steward (sam) and two analysts (ada, bob)."""

    url: str
    folder: Path
    house: House
    tokens: dict[str, str] = field(default_factory=dict)
    stop: Callable[[], None] = lambda: None

    def http(self, role: str = "", **headers: str) -> httpx.Client:
        """Return a client that holds the token of a member, or of nobody."""
        known = {"Authorization": f"Bearer {self.tokens[role]}"} if role else {}
        return httpx.Client(base_url=self.url, headers=known | headers, timeout=60)

    def connect(self, role: str) -> Any:
        return dn.connect(self.url, token=self.tokens[role])

    def browser(self, code: str) -> httpx.Client:
        """Return a client that signed in as a browser does, and keeps sending that cookie."""
        with self.http() as client:
            response = client.post("/sign-in", data={"code": code}, headers={"Origin": self.url})
        assert 303 == response.status_code, response.text
        return self.http(Cookie=response.headers["set-cookie"].partition(";")[0], Origin=self.url)

    def letter(self, person: int) -> str:
        return self.house.access.invite("patients", [person])[1][0][1]

    @property
    def ledger(self) -> str:
        return str(self.folder / "clinic.discretion")


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@contextmanager
def served(folder: Path, *, ledger: str = "", **how: Any) -> Iterator[Served]:
    """Serve a clinic in `folder` until the block ends."""
    if not ledger:
        clinic(folder).close()
        ledger = str(folder / "clinic.discretion")
        write(patients(), folder / "more.parquet")
    port = free_port()
    limits = Limits(workers=how.pop("workers", 1), **how.pop("limits", {}))
    tls = how.pop("tls", None)
    url = f"{'https' if tls else 'http'}://127.0.0.1:{port}"
    settings = Settings(ledger=ledger, url=url, data=folder, limits=limits, rates=how.pop("rates", FAST))
    house = House(replace(settings, **{"answer_every": 0.0, "memory": 1 << 30, "secure": tls is not None, **how}))
    with Ledger(ledger) as opened:
        access = Access(opened)
        known = {one.name for one in access.members()}
        for name, role in (("sam", "steward"), ("ada", "analyst"), ("bob", "analyst")):
            if name not in known:
                access.add(name, role)
        tokens = {name: access.token(name) for name in ("sam", "ada", "bob")}
    running = server(house, host="127.0.0.1", port=port, tls=tls)
    thread = Thread(target=running.run)
    thread.start()
    try:
        started = Served(url=url, folder=folder, house=house, tokens=tokens)
        started.stop = lambda: setattr(running, "should_exit", True)
        _wait(started)
        yield started
    finally:
        running.should_exit = True
        thread.join(60)


def _wait(started: Served) -> None:
    end = monotonic() + 60
    with started.http() as client:
        while monotonic() < end:
            try:
                if client.get("/health").json()["status"] == "ok":
                    return
            except httpx.HTTPError:
                pass
            sleep(0.05)
    raise TimeoutError("The service did not start.")
