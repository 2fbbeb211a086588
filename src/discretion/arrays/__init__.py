"""Questions about arrays and data frames: one ε per person, no ledger.

epsilon     what each person chose: one number per person; one for everybody; or names of `levels`
levels      {name: ε}: what the names stand for
bounds      (low, high): values are clamped to it; known without looking at the data. Dates where values are dates
x_bounds, y_bounds
            the same for each of two columns
by, keys    the group of every row, and every group that the answer shows. Several columns: {name: column}, {name: keys}
person, rows_per_person
            whose each row is, and the most rows of one person that count (more are left out at random); `epsilon` is
            then one for everybody, one per row (the strictest of a person's rows counts), or {person: ε}
mechanism   "auto" (the smallest predicted error) or a name; `options` are for the one that is named, e.g.
            options={"threshold": 0.5}
assume      None: nothing about the data; "gradual": people of similar ε are alike, and how values depend on ε is
            estimated; "independent": preferences are unrelated to values; or a number between
protects    "value": who is in the data is public; "presence": being in it is secret, and a missing value is an absence
expect      (low, high): every cohort's fraction or mean is believed to lie there
grid        the step between the candidate answers of a quantile; days for dates
required    everybody has a value, so their number is public and the answer better; one that is missing all the same
            counts as the bound nearest 0
with_interval  for quantiles: a third of everybody's ε goes to an interval in the units of the values
rng         None: the secure source; a generator of `noise.simulation(seed)` for experiments
model       "personalized"; or "individual", with acknowledged=True: not differential privacy (see `local`)

A missing, NaN or infinite value contributes nothing, and its person is protected like everybody else.
"""

from discretion.arrays.category import count, histogram, mode
from discretion.arrays.number import mean, std, sum, variance
from discretion.arrays.order import maximum, median, minimum, quantile
from discretion.arrays.pair import correlation, covariance, slope

__all__ = [
    "correlation",
    "count",
    "covariance",
    "histogram",
    "maximum",
    "mean",
    "median",
    "minimum",
    "mode",
    "quantile",
    "slope",
    "std",
    "sum",
    "variance",
]
