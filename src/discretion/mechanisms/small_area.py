"""Small-area estimation: what noisy averages of bands of people say about everybody. Arithmetic on released numbers.

People are ordered by ε; level c stands at t_c, the share of people with a smaller ε plus half of its own. Its mean is

    f_c = m + τ·S(t_c) + e_c,    Cov(S(t), S(t')) = (1 − λ)·min(t, t') + λ·(t − ½)(t' − ½),    Var(e_c) = v / n_c,

S is a random walk plus a straight line of random slope, m has a wide prior, and e_c is how far n_c people drawn from a
population fall from its mean. This is the model of Fay and Herriot (1979) with levels that resemble their neighbours.
Bands are observed as averages weighted by ε, with noise; asked about are averages over heads. Given τ everything is
linear and Gaussian. τ is integrated over a grid, by its prior times the likelihood of what was released.

For the answer, τ is 0 with probability .8 beforehand and half-normal otherwise: unrelated choices cost little, and
strong relations are found. Where few or noisy bands leave τ undetermined, an interval of that prior would be too narrow
for strong relations. So intervals use a flat prior of τ > 0, and few bands make them slightly wider. Where the release
determines τ the two agree. All of this was calibrated by simulation (`python -m benchmarks pooled`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from discretion.noise import Floats
from discretion.preference import Integers

TAUS = np.linspace(0.0, 1.0, 26)  # in parts of the range
UNRELATED = 0.8  # probability beforehand that τ = 0, for the answer
PRIOR = 0.2  # scale of the half-normal prior of τ otherwise
BEFOREHAND = 0.1  # the same for a prediction before the release: relations are usually weaker than the prior allows
CAUTIOUS = 0.3  # the same for the prediction of an interval, whose prior allows stronger ones
STRAIGHT = 0.5  # λ
WIDENED = 0.2  # by this, divided by the number of bands, deviations are increased: few bands hardly determine τ and v
WIDE = 1.0  # standard deviation of the prior of m, in parts of the range
TAILS = (0.5, 0.25, 0.1, 0.05, 0.025, 0.01, 0.005, 0.0025, 0.001, 0.0005)  # of the stored quantiles
HALVINGS = 45  # of the bisection for a quantile
AT_ONCE = 4_000_000  # numbers in memory: rows are computed in portions


@dataclass(frozen=True, kw_only=True, eq=False)
class Design:
    """Says which averages are observed (the first `bands`) and asked about (the others), with prior covariances."""

    bands: int
    ones: Floats  # (average): 1 for an average, 0 for a difference of two
    gradual: Floats  # (average, average): of S, for τ = 1
    white: Floats  # (average, average): for v = 1

    @classmethod
    def of(cls, heads: Integers, averages: Floats, bands: int, *, trends: Sequence[int] = ()) -> "Design":
        """From the coefficients of each average, (average, level), levels in the order of their ε.

        Of the averages in `trends` only the gradual part is asked about, not what the people drawn happen to be.
        ∫ S_a S_b with S_a(s) = Σ_{t_c > s} a_c is Σ a_c b_c' min(t_c, t_c'), so it takes one pass over the levels.
        """
        people = np.maximum(heads, 1).astype(np.float64)
        places = _places(heads)
        beyond = np.cumsum(averages[:, ::-1], axis=1)[:, ::-1]
        gaps, line = np.diff(places, prepend=0.0), averages @ (places - 0.5)
        drawn = averages.copy()
        drawn[list(trends)] = 0.0
        return cls(
            bands=bands,
            ones=averages.sum(axis=1).round(12),
            gradual=(1 - STRAIGHT) * (beyond * gaps) @ beyond.T + STRAIGHT * np.outer(line, line),
            white=(drawn / people) @ drawn.T,
        )

    def only(self, asked: int) -> "Design":
        """The same with only the first so many of what is asked about."""
        kept = slice(self.bands + asked)
        return Design(
            bands=self.bands, ones=self.ones[kept], gradual=self.gradual[kept, kept], white=self.white[kept, kept]
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class Posterior:
    """Says what is known after a release: a mixture over τ, for every (row, average asked about)."""

    weights: Floats  # (row, τ): with the prior of answers
    cautious: Floats  # (row, τ): with the prior of intervals
    means: Floats  # (row, τ, average)
    deviations: Floats  # (row, τ, average)
    laplace: Floats  # (row, τ, average): which part of the tail is that of one Laplace noise, the rest is normal

    @property
    def mean(self) -> Floats:
        """(row, average)."""
        return np.asarray((self.weights[..., None] * self.means).sum(axis=1))

    @property
    def deviation(self) -> Floats:
        """(row, average): root mean squared distance from the mean, cautiously."""
        spread = self.deviations**2 + (self.means - self.mean[:, None, :]) ** 2
        return np.asarray(np.sqrt((self.cautious[..., None] * spread).sum(axis=1)))

    def below(self, values: Floats, average: int = 0, *, cautious: bool = True) -> Floats:
        """P(average ≤ value), for values by (row, anything)."""
        from scipy.special import ndtr  # slow to load, and plans need no probabilities

        centre, width = self.means[..., average], np.maximum(self.deviations[..., average], 1e-150)
        z = (values[:, None, :] - centre[:, :, None]) / width[:, :, None]
        tail = 0.5 * np.exp(-np.sqrt(2) * np.abs(z))
        share = self.laplace[:, :, average, None]
        mixed = (1 - share) * ndtr(z) + share * np.where(z < 0, tail, 1 - tail)
        weights = self.cautious if cautious else self.weights
        return np.asarray((weights[:, :, None] * mixed).sum(axis=1))

    def quantiles(self, probabilities: Sequence[float], average: int = 0) -> Floats:
        """(row, probability), cautiously, by bisection."""
        asked = np.asarray(probabilities)[None, :]
        centre, width = self.means[..., average], 15 * self.deviations[..., average]
        low = np.repeat((centre - width).min(axis=1)[:, None], asked.size, axis=1)
        high = np.repeat((centre + width).max(axis=1)[:, None], asked.size, axis=1)
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            short = self.below(middle, average) < asked
            low, high = np.where(short, middle, low), np.where(short, high, middle)
        return np.asarray((low + high) / 2)


def _places(heads: Integers) -> Floats:
    """Return where each level lies among all people, from 0 to 1."""
    ends = np.cumsum(heads)
    return np.asarray((ends - heads / 2) / max(int(ends[-1]), 1))


def half_normal(scale: float) -> Floats:
    """A prior of τ on its grid."""
    raw = np.exp(-0.5 * (TAUS / scale) ** 2)
    return np.asarray(raw / raw.sum())


def prior() -> Floats:
    """The prior of τ that the answer is computed with."""
    return np.asarray(UNRELATED * (TAUS == 0) + (1 - UNRELATED) * half_normal(PRIOR))


def posterior(
    design: Design,
    observed: Floats,
    noise: Floats,
    *,
    variance: Floats,
    reach: Floats,
    centre: float,
) -> Posterior:
    """Combine the bands' noisy averages.

    observed  (row, band); noise, its variance, in the same shape.
    variance  (row): v, one person's variance.
    reach     (row): what τ = 1 stands for, and the standard deviation of m; `centre` is the mean of m beforehand.
    """
    size = max(1, AT_ONCE // (TAUS.size * design.ones.size**2))
    found = [
        _posterior(design, observed[rows], noise[rows], variance[rows], reach[rows], centre)
        for rows in (slice(first, first + size) for first in range(0, len(observed), size))
    ]
    return Posterior(
        **{each.name: np.concatenate([getattr(one, each.name) for one in found]) for each in fields(Posterior)}
    )


def _posterior(
    design: Design, observed: Floats, noise: Floats, variance: Floats, reach: Floats, centre: float
) -> Posterior:
    size = design.bands
    full = _covariances(design, variance, reach)  # (row, τ, average, average)
    seen = full[..., :size, :size] + (np.eye(size) * noise[:, :, None])[:, None]
    across = full[..., size:, :size]
    off = np.broadcast_to((observed - centre * design.ones[:size])[:, None, :, None], (*seen.shape[:3], 1))
    solved = np.linalg.solve(seen, np.concatenate([off, np.swapaxes(across, -1, -2)], axis=-1))
    surprise, gains = solved[..., 0], solved[..., 1:]  # (row, τ, band), (row, τ, band, asked)
    means = centre * design.ones[size:] + (across * surprise[:, :, None, :]).sum(axis=-1)
    explained = (np.swapaxes(across, -1, -2) * gains).sum(axis=-2)
    left = np.diagonal(full[..., size:, size:], axis1=-2, axis2=-1) - explained
    left = np.maximum(left, 1e-18 * (reach**2)[:, None, None])
    fit = -0.5 * ((off[..., 0] * surprise).sum(axis=-1) + np.linalg.slogdet(seen)[1])
    likelihood = np.exp(fit - fit.max(axis=1, keepdims=True))
    priors = prior() * likelihood, (TAUS > 0) * likelihood + 1e-300
    drawn = gains**2 * noise[:, None, :, None]  # variance that each noise leaves in the answer
    return Posterior(
        weights=priors[0] / priors[0].sum(axis=1, keepdims=True),
        cautious=priors[1] / priors[1].sum(axis=1, keepdims=True),
        means=means,
        deviations=np.sqrt(left) * (1 + WIDENED / size),
        laplace=np.minimum(np.sqrt((drawn**2).sum(axis=-2)) / left, 1.0),
    )


def _covariances(design: Design, variance: Floats, reach: Floats) -> Floats:
    """(row, τ, average, average): the prior covariances of all averages."""
    reach2 = (reach**2)[:, None, None, None]
    known = design.white * variance[:, None, None, None] + np.outer(design.ones, design.ones) * WIDE**2 * reach2
    return np.asarray(known + (TAUS**2)[None, :, None, None] * design.gradual * reach2)


def expected_variances(design: Design, noise: Floats, *, variance: float, reach: float) -> tuple[float, float]:
    """The posterior variance of the first average asked about, averaged over τ: known before anything is released.

    The first one is for the answer, the second for its interval.
    """
    size = design.bands
    full = _covariances(design, np.array([variance]), np.array([reach]))[0]  # (τ, average, average)
    seen, across = full[:, :size, :size] + np.diag(noise), full[:, size, :size]
    explained = (across * np.linalg.solve(seen, across[..., None])[..., 0]).sum(axis=-1)
    left = np.maximum(full[:, size, size] - explained, 1e-18 * reach**2)
    return float(half_normal(BEFOREHAND) @ left), float(half_normal(CAUTIOUS) @ left) * (1 + WIDENED / size) ** 2


def estimate_shares(
    design: Design, observed: Floats, noise: Floats, *, centre: float = 0.0, narrow: float = 1.0
) -> Posterior:
    """The posterior where everybody's value lies from 0 to 1, so that a mean p bounds the variance by p(1 − p).

    p is first the bands' average, then the posterior's own, each moved one standard deviation towards 1/2. `narrow` is
    the part of the range in which means are expected.
    """
    precision = 1 / np.maximum(noise, 1e-30)  # at a huge ε there is no noise
    mean = (observed * precision).sum(axis=1) / precision.sum(axis=1)
    doubt = np.sqrt(1 / precision.sum(axis=1))
    reach = np.full(len(observed), narrow)
    for _ in range(2):
        away = np.minimum(np.abs(mean - 0.5), 0.5)
        variance = np.maximum(0.25 - np.maximum(away - doubt, 0.0) ** 2, 1e-9)
        found = posterior(design, observed, noise, variance=variance, reach=reach, centre=centre)
        mean = found.mean[:, 0]
    return found
