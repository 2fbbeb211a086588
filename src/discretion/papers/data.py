"""Data for the experiments: generated with the published statistics, or real files of the same kind."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv, parquet

from discretion.errors import InvalidDeclaration
from discretion.noise import Floats
from discretion.papers.figure import Effort, Source

Bounds = tuple[float, float]
ATTRIBUTES: Mapping[str, Bounds] = {  # public bounds, as a census bureau would declare them
    "age": (16, 95),
    "female": (0, 1),
    "married": (0, 1),
    "single": (0, 1),
    "education": (0, 20),
    "disabled": (0, 1),
    "foreign": (0, 1),
    "hours": (0, 99),
    "years_here": (0, 60),
    "owner": (0, 1),
    "family": (1, 12),
    "children": (0, 9),
    "vehicles": (0, 6),
    "food_stamps": (0, 1),
    "employed": (0, 1),
    "bedrooms": (0, 8),
    "times_married": (0, 3),
    "income": (0, 300_000),
}
IN_LXJJ17 = (*tuple(ATTRIBUTES)[:13], "income")  # the 14 attributes of the partitioning paper
IN_JYC15 = (
    *("food_stamps", "female", "married", "single", "employed", "owner", "bedrooms", "vehicles", "children", "age"),
    *("times_married", "hours", "income"),
)  # the 13 attributes of the PDP paper


class Country(NamedTuple):
    """Says what tells the generated people of two countries apart."""

    cars: float  # for each adult who has reason to own one
    abroad: float  # the share born there
    schooling: float  # years, on average
    income: int  # usual


COUNTRIES = {"US": Country(0.75, 0.12, 12, 45_000), "Brazil": Country(0.35, 0.02, 8, 14_000)}


@dataclass(frozen=True, kw_only=True, eq=False)
class Census:
    """People and their attributes, each with public bounds; income is the last."""

    names: tuple[str, ...]
    values: Floats  # (person, attribute)
    bounds: tuple[Bounds, ...]

    @property
    def features(self) -> Floats:
        return self.values[:, :-1]

    @property
    def income(self) -> Floats:
        return self.values[:, -1]

    def __len__(self) -> int:
        return len(self.values)

    def choose(self, names: tuple[str, ...]) -> "Census":
        """Only these attributes, as far as there are any of them."""
        kept = [self.names.index(name) for name in names if name in self.names]
        return Census(
            names=tuple(self.names[i] for i in kept),
            values=np.asfortranarray(self.values[:, kept]),  # read by column
            bounds=tuple(self.bounds[i] for i in kept),
        )


def census(people: int, rng: Any, country: str = "US") -> Census:
    """Census-like people: dependent attributes, skewed income, everybody with some income."""
    there = COUNTRIES[country]
    age = np.clip(rng.gamma(6.5, 7.2, people), 16, 95)
    female = rng.random(people) < 0.5
    married = rng.random(people) < 0.62 * (1 - np.exp(-(age - 16) / 12))
    single = ~married & (rng.random(people) < np.exp(-(age - 18) / 18))
    education = np.clip(rng.normal(there.schooling, 3.2, people), 0, 20)
    disabled = rng.random(people) < 0.02 + 0.25 * np.maximum(age - 40, 0) / 55
    employed = (rng.random(people) < 0.86 - 0.25 * disabled - 0.1 * female) & (age < 70)
    hours = np.where(employed, np.clip(rng.normal(40 - 4 * female, 9, people), 1, 99), 0)
    owner = rng.random(people) < 1 / (1 + np.exp(2.2 - 0.045 * age - 0.8 * married))
    children = rng.poisson(np.where(married, 1.1, 0.3) * np.exp(-(((age - 38) / 16) ** 2)))
    logarithm = np.log(there.income) + 0.09 * (education - 12) + 0.012 * (hours - 38) - 0.28 * female - 0.3 * disabled
    logarithm += 0.9 - 0.0011 * (age - 50) ** 2 - 0.4 * ~employed + 0.1 * married + 0.1 * owner
    income = np.exp(logarithm - 0.6 + rng.normal(0, 0.62, people))
    columns = {
        "age": age,
        "female": female,
        "married": married,
        "single": single,
        "education": education,
        "disabled": disabled,
        "foreign": rng.random(people) < there.abroad,
        "hours": hours,
        "years_here": np.minimum(rng.exponential(12, people), age),
        "owner": owner,
        "family": 1 + married + children + rng.poisson(0.4, people),
        "children": children,
        "vehicles": rng.poisson(there.cars * (1 + married + employed)),
        "income": income,
        "food_stamps": rng.random(people) < np.exp(-income / (there.income / 2)),
        "employed": employed,
        "bedrooms": 1 + rng.poisson(1.2 + 0.8 * owner + 0.2 * children),
        "times_married": np.where(single, 0, 1 + (rng.random(people) < 0.2)),
    }
    return _clamped(columns)


@lru_cache(maxsize=2)
def citizens(effort: Effort, label: str, country: str, people: int, names: tuple[str, ...]) -> Census:
    """The people of the real file if there is one; else generated ones, the same for the same seed and label."""
    if effort.data is not None:
        return census_file(effort.data)
    return census(people, effort.generator(label, country), country).choose(names)


def census_file(path: Path) -> Census:
    """The people of an ACS excerpt (with the columns of the NIST excerpts) or of UCI Adult."""
    table = _read(path)
    if "pincp" in table.column_names:
        return _acs(table)
    if "education_num" in table.column_names:
        return _adult(table)
    raise _unknown(path)


def _acs(table: pa.Table) -> Census:
    table = table.filter(pc.greater(pc.fill_null(table["pincp"], 0), 0))
    number = {name: pc.fill_null(table[name], 0).to_numpy() for name in ("agep", "sex", "msp", "noc", "npf", "edu")}
    number |= {name: pc.fill_null(table[name], 0).to_numpy() for name in ("own_rent", "dphy", "drem", "pincp")}
    works = ~np.asarray(table["indp"].is_null())
    return _clamped(
        {
            "age": number["agep"],
            "female": number["sex"] == 2,
            "married": (number["msp"] == 1) | (number["msp"] == 2),
            "single": number["msp"] == 6,
            "education": number["edu"] + 4,
            "disabled": (number["dphy"] == 1) | (number["drem"] == 1),
            "owner": number["own_rent"] == 1,
            "family": np.maximum(number["npf"], 1),
            "children": number["noc"],
            "employed": works,
            "income": number["pincp"],
        }
    )


def _adult(table: pa.Table) -> Census:
    text = {name: np.asarray(table[name].to_pylist()) for name in ("sex", "marital_status", "income")}
    rich = np.char.startswith(text["income"], ">")
    return _clamped(
        {
            "age": table["age"].to_numpy(),
            "female": text["sex"] == "Female",
            "married": np.char.startswith(text["marital_status"], "Married-civ"),
            "single": text["marital_status"] == "Never-married",
            "education": table["education_num"].to_numpy() + 3,
            "foreign": np.asarray(table["native_country"].to_pylist()) != "United-States",
            "hours": table["hours_per_week"].to_numpy(),
            "income": np.where(rich, 100_000, 30_000),  # only which side of 50,000 is known
        }
    )


def _clamped(columns: Mapping[str, Any]) -> Census:
    names = (*(name for name in ATTRIBUTES if name in columns and name != "income"), "income")
    bounds = tuple(ATTRIBUTES[name] for name in names)
    values = np.column_stack([np.asarray(columns[name], dtype=np.float64) for name in names])
    lower, upper = np.array(bounds).T
    return Census(names=names, values=np.asfortranarray(np.clip(np.rint(values), lower, upper)), bounds=bounds)


def items_file(path: Path) -> tuple[Any, Any]:
    """The person and the item of every row of a file with columns user_id and area_id (or item_id)."""
    table = _read(path)
    item = next((name for name in ("item_id", "area_id") if name in table.column_names), None)
    if item is None or "user_id" not in table.column_names:
        raise _unknown(path)
    codes = [pc.dictionary_encode(table[name]).combine_chunks().indices.to_numpy() for name in ("user_id", item)]
    return codes[0], codes[1]


def recognise(path: Path) -> Source:
    """Return which kind of figures a file can serve, by its columns."""
    columns = set(_columns(path))
    if columns & {"pincp", "education_num"}:
        return "census"
    if "user_id" in columns and columns & {"item_id", "area_id"}:
        return "items"
    raise _unknown(path)


def _unknown(path: Path) -> InvalidDeclaration:
    return InvalidDeclaration(
        f"{path.name} must be a census extract (column pincp, or education_num as in UCI Adult) or rows of "
        "user_id and item_id (or area_id). Rename the columns."
    )


def _columns(path: Path) -> list[str]:
    if not path.is_file():
        raise InvalidDeclaration(f"There is no file {path}.")
    return list(parquet.read_schema(path).names) if path.suffix == ".parquet" else _read(path).column_names


def _read(path: Path) -> pa.Table:
    return parquet.read_table(path) if path.suffix == ".parquet" else csv.read_csv(path)
