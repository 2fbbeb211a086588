"""Form: which sums of an aggregate are released, how much noise each of them needs, and what they say together.

Every sum is Σ p(z) over rows, p a polynomial with whole coefficients in the row's grid step z, so that it is a whole
number. A row has the position x = (2z − lower − upper)/R from −1 to 1, R = upper − lower. All that is asked about a
column follows from three moments: the number of rows, Σx and Σx².
"""

from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal, NamedTuple

import numpy as np

from discretion.errors import Unsuitable
from discretion.noise import Floats
from discretion.statistics import Aggregate, Statistics

Quantity = Literal[
    "count",
    "total",
    "centred",
    "square",
    "centred_square",
    "above",  # z − lower, and
    "below",  # upper − z: together R
    "low",  # (upper − z)²,
    "mixed",  # 2(z − lower)(upper − z), and
    "high",  # (z − lower)²: together R²
]
ROWS, FIRST, SECOND = range(3)  # the moments: rows, Σx, Σx²


class Part(NamedTuple):
    """One quantity that rows add up to, and how much noise a weight of one ε calls for."""

    quantity: Quantity
    scale: Fraction  # of the noise, in the quantity's own units


Form = tuple[Part, ...]


def is_affine(aggregate: Aggregate) -> bool:
    """Tell whether the answer is a total, or a total over a public number of people; else it is a ratio."""
    return aggregate.kind in ("count", "people", "sum") or (aggregate.kind == "mean" and aggregate.size_is_public)


def parts(aggregate: Aggregate) -> Form:
    """Return the usual form: the best one where nothing is expected of the values."""
    return forms(aggregate)[0]


@lru_cache(maxsize=1024)
def forms(aggregate: Aggregate) -> tuple[Form, ...]:
    """Return what may be released, scaled so that a person of weight w loses at most w: Σ |change of part| / scale ≤ 1.

    With a public n, a variance needs Σx and Σx² at the rates (1/scale) 1/2 and 1/4: changing x into y costs
    |x − y|/2 + |x² − y²|/4, which is at most d/2 + d(2 − d)/4 = d − d²/4 ≤ 1 for d = |x − y|, because |x + y| ≤ 2 − d.
    For a private n see `_rates` and `shared`.
    """
    width = aggregate.upper - aggregate.lower
    if aggregate.kind == "sum" and not aggregate.size_is_public and aggregate.origin != 0:
        raise Unsuitable("A sum over an unknown number of rows needs a grid whose origin is 0.")
    if is_affine(aggregate):
        quantity: Quantity = "count" if aggregate.kind in ("count", "people") else "total"
        return ((Part(quantity, Fraction(aggregate.sensitivity)),),)
    if aggregate.kind not in ("mean", "variance"):
        raise Unsuitable("It adds up rows, so it answers counts, sums, means and variances only.")
    if aggregate.size_is_public:
        return ((Part("centred", Fraction(2 * width)), Part("square", Fraction(4 * width**2))),)
    alpha, beta = _rates(aggregate)
    moments = [Part("centred", width / alpha), Part("centred_square", width**2 / alpha)]
    plain = *moments[: 1 if aggregate.kind == "mean" else 2], Part("count", 1 / beta)
    if not width or (aggregate.protects == "value" and aggregate.groups == 1):
        return (plain,)
    return shared(aggregate), plain


def shared(aggregate: Aggregate) -> Form:
    """Return sums of which every row adds a fixed amount to all together: half-sums, or three Bernstein sums.

    A row adds z − lower and upper − z, which are never negative and together R: its L1 norm is R wherever it lies.
    The squares of these two and twice their product are together R². So k rows that come or go, all that presence
    allows, move the sums by kR or kR². Under value a person's rows before and after add at most that each, so they
    move by at most twice that, whatever groups they are in. Nothing is split between numerator and denominator.
    """
    width, k = aggregate.upper - aggregate.lower, aggregate.rows_per_person
    most = k if aggregate.protects == "presence" else 2 * k
    if aggregate.kind == "mean":
        return Part("above", Fraction(most * width)), Part("below", Fraction(most * width))
    scale = Fraction(most * width**2)
    return Part("low", scale), Part("mixed", scale), Part("high", scale)


def _rates(aggregate: Aggregate) -> tuple[Fraction, Fraction]:
    """Return the rates α of Σx and, for a variance, Σ(2x² − 1), and β of the count, where n is private.

    A row that comes or goes costs |x|α + |2x² − 1|α + β: α + β for a mean, 2α + β for a variance. A row that changes
    costs 2α for a mean, and for a variance |x − y|α + 2|x² − y²|α ≤ αd(5 − 2d) ≤ 25α/8. If a person has a rows before
    and b after, min(a, b) of them change and |a − b| come or go, together at most k rows: under value in one group
    the loss is at most k times the dearer of the two. Under presence no row changes. Under value in many groups
    every row may go from one group and come to another, 2k in all.
    """
    is_mean, k = aggregate.kind == "mean", aggregate.rows_per_person
    if aggregate.protects == "value" and aggregate.groups == 1:
        alpha, beta = (Fraction(1, 2), Fraction(1, 2)) if is_mean else (Fraction(8, 25), Fraction(9, 25))
        return alpha / k, beta / k
    most = k if aggregate.protects == "presence" else 2 * k
    alpha = Fraction(17, 20) if is_mean else Fraction(2, 5)
    return alpha / most, (1 - alpha if is_mean else 1 - 2 * alpha) / most


def polynomial(quantity: Quantity, aggregate: Aggregate) -> tuple[int, int, int]:
    """Return the factors of 1, z and z² in what one row adds to a quantity."""
    low, high = aggregate.lower, aggregate.upper
    ends = low + high
    return {
        "count": (1, 0, 0),
        "total": (0, 1, 0),
        "centred": (-ends, 2, 0),  # R·x
        "square": (ends**2, -4 * ends, 4),  # (R·x)²
        "centred_square": (2 * ends**2 - (high - low) ** 2, -8 * ends, 8),  # R²(2x² − 1)
        "above": (-low, 1, 0),
        "below": (high, -1, 0),
        "low": (high**2, -2 * high, 1),
        "mixed": (-2 * low * high, 2 * ends, -2),
        "high": (low**2, -2 * low, 1),
    }[quantity]


def tally(quantity: Quantity, statistics: Statistics, aggregate: Aggregate) -> Any:
    """Return the quantity by (group, cohort), in whole numbers of any size."""
    known = (statistics.counts, statistics.totals, statistics.squares)
    factors = polynomial(quantity, aggregate)
    return sum(factor * np.asarray(each).astype(object) for factor, each in zip(factors, known, strict=True) if factor)


@lru_cache(maxsize=1024)
def sizes(form: Form, aggregate: Aggregate) -> Floats:
    """Return the power of R that each part is counted in: 1, R or R²."""
    width = max(aggregate.upper - aggregate.lower, 1)
    factors = [polynomial(part.quantity, aggregate) for part in form]
    degrees = (2 if square else 1 if linear else 0 for _, linear, square in factors)
    return np.array([float(width) ** degree for degree in degrees])


@lru_cache(maxsize=1024)
def moments(form: Form, aggregate: Aggregate) -> Floats:
    """Return (moment, part): rows, Σx and Σx² as sums of the parts, each part over its own power of R.

    Where the number of rows is public its line is 0. The released noise of Σx and that of the rows are uncorrelated in
    every form: for half-sums they are a difference and a sum of two equal noises.
    """
    low, high = Fraction(aggregate.lower), Fraction(aggregate.upper)
    middle, half = (low + high) / 2, (high - low) / 2  # z = middle + half·x
    added = []  # (part, moment)
    for part, size in zip(form, sizes(form, aggregate).tolist(), strict=True):
        a, b, c = polynomial(part.quantity, aggregate)
        by_moment = (a + b * middle + c * middle**2, (b + 2 * c * middle) * half, c * half**2)
        added.append([float(each / Fraction(size)) for each in by_moment])
    asked = ([FIRST, SECOND] if aggregate.size_is_public else [ROWS, FIRST, SECOND])[: len(form)]
    found = np.zeros((3, len(form)))
    found[asked] = np.linalg.pinv(np.array(added)[:, asked])
    return found
