from math import inf, log, sqrt

import pytest

from discretion.errors import InvalidDeclaration
from discretion.guarantee import Guarantee, Loss
from discretion.release import Error, Release

PROMISE = Guarantee(protects="value", losses={100_000: Loss(100_000)})


def release(**changes: object) -> Release:
    one = {"columns": {"count": (42.0,)}, "errors": {"count": (Error(bias=3, noise=4),)}}
    return Release(mechanism="weighted", guarantee=PROMISE, **(one | changes))


def test_error_adds_bias_and_noise_as_root_mean_square():
    assert 5 == Error(bias=3, noise=4).total


def test_the_half_width_is_exact_for_laplace_noise():
    scale = 2.0
    assert Error(bias=1, noise=scale * sqrt(2)).half_width(0.95) == pytest.approx(1 + scale * log(20))


def test_an_interval_stays_within_the_limits():
    error = Error(bias=0, noise=inf, limits=(0, 10))
    assert (0, 10) == error.interval(4)
    assert (0, 0) == Error(bias=5, noise=0, limits=(0, 2)).interval(-50)


@pytest.mark.parametrize("confidence", [0, 1, -1, 2])
def test_a_confidence_is_between_0_and_1(confidence):
    with pytest.raises(InvalidDeclaration):
        Error(bias=0, noise=1).half_width(confidence)


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
    assert ["region", "count", "count_error"] == table.to_arrow().column_names
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
    for text in ("42.00 ± 4.24", "weighted", "personalized differential privacy", "assumes", "protects nobody"):
        assert text in repr(believed)
        assert text in believed._repr_html_()
    assert "a &lt; b" in believed._repr_html_()
    assert "because" == believed.explain()


def test_ranks_and_unbounded_noise_say_what_they_are():
    assert "rank ± 2.1%" in repr(release(errors={"count": (Error(bias=0, noise=0.01, unit="rank"),)}))
    assert "within 0 to 9" in repr(release(errors={"count": (Error(bias=0, noise=inf, limits=(0, 9)),)}))
    assert "42 (error unknown)" in repr(release(errors={"count": (Error(bias=0, noise=inf),)}))


def test_long_tables_are_cut_in_the_terminal():
    errors = (Error(bias=0, noise=1),) * 30
    assert "10 more rows" in repr(release(columns={"count": tuple(range(30))}, errors={"count": errors}))
