from dataclasses import replace
from itertools import product
from math import erfc, exp, inf, log, sqrt
from statistics import NormalDist

import numpy as np
import pytest

from discretion.errors import InvalidDeclaration
from discretion.guarantee import Guarantee, Loss
from discretion.noise import simulation
from discretion.release import Error, Release
from discretion.render.number import KEPT, between, percent, rounded

PROMISE = Guarantee(protects="value", losses={100_000: Loss(100_000)})


def release(**changes: object) -> Release:
    one = {"columns": {"count": (42.0,)}, "errors": {"count": (Error(bias=3, noise=4),)}}
    return Release(mechanism="weighted", guarantee=PROMISE, **(one | changes))


def test_error_adds_bias_and_noise_as_root_mean_square():
    assert 5 == Error(bias=3, noise=4).total


def test_the_half_width_is_exact_for_laplace_noise():
    scale = 2.0
    assert Error(bias=0, noise=scale * sqrt(2)).half_width(0.95) == pytest.approx(scale * log(20))
    biased = Error(bias=1, noise=scale * sqrt(2)).half_width(0.95)
    assert 0.05 == pytest.approx(exp(-(biased - 1) / scale) / 2 + exp(-(biased + 1) / scale) / 2)
    assert Error(bias=0, noise=scale * sqrt(2), pull=1).half_width(0.95) == pytest.approx(1 + scale * log(20))


@pytest.mark.parametrize("confidence", [1e-9, 0.1, 0.5, 0.8, 0.9, 0.95, 0.999, 1 - 1e-12, 1 - 2**-53])
def test_the_half_width_covers_laplace_and_normal_noise(confidence):
    """Of Laplace noise less lies near its middle, of normal noise in its tails: neither alone covers the other."""
    half = Error(bias=0, noise=1).half_width(confidence)
    assert exp(-half * sqrt(2)) <= (1 - confidence) * (1 + 1e-6)
    assert erfc(half / sqrt(2)) <= (1 - confidence) * (1 + 1e-6)


def test_an_interval_stays_within_the_limits():
    error = Error(bias=0, noise=inf, limits=(0, 10))
    assert (0, 10) == error.interval(4)
    assert (0, 5) == Error(bias=5, noise=0, limits=(0, 20)).interval(-50)  # not (0, 0), as if it were exact
    assert (0, 2) == Error(bias=5, noise=0, limits=(0, 2)).interval(-50)
    ladder = ((0.5, 0.0, 0.0), (0.025, -2.0, 3.0), (0.0005, -4.0, 9.0))
    assert (98, 100) == pytest.approx(Error(bias=0, noise=1, quantiles=ladder, limits=(0, 100)).interval(130))


@pytest.mark.parametrize("confidence", [0, 1, -1, 2])
def test_a_confidence_is_between_0_and_1(confidence):
    with pytest.raises(InvalidDeclaration):
        Error(bias=0, noise=1).half_width(confidence)


def test_the_ends_of_an_interval_take_no_column_from_the_answer():
    errors = (Error(bias=3, noise=4),)
    columns = {"c": (42.0,), "c_low": (7.0,), "c_low_": (8.0,), "n": (2**70,), "m": (-(10**400),)}
    found = release(columns=columns, errors={"c": errors, "c_low": errors}).to_arrow().to_pylist()[0]
    assert {"c": 42.0, "c_low": 7.0, "c_low_": 8.0, "n": 2.0**70, "m": -inf} == {name: found[name] for name in columns}
    assert found["c_low__"] < 42 < found["c_high"]
    assert found["c_low_low"] < 7 < found["c_low_high"]


def test_one_number_is_a_scalar():
    one = release()
    assert 42.0 == one.value == float(one)
    assert 5 == one.error.total
    low, high = one.interval(0.95)
    assert low < 42 < high


def test_groups_are_a_table():
    error = Error(bias=0, noise=1)
    table = release(columns={"region": ("N", "S"), "count": (1.0, 2.0)}, errors={"count": (error, error)})
    assert (1.0, 2.0) == table.value
    assert [("N", 1.0), ("S", 2.0)] == list(table)
    assert 2 == len(table)
    assert ["region", "count", "count_low", "count_high", "count_rmse"] == table.to_arrow().column_names
    assert [1.0, 2.0] == table.to_pandas()["count"].tolist()


def test_several_answers_come_as_rows():
    error = Error(bias=0, noise=1)
    both = release(columns={"n": (1.0,), "mean": (2.0,)}, errors={"n": (error,), "mean": (error,)})
    assert ((1.0, 2.0),) == both.value


def test_an_answer_without_its_error_cannot_be_built():
    with pytest.raises(InvalidDeclaration):
        release(errors={})
    with pytest.raises(InvalidDeclaration):
        release(errors={"other": (Error(bias=0, noise=1),)})
    with pytest.raises(InvalidDeclaration):
        release(errors={"count": ()})


def test_repr_and_html_show_answer_error_promise_and_assumption():
    believed = release(
        errors={"count": (Error(bias=0, noise=2, assumption="a < b"),)}, simulated=True, explanation="because"
    )
    for text in ("42.0 ± 4.3", "weighted", "personalized differential privacy", "assumes", "protects nobody"):
        assert text in repr(believed)
        assert text in believed._repr_html_()
    assert "a &lt; b" in believed._repr_html_()
    assert "because" == believed.explain()


def test_ranks_and_unbounded_noise_say_what_they_are():
    assert "rank ± 2.2%" in repr(release(errors={"count": (Error(bias=0, noise=0.01, unit="rank"),)}))  # 2.12
    category = release(columns={"count": ("N",)}, errors={"count": (Error(bias=inf, noise=0, unit="rank"),)})
    assert "N (at most 100.0% short)" in repr(category)
    assert "within 0 to 9" in repr(release(errors={"count": (Error(bias=0, noise=inf, limits=(0, 9)),)}))
    assert "42 (error unknown)" in repr(release(errors={"count": (Error(bias=0, noise=inf),)}))


@pytest.mark.parametrize(
    ("value", "half", "shown"),
    [
        (-7_940_118.0, 233_885_476.0, "-10,000,000 ± 240,000,000"),
        (6_184.0, 319.0, "6,180 ± 330"),
        (3.0, 4_711.0, "0 ± 4,800"),
        (-3.0, 4_711.0, "0 ± 4,800"),
        (6_184.0, 40.0, "6,184 ± 40"),
        (0.123456, 0.00789, "0.1235 ± 0.0080"),
        (42.0, 0.0, "42 ± 0"),
        (1.0, 1e-30, "1.000000000000 ± 0.000000000001"),
        (9.5e20, 2e20, "950,000,000,000,000,000,000 ± 200,000,000,000,000,000,000"),
    ],
)
def test_two_digits_of_the_error_are_shown_and_the_value_to_the_same_place(value, half, shown):
    assert shown == rounded(value, half)


@pytest.mark.parametrize("seed", range(20))
def test_what_is_shown_is_never_narrower_than_what_is_meant(seed):
    rng = simulation(seed)
    value, half = float(rng.normal() * 10.0 ** rng.integers(-3, 9)), float(10.0 ** rng.uniform(-3, 9))
    for within in (inf, half, 1.00001 * half, 1.05 * half, 0.9 * half):
        near, wide = (float(part.replace(",", "")) for part in rounded(value, half, within).split(" ± "))
        assert near - wide <= value - half + 1e-6 * wide
        assert value + half - 1e-6 * wide <= near + wide
        assert wide <= 1.2 * half
        assert wide <= KEPT * within * (1 + 1e-9) or within < half


@pytest.mark.parametrize(
    ("value", "half", "within", "shown"),
    [
        (6_183.42, 99.97, inf, "6,183 ± 101"),
        (6_183.42, 99.97, 100, "6,183.4 ± 100.0"),
        (6_183.42, 90.2, 100, "6,183 ± 91"),
        (6_183.42377, 100, 100, "6,183.42 ± 100.01"),
        (6_183.42, 100.005, 100, "6,183.42 ± 100.01"),
        (6_183.42, 107, 100, "6,180 ± 120"),  # missed, and a remark says so
    ],
)
def test_an_error_is_not_shown_above_the_one_asked_for_unless_it_was_missed(value, half, within, shown):
    assert shown == rounded(value, half, within)


def test_intervals_and_ranks_keep_to_the_error_asked_for_too():
    assert "50.3 (0 to 150.3)" == between(50.3, 99.97, (0, 150.27), (0, inf), 100)
    assert ["2.1%", "2.06%", "2.0%", "30.0%"] == [
        percent(*one) for one in [(0.020599,), (0.020599, 0.0206), (0.02, 0.02), (0.3, 0.2)]
    ]
    shown = release(within=100.0, columns={"count": (6_183.42,)}, errors={"count": (Error(bias=99.97, noise=0),)})
    assert "6,183.4 ± 100.0" in repr(shown)


def test_an_interval_that_was_bought_is_shown_as_it_is():
    bought = release(errors={"count": (Error(bias=5, noise=0, limits=(40, 47), bought=True),)})
    assert "\n42 (40 to 47)\n" in repr(bought)
    assert "42 (40 to 47)" in bought._repr_html_()
    assert bought == Release.from_stored(bought.stored())
    narrow = Error(bias=0.25, noise=0, limits=(250_000.25, 250_000.75), bought=True)
    shown = repr(release(columns={"count": (250_000.5,)}, errors={"count": (narrow,)}))
    assert "\n250,000.5 (250,000.25 to 250,000.75)\n" in shown


@pytest.mark.parametrize("value", [0.0, 60.0, 120.0])
def test_an_answer_that_may_be_anything_is_not_taken_for_a_bought_interval(value):
    """Of a group in which nobody was told apart; at either bound, too, where noise often takes it."""
    empty = release(columns={"count": (value,)}, errors={"count": (Error(bias=120, noise=0, limits=(0, 120)),)})
    assert "count: too much noise to say anything" in repr(empty)


def test_remarks_are_shown_wherever_the_answer_is():
    odd = release(columns={"count": (-15.0,)}, errors={"count": (Error(bias=0, noise=9, limits=(0, 20)),)})
    for text in ("noise took an answer outside", "personalized differential privacy"):
        assert text in repr(odd)
        assert text in odd._repr_html_()
    lost = release(errors={"count": (Error(bias=0, noise=90, limits=(0, 50)),)})
    assert ["count: too much noise"] == [remark.partition(" to say")[0] for remark in lost.remarks()]
    assert "too much noise to say anything" in repr(lost)


def test_long_tables_are_cut_in_the_terminal():
    errors = (Error(bias=0, noise=1),) * 50
    assert "10 more rows" in repr(release(columns={"count": tuple(range(50))}, errors={"count": errors}))


def test_a_bias_needs_one_tail_of_the_noise_and_never_less():
    """For both laws, all biases and confidences: the interval misses the truth as often as it says, at most."""
    for bias, confidence in product((0.001, 0.3, 1.0, 4.0, 50.0), (0.1, 0.5, 0.8, 0.95, 0.999)):
        half = Error(bias=bias, noise=1.0).half_width(confidence)
        tails = [-bias - half, bias - half]
        normal = sum(NormalDist().cdf(tail) for tail in tails)
        laplace = sum(exp(tail * sqrt(2)) / 2 if tail < 0 else 1 - exp(-tail * sqrt(2)) / 2 for tail in tails)
        assert max(normal, laplace) <= 1 - confidence + 1e-9
        assert half <= bias + Error(bias=0.0, noise=1.0).half_width(confidence)
    assert 4.0 + 1.7 > Error(bias=4.0, noise=1.0).half_width() > 4.0 + 1.6  # 2.12 would be both tails
    ranks = Error(bias=4.0, noise=1.0, unit="rank")
    assert 4.0 + log(20) / sqrt(2) == pytest.approx(ranks.half_width())  # a choice may stray to one side only


@pytest.mark.parametrize(
    ("value", "half", "limits", "shown"),
    [
        (0.6, 2.8, (0.0, 1.0), "0.6 (0 to 1)"),
        (12.0, 30.0, (0.0, 20_000.0), "12 (0 to 42)"),
        (-5.3, 30.0, (0.0, 20_000.0), "-5 (0 to 30)"),
        (123_456.0, 30_000.0, (0.0, 140_123.0), "123,000 (93,000 to 140,123)"),
        (50.0, 30.0, (0.0, 100.0), "50 ± 30"),
    ],
)
def test_an_impossible_plus_minus_is_shown_as_an_interval(value, half, limits, shown):
    error = Error(bias=0.0, noise=half * sqrt(2) / log(20), limits=limits)
    assert shown == release(columns={"count": (value,)}, errors={"count": (error,)}).rows()[0]["count"]


def test_an_answer_that_missed_the_error_asked_for_says_so_and_why():
    errors = (Error(bias=0.0, noise=0.1, limits=(0.0, 100.0)), Error(bias=0.0, noise=3.0, limits=(0.0, 100.0)))
    rows = {"key": ("a", "b"), "count": (50.0, 60.0)}
    assert [] == release(columns=rows, errors={"count": errors}, within=10.0).remarks()
    (remark,) = release(columns=rows, errors={"count": errors}, within=1.0).remarks()
    assert "count: the error asked for, within=1, was missed in 1 of 2 rows. It was planned as if everybody" in remark
    again = Release.from_stored(release(columns=rows, errors={"count": errors}, within=1.0).stored())
    assert [remark] == again.remarks()
    near = {"count": (0.2,)}  # what is possible keeps the truth near
    cut = (Error(bias=0.0, noise=3.0, limits=(0.0, 0.5)),)
    assert not any("missed" in one for one in release(columns=near, errors={"count": cut}, within=0.5).remarks())


def test_an_answer_that_says_nothing_says_what_would_help():
    wide = Error(bias=0.0, noise=50.0, limits=(0.0, 100.0))
    (remark,) = release(columns={"count": (50.0,)}, errors={"count": (wide,)}).remarks()
    half = "(the interval would then be about half of what is possible)"
    assert f"What would help: about 5 times the epsilon {half}, or an assumption you can defend." in remark
    (remark,) = release(columns={"count": (50.0,)}, errors={"count": (wide,)}, share=0.04).remarks()
    assert f"What would help: share=0.17 instead of 0.04 {half}, or an assumption you can defend." in remark
    (remark,) = release(columns={"count": (50.0,)}, errors={"count": (wide,)}, share=0.3).remarks()
    assert remark.endswith("No share would be enough, not even 1. What would help: an assumption you can defend.")
    rows = {"key": ("a", "b"), "count": (50.0, 60.0)}
    (remark,) = release(columns=rows, errors={"count": (wide, wide)}).remarks()
    assert "fewer columns or groups" in remark


def test_an_assumption_that_a_column_shares_is_said_once():
    said = ["unrelated", "unrelated; like everybody", "like everybody", "gradual; it was estimated", "related"]
    columns = {f"c{place}": Error(bias=1, noise=1, assumption=one) for place, one in enumerate(said)}
    found = release(columns=dict.fromkeys(columns, (1.0,)), errors={name: (e,) for name, e in columns.items()})
    assert ["gradual; it was estimated", "related", "unrelated; like everybody"] == found.to_dict()["assumes"]


def test_one_row_is_not_several():
    ranked = Error(bias=0.001, noise=0, unit="rank", asked=0.5, rows=900)
    assert "(rank ± 0.1%, at least 1 row)" in repr(release(errors={"count": (ranked,)}))
    coarse = replace(ranked, step=1520.0)
    assert "(rank ± 0.1%, at least 1 row, in steps of 1,520)" in repr(release(errors={"count": (coarse,)}))


def test_no_assumption_is_advised_where_none_would_help():
    wide = Error(bias=0.0, noise=50.0, limits=(0.0, 100.0), assumable=False)
    (remark,) = release(columns={"keys": (50.0,)}, errors={"keys": (wide,)}, share=0.04).remarks()
    assert remark.endswith("share=0.17 instead of 0.04 (the interval would then be about half of what is possible).")
    (remark,) = release(columns={"keys": (50.0,)}, errors={"keys": (wide,)}, share=0.3).remarks()
    assert remark.endswith("No share would be enough, not even 1.")
    rows = {"key": ("a", "b"), "keys": (50.0, 60.0)}
    (remark,) = release(columns=rows, errors={"keys": (wide, wide)}, share=0.3).remarks()
    assert remark.endswith("What would help: fewer columns or groups.")


def test_an_interval_to_one_side_is_shown_by_its_ends():
    lopsided = Error(bias=20.0, noise=1.0, limits=(0.0, 100.0), quantiles=((0.25, -1.0, 21.0), (0.0005, -7.0, 27.0)))
    assert "50 (46 to 73)" in repr(release(columns={"keys": (49.7,)}, errors={"keys": (lopsided,)}))


def test_an_answer_without_rows_says_nothing_of_relations():
    empty = release(columns={"n": ()}, errors={"n": ()})
    assert ({}, [], {}) == (empty.relations(), empty.related(), empty.to_dict()["related"])


def test_a_truth_value_is_shown_as_one():
    told = release(
        columns={"more": (True, False)}, errors={"more": (Error(bias=inf, noise=inf), Error(bias=0, noise=0))}
    )
    assert [{"more": "True (error unknown)"}, {"more": "False"}] == told.rows()
    assert (None, None) == told.interval()


@pytest.mark.parametrize("quantiles", [(), ((0.1, -1.0, 1.0), (0.01, -2.0, 2.0))])
def test_an_interval_is_plain_numbers(quantiles):
    error = Error(bias=np.float64(1.0), noise=np.float64(2.0), limits=(np.float64(0), 90), quantiles=quantiles)
    assert [float, float] == [type(end) for end in release(errors={"count": (error,)}).interval()]
