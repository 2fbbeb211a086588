"""Ways to decide a claim about curves: who is best where, what rises, where two cross."""

from collections.abc import Callable, Iterable
from itertools import pairwise

import numpy as np

from discretion.papers.figure import Points, Result

Check = Callable[[Points], Result]

# What words of the papers mean here: one number for each, the same in every figure, fixed before the runs shown.
SIGNIFICANT = 0.8  # "significantly", "considerable", "sharply": at most four fifths of the other's error
GREAT = 0.5  # "greatly", "much better": at most half of it
NEAR = 0.1  # "about", "similar", "almost the same", "unaffected", "small": within a tenth
NOISE = 4.0  # standard errors by which a step of a curve may go the wrong way


def compare(smaller: float, larger: float, text: str = "{:.3g} against {:.3g}") -> Result:
    """Holds when the first number is below the second."""
    return Result(holds=smaller < larger, number=text.format(smaller, larger))


def everywhere(places: Iterable[tuple[object, bool]], number: str) -> Result:
    """Holds when it holds at every place; names the places where it does not."""
    failing = [str(place) for place, holds in places if not holds]
    return Result(holds=not failing, number=number + (f"; fails at {', '.join(failing)}" if failing else ""))


def best(name: str, among: list[str], where: Callable[[float], bool]) -> Check:
    """Return whether `name` has the smallest y of them all, wherever `where` holds."""

    def check(points: Points) -> Result:
        xs = [x for x in points.xs("") if where(x)]
        rivals = {x: min((points.y(n, x), n) for n in among if n != name) for x in xs}
        shown = f"at {xs[0]:g}: {points.y(name, xs[0]):.3g} against {rivals[xs[0]][0]:.3g} of {rivals[xs[0]][1]}"
        return everywhere(((f"{x:g}", points.y(name, x) < rivals[x][0]) for x in xs), shown)

    return check


def ratio(
    first: str, second: str, most: float, least: float = 0.0, where: Callable[[float], bool] = lambda x: True
) -> Check:
    """Decide whether the first's y over the second's lies between two numbers, wherever `where` holds."""

    def check(points: Points) -> Result:
        found = {x: points.y(first, x) / points.y(second, x) for x in points.xs("") if where(x)}
        shown = f"{first} over {second}: {min(found.values()):.3g} to {max(found.values()):.3g}"
        return everywhere(((f"{x:g} ({y:.3g})", least <= y <= most) for x, y in found.items()), shown)

    return check


def monotone(names: list[str], rising: bool, slack: float = NOISE) -> Check:
    """Return whether every curve only rises (falls), up to `slack` standard errors of a step."""

    def check(points: Points) -> Result:
        if len(points.xs("")) < 2:
            return Result(holds=None, number="there is one place only")
        broken, spans = [], []
        for name in names:
            curve = [points.at(name, x) for x in points.xs("")]
            spans.append(f"{name} {curve[0].y:.3g} to {curve[-1].y:.3g}")
            for a, b in pairwise(curve):
                step = (b.y - a.y) * (1 if rising else -1)
                if step < -slack * np.hypot(a.spread, b.spread) - 1e-9 * a.y:
                    broken.append(f"{name} from {a.x:g} ({a.y:.4g}) to {b.x:g} ({b.y:.4g})")
        return Result(holds=not broken, number="; ".join(spans) + (f"; fails: {', '.join(broken)}" if broken else ""))

    return check


def steady(name: str, most: float) -> Check:
    """Decide whether the largest y of a curve is at most so many times its smallest."""

    def check(points: Points) -> Result:
        curve = points.curve(name)
        return Result(holds=max(curve) <= most * min(curve), number=f"{name} from {min(curve):.3g} to {max(curve):.3g}")

    return check


def crossover(name: str, rivals: list[str], expected: float) -> Check:
    """Return whether `name` becomes the best about where the paper says, by interpolation of log error."""

    def check(points: Points) -> Result:
        xs = points.xs("")
        lead = [np.log(points.y(name, x) / min(points.y(r, x) for r in rivals)) for x in xs]
        place = next((i for i in range(1, len(xs)) if lead[i] <= 0 < lead[i - 1]), None)
        if place is None:
            return Result(holds=False, number="there is no crossover")
        share = lead[place - 1] / (lead[place - 1] - lead[place])
        where = xs[place - 1] + share * (xs[place] - xs[place - 1])
        return Result(holds=abs(where / expected - 1) <= NEAR, number=f"crossover at {where:.3f}")

    return check
