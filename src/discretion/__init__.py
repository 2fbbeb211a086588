"""Personalized differential privacy: everybody gets the privacy they chose, the analyst the best answer that allows.

import discretion as dn

release = dn.mean(income, epsilon=eps, bounds=(0, 500_000))    # one ε per person
release.value, release.error, release.interval(0.95), release.guarantee
print(release.explain())                                       # why this mechanism, and who pays what

db = dn.connect("clinic.discretion")                           # tables, SQL, and a ledger of who has spent what
db.protect("patients", "patients.parquet", person="id", epsilon="epsilon", bounds={"age": (0, 120)})
db.sql("SELECT AVG(age) FROM patients", share=0.1)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from discretion.arrays import (
        correlation,
        count,
        covariance,
        histogram,
        mean,
        median,
        mode,
        quantile,
        slope,
        std,
        sum,
        variance,
    )
    from discretion.arrays import maximum as max
    from discretion.arrays import minimum as min
    from discretion.connection import Connection, connect
    from discretion.declaration.table import Lookup, Policy
    from discretion.errors import DiscretionError
    from discretion.guarantee import Guarantee
    from discretion.learn.personalize import personalize
    from discretion.preference import Preference, Specification
    from discretion.release import Error, Release

__all__ = [
    "Connection",
    "DiscretionError",
    "Error",
    "Guarantee",
    "Lookup",
    "Policy",
    "Preference",
    "Release",
    "Specification",
    "connect",
    "correlation",
    "count",
    "covariance",
    "histogram",
    "max",
    "mean",
    "median",
    "min",
    "mode",
    "personalize",
    "quantile",
    "slope",
    "std",
    "sum",
    "variance",
]

# A public name is loaded when it is first used: arrays need no SQL, and SQL needs no estimators.
_HOMES = {name: ("arrays", name) for name in __all__ if name.islower()}
_HOMES |= {"max": ("arrays", "maximum"), "min": ("arrays", "minimum")}
_HOMES |= {name: ("connection", name) for name in ("Connection", "connect")}
_HOMES |= {name: ("declaration.table", name) for name in ("Lookup", "Policy")}
_HOMES |= {name: ("preference", name) for name in ("Preference", "Specification")}
_HOMES |= {name: ("release", name) for name in ("Error", "Release")}
_HOMES |= {"DiscretionError": ("errors", "DiscretionError"), "Guarantee": ("guarantee", "Guarantee")}
_HOMES |= {"personalize": ("learn.personalize", "personalize")}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, defined = _HOMES[name]
    return globals().setdefault(name, getattr(import_module(f"{__name__}.{module}"), defined))


def __dir__() -> list[str]:
    """Show the product, not its modules."""
    return [*__all__, *(name for name in globals() if name.startswith("__"))]
