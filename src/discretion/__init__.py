"""Personalized differential privacy: everybody gets the privacy they chose, the analyst the best answer that allows.

import discretion as dn

release = dn.mean(income, epsilon=eps, bounds=(0, 500_000))    # one ε per person
release.value, release.error, release.interval(0.95), release.guarantee
print(release.explain())                                       # why this mechanism, and who pays what
"""

from discretion.arrays import count, histogram, mean, median, mode, quantile, sum, variance
from discretion.arrays import maximum as max
from discretion.arrays import minimum as min
from discretion.release import Error, Release

__all__ = [
    "Error",
    "Release",
    "count",
    "histogram",
    "max",
    "mean",
    "median",
    "min",
    "mode",
    "quantile",
    "sum",
    "variance",
]
