"""Linear regression with one epsilon per person, from noisy moments."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from discretion.errors import InvalidDeclaration
from discretion.guarantee import PICO, Guarantee
from discretion.learn.estimator import PrivateFit
from discretion.learn.features import Features
from discretion.learn.moments import FINEST, Domain, Moments, Whole, gaussian, gaussian_mu, ridge, sensitivity, spectral
from discretion.learn.people import People
from discretion.learn.run import plan
from discretion.noise import Floats, Rng
from discretion.preference import MICRO, Integers

SHARES = 360  # parts of one person's vote, and the most rows of one person that are used


@dataclass(kw_only=True, eq=False, repr=False)
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

    target_bounds: Any = None  # public
    delta: float = 0.0  # of everybody who has an epsilon
    sensitivity: str = "tight"  # or "published", for method="functional"
    _uniform_methods = ("functional",)

    def _learn(self, X: Floats, y: Floats, owners: People, features: Features, rng: Rng) -> None:
        target = Features.declared(self.target_bounds, 1, intercept=self.fit_intercept)
        placed = target.cube(np.asarray(y, dtype=np.float64)[:, None])[:, 0]
        if self.method == "weighted":
            moments, guarantee = self._weighted(X, placed, owners, features, rng)
            solution, inverse = ridge(moments, self.fit_intercept)
            covariance = moments.covariance(inverse, solution)
        else:
            solution, covariance, guarantee = self._bagged(X, placed, owners, features, rng)
        length = features.norm if self._domain == "ball" else 1.0

        def original(coefficients: Floats) -> Floats:  # in the caller's units, the intercept last
            return np.append(*features.original(coefficients / length * float(target.half[0])))

        found = original(solution) + np.append(np.zeros(X.shape[1]), target.centre)
        self.coef_, self.intercept_ = found[:-1], float(found[-1])
        units = np.array([original(one) for one in np.eye(features.size)])
        variance = np.diag(units.T @ covariance @ units)
        most = max(loss.micro_epsilon for loss in guarantee.losses.values())
        why = f"the largest influence is ε = {most / MICRO:g}"
        self._publish(found, np.sqrt(np.maximum(variance, 0.0)), guarantee, self._name, rng, why)

    def _has_target(self, y: Floats) -> Any:
        return np.isfinite(y)

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

    @property
    def _name(self) -> str:
        if self.method == "functional":
            return f"functional, {self._mechanism}"
        return "weighted moments, normal noise" if self.delta else "weighted moments"

    def _check(self) -> None:
        super()._check()
        if self.sensitivity not in ("tight", "published"):
            raise InvalidDeclaration(f"sensitivity must be 'tight' or 'published', got {self.sensitivity!r}.")
        if self.mechanism == "stretch" and self.options is not None:
            raise InvalidDeclaration("options= is for 'threshold' and 'sample'; 'stretch' has none.")
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
        most = int(owners.spends.micro.max()) / MICRO
        slope = float(gaussian_mu(np.array(most), delta)) / most  # μ is nearly a multiple of ε
        moved = 4.5 if self.protects == "value" else 2.0  # squared: how far one row moves the moments
        weights = self._capped(owners, _entries(x.shape[1]) * moved / slope**2)
        mu = gaussian_mu(weights / MICRO, delta)
        share = (mu / mu.max())[owners.row_cohort] * owners.votes
        moments = gaussian(x, y, share, owners.protects, float(mu.max()), rng)
        return moments, owners.guarantee(weights, arithmetic="float", pico_delta=pico_delta)

    def _bagged(
        self, X: Floats, y: Floats, owners: People, features: Features, rng: Rng
    ) -> tuple[Floats, Floats, Guarantee]:
        """Return coefficients, their covariance and what they cost: the weighted average over one or more fits.

        A prediction is linear in the coefficients, so averaging them averages the groups' predictions ([LXJJ17] 4.4).
        """
        fits, charge = self._functional(X, y, owners, features, rng)
        total = sum(weight for weight, _ in fits)
        solved = [(weight / total, moments, *spectral(moments)) for weight, moments in fits]
        solution = np.sum([share * found for share, _, found, _ in solved], axis=0)
        covariance = np.sum([share**2 * made.covariance(inv, found) for share, made, found, inv in solved], axis=0)
        return solution, covariance, owners.guarantee(charge, arithmetic="exact")

    def _functional(
        self, X: Floats, y: Floats, owners: People, features: Features, rng: Rng
    ) -> tuple[list[tuple[float, Moments]], Integers]:
        """Return the noisy moments of each run with its weight, and what each cohort pays."""
        x = features.cube(X)
        if self._mechanism == "stretch":  # [AGK16] stretches the values by ε/ε_max: the moments shrink by its square
            weights = owners.spends.micro**2 // int(owners.spends.micro.max())
            return [(1.0, self._moments("cube", x, y, owners, weights, np.arange(len(X)), rng))], weights
        if self._mechanism not in ("minimum", "threshold", "sample", "partition"):
            raise InvalidDeclaration(
                "mechanism must be 'minimum', 'threshold', 'sample', 'partition' or 'stretch', "
                f"got {self._mechanism!r}."
            )
        runs = plan(owners.spends, self._mechanism, self.options or {})
        fits = []
        for run in runs:
            weights = np.full(owners.spends.micro.size, run.micro_epsilon)
            moments = self._moments("cube", x, y, owners, weights, owners.kept(run.inclusion, rng), rng)
            fits.append((run.weight, moments))
        return fits, np.sum([run.charge for run in runs], axis=0)

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
    """Return how many numbers the moments are."""
    return size * (size + 1) // 2 + size
