"""What the estimators share: their parameters, the people they are fitted on, and what would give people away."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from math import inf
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import is_regressor
from sklearn.utils.validation import check_array, column_or_1d, validate_data

from discretion import noise
from discretion.errors import InvalidDeclaration, InvalidPreference, QueryRefused, Unsuitable
from discretion.guarantee import Guarantee, Protects
from discretion.learn.features import Features
from discretion.learn.people import People, people
from discretion.mechanisms.scheme import capped
from discretion.mechanisms.weighted import saturation
from discretion.noise import Floats, Rng
from discretion.preference import LARGEST_EPSILON, MICRO, Integers, Specification, allowance
from discretion.release import Error, Release


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateFit(ABC):
    """A scikit-learn estimator that is fitted with one epsilon per person and exposes what it promises.

    Its fields are its parameters: scikit-learn reads them off the signature that the dataclass writes.

    Cloning is how scikit-learn fits a model again on parts of the data to score it on the rest: every fit is another
    release, and a score on private rows protects nobody. Both are refused unless holdout="public" declares that the
    rows used for scoring are public; every fit then pays one of `fits` equal parts of each epsilon. It comes first
    among the bases, so that scikit-learn's own `score` cannot come before the refusal.
    """

    bounds: Any = None  # public: (lower, upper), two numbers or two sequences with one number a column
    norm: float | None = None  # public: the longest a row placed in [−1, 1] may be; None: no row is too long
    epsilon: float | None = None  # for everybody, if `fit` is given none
    method: str = "weighted"
    mechanism: str | None = None  # how a method for one epsilon honours everybody's own; None: "sample"
    options: dict[str, Any] | None = None  # of the mechanism, as in `personalize`
    kappa: float | None = None  # κ, the largest influence anybody gets; None: by the saturation equation
    fit_intercept: bool = True
    protects: Protects = "value"
    fits: int = 1  # how many fits share each epsilon
    holdout: str = "private"  # "public": the rows that are scored are
    random_state: Any = None  # None: the secure source; a seed or a generator: a simulation that protects nobody
    _uniform_methods: ClassVar[tuple[str, ...]]  # beside "weighted": those for one epsilon, which take a mechanism

    def fit(
        self,
        X: Any,
        y: Any,
        epsilon: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        register: Specification | ArrayLike | None = None,
    ) -> Self:
        """Fit on rows whose owners accept to lose `epsilon`, one a row; `groups` names the owners.

        register: under protects="presence", the epsilon of everybody who could be in the data.

        A row with a value that is missing, NaN or infinite, or with an undeclared label, counts as absent. An error
        would tell that somebody has such a row.
        """
        X = validate_data(self, X, dtype=np.float64, ensure_all_finite=False, ensure_min_samples=0)
        y = self._target(y, len(X))
        self._check()
        owners = self._people(len(X), epsilon, groups, register)
        features = self._features(owners, X.shape[1])
        present = np.isfinite(X).all(axis=1) & self._has_target(y)
        self._learn(X[present], y[present], owners.owning(present), features, self._rng())
        return self

    def _target(self, y: Any, rows: int) -> Any:
        """Return the targets in one dimension, numbers for a regression; which of them are missing decides nothing."""
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None.")
        kind = np.float64 if is_regressor(self) else None
        checked = check_array(
            y, dtype=kind, ensure_2d=False, ensure_all_finite=False, ensure_min_samples=0, input_name="y"
        )
        targets = column_or_1d(checked, warn=True)
        if len(targets) != rows:
            raise ValueError(f"Found input variables with inconsistent numbers of samples: {[rows, len(targets)]}")
        return targets

    @abstractmethod
    def _has_target(self, y: Any) -> Any:
        """Return for each row whether its target can be learned from."""

    @abstractmethod
    def _learn(self, X: Floats, y: Any, owners: People, features: Features, rng: Rng) -> None:
        """Set the coefficients and `_publish` them."""

    def score(self, X: Any, y: Any) -> float:
        """Accuracy or R² on public rows; refused unless holdout="public" says that they are."""
        if self.holdout != "public":
            raise QueryRefused(
                "A score is an exact statistic of the rows it is computed on. Declare holdout='public' if they are "
                f"public; otherwise pay for it: {self._paid_score}."
            )
        return float(super().score(X, y))  # type: ignore[misc]  # the mixin that follows has it

    def __sklearn_clone__(self) -> Any:
        if self.holdout != "public":
            raise QueryRefused(
                "Cross-validation, grid search and other refits are refused: each fit is another release, and a "
                "score on private rows is not private. If the rows that are scored are public, say so with "
                "holdout='public' and give the number of fits, fits=: each then pays that part of every epsilon. "
                f"To score on private people, pay for it: {self._paid_score}."
            )
        return super().__sklearn_clone__()  # type: ignore[misc]  # BaseEstimator has it

    @property
    def _paid_score(self) -> str:
        """Return what to write instead of an exact score."""
        if is_regressor(self):
            return "discretion.mean((model.predict(X) - y) ** 2, epsilon=..., bounds=(0, ...))"
        return "discretion.mean(model.predict(X) == y, epsilon=..., bounds=(0, 1))"

    @property
    def _mechanism(self) -> str:
        return self.mechanism or "sample"

    def _check(self) -> None:
        """Refuse parameters that contradict one another or mean nothing."""
        uniform = ", ".join(map(repr, self._uniform_methods))
        if self.method not in ("weighted", *self._uniform_methods):
            methods = ", ".join(filter(None, ("'weighted'", uniform)))
            raise InvalidDeclaration(f"method must be one of {methods}, got {self.method!r}.")
        if self.method == "weighted" and self.mechanism is not None:
            raise InvalidDeclaration(f"mechanism= is for method={uniform}; 'weighted' honours epsilon by weights.")
        if self.method == "weighted" and self.options is not None:
            raise InvalidDeclaration(f"options= is for method={uniform}; 'weighted' has none.")
        if self.method != "weighted" and self.kappa is not None:
            raise InvalidDeclaration("kappa= is for method='weighted'; with 'sample', options={'threshold': ...} caps.")
        if self.kappa is not None and not 1 <= self.kappa * MICRO <= LARGEST_EPSILON * MICRO:
            raise InvalidDeclaration(f"kappa must be from a millionth to {LARGEST_EPSILON:g}, got {self.kappa!r}.")
        if self.holdout not in ("private", "public"):
            raise InvalidDeclaration(f"holdout must be 'private' or 'public', got {self.holdout!r}.")

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
        owners = people(chosen, rows, protects=self.protects, groups=groups, register=register, fits=self.fits)
        if owners.spends.micro.max() <= 0:
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

        κ is rounded down to a multiple of what divides every level, so that sums in whole numbers stay small.
        """
        cap = saturation(owners.spends, ratio) if self.kappa is None else int(allowance(self.kappa))
        step = int(np.gcd.reduce(owners.spends.micro))
        return capped(owners.spends, cap // step * step or cap)  # below every level, κ is what everybody gets

    def _publish(
        self, coefficients: Floats, noise_each: Floats | None, guarantee: Guarantee, mechanism: str, rng: Rng, why: str
    ) -> None:
        """Set `guarantee_` and `release_`; `coefficients` end with the intercept, `noise_each` is None if unknown."""
        names = getattr(self, "feature_names_in_", range(coefficients.size - 1))
        spreads = [inf] * coefficients.size if noise_each is None else noise_each.tolist()
        about = "only the privacy noise counts, to first order, not the ridge's bias" if noise_each is not None else ""
        self.guarantee_ = guarantee
        self.release_ = Release(
            columns={"feature": (*map(str, names), "intercept"), "coefficient": tuple(coefficients.tolist())},
            errors={"coefficient": tuple(Error(bias=0.0, noise=s, assumption=about) for s in spreads)},
            mechanism=mechanism,
            guarantee=guarantee,
            simulated=rng is not None,
            explanation=why,
        )
