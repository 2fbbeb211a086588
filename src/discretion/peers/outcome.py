"""Outcome: whom the peers of a crowd found, what everybody spent, and a picture of both."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from discretion.errors import missing
from discretion.preference import MICRO, Integers
from discretion.render.sheet import Sheet, Shown, amount
from discretion.social.recall import Split, f1, precision, random_recall, recall
from discretion.social.strangers import NOBODY

COLOURS = ("#2b6cb0", "#d08a3c", "#5b9a68")


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Outcome(Shown):
    """The result of one run, read from the accounts of the peers. Profiles are invented, so nothing here is secret."""

    method: str
    villages: list[int]
    neighbours: list[list[int]]  # best first
    width: int  # how many neighbours a peer keeps
    spent: list[int]  # micro-ε of an item of weight 1
    compared: list[int]
    budget: float
    parts: Split

    @property
    def views(self) -> Integers:
        """The neighbours as (person, place), NOBODY where a place is empty."""
        rows = [[*found, *[NOBODY] * (self.width - len(found))] for found in self.neighbours]
        return np.array(rows, dtype=np.int64).reshape(len(rows), self.width)

    @property
    def own_village(self) -> float:
        """The share of neighbours who live in the same village."""
        pairs = [(person, friend) for person, found in enumerate(self.neighbours) for friend in found]
        return float(np.mean([self.villages[a] == self.villages[b] for a, b in pairs])) if pairs else 0.0

    def summary(self) -> dict[str, Any]:
        """Return the numbers of the run."""
        held, hidden = self.parts.whole.weights, self.parts.hidden
        found = recall(self.views, held, hidden)
        exact = precision(self.views, held, self.parts.training.weights, hidden)
        return {
            "peers": len(self.villages),
            "method": self.method,
            "peers compared, mean": float(np.mean(self.compared)),
            "ε spent, mean": float(np.mean(self.spent)) / MICRO,
            "ε spent, largest": max(self.spent) / MICRO,
            "budget": self.budget,
            "neighbours of the own village": self.own_village,
            "recall": float(np.nanmean(found)),
            "recall of random neighbours": float(np.nanmean(random_recall(held, hidden, self.width))),
            "precision": float(np.nanmean(exact)),
            "F1": float(np.nanmean(f1(exact, found))),
        }

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers of the run, and of every peer."""
        people = {"villages": self.villages, "neighbours": self.neighbours, "spent": [s / MICRO for s in self.spent]}
        return {**self.summary(), **people, "compared": self.compared}

    def sheets(self) -> list[Sheet]:
        """Return two tables: the run as a whole, and every peer."""
        whole = [(name, value if isinstance(value, str) else f"{value:.3g}") for name, value in self.summary().items()]
        each = tuple(
            (str(person), "ABC"[self.villages[person]], amount(spent / MICRO), " ".join(map(str, found)))
            for person, (spent, found) in enumerate(zip(self.spent, self.neighbours, strict=True))
        )
        columns = ("peer", "village", "ε spent", "neighbours, best first")
        return [
            Sheet(title="The run", columns=("what", "value"), rows=tuple(whole), numbers=frozenset({"value"})),
            Sheet(title="Every peer", columns=columns, rows=each, numbers=frozenset({"peer", "ε spent"})),
        ]

    def draw(self, path: Path) -> str:
        """Write the picture, and return what to say about it."""
        if lacking := missing("plots", "The picture"):
            return lacking
        from matplotlib import pyplot  # an extra: only this picture needs it

        figure, (left, right) = pyplot.subplots(1, 2, figsize=(12, 5.5), layout="constrained")
        order = np.argsort(self.villages, kind="stable")
        angle = np.empty(len(order))
        angle[order] = 2 * np.pi * np.arange(len(order)) / len(order)
        x, y = np.cos(angle), np.sin(angle)
        for person, found in enumerate(self.neighbours):
            for friend in found:
                same = self.villages[person] == self.villages[friend]
                colour = COLOURS[self.villages[person]] if same else "#bbbbbb"
                left.plot(x[[person, friend]], y[[person, friend]], color=colour, linewidth=0.7, alpha=0.6, zorder=1)
        left.scatter(x, y, c=[COLOURS[home] for home in self.villages], s=90, zorder=2)
        left.set(title=f"Who found whom ({self.own_village:.0%} of the own village; grey: others)", aspect="equal")
        left.axis("off")
        right.bar(
            range(len(order)), [self.spent[p] / MICRO for p in order], color=[COLOURS[self.villages[p]] for p in order]
        )
        right.axhline(self.budget, color="#444444", linestyle="--", linewidth=1)
        right.text(0, self.budget, "budget", va="bottom")
        right.set(title="What an item of weight 1 lost", xlabel="peers, by village", ylabel="ε spent")
        right.spines[["top", "right"]].set_visible(False)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=150)
        pyplot.close(figure)
        return f"Who found whom, and what everybody spent: {path}"
