"""Function: what is computed on a box of items, and how far each item can move it.

Everything here is public: it depends on the question, never on a profile.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import isfinite
from typing import NoReturn

from discretion.errors import InvalidDeclaration, Unsuitable

Number = Fraction | int | float
Bounds = Sequence[tuple[Number, Number]]


@dataclass(frozen=True, kw_only=True)
class Function:
    """f on a box, with its modular sensitivities.

    `sensitivity(i, a)` is S_i(f ∘ diag(1, .., a, .., 1)) or a bound on it: the most f moves when item i of a profile
    whose i-th item is first multiplied by a goes from one allowed value to another. `slopes[i]` bounds |∂f/∂d_i|
    on the box, if known. `exact` says that `evaluate` keeps fractions (sums, products, max; no square roots).
    """

    name: str
    evaluate: Callable[[Sequence[Fraction]], Number]
    sensitivity: Callable[[int, Fraction], Number]
    bounds: tuple[tuple[Fraction, Fraction], ...]
    slopes: tuple[Fraction, ...] | None = None
    exact: bool = False

    def __post_init__(self) -> None:
        box = tuple((_fraction(low), _fraction(high)) for low, high in self.bounds)
        if not box or any(not low <= 0 <= high for low, high in box):
            raise InvalidDeclaration(
                f"{self.name} needs bounds that contain 0 for every item (shrinking an item must stay allowed). "
                "Shift the values so that 0 means absent."
            )
        if self.slopes is not None and len(self.slopes) != len(box):
            raise InvalidDeclaration(f"{self.name} needs one slope per item, got {len(self.slopes)} for {len(box)}.")
        object.__setattr__(self, "bounds", box)
        probe = self.evaluate([Fraction(0)] * len(box))  # 0 is in the box: this looks at no profile
        if self.exact and not isinstance(probe, Fraction | int):
            raise InvalidDeclaration(f"{self.name} was declared exact but returned a {type(probe).__name__}.")
        if self.overall <= 0:
            raise InvalidDeclaration(f"{self.name} does not depend on any item: nothing is private, compute it as is.")

    @property
    def items(self) -> int:
        """Return how many items it reads."""
        return len(self.bounds)

    @cached_property
    def overall(self) -> Fraction:
        """S(f), the largest of the modular sensitivities."""
        return max(self.moves(item, Fraction(1)) for item in range(self.items))

    def moves(self, item: int, shrink: Fraction) -> Fraction:
        """S_i of the function with item i multiplied by `shrink`, as a fraction."""
        value = _fraction(self.sensitivity(item, shrink))
        if value < 0:
            raise InvalidDeclaration(f"{self.name} has a negative sensitivity for item {item}.")
        return value

    def magnitude(self, item: int) -> Fraction:
        """The largest |d_i| allowed."""
        low, high = self.bounds[item]
        return max(-low, high)


def unit_box(items: int) -> tuple[tuple[Fraction, Fraction], ...]:
    """[0, 1] for every item."""
    return ((Fraction(0), Fraction(1)),) * items


def weighted_sum(coefficients: Iterable[Number], bounds: Bounds | None = None) -> Function:
    """Σ c_i d_i; S_i = |c_i| (upper − lower)."""
    c = tuple(map(_fraction, coefficients))
    box = _box(bounds, len(c))
    return Function(
        name="weighted sum",
        evaluate=lambda d: sum((ci * di for ci, di in zip(c, d, strict=True)), Fraction(0)),
        sensitivity=lambda i, a: a * abs(c[i]) * (box[i][1] - box[i][0]),
        bounds=box,
        slopes=tuple(map(abs, c)),
        exact=True,
    )


def total(items: int, bounds: Bounds | None = None) -> Function:
    """Σ d_i."""
    return weighted_sum([1] * items, bounds)


def mean(items: int, bounds: Bounds | None = None) -> Function:
    """Σ d_i / n over a public number of items."""
    return weighted_sum([Fraction(1, items)] * items, bounds)


def inner_product(items: int, bounds: Bounds | None = None) -> Function:
    """⟨first half, second half⟩; the partner of item i at its largest decides how far i moves it."""
    if items < 2 or items % 2:
        raise InvalidDeclaration(f"An inner product of two halves needs an even number of items, got {items}.")
    half, box = items // 2, _box(bounds, items)
    partner = [max(-low, high) for low, high in (*box[half:], *box[:half])]
    return Function(
        name="inner product",
        evaluate=lambda d: sum((x * y for x, y in zip(d[:half], d[half:], strict=True)), Fraction(0)),
        sensitivity=lambda i, a: a * partner[i] * (box[i][1] - box[i][0]),
        bounds=box,
        slopes=tuple(partner),
        exact=True,
    )


def maximum(items: int, bounds: Bounds | None = None) -> Function:
    """max_i d_i. Item i matters most when the others are lowest: S_i(a) = (a·u_i − max(a·l_i, max_{j≠i} l_j))⁺."""
    box = _box(bounds, items)
    lows = sorted(low for low, _ in box)

    def sensitivity(i: int, a: Fraction) -> Fraction:
        low, high = box[i]
        others = lows[-1] if low < lows[-1] or items == 1 else lows[-2]  # the highest floor among the others
        return max(Fraction(0), a * high - max(a * low, others))

    return Function(
        name="maximum",
        evaluate=lambda d: max(d),
        sensitivity=sensitivity,
        bounds=box,
        slopes=(Fraction(1),) * items,
        exact=True,
    )


def lipschitz(
    evaluate: Callable[[Sequence[Fraction]], Number],
    slopes: Number | Sequence[Number],
    bounds: Bounds,
    *,
    exact: bool = False,
    name: str = "function",
) -> Function:
    """Any f with |∂f/∂d_i| ≤ slopes[i] on the box; one number K for a K-Lipschitz f. S_i(a) ≤ a·slope·(upper − lower).

    A differentiable f: give the largest |partial derivative| over the box for each item.
    """
    box = _box(bounds, len(bounds))
    each = [slopes] * len(box) if isinstance(slopes, Fraction | int | float) else list(slopes)
    steep = tuple(map(_fraction, each))
    if len(steep) != len(box) or min(steep) < 0:
        raise InvalidDeclaration(f"{name} needs one slope of 0 or more per item, got {len(steep)} for {len(box)}.")
    return Function(
        name=name,
        evaluate=evaluate,
        sensitivity=lambda i, a: a * steep[i] * (box[i][1] - box[i][0]),
        bounds=box,
        slopes=steep,
        exact=exact,
    )


def minimum(*_: object) -> NoReturn:
    """Refused: stretching shrinks values towards 0, so the minimum would only report the strictest weight."""
    raise Unsuitable(
        "Stretching cannot answer a minimum: it shrinks each item towards 0, so the smallest item would be the one "
        "with the strictest weight, whatever its value. Ask for the maximum of (upper bound − value) instead."
    )


def count_nonzero(*_: object) -> NoReturn:
    """Refused: an item is non-zero or not, however far it is shrunk."""
    raise Unsuitable(
        "Stretching cannot answer the number of non-zeros: an item shrunk to any weight above 0 still counts fully, so "
        "every weight below 1 becomes 0. Ask for the sum of indicators (0 or 1 for each item) instead."
    )


def _box(bounds: Bounds | None, items: int) -> tuple[tuple[Fraction, Fraction], ...]:
    if items < 1 or (bounds is not None and len(bounds) != items):
        raise InvalidDeclaration(f"There must be at least one item and bounds for each, got {items} items.")
    if bounds is None:
        return unit_box(items)
    return tuple((_fraction(low), _fraction(high)) for low, high in bounds)


def _fraction(value: Number) -> Fraction:
    if isinstance(value, float) and not isfinite(value):
        raise InvalidDeclaration(f"Bounds, slopes and sensitivities must be finite, got {value!r}.")
    return Fraction(value)
