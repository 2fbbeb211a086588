"""Crowd: many peers as processes on this machine, with invented profiles, for the demonstration and for tests."""

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import sleep, time

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import parquet
from scipy import sparse

from discretion.errors import PeerRefused
from discretion.noise import simulation
from discretion.peers.account import Account
from discretion.peers.holding import Method, Terms
from discretion.peers.outcome import Outcome
from discretion.peers.service import Rhythm
from discretion.social.profile import Profiles
from discretion.social.recall import Split, split

ITEMS, VILLAGES = 60, 3
INSIDE, OUTSIDE = 0.8, 0.05  # chances to hold an item of one's own village, and of another
SHARES = {"unconcerned": 0.23, "pragmatists": 0.43, "fundamentalists": 0.34}
CATALOGUE = tuple(f"item-{number:02}" for number in range(ITEMS))
PATIENCE = 240.0  # seconds until a crowd must have started, or finished after its last cycle


def village(number: int) -> NDArray[np.int64]:
    """Return which village each of `number` people lives in."""
    return np.arange(number) % VILLAGES


def invent(number: int, seed: int) -> Split:
    """Return profiles of people in villages, with weights, and a tenth of their items hidden from them."""
    rng = simulation(seed)
    own = village(number)[:, None] == np.arange(ITEMS) % VILLAGES
    held = rng.random((number, ITEMS)) < np.where(own, INSIDE, OUTSIDE)
    profiles = Profiles.of(*np.nonzero(held), people=number, items=ITEMS)
    return split(profiles.westin(SHARES, rng), rng=rng)


@dataclass(kw_only=True)
class Crowd:
    """The processes of one demonstration, by number; they know one another through the first."""

    folder: Path
    number: int
    terms: Terms
    epsilon: float
    budget: float
    neighbours: int
    rhythm: Rhythm
    seed: int
    running: dict[int, subprocess.Popen[bytes]] = field(default_factory=dict)

    def write(self) -> Split:
        """Write everybody's profile and the catalogue."""
        self.folder.mkdir(parents=True, exist_ok=True)
        parts = invent(self.number, self.seed)
        (self.folder / "items.csv").write_text("\n".join(("item", *CATALOGUE)) + "\n")
        for person in range(self.number):
            row = sparse.csr_array(parts.training.weights[[person]])
            items = [CATALOGUE[item] for item in row.indices]
            table = pa.table({"item": pa.array(items, pa.string()), "weight": row.data / 1000})
            parquet.write_table(table, self.folder / f"profile-{person}.parquet")
        return parts

    def launch(self, person: int) -> None:
        """Start the process of one peer, also again after a crash."""
        options = {
            "profile": self.folder / f"profile-{person}.parquet",
            "catalogue": self.folder / "items.csv",
            "account": self.folder / f"peer-{person}",
            "budget": self.budget,
            "method": self.terms.method,
            "epsilon": self.epsilon,
            "neighbours": self.neighbours,
            "cycles": self.rhythm.cycles,
            "peers": self.rhythm.peers,
            "seconds": self.rhythm.seconds,
            "begin": self.folder / "begin",
            "recommend": 3,
        }
        if person:
            options["join"] = self.told(0, "listening")
        words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
        with open(self.folder / f"log-{person}.txt", "ab") as log:
            command = [sys.executable, "-m", "discretion", "peer", "serve", *words]
            self.running[person] = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)

    def told(self, person: int, word: str) -> str:
        """Return what a peer last said after this word; empty if it has not."""
        lines = (self.folder / f"log-{person}.txt").read_text().splitlines()
        return next((line.removeprefix(word).strip() or word for line in lines[::-1] if line.startswith(word)), "")

    def wait(self, word: str, people: Sequence[int], seconds: float = PATIENCE) -> None:
        """Wait until all of these peers said this word."""
        deadline = time() + seconds
        while not all(self.told(person, word) for person in people):
            stopped = [person for person in people if self.running[person].poll() is not None]
            if stopped or time() > deadline:
                raise PeerRefused(f"Peers stopped or are late. Read {self.folder / f'log-{(stopped or [0])[0]}.txt'}.")
            sleep(0.1)

    def begin(self) -> float:
        """Let everybody start the first cycle together; return when that is."""
        start = time() + 2 * self.rhythm.seconds + 1
        unfinished = self.folder / "begin.new"
        unfinished.write_text(str(start))
        unfinished.rename(self.folder / "begin")
        return start

    def stop(self) -> None:
        """Ask every process that this crowd started to leave, and wait for it."""
        for process in self.running.values():
            process.terminate()
        for process in self.running.values():
            process.wait()

    def outcome(self, parts: Split) -> Outcome:
        """Read everybody's account: whom they found, and what they paid."""
        names = [self.told(person, "listening").partition("@")[0] for person in range(self.number)]
        place = {name: person for person, name in enumerate(names)}
        found, spent, compared = [], [], []
        for person in range(self.number):
            account = Account(self.folder / f"peer-{person}" / "account.sqlite")
            scores = account.scores(self.terms.digest)
            best = sorted(scores, key=lambda peer: (-scores[peer], peer))[: self.neighbours]
            found.append([place[name] for name in best])
            spent.append(account.spent)
            compared.append(len(scores))
            account.close()
        return Outcome(
            method=self.terms.method,
            villages=village(self.number).tolist(),
            neighbours=found,
            width=self.neighbours,
            spent=spent,
            compared=compared,
            budget=self.budget,
            parts=parts,
        )


def run(
    folder: Path,
    *,
    number: int,
    method: Method,
    epsilon: float,
    budget: float,
    neighbours: int,
    rhythm: Rhythm,
    seed: int,
) -> Outcome:
    """Start the peers, let them explore, stop them, and return what came out. An invented crowd starts anew."""
    terms = Terms.of(CATALOGUE, method=method, epsilon=epsilon)
    crowd = Crowd(
        folder=folder / time_stamp(),
        number=number,
        terms=terms,
        epsilon=epsilon,
        budget=budget,
        neighbours=neighbours,
        rhythm=rhythm,
        seed=seed,
    )
    parts = crowd.write()
    try:
        crowd.launch(0)
        crowd.wait("listening", [0])
        for person in range(1, number):
            crowd.launch(person)
        crowd.wait("joined", range(1, number))
        start = crowd.begin()
        ending = start + rhythm.cycles * rhythm.seconds
        crowd.wait("explored", range(number), ending - time() + PATIENCE)
    finally:
        crowd.stop()
    return crowd.outcome(parts)


def time_stamp() -> str:
    """Return a name for the folder of one run."""
    return f"run-{time():.0f}"
