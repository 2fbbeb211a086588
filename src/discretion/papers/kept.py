"""Kept: what was computed with the same settings, data and code is not computed again."""

import json
from dataclasses import asdict
from functools import lru_cache
from hashlib import sha256
from pathlib import Path

from discretion.papers.figure import Computed, Effort, Figure, Point, Points

FOLDER = ".kept"


def keep(folder: Path, outcome: Computed) -> None:
    """Write the points of a figure with every digit, whole or not at all."""
    place = _place(folder, outcome.figure)
    place.parent.mkdir(parents=True, exist_ok=True)
    content = {"mark": mark(outcome.figure, outcome.effort), "points": [asdict(one) for one in outcome.points.rows]}
    half = place.with_suffix(".part")
    half.write_text(json.dumps(content, default=lambda number: number.item()))  # NumPy's own numbers
    half.replace(place)


def kept(folder: Path, figure: Figure, effort: Effort) -> Computed | None:
    """Return a figure that was computed before in the same way; None if there is none."""
    try:
        content = json.loads(_place(folder, figure).read_text())
        if content["mark"] != mark(figure, effort):
            return None
        rows = tuple(Point(**one) for one in content["points"])
    except (OSError, ValueError, KeyError, TypeError):
        return None  # absent, or not written by us
    return Computed(figure=figure, points=Points(rows=rows), effort=effort)


def mark(figure: Figure, effort: Effort) -> str:
    """Return a text that differs if anything does that the points depend on: settings, data, code."""
    data = "" if effort.data is None else sha256(effort.data.read_bytes()).hexdigest()
    settings = [figure.id, effort.runs, effort.seed, effort.quick, data, _code()]
    return sha256(json.dumps(settings).encode()).hexdigest()


@lru_cache(maxsize=1)
def _code() -> str:
    """Return a digest of the whole package: any change may change a figure."""
    digest = sha256()
    for path in sorted(Path(__file__).parents[1].rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _place(folder: Path, figure: Figure) -> Path:
    return folder / FOLDER / f"{figure.id}.json"
