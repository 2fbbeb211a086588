"""Learning with one epsilon per person, against the papers' methods and against no privacy, in one run.

Every method gets the same rows, the same preferences (the PDP paper's defaults) and the same public bounds.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table
from sklearn import linear_model, svm
from sklearn.metrics import roc_auc_score

from discretion import noise
from discretion.learn import LinearRegression, LinearSVC, LogisticRegression

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"  # optional, beside the repository
PLAIN = {  # scikit-learn's own
    LinearRegression: linear_model.LinearRegression,
    LogisticRegression: linear_model.LogisticRegression,
    LinearSVC: svm.LinearSVC,
}
FUNCTIONAL: dict[str, Any] = {"method": "functional"}
MEAN = {"threshold": "mean"}
REGRESSIONS: dict[str, dict[str, Any]] = {
    "functional, minimum": FUNCTIONAL | {"mechanism": "minimum"},
    "functional, threshold": FUNCTIONAL | {"mechanism": "threshold"},
    "functional, stretch": FUNCTIONAL | {"mechanism": "stretch"},
    "functional, sample, as published": FUNCTIONAL | {"sensitivity": "published"},
    "functional, sample, tight": FUNCTIONAL,
    "functional, sample at mean, as published": FUNCTIONAL | {"options": MEAN, "sensitivity": "published"},
    "functional, sample at mean, tight": FUNCTIONAL | {"options": MEAN},
    "weighted, pure": {},
    "weighted, AdaSSP (δ = 1e-6)": {"delta": 1e-6},
}
THRESHOLDS = (0.1, 0.25, "mean", 0.5, 0.75, "max")
OBJECTIVE: dict[str, Any] = {"method": "objective"}
CLASSIFIERS: dict[str, dict[str, Any]] = {
    "minimum": OBJECTIVE | {"mechanism": "minimum"},
    **{f"sample, t = {t}": OBJECTIVE | {"options": {"threshold": t}} for t in THRESHOLDS},
    "output perturbation, sample, t = max": {"method": "output"},
    "partition, privacy-aware": OBJECTIVE | {"mechanism": "partition", "options": {"cuts": "privacy", "parts": 5}},
    "partition, utility-based": OBJECTIVE | {"mechanism": "partition", "options": {"cuts": "utility", "parts": 5}},
    "weighted": {},
}


def main(quick: bool = False) -> None:
    """Print all tables; `quick` with a tenth of the repetitions."""
    runs = 3 if quick else 30
    console = Console()
    console.print(synthetic(runs))
    if DATA.exists():
        console.print(census(runs))
        for people in (2_000, 32_561):
            for estimator in (LogisticRegression, LinearSVC):
                console.print(adult(estimator, people, runs * 2 if people < 10_000 else max(runs // 3, 2)))
    else:
        console.print("The census tables need ../shared/data, which is not there.")
    console.print(seconds())


def preferences(people: int, rng: np.random.Generator) -> Any:  # noqa: TID251  only the type
    """[JYC15] Table I: 54% conservative U[.01, .2], 37% moderate U[.2, 1], 9% liberal 1; rounded down to hundredths."""
    kind = rng.choice(3, people, p=[0.54, 0.37, 0.09])
    drawn = np.where(kind == 0, rng.uniform(0.01, 0.2, people), rng.uniform(0.2, 1.0, people))
    return np.where(kind == 2, 1.0, np.floor(drawn * 100) / 100)


def synthetic(runs: int, people: int = 5_000, size: int = 8) -> Table:
    """Rows in the unit ball, targets linear in them but for noise of .2."""
    errors: dict[str, list[float]] = {}
    for run in range(runs):
        rng = noise.simulation(run)
        theta = rng.normal(size=size)
        X = rng.normal(size=(people + 20_000, size))
        X /= np.maximum(1, np.linalg.norm(X, axis=1))[:, None]
        y = np.clip(X @ theta / np.linalg.norm(theta) + rng.normal(0, 0.2, len(X)), -1, 1)
        epsilon = preferences(people, rng)
        declared = {"bounds": (-1, 1), "target_bounds": (-1, 1), "norm": 1.0, "fit_intercept": False}
        _regress(errors, X, y, people, epsilon, declared, run)
    return _table(f"linear regression, synthetic, d = {size}, n = {people:,}: mean squared error", errors, lower=True)


def census(runs: int) -> Table:
    """American Community Survey 2019: income from 13 features, public bounds, intercept."""
    X, y = acs()
    errors: dict[str, list[float]] = {}
    for run in range(runs):
        rng = noise.simulation(100 + run)
        order = rng.permutation(len(X))
        train = len(X) * 4 // 5
        epsilon = preferences(train, rng)
        declared = {"bounds": (-1, 1), "target_bounds": (-1, 1), "fit_intercept": True}
        _regress(errors, X[order], y[order], train, epsilon, declared, run)
    return _table(f"linear regression, ACS income, 13 features, n = {train:,}: mean squared error", errors, lower=True)


def adult(estimator: Any, people: int, runs: int) -> Table:
    """Adult: income above 50,000 from 14 features; accuracy and area under the curve on the test part."""
    X, y, is_test = adult_rows()
    accuracy: dict[str, list[float]] = {}
    area: dict[str, list[float]] = {}
    for run in range(runs):
        rng = noise.simulation(200 + run)
        rows = rng.permutation(np.flatnonzero(~is_test))[:people]
        epsilon = preferences(people, rng)
        declared: dict[str, Any] = {"bounds": (-1, 1), "norm": 2.0, "classes": (0, 1), "random_state": run}
        for name in (*CLASSIFIERS, "not private"):
            if name in CLASSIFIERS:
                model = estimator(**declared, **CLASSIFIERS[name]).fit(X[rows], y[rows], epsilon=epsilon)
            else:
                model = PLAIN[estimator]().fit(X[rows], y[rows])
            accuracy.setdefault(name, []).append(float(np.mean(model.predict(X[is_test]) == y[is_test])))
            area.setdefault(name, []).append(roc_auc_score(y[is_test], model.decision_function(X[is_test])))
    return _table(f"{estimator.__name__}, Adult, n = {people:,}: accuracy, AUC", accuracy, area)


def seconds(people: int = 100_000, size: int = 14) -> Table:
    """How long one fit takes, with preferences in hundredths and with all different, against scikit-learn's own."""
    rng = noise.simulation(300)
    X = rng.uniform(-1, 1, (people, size))
    y = np.clip(X @ rng.normal(size=size) / size + rng.normal(0, 0.1, people), -1, 1)
    label, levels, different = (y > 0).astype(int), preferences(people, rng), rng.uniform(0.01, 1, people)
    ours: dict[Any, Any] = {
        LinearRegression: (LinearRegression(bounds=(-1, 1), target_bounds=(-1, 1)), y),
        LogisticRegression: (LogisticRegression(bounds=(-1, 1), classes=(0, 1)), label),
        LinearSVC: (LinearSVC(bounds=(-1, 1), classes=(0, 1)), label),
    }
    table = Table(title=f"seconds for one fit of {people:,} × {size}")
    for heading in ("estimator", "ε in hundredths", "all ε different", "scikit-learn"):
        table.add_column(heading, justify="left" if heading == "estimator" else "right")
    for kind, (model, target) in ours.items():
        took = [_seconds(lambda m=model, t=target, e=e: m.fit(X, t, epsilon=e)) for e in (levels, different)]
        plain = _seconds(lambda k=kind, t=target: PLAIN[k]().fit(X, t))
        table.add_row(kind.__name__, *(f"{value:.2f}" for value in (*took, plain)))
    return table


def acs() -> tuple[Any, Any]:
    """13 features in [−1, 1] by public bounds (missing: the middle), income from 0 to 200,000 in [−1, 1]."""
    column = {name: _column("acs_national_2019.parquet", name) for name in _names("acs_national_2019.parquet")}
    earns = np.isfinite(column["pincp"])
    married, single = column["msp"] <= 2, column["msp"] == 6
    bounded = {"agep": (15, 95), "noc": (0, 6), "npf": (1, 10), "edu": (1, 12), "density": (0, 30_000)}
    two = {"sex": (1, 2), "dphy": (1, 2), "drem": (1, 2), "dear": (1, 2), "hisp": (0, 1), "own_rent": (1, 2)}
    placed = [_placed(column[name], *ends) for name, ends in (bounded | two).items()]
    X = np.column_stack([*placed, np.where(married, 1.0, -1.0), np.where(single, 1.0, -1.0)])
    return X[earns], _placed(column["pincp"], 0, 200_000)[earns]


def adult_rows() -> tuple[Any, Any, Any]:
    """14 features in [−1, 1] by public bounds, the label, and which rows are the test part."""
    file = "adult.parquet"
    numbers = {
        "age": (17, 90),
        "education_num": (1, 16),
        "hours_per_week": (1, 99),
        "capital_gain": (0, 20_000),
        "capital_loss": (0, 3_000),
    }
    yes = {
        "marital_status": ("Married-civ-spouse", "Never-married"),
        "occupation": ("Exec-managerial", "Prof-specialty", "Other-service"),
        "workclass": ("Private", "Self-emp-inc"),
        "sex": ("Male",),
        "race": ("White",),
    }
    placed = [_placed(_column(file, name), *ends) for name, ends in numbers.items()]
    flags = [np.where(_column(file, name) == value, 1.0, -1.0) for name, values in yes.items() for value in values]
    label = (_column(file, "income") == ">50K").astype(int)
    return np.column_stack([*placed, *flags]), label, _column(file, "split") == "test"


def _regress(
    errors: dict[str, list[float]], X: Any, y: Any, people: int, epsilon: Any, declared: dict[str, Any], seed: int
) -> None:
    """Fit every method on the first `people` rows; add the errors on the rest."""
    for name in (*REGRESSIONS, "least squares, not private"):
        if name in REGRESSIONS:
            options = declared | {"random_state": seed} | REGRESSIONS[name]
            model = LinearRegression(**options).fit(X[:people], y[:people], epsilon=epsilon)
        else:
            model = linear_model.LinearRegression(fit_intercept=declared["fit_intercept"]).fit(X[:people], y[:people])
        errors.setdefault(name, []).append(float(np.mean((model.predict(X[people:]) - y[people:]) ** 2)))
    errors.setdefault("predict the middle", []).append(float(np.mean(y[people:] ** 2)))


def _table(title: str, *columns: dict[str, list[float]], lower: bool = False) -> Table:
    """Mean ± standard error of each method; the median of the first column, and its ratio to no privacy."""
    baseline = next(np.median(values) for name, values in columns[0].items() if "not private" in name)
    table = Table(title=title, caption="lower is better" if lower else "higher is better")
    table.add_column("method")
    for _ in columns:
        table.add_column("mean ± s.e.", justify="right")
    table.add_column("median", justify="right")
    table.add_column("ratio", justify="right")
    for name in columns[0]:
        cells = [
            f"{np.mean(column[name]):.4f} ± {np.std(column[name]) / np.sqrt(len(column[name])):.4f}"
            for column in columns
        ]
        median = np.median(columns[0][name])
        table.add_row(name, *cells, f"{median:.4f}", f"{median / baseline:.3f}")
    return table


def _placed(values: Any, low: float, high: float) -> Any:
    middle = (low + high) / 2
    return np.clip((np.nan_to_num(values, nan=middle) - middle) / (high - low) * 2, -1, 1)


def _names(file: str) -> list[str]:
    return list(pq.read_schema(DATA / file).names)


def _column(file: str, name: str) -> Any:
    return pq.read_table(DATA / file, columns=[name])[name].to_numpy()


def _seconds(work: Callable[[], Any]) -> float:
    start = perf_counter()
    work()
    return perf_counter() - start


if __name__ == "__main__":
    main(quick="--quick" in sys.argv)
