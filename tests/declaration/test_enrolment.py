"""Preferences as found become allowances: names, numbers, defaults and menus."""

import pyarrow as pa
import pytest
from pyarrow import parquet

from discretion.connection import connect
from discretion.declaration.enrolment import Enrolment
from discretion.engines.duckdb import DuckDB
from discretion.errors import InvalidPreference, SourceChanged


def enrolled(preferences, **choices):
    """(what each found preference is worth, everybody's micro-ε)."""
    people = pa.table({"person": [str(n) for n in range(len(preferences))], "epsilon": preferences})
    enrolment, people = Enrolment(source="people.csv", person="id", epsilon="privacy", **choices).appraise(people)
    return enrolment, people["micro_epsilon"].to_pylist()


def test_numbers_are_rounded_down_to_micro_epsilon():
    assert [290_000, 123_456] == enrolled([0.29, 0.1234569])[1]


def test_names_and_typed_in_numbers_may_be_mixed():
    assert [100_000, 350_000, 1_000_000] == enrolled(["strict", "0.35", " open "], levels={"strict": 0.1, "open": 1})[1]


def test_everybody_is_rounded_down_to_the_menu_never_up():
    assert [100_000, 500_000, 0, 500_000] == enrolled([0.49, 0.5, 0.09, 7.0], menu=(0.1, 0.5))[1]


def test_somebody_who_stated_nothing_gets_the_strictest_level_offered():
    assert [100_000, 500_000] == enrolled([None, "mid"], levels={"low": 0.1, "mid": 0.5})[1]
    assert [200_000, 500_000, 200_000] == enrolled([None, 0.5, 0.2])[1]
    assert [200_000, 500_000] == enrolled(["", "0.5"], menu=(0.2, 0.5))[1]


def test_a_default_is_used_where_the_steward_set_one():
    assert [300_000, 500_000] == enrolled([None, 0.5], default=0.3)[1]
    assert [500_000, 100_000] == enrolled([None, "low"], levels={"low": 0.1, "mid": 0.5}, default="mid")[1]


def test_zero_stays_zero():
    assert [0, 500_000] == enrolled([0.0, 0.5])[1]


@pytest.mark.parametrize("preference", [-0.1, float("inf"), float("nan"), "nan", "often", "2000"])
def test_what_is_no_preference_is_refused_without_being_quoted(preference):
    with pytest.raises(InvalidPreference) as refusal:
        enrolled([preference])
    assert "often" not in str(refusal.value)
    assert "2000" not in str(refusal.value)


def test_a_new_preference_that_is_none_is_refused_in_words_of_its_own():
    enrolment, _ = enrolled([0.5], levels={"strict": 0.1})
    assert (0.1, 0.3) == (enrolment.worth_of("strict"), enrolment.worth_of("0.3"))
    with pytest.raises(InvalidPreference, match=r"A new choice must be .* \('strict'\), got 'often'"):
        enrolment.worth_of("often")
    with pytest.raises(InvalidPreference, match="got none"):
        enrolment.worth_of(" ")


def test_nobody_stating_anything_is_refused():
    with pytest.raises(InvalidPreference, match="give a default"):
        enrolled(pa.array([None, None], pa.float64()))


def test_too_many_levels_ask_for_a_menu():
    with pytest.raises(InvalidPreference, match="menu"):
        enrolled([n / 1_000 for n in range(1, 2_000)])
    assert {0, 1_000_000} == set(enrolled([n / 1_000 for n in range(1, 2_000)], menu=(1.0,))[1])


def test_a_default_must_be_a_level_or_a_number():
    with pytest.raises(InvalidPreference, match="'weak'"):
        Enrolment(source="", person="p", epsilon="e", levels={"low": 0.1}, default="weak")


def test_an_enrolment_survives_being_written_down():
    enrolment, _ = enrolled(["low", None, "0.7"], levels={"low": 0.1}, menu=(0.5,), default="low")
    assert enrolment == Enrolment.from_json(enrolment.to_json())
    assert ((None, 100_000), ("0.7", 500_000), ("low", 100_000)) == enrolment.worth


@pytest.mark.parametrize("found", [["low", None, "0.7"], [0.7, 0.1, None]])
def test_the_order_of_rows_changes_nothing_that_is_written_down(found):
    one, other = (enrolled(rows, levels={"low": 0.1})[0] for rows in (found, found[::-1]))
    assert one.to_json() == other.to_json()


def test_preferences_that_change_while_they_are_read_are_not_enrolled(tmp_path, monkeypatch):
    people, read = tmp_path / "people.parquet", DuckDB.people

    def write(*preferences):
        parquet.write_table(pa.table({"id": [1, 2], "epsilon": preferences}), people)

    def disturbed(engine, source, *columns):
        found = read(engine, source, *columns)
        write(1.0, 1.0)
        return found

    with connect(tmp_path / "people.discretion") as db:
        write(0.1, 1.0)
        db.register("known", people, person="id", epsilon="epsilon")
        monkeypatch.setattr(DuckDB, "people", disturbed)
        write(0.1, 0.1)
        with pytest.raises(SourceChanged):
            db.refresh("known")
        write(0.1, 0.1)
        with pytest.raises(SourceChanged):
            db.register("new", people, person="id", epsilon="epsilon")
        assert ["create", "enroll"] == [entry["kind"] for entry in db.history()]
