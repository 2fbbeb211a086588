"""What the estimators share: whose rows they are fitted on, and what they refuse because it would give people away."""

from math import inf
from typing import Any

import numpy as np
from sklearn.base import clone

from discretion import noise
from discretion.errors import InvalidDeclaration, InvalidPreference, QueryRefused, Unsuitable
from discretion.guarantee import Guarantee, Protects
from discretion.learn.features import Features
from discretion.learn.people import People, people
from discretion.mechanisms.weighted import saturation
from discretion.noise import Floats, Rng
from discretion.preference import Integers, Specification, allowance
from discretion.release import Error, Release


class PrivateFit:
    """A scikit-learn estimator that is fitted with one epsilon per person and exposes what it promises.

    Cloning is how scikit-learn fits a model again on parts of the data to score it on the rest: every fit is another
    release, and a score on private rows protects nobody. Both are refused unless holdout="public" declares that the
    rows used for scoring are public; every fit then pays one of `fits` equal parts of each epsilon. It comes first
    among the bases, so that scikit-learn's own `score` cannot come before the refusal.
    """

    bounds: Any
    epsilon: Any
    fit_intercept: bool
    fits: int
    holdout: str
    kappa: float | None
    norm: float | None
    protects: Protects
    random_state: Any
    coef_: Floats
    intercept_: Any
    get_params: Any

    def __sklearn_clone__(self) -> Any:
        if self.holdout != "public":
            raise QueryRefused(
                "Cross-validation, grid search and other refits are refused: each fit is another release, and a "
                "score on private rows is not private. If the rows that are scored are public, say so with "
                "holdout='public' and give the number of fits, fits=: each then pays that part of every epsilon. "
                "To score on private people, pay for it: discretion.mean(model.predict(X) == y, epsilon=...)."
            )
        return type(self)(**{name: clone(value, safe=False) for name, value in self.get_params(deep=False).items()})

    def score(self, X: Any, y: Any) -> float:
        """Accuracy or R² on public rows; refused unless holdout="public" says that they are."""
        if self.holdout != "public":
            raise QueryRefused(
                "A score is an exact statistic of the rows it is computed on. Declare holdout='public' if they are "
                "public; otherwise pay for it: discretion.mean(model.predict(X) == y, epsilon=...)."
            )
        return float(super().score(X, y))  # type: ignore[misc]  # the mixin that follows has it

    def _rng(self) -> Rng:
        """None, the secure source, unless a seed asks for a simulation."""
        if self.random_state is None or isinstance(self.random_state, np.random.Generator):  # noqa: TID251
            return self.random_state
        if isinstance(self.random_state, int | np.integer):
            return noise.simulation(int(self.random_state))
        raise InvalidDeclaration(
            f"random_state must be None (secure noise), a seed or a generator (a simulation that protects nobody), "
            f"got {type(self.random_state).__name__}."
        )

    def _people(self, rows: int, epsilon: Any, groups: Any, register: Any) -> People:
        chosen = self.epsilon if epsilon is None else epsilon
        if chosen is None:
            raise InvalidPreference(
                "Nobody's epsilon is given. Pass fit(X, y, epsilon=one_per_row), or one for everybody as epsilon=."
            )
        if self.holdout not in ("private", "public"):
            raise InvalidDeclaration(f"holdout must be 'private' or 'public', got {self.holdout!r}.")
        owners = people(chosen, rows, protects=self.protects, groups=groups, register=register, fits=self.fits)
        if owners.budget.max() <= 0:
            raise Unsuitable("Somebody must have an epsilon above 0 to spend; nobody has.")
        return owners

    def _features(self, owners: People, columns: int) -> Features:
        features = Features.declared(self.bounds, columns, intercept=self.fit_intercept, norm=self.norm)
        if owners.specification.size < features.size:
            raise InvalidDeclaration(
                f"{features.size} coefficients need at least as many people, n_samples={owners.specification.size}."
            )
        return features

    def _capped(self, owners: People, ratio: float) -> Integers:
        """Influence min(ε, κ) of each cohort; κ as declared, or by the saturation equation for this noise ratio.

        Rounded down to a multiple of what divides every level: sums in whole numbers stay small.
        """
        if self.kappa is not None and not self.kappa > 0:
            raise InvalidDeclaration(f"kappa must be above 0, got {self.kappa!r}.")
        offer = zip(owners.budget.tolist(), owners.specification.people, strict=True)
        cap = saturation(Specification.of(offer), ratio) if self.kappa is None else int(allowance(self.kappa))
        step = int(np.gcd.reduce(owners.budget))
        return np.minimum(owners.budget, max(step, cap // step * step))

    def _publish(self, guarantee: Guarantee, mechanism: str, noise_each: Floats | None, rng: Rng, why: str) -> None:
        """Set `guarantee_` and `release_` from the fitted coefficients."""
        values = [*np.ravel(self.coef_).tolist(), float(np.ravel(self.intercept_)[0])]
        named = [str(name) for name in getattr(self, "feature_names_in_", range(len(values) - 1))]
        spreads = [inf] * len(values) if noise_each is None else noise_each.tolist()
        about = "only the privacy noise counts, to first order, not the ridge's bias" if noise_each is not None else ""
        self.guarantee_ = guarantee
        self.release_ = Release(
            columns={"feature": (*named, "intercept"), "coefficient": tuple(values)},
            errors={"coefficient": tuple(Error(bias=0.0, noise=s, assumption=about) for s in spreads)},
            mechanism=mechanism,
            guarantee=guarantee,
            simulated=rng is not None,
            explanation=why,
        )
