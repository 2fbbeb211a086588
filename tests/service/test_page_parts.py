"""Numbers, pictures and programs on pages: every group is drawn, rounding is outwards, all text is escaped."""

import re
from dataclasses import asdict

import pytest

from discretion.answer import Question
from discretion.errors import InvalidDeclaration
from discretion.guarantee import Guarantee, Loss
from discretion.release import Error, Release
from discretion.service.pages import part_of, words
from discretion.service.pages.answer import _cells
from discretion.service.pages.chart import MOST_GROUPS, chart, ticks
from discretion.service.pages.form import AskForm
from discretion.service.pages.python import as_python, stored_as_python

GUARANTEE = Guarantee(protects="value", losses={0: Loss(1)})


def release(keys: list, values: list, noise: float = 1.0, **error) -> Release:
    errors = tuple(Error(bias=0.0, noise=noise, **error) for _ in values)
    columns = {"key": tuple(keys), "n": tuple(values)}
    return Release(columns=columns, errors={"n": errors}, mechanism="weighted", guarantee=GUARANTEE, entry="1-0a")


def test_every_group_is_drawn_also_if_its_interval_covers_zero():
    (made,) = chart(release(["a", "b", "c", "d"], [0.1, -3.0, 0.0, 40.0], noise=2.0))
    assert 4 == made.picture.count('class="whisker"') == made.picture.count("<rect")
    assert all(f">{name}<title>" in made.picture for name in "abcd")
    assert "bars with 95 % intervals for 4 groups" in made.picture


def test_dates_are_a_line_with_an_error_bar_at_each():
    (made,) = chart(release(["2024-01-01", "2024-02-01", "2024-03-01"], [5.0, 6.0, 7.0]))
    assert "polyline" in made.picture
    assert 3 == made.picture.count("whisker") == made.picture.count("<circle")


def test_dates_stand_where_they_are_in_time_whatever_the_order_of_the_answer():
    (made,) = chart(release(["2024-12-31", "2024-01", "2024-01-11 00:00:00"], [5.0, 6.0, 7.0]))
    xs = [float(x) for x in re.findall(r'<circle class="part" cx="([\d.]+)"', made.picture)]
    assert xs == sorted(xs)
    assert (xs[1] - xs[0]) / (xs[2] - xs[0]) == pytest.approx(10 / 365, abs=0.001)


def test_a_year_that_is_a_key_has_no_separator():
    assert ["2024", "yes", "–"] == _cells(release([2024, True, None], [1.0, 2.0, 3.0]), "key")


@pytest.mark.parametrize("keys", [["a"], [str(n) for n in range(MOST_GROUPS + 1)]])
def test_one_group_and_very_many_are_not_drawn(keys):
    assert [] == chart(release(keys, [1.0] * len(keys)))


def test_what_has_no_number_is_left_to_the_table():
    made = release(["a", "b"], ["red", "blue"], unit="rank")
    assert [] == chart(made)
    assert all("short" in cell.interval for cell in _cells(made, "n"))


def test_intervals_without_a_bound_are_drawn_as_far_as_they_are_known():
    (made,) = chart(release(["a", "b"], [1.0, 2.0], noise=float("inf")))
    assert "inf" not in made.picture
    assert "nan" not in made.picture
    assert "no bound is known" == _cells(release(["a"], [1.0], noise=float("inf")), "n")[0].interval


def test_names_of_groups_are_escaped_and_shortened():
    name = "<script>alert('a very long name of a group')</script>"
    (made,) = chart(release([name, "b"], [1.0, 2.0]))
    assert "<script" not in made.picture
    assert "…" in made.picture
    assert "&lt;script&gt;alert(&#39;a very long name" in made.picture


@pytest.mark.parametrize(("low", "high"), [(0, 1), (-3, 40), (0, 0.00012), (1e6, 1.2e6), (-5, -4)])
def test_ticks_are_round_and_span_what_is_drawn(low, high):
    marks = ticks(low, high)
    assert marks[0] <= low
    assert marks[-1] >= high
    assert 2 <= len(marks) <= 12


def test_intervals_are_rounded_outwards_to_the_same_digit():
    cells = _cells(release(["a", "b"], [10.04, 123.456], noise=1.0), "n")
    for cell, value in zip(cells, (10.04, 123.456), strict=True):
        low, high = (float(end.replace(",", "")) for end in cell.interval.split(" to "))
        true = Error(bias=0.0, noise=1.0).interval(value)
        assert low <= true[0]
        assert high >= true[1]
        assert high - low < 1.2 * (true[1] - true[0])
    assert 1 == len({len(re.findall(r"\.(\d*)", cell.interval)[0]) for cell in cells})


def test_a_rank_is_told_as_a_rank():
    (cell,) = _cells(release(["a"], [47.0], noise=0.01, unit="rank", asked=0.5, limits=(0.0, 1.0)), "n")
    assert (True, "47") == (cell.ranked, cell.value)
    assert "rank 47 % to 53 %" == cell.interval


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0"), (34_360.4, "34,360"), (0.012345, "0.0123"), (5.0, "5"), (99.95, "100"), (float("inf"), "no bound")],
)
def test_numbers_have_three_digits(number, text):
    assert text == words.digits(number)


def test_times_name_the_day_and_the_zone():
    assert ">16 November 2026, 03:11 UTC</time>" in words.moment("2026-11-16T03:11:56.1+00:00")
    assert ">16 November 2026</time>" in words.moment("2026-11-16T23:11:56", day=True)
    assert ("1 answer", "2,000 answers") == (words.counted(1, "answer"), words.counted(2_000, "answer"))
    assert ("–", "yes", "no", "1,234", "a") == tuple(map(words.value, (None, True, False, 1234, "a")))


@pytest.mark.parametrize("sql", ["SELECT 1", "SELECT\n1", 'a "b" \'c\' \\ \n """ x', "tab\there\n", 'ends with "\n"'])
def test_a_program_holds_the_very_question(sql):
    asked = Question(sql=sql, share=0.25, assume="gradual", partial=True)
    calls = []

    class Fake:
        def sql(self, text, **how):
            calls.append((text, how))

    program = as_python("https://x", asked).replace("import discretion as dn", "").replace("import os", "")
    names = {
        "dn": type("dn", (), {"connect": lambda *_, **__: Fake()}),
        "os": type("os", (), {"environ": {"DISCRETION_TOKEN": ""}}),
    }
    exec(program, names)
    assert [(sql, {"share": 0.25, "assume": "gradual", "partial": True})] == calls
    assert "db.answer('1-0a')" in stored_as_python("https://x", "1-0a")


@pytest.mark.parametrize(
    "how",
    [
        {"expect": (-1.5, 0.3), "assume": 0.25, "within": 2.5},
        {"mechanism": "sample", "options": {"rescaled": True, "threshold": "mean"}, "share": 0.123},
        {"mechanism": "partition", "options": {"cuts": "privacy", "groups": 3, "drop": False}, "assume": "gradual"},
        {"mechanism": "smooth", "options": {"beta": None, "gamma": 0.30000000000000004}},
        {"with_interval": True, "partial": True},
    ],
    ids=str,
)
def test_a_form_holds_all_of_a_question(how):
    asked = Question(sql="SELECT 1", analyst="ada", **how)
    shown = AskForm.asking(asked)
    assert asked == shown.question("ada")
    typed = {name: value for name, value in asdict(shown).items() if value is not False}
    assert shown == AskForm.of({name: "yes" if value is True else value for name, value in typed.items()})


def test_the_options_of_another_model_are_left_out_of_a_form():
    asked = Question(sql="SELECT 1", model="individual", options={"place": 2})
    assert "" == AskForm.asking(asked).options


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        ({"expect_low": "3"}, "What is expected must be two numbers, such as 0 and 0.3, got ''"),
        ({"expect_low": "0", "expect_high": "much"}, "such as 0 and 0.3, got 'much'"),
        ({"mechanism": "sample", "options": "threshold"}, "Write options as name=value"),
        ({"mechanism": "sample", "options": "treshold=1"}, "Did you mean 'threshold'"),
        ({"mechanism": "sample", "options": "treshold=" + "[" * 100_000}, "Did you mean 'threshold'"),
        ({"options": "threshold=1"}, "need mechanism="),
        ({"assume": "wild"}, "gradual, independent, nothing or a number from 0 to 1, got 'wild'"),
    ],
)
def test_a_form_says_what_is_wrong_in_it(typed, says):
    with pytest.raises(InvalidDeclaration) as refusal:
        AskForm.of({"sql": "SELECT 1", **typed}).question("ada")
    assert says in str(refusal.value)


def test_the_longest_path_that_fits_is_the_part_of_a_page():
    assert "/me/answers" == part_of("person", "/me/answers")
    assert "/me" == part_of("person", "/me/choose")
    assert "" == part_of("nobody", "/me")
    assert "/ask" == part_of("analyst", "/ask")
