"""Linear regression with one epsilon per person, from noisy moments."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from discretion.errors import InvalidDeclaration
from discretion.guarantee import PICO, Guarantee, Protects
from discretion.learn.estimator import PrivateFit
from discretion.learn.features import Features
from discretion.learn.moments import FINEST, Domain, Moments, Whole, gaussian, gaussian_mu, ridge, sensitivity, spectral
from discretion.learn.people import People
from discretion.learn.run import plan
from discretion.noise import Floats, Rng
from discretion.preference import MICRO, Integers, Specification

SHARES = 360  # parts of one person's vote, and the most rows of one person that are used


class LinearRegression(PrivateFit, RegressorMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Least squares whose every row has an owner with an epsilon of their own.

    method="weighted"    everybody counts with weight min(ε, κ): noisy Σ w x xᵀ and Σ w x y, then a ridge fitted to the
                         noise. Pure, in whole numbers, with delta=0; AdaSSP with normal noise for delta > 0.
    method="functional"  [ZZX+12] under mechanism="minimum", "threshold", "sample" (the default) or "stretch", with
                         the tight sensitivity or the "published" one; options={"threshold": ...} as in `personalize`.

    bounds and target_bounds are public; norm, for the weighted method, is a public bound on the length of a row placed
    in [−1, 1]: longer rows are shortened with their target. Preferences should be unrelated to what is learned:
    people with a larger epsilon count for more.
    """

    def __init__(
        self,
        *,
        bounds: Any = None,
        target_bounds: Any = None,
        norm: float | None = None,
        epsilon: float | None = None,
        delta: float = 0.0,
        method: str = "weighted",
        mechanism: str | None = None,
        options: dict[str, Any] | None = None,
        kappa: float | None = None,
        sensitivity: str = "tight",
        fit_intercept: bool = True,
        protects: Protects = "value",
        fits: int = 1,
        holdout: str = "private",
        random_state: Any = None,
    ) -> None:
        self.bounds = bounds
        self.target_bounds = target_bounds
        self.norm = norm
        self.epsilon = epsilon
        self.delta = delta
        self.method = method
        self.mechanism = mechanism
        self.options = options
        self.kappa = kappa
        self.sensitivity = sensitivity
        self.fit_intercept = fit_intercept
        self.protects = protects
        self.fits = fits
        self.holdout = holdout
        self.random_state = random_state

    def fit(
        self,
        X: Any,
        y: Any,
        epsilon: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        register: Specification | ArrayLike | None = None,
    ) -> "LinearRegression":
        """Fit on rows whose owners accept to lose `epsilon`, one a row; `groups` names the owners.

        register: under protects="presence", the epsilon of everybody who could be in the data.
        """
        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True)
        self._check()
        owners = self._people(len(X), epsilon, groups, register)
        features = self._features(owners, X.shape[1])
        target = Features.declared(self.target_bounds, 1, intercept=self.fit_intercept)
        rng = self._rng()
        placed = target.cube(np.asarray(y, dtype=np.float64)[:, None])[:, 0]
        if self.method == "weighted":
            moments, guarantee = self._weighted(X, placed, owners, features, rng)
            solution, inverse = ridge(moments, self.fit_intercept)
        else:
            moments, guarantee = self._functional(X, placed, owners, features, rng)
            solution, inverse = spectral(moments)
        length = features.norm if self._domain == "ball" else 1.0
        scale = float(target.half[0])
        slopes, constant = features.original(solution / length * scale)
        self.coef_, self.intercept_ = slopes, constant + float(target.centre[0])
        units = np.array([np.append(*features.original(one / length * scale)) for one in np.eye(features.size)])
        variance = np.diag(units.T @ moments.covariance(inverse, solution) @ units)
        most = max(loss.micro_epsilon for loss in guarantee.losses.values())
        why = f"the largest influence is ε = {most / MICRO:g}"
        self._publish(guarantee, self._name(), np.sqrt(np.maximum(variance, 0.0)), rng, why)
        return self

    def predict(self, X: Any) -> Floats:
        """The predicted targets; post-processing of the release, free of charge."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        return np.asarray(X @ self.coef_ + self.intercept_)

    @property
    def _domain(self) -> Domain:
        """The ball where a length is declared or the noise is normal, which goes by length; else the cube."""
        in_ball = self.method == "weighted" and (self.norm is not None or self.delta > 0)
        return "ball" if in_ball else "cube"

    def _name(self) -> str:
        if self.method == "functional":
            return f"functional, {self.mechanism or 'sample'}"
        return "weighted moments, normal noise" if self.delta else "weighted moments"

    def _check(self) -> None:
        if self.method not in ("weighted", "functional"):
            raise InvalidDeclaration(f"method must be 'weighted' or 'functional', got {self.method!r}.")
        if self.method == "weighted" and self.mechanism is not None:
            raise InvalidDeclaration("mechanism= is for method='functional'; 'weighted' honours epsilon by weights.")
        if self.sensitivity not in ("tight", "published"):
            raise InvalidDeclaration(f"sensitivity must be 'tight' or 'published', got {self.sensitivity!r}.")
        if not 0 <= self.delta < 1 or (self.delta and (self.method != "weighted" or self.delta * PICO < 1)):
            raise InvalidDeclaration(
                f"delta must be 0, or with method='weighted' from 1e-12 to below 1, got {self.delta!r}."
            )

    def _weighted(
        self, X: Floats, y: Floats, owners: People, features: Features, rng: Rng
    ) -> tuple[Moments, Guarantee]:
        if self.delta:
            x, shortened = features.ball(X)
            return self._gaussian(x, y * shortened, owners, rng)
        domain = self._domain
        x, shortened = features.ball(X) if domain == "ball" else (features.cube(X), np.ones(len(X)))
        moved = sensitivity(domain, features.size, owners.protects, FINEST) / FINEST**2
        variance = 1.0 if domain == "ball" else features.size**2  # of a person's moments, at most about
        weights = self._capped(owners, 2 * _entries(features.size) * moved**2 / variance)
        moments = self._moments(domain, x, y * shortened, owners, weights, np.arange(len(x)), rng)
        return moments, owners.guarantee(weights, arithmetic="exact")

    def _gaussian(self, x: Floats, y: Floats, owners: People, rng: Rng) -> tuple[Moments, Guarantee]:
        pico_delta = int(self.delta * PICO)
        delta = pico_delta / PICO
        most = int(owners.budget.max()) / MICRO
        slope = float(gaussian_mu(np.array(most), delta)) / most  # μ is nearly a multiple of ε
        variance = 4.5 if self.protects == "value" else 2.0
        weights = self._capped(owners, _entries(x.shape[1]) * variance / slope**2)
        mu = gaussian_mu(weights / MICRO, delta)
        share = (mu / mu.max())[owners.row_cohort] * owners.votes
        moments = gaussian(x, y, share, owners.protects, float(mu.max()), rng)
        return moments, owners.guarantee(weights, arithmetic="float", pico_delta=pico_delta)

    def _functional(
        self, X: Floats, y: Floats, owners: People, features: Features, rng: Rng
    ) -> tuple[Moments, Guarantee]:
        mechanism = self.mechanism or "sample"
        if mechanism == "stretch":  # [AGK16] stretches the values by ε/ε_max: the moments shrink by its square
            charge = weights = owners.budget**2 // int(owners.budget.max())
            kept = np.arange(len(X))
        elif mechanism in ("minimum", "threshold", "sample"):
            (run,) = plan(owners.budget, owners.specification.heads, mechanism, **(self.options or {}))
            charge, weights = np.array(run.charge), np.full(owners.budget.size, run.micro_epsilon)
            kept = owners.kept(run.inclusion, rng)
        else:
            raise InvalidDeclaration(
                f"mechanism must be 'minimum', 'threshold', 'sample' or 'stretch', got {mechanism!r}."
            )
        moments = self._moments("cube", features.cube(X), y, owners, weights, kept, rng)
        return moments, owners.guarantee(charge, arithmetic="exact")

    def _moments(
        self, domain: Domain, x: Floats, y: Floats, owners: People, weights: Integers, kept: Integers, rng: Rng
    ) -> Moments:
        """The noisy moments of the rows kept, in whole numbers."""
        whole = Whole(
            domain=domain,
            size=x.shape[1],
            protects=owners.protects,
            weights=tuple(weights.tolist()),
            shares=SHARES if owners.several else 1,
            published=self.sensitivity == "published" and self.method == "functional",
        )
        rows = np.intersect1d(owners.bounded(SHARES, rng), kept) if owners.several else kept
        parts = whole.shares // np.minimum(owners.rows_each[rows], whole.shares)
        return whole.release(x[rows], y[rows], owners.row_cohort[rows], parts, rng)


def _entries(size: int) -> int:
    """How many numbers the moments are."""
    return size * (size + 1) // 2 + size
