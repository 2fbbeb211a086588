"""Who has spent what: every rule of the ledger, on SQLite and PostgreSQL."""

import json
import math
import re
from fractions import Fraction
from uuid import UUID

import duckdb
import pyarrow as pa
import pytest

from discretion.declaration.table import Policy
from discretion.errors import (
    BudgetExhausted,
    DiscretionError,
    InvalidDeclaration,
    InvalidPreference,
    LedgerFailed,
    PlanOutdated,
    QueryRefused,
    SourceChanged,
)
from discretion.guarantee import Guarantee, Loss
from discretion.ledger import Cohort, Ledger, available, person_text
from discretion.ledger.audit import audit_ledger
from discretion.ledger.receipt import factor, in_plain_words
from ledgers import PEOPLE, all_of, ask, clinic, people, spent, visits

# Enrolling ------------------------------------------------------------------------------------------------------------


def test_a_register_becomes_one_cohort_a_level(place):
    with clinic(place) as ledger:
        found = [(one.micro_allowance, one.micro_spent, one.people) for one in ledger.cohorts("people")]
        assert [(0, 0, 1), (100_000, 0, 2), (500_000, 0, 2), (1_000_000, 0, 1)] == found
        assert 0 == ledger.changes("people").num_rows
        assert (0, 100_000, 500_000, 1_000_000) == ledger.register("people").levels


@pytest.mark.parametrize("kind", ["BIGINT", "UTINYINT", "VARCHAR", "UUID", "HUGEINT"])
def test_people_are_named_as_the_engine_names_them(kind):
    texts = ["00000000-0000-0000-0000-00000000000a"] if kind == "UUID" else ["7", "12"]
    row = duckdb.sql(f"SELECT CAST(x AS {kind}) AS p, CAST(p AS VARCHAR) AS t FROM (SELECT unnest({texts}) AS x)")
    for person, text in row.fetchall():
        assert text == person_text(person)


def test_whole_numbers_texts_and_uuids_name_the_same_person(tmp_path):
    key = UUID(int=10)
    columns = [
        pa.array([7], pa.int64()),
        pa.array([7], pa.uint8()),
        pa.array(["7"], pa.large_string()),
        pa.array(["7"]).dictionary_encode(),
        pa.array([key.bytes], pa.uuid()),
    ]
    for place, column in enumerate(columns):
        with Ledger(str(tmp_path / str(place))) as ledger:
            register = pa.table({"person": column, "micro_epsilon": [5]})
            ledger.enroll("people", register, source="s", fingerprint="f")
            person = key if place == 4 else 7
            assert ledger.receipt("people", person) == ledger.receipt("people", str(person))


@pytest.mark.parametrize("person", [1.5, True, None, b"x", "a\0b"])
def test_other_things_are_not_people(person, tmp_path):
    with clinic(str(tmp_path / "ledger")) as ledger, pytest.raises(InvalidDeclaration):
        ledger.receipt("people", person)


def test_rows_of_nobody_are_left_out_and_repeated_ones_count_once(tmp_path):
    with Ledger(str(tmp_path / "ledger")) as ledger:
        register = pa.table({"person": ["ann", None, "ann", "ben"], "micro_epsilon": [5, 6, 5, 5]})
        ledger.enroll("people", register, source="s", fingerprint="f")
        assert [(5, 2)] == [(one.micro_allowance, one.people) for one in ledger.cohorts("people")]


@pytest.mark.parametrize(
    ("register", "error"),
    [
        ({"person": ["ann", "ann"], "micro_epsilon": [5, 6]}, InvalidPreference),
        ({"person": ["ann"], "micro_epsilon": pa.array([None], pa.int64())}, InvalidPreference),
        ({"person": ["ann"], "micro_epsilon": [-1]}, InvalidPreference),
        ({"person": ["ann"], "micro_epsilon": [10**12]}, InvalidPreference),
        ({"person": pa.array([None], pa.string()), "micro_epsilon": [5]}, InvalidPreference),
        ({"person": range(10_001), "micro_epsilon": range(10_001)}, InvalidPreference),
        ({"person": ["ann\0"], "micro_epsilon": [5]}, InvalidDeclaration),
        ({"person": [1.5], "micro_epsilon": [5]}, InvalidDeclaration),
        ({"name": ["ann"], "micro_epsilon": [5]}, InvalidDeclaration),
    ],
)
def test_a_malformed_register_is_refused_without_naming_anybody(place, register, error):
    with Ledger(place) as ledger:
        head = ledger.head()
        with pytest.raises(error) as refusal:
            ledger.enroll("people", pa.table(register), source="s", fingerprint="f")
        assert "ann" not in str(refusal.value)
        assert (head, ()) == (ledger.head(), ledger.registers())


def test_a_source_without_people_is_refused_in_plain_words(tmp_path):
    nobody = pa.table({"person": pa.array([], pa.string()), "micro_epsilon": pa.array([], pa.int64())})
    refused = pytest.raises(InvalidPreference, match="nobody to enrol: the source has no rows")
    with Ledger(str(tmp_path / "ledger")) as ledger, refused:
        ledger.enroll("people", nobody, source="s", fingerprint="f")


# Nothing is given back ------------------------------------------------------------------------------------------------


def test_enrolling_the_same_source_again_changes_nothing(place):
    with clinic(place) as ledger:
        ask(ledger)
        head = ledger.head()
        assert "" == ledger.enroll("people", people(), source="people.parquet", fingerprint="first")
        assert head == ledger.head()
        assert 0.1 == spent(ledger, "eve")


def test_a_source_that_was_renamed_is_the_same_source(place):
    with clinic(place) as ledger:
        ask(ledger)
        assert ledger.enroll("people", people(), source="moved.parquet", fingerprint="first")
        with pytest.raises(SourceChanged, match="other columns"):
            ledger.enroll("people", people(PEOPLE | {"eve": 500_000}), source="another column", fingerprint="first")
        assert ("moved.parquet", "first") == (ledger.register("people").source, ledger.register("people").fingerprint)
        assert 0.1 == spent(ledger, "eve")
        assert audit_ledger(place).passed


def test_an_edited_source_is_refused_until_refresh_and_keeps_what_is_spent(place):
    edited = PEOPLE | {"eve": 500_000}
    with clinic(place) as ledger:
        ask(ledger)
        with pytest.raises(SourceChanged, match="refresh"):
            ledger.enroll("people", people(edited), source="people.parquet", fingerprint="edited")
        with pytest.raises(SourceChanged):
            ledger.register("people").verify("edited")
        ledger.refresh("people", people(edited), fingerprint="edited")
        ledger.register("people").verify("edited")
        assert (0.1, 0.5) == (spent(ledger, "eve"), ledger.receipt("people", "eve").allowance)
        assert "" == ledger.refresh("people", people(edited), fingerprint="edited")


def test_the_same_people_under_another_name_are_refused_unless_said_to_be_others(place):
    with clinic(place) as ledger:
        with pytest.raises(InvalidDeclaration, match="register='people'") as refusal:
            ledger.enroll("copy", people({"new": 5, "ann": 5}), source="copy.parquet", fingerprint="other")
        assert "ann" not in str(refusal.value)
        assert 1 == len(ledger.registers())
        ledger.enroll("staff", people({"ann": 5}), source="staff.parquet", fingerprint="other", separate=True)
        ledger.enroll("plants", people({"fern": 5}), source="plants.parquet", fingerprint="other")
        with pytest.raises(InvalidDeclaration, match="register='people'"):
            ledger.join("plants", "ann", 0.1)
        ledger.join("staff", "eve", 0.1)
        assert audit_ledger(place).passed


def test_renaming_or_redeclaring_a_table_gives_nothing_back(place):
    with clinic(place) as ledger:
        ask(ledger, share=1)
        ledger.declare(visits())
        ledger.declare(visits("renamed"))
        for table in ("visits", "renamed"):
            with pytest.raises(BudgetExhausted):
                ask(ledger, table=table)


def test_a_table_never_moves_to_a_fresh_register(place):
    with clinic(place) as ledger:
        ledger.enroll("others", people({"zoe": 5}), source="o", fingerprint="o")
        with pytest.raises(InvalidDeclaration, match="'people'"):
            ledger.declare(visits(register="others"))
        with pytest.raises(InvalidDeclaration, match="no register or table 'nowhere'"):
            ledger.declare(visits("more", register="nowhere"))


def test_leaving_the_source_and_coming_back_gives_nothing_back(place):
    without = {person: level for person, level in PEOPLE.items() if person != "eve"}
    with clinic(place) as ledger:
        ask(ledger)
        ledger.refresh("people", people(without), fingerprint="without")
        assert 5 == ledger.offer("people").specification.size
        ask(ledger)
        receipt = ledger.receipt("people", "eve")
        assert (0.1, 1, True) == (receipt.spent, len(receipt.releases), "no longer" in receipt.summary)
        ledger.prefer("people", "eve", 0.5)  # said while away, heard on return
        ledger.refresh("people", people(), fingerprint="again")
        assert (0.1, 0.5) == (spent(ledger, "eve"), ledger.receipt("people", "eve").allowance)
        assert audit_ledger(place).passed


# Choosing again -------------------------------------------------------------------------------------------------------


def test_a_new_preference_is_rounded_down_to_the_levels_and_spent_stays_spent(place):
    with clinic(place) as ledger:
        ask(ledger)
        ledger.prefer("people", "eve", 0.7)
        receipt = ledger.receipt("people", "eve")
        assert (0.5, 0.1, 0.4) == (receipt.allowance, receipt.spent, receipt.remaining)
        changes = ledger.changes("people").to_pylist()
        assert ["eve"] == [row["person"] for row in changes]
        cohort = {one.id: one for one in ledger.cohorts("people")}[changes[0]["cohort"]]
        assert (500_000, 100_000, 1) == (cohort.micro_allowance, cohort.micro_spent, cohort.people)


def test_whoever_has_nothing_left_is_left_out_and_others_are_still_asked(place):
    with clinic(place) as ledger:
        ask(ledger, share=0.5)
        ledger.prefer("people", "eve", 0.1)
        receipt = ledger.receipt("people", "eve")
        assert (0.5, 0.0) == (receipt.spent, receipt.remaining)
        ask(ledger)
        assert (0.5, 0.06) == (spent(ledger, "eve"), spent(ledger, "ann"))
        ledger.prefer("people", "eve", 1)
        ask(ledger)
        assert 0.6 == spent(ledger, "eve")


def test_withdrawing_takes_effect_at_once(place):
    with clinic(place) as ledger:
        ledger.prefer("people", "eve", 0)
        ask(ledger)
        assert 0.0 == spent(ledger, "eve")
        assert "not used" in ledger.receipt("people", "eve").summary


def test_somebody_who_joins_starts_with_nothing_spent(place):
    with clinic(place) as ledger:
        ask(ledger)
        ledger.join("people", "gus", 0.5)
        ask(ledger)
        assert (0.05, 0.1) == (spent(ledger, "gus"), spent(ledger, "dan"))
        assert [0.5] == [one.epsilon for one in ledger.receipt("people", "gus").statements]
        with pytest.raises(InvalidDeclaration, match="prefer"):
            ledger.join("people", "gus", 1)
        with pytest.raises(InvalidDeclaration, match="join"):
            ledger.prefer("people", "stranger", 1)


def test_the_source_may_lower_but_never_raise_what_a_person_chose(place):
    with clinic(place) as ledger:
        ledger.prefer("people", "eve", 0.1)
        ledger.prefer("people", "dan", 1)
        edited = PEOPLE | {"eve": 500_000, "dan": 100_000, "cleo": 1_000_000}
        ledger.refresh("people", people(edited), fingerprint="edited")
        allowances = [ledger.receipt("people", person).allowance for person in ("eve", "dan", "cleo")]
        assert [0.1, 0.1, 1.0] == allowances
        assert ["enrolment", "person", "source"] == [one.by for one in ledger.receipt("people", "eve").statements]


def test_a_refresh_adds_newcomers_and_leaves_alone_who_joined_by_themselves(place):
    with clinic(place) as ledger:
        ledger.join("people", "gus", 0.5)
        ledger.refresh("people", people(PEOPLE | {"hal": 600_000}), fingerprint="second")
        assert [0.5, 0.5] == [ledger.receipt("people", person).allowance for person in ("gus", "hal")]
        ledger.refresh("people", people(PEOPLE | {"gus": 100_000}), fingerprint="third")
        assert 0.1 == ledger.receipt("people", "gus").allowance
        assert "no longer" in ledger.receipt("people", "hal").summary
        assert audit_ledger(place).passed


def test_moving_rounds_spent_up_to_a_cohort_nearby_so_that_cohorts_stay_few(place):
    many = {f"p{number}": 100_000 + 1_000 * (number % 50) for number in range(500)}
    with clinic(place, many) as ledger:
        ask(ledger)
        moved = {person: 140_000 if number % 2 else level for number, (person, level) in enumerate(many.items())}
        ledger.refresh("people", people(moved), fingerprint="moved")
        assert len(ledger.cohorts("people")) <= 50 + 3
        for person in ("p1", "p25", "p49"):
            receipt = ledger.receipt("people", person)
            used = sum(use.epsilon for use in receipt.releases)
            assert used <= receipt.spent <= used + receipt.allowance / 50
            assert receipt.spent == pytest.approx(used + receipt.rounding)


def test_changes_are_told_as_of_an_entry(place):
    with clinic(place) as ledger:
        ledger.prefer("people", "eve", 0.5)
        before = ledger.offer("people").members
        ledger.prefer("people", "dan", 1)
        assert ["eve"] == ledger.changes("people", at=before)["person"].to_pylist()
        assert ["dan", "eve"] == ledger.changes("people")["person"].to_pylist()


# Offers ---------------------------------------------------------------------------------------------------------------


def cohort(id: int, allowance: int, spent: int = 0, **other: int) -> Cohort:
    return Cohort(id=id, micro_allowance=allowance, micro_spent=spent, people=1, **other)


def test_an_offer_is_the_share_of_each_allowance_split_over_the_parts():
    cohorts = [cohort(1, 100_000), cohort(2, 999_999), cohort(3, 0)]
    offered = available(cohorts, share=Fraction(1, 10), parts=3, partial=False)
    assert {1: 3_333, 2: 33_333, 3: 0} == offered


def test_whoever_is_exhausted_does_not_stand_in_the_way():
    assert {1: 0, 2: 50} == available(
        [cohort(1, 100, 100), cohort(2, 500)], share=Fraction(1, 10), parts=1, partial=False
    )


def test_partial_lets_everybody_pay_what_is_left():
    cohorts = [cohort(1, 100, 95), cohort(2, 500)]
    assert {1: 5, 2: 50} == available(cohorts, share=Fraction(1, 10), parts=1, partial=True)


def test_a_refusal_says_what_was_requested_what_remains_and_what_would_fit():
    cohorts = [cohort(1, 100_000, 95_000), cohort(2, 500_000, 100_000)]
    with pytest.raises(BudgetExhausted) as refusal:
        available(cohorts, share=Fraction(1, 10), parts=1, partial=False)
    text = str(refusal.value)
    assert "ε = 0.1: requested 0.01, remaining 0.005, difference 0.005" in text
    assert "at most 0.05 would still fit" in text
    assert "0.5:" not in text
    assert available(cohorts, share=Fraction("0.05"), parts=1, partial=False)


def test_a_refusal_lists_ten_levels_and_says_when_no_share_fits():
    cohorts = [cohort(level, level * 10**7, level * 10**7 - 1) for level in range(1, 13)]
    with pytest.raises(BudgetExhausted, match="and 2 more levels") as refusal:
        available(cohorts, share=Fraction(1, 10), parts=1, partial=False)
    assert "No useful share" in str(refusal.value)


def test_an_offer_of_nothing_is_refused():
    with pytest.raises(BudgetExhausted, match="Nobody can pay"):
        available([cohort(1, 100, 100), cohort(2, 0)], share=Fraction(1), parts=1, partial=True)


@pytest.mark.parametrize(("share", "parts"), [(0, 1), (1.5, 1), (-0.1, 1), (0.1, 0)])
def test_a_share_lies_above_0_and_up_to_1(share, parts, tmp_path):
    with clinic(str(tmp_path / "ledger")) as ledger, pytest.raises(InvalidDeclaration):
        ledger.offer("people", share=share, parts=parts)


def test_an_offer_tells_the_engine_where_everybody_stands(place):
    with clinic(place) as ledger:
        ask(ledger)
        ledger.prefer("people", "eve", 0.5)
        offer = ledger.offer("people", share=0.1, parts=2)
        assert (0, 5_000, 25_000) == offer.specification.epsilons
        assert (1, 2, 3) == offer.specification.people
        assert {0: 0, 100_000: 1, 500_000: 2} == offer.enrolled_position
        moved = ledger.changes("people", at=offer.members)["cohort"][0].as_py()
        assert 2 == offer.position[moved]


# Charging -------------------------------------------------------------------------------------------------------------


def test_a_charge_is_paid_by_every_cohort(place):
    with clinic(place) as ledger:
        ask(ledger)
        assert [0, 10_000, 50_000, 100_000] == [one.micro_spent for one in ledger.cohorts("people")]


def test_a_free_answer_is_an_entry_too(place):
    with clinic(place) as ledger:
        offer = ledger.offer("people")
        free = Guarantee(protects="presence", losses=dict.fromkeys(range(4), Loss(0)))
        ledger.charge(offer, free, table="visits", analyst="ada", memo="")
        assert (0.0, 0) == (spent(ledger, "eve"), len(ledger.receipt("people", "eve").releases))
        assert audit_ledger(place).passed


def test_a_refused_charge_charges_nobody(place):
    with clinic(place) as ledger:
        ask(ledger, share=0.9)
        ledger.join("people", "gus", 1)
        before, head = ledger.cohorts("people"), ledger.head()
        with pytest.raises(BudgetExhausted, match=r"remaining 0\.01"):
            ask(ledger, share=0.2)
        assert (before, head) == (ledger.cohorts("people"), ledger.head())
        ask(ledger, share=0.2, partial=True)
        assert (0.1, 0.2) == (spent(ledger, "ann"), spent(ledger, "gus"))


def test_charges_meanwhile_do_not_outdate_a_plan_until_the_money_is_gone(place):
    with clinic(place) as ledger:
        offers = [ledger.offer("people", share=0.4) for _ in range(3)]
        for offer in offers[:2]:
            ledger.charge(offer, all_of(offer), table="visits", analyst="ada", memo="")
        with pytest.raises(BudgetExhausted):
            ledger.charge(offers[2], all_of(offers[2]), table="visits", analyst="ada", memo="")
        assert 0.8 == spent(ledger, "eve")


def test_a_change_of_preference_outdates_a_plan(place):
    with clinic(place) as ledger:
        offer = ledger.offer("people")
        ledger.prefer("people", "eve", 0.5)
        head = ledger.head()
        with pytest.raises(PlanOutdated):
            ledger.charge(offer, all_of(offer), table="visits", analyst="ada", memo="")
        assert head == ledger.head()


def test_partial_offers_are_outdated_by_charges(place):
    with clinic(place) as ledger:
        offers = [ledger.offer("people", share=0.6, partial=True) for _ in range(2)]
        ledger.charge(offers[0], all_of(offers[0]), table="visits", analyst="ada", memo="")
        with pytest.raises(PlanOutdated):
            ledger.charge(offers[1], all_of(offers[1]), table="visits", analyst="ada", memo="")


def test_a_plan_cannot_charge_more_than_it_was_offered_or_forget_a_cohort(place):
    with clinic(place) as ledger:
        offer = ledger.offer("people")
        greedy = {place: Loss(micro + 1) for place, micro in enumerate(offer.specification.epsilons)}
        forgetful = {place: Loss(micro) for place, micro in enumerate(offer.specification.epsilons[:-1])}
        for losses in (greedy, forgetful):
            guarantee = Guarantee(protects="presence", losses=losses)
            with pytest.raises(LedgerFailed, match="mistake in the plan"):
                ledger.charge(offer, guarantee, table="visits", analyst="ada", memo="")
        assert 0.0 == spent(ledger, "eve")


def test_a_plan_for_another_table_or_relation_cannot_be_charged(place):
    with clinic(place) as ledger:
        ledger.enroll("others", people({"zoe": 5}), source="o", fingerprint="o")
        ledger.declare(visits("plants", register="others"))
        offer = ledger.offer("people")
        with pytest.raises(LedgerFailed, match="'others'"):
            ledger.charge(offer, all_of(offer), table="plants", analyst="ada", memo="")
        other = Guarantee(protects="value", losses=all_of(offer).losses)
        with pytest.raises(LedgerFailed, match="protects"):
            ledger.charge(offer, other, table="visits", analyst="ada", memo="")
        with pytest.raises(InvalidDeclaration, match="no table"):
            ledger.charge(offer, all_of(offer), table="nowhere", analyst="ada", memo="")


def test_several_tables_share_one_allowance(place):
    with clinic(place) as ledger:
        ledger.declare(visits("tests"))
        ask(ledger, share=0.6)
        with pytest.raises(BudgetExhausted, match=r"at most 0.4"):
            ask(ledger, share=0.6, table="tests")
        ask(ledger, share=0.4, table="tests")
        assert ["visits", "tests"] == [use.table for use in ledger.receipt("people", "eve").releases]


def test_delta_is_refused_by_default_and_capped_over_all_releases(place):
    with clinic(place) as ledger:
        offer = ledger.offer("people")
        with pytest.raises(BudgetExhausted, match="δ"):
            ledger.charge(offer, all_of(offer, delta=1), table="visits", analyst="ada", memo="")
        ledger.declare(visits(largest_delta=1e-9))
        for _ in range(2):
            ledger.charge(offer, all_of(offer, delta=500), table="visits", analyst="ada", memo="")
        with pytest.raises(BudgetExhausted, match="spent at ε"):
            ledger.charge(offer, all_of(offer, delta=1), table="visits", analyst="ada", memo="")
        assert 1e-9 == ledger.receipt("people", "eve").delta
        receipt = ledger.receipt("people", "eve")
        assert "may differ by at most 1.053e-09 (δ)" in receipt.releases[0].promise  # δ + e^0.1 δ: two steps
        assert "δ = 1e-09 is spent" in receipt.summary


def test_individual_charges_have_an_account_of_their_own(place):
    with clinic(place) as ledger:
        offer = ledger.offer("people", share=0.5, model="individual")
        with pytest.raises(QueryRefused, match="not differential privacy"):
            ledger.charge(offer, all_of(offer), table="visits", analyst="ada", memo="")
        ledger.declare(visits(individual=True))
        ledger.charge(offer, all_of(offer), table="visits", analyst="ada", memo="")
        ask(ledger)
        receipt = ledger.receipt("people", "eve")
        assert (0.1, 0.5) == (receipt.spent, receipt.individual_spent)
        assert (1, 1) == (len(receipt.releases), len(receipt.individual))
        assert "NOT differentially private" in receipt.individual[0].promise
        assert "Not counted: 1 answer that was NOT differentially private" in receipt.summary
        with pytest.raises(BudgetExhausted):
            ledger.offer("people", share=0.6, model="individual")
        ledger.prefer("people", "eve", 0.5)
        assert 0.5 == ledger.receipt("people", "eve").individual_spent
        assert audit_ledger(place).passed


def test_rounded_arithmetic_needs_the_stewards_leave(place):
    with clinic(place) as ledger:
        offer = ledger.offer("people")
        with pytest.raises(QueryRefused, match="exact"):
            ledger.charge(offer, all_of(offer, arithmetic="float"), table="visits", analyst="ada", memo="")
        ledger.declare(visits(float_arithmetic=True))
        ledger.charge(offer, all_of(offer, arithmetic="float"), table="visits", analyst="ada", memo="")
        assert "rounded arithmetic" in ledger.receipt("people", "eve").releases[0].promise


def test_protection_of_single_rows_cannot_be_charged_to_people(place):
    with clinic(place) as ledger:
        offer = ledger.offer("people")
        with pytest.raises(QueryRefused, match="each row apart"):
            ledger.charge(offer, all_of(offer, unit="row"), table="visits", analyst="ada", memo="")


def test_the_largest_share_and_quotas_are_kept(place):
    with clinic(place, largest_share=0.2, quotas={"ada": 0.3, "*": 0.1}) as ledger:
        with pytest.raises(QueryRefused, match=r"0\.2"):
            ask(ledger, share=0.25)
        ask(ledger, share=0.2)
        with pytest.raises(BudgetExhausted, match="quota of analyst 'ada'"):
            ask(ledger, share=0.2)
        ask(ledger, share=0.1)
        offer = ledger.offer("people", share=0.2)
        with pytest.raises(BudgetExhausted, match="'bob'"):
            ledger.charge(offer, all_of(offer), table="visits", analyst="bob", memo="")
        assert Policy(largest_share=0.2, quotas={"ada": 0.3, "*": 0.1}) == ledger.table("visits").policy


def test_an_analyst_whose_name_cannot_be_shown_is_refused(place):
    with clinic(place) as ledger:
        offer = ledger.offer("people")
        with pytest.raises(InvalidDeclaration, match="printable"):
            ledger.charge(offer, all_of(offer), table="visits", analyst="\ud800", memo="")
        assert "charge" not in ledger.history()["kind"].to_pylist()


# Answers --------------------------------------------------------------------------------------------------------------


def test_the_same_question_is_answered_from_the_ledger(place):
    with clinic(place) as ledger:
        assert ledger.answered("q") is None
        entry = ask(ledger, question="q")
        assert ledger.answered("q") is None  # charged, but no answer was sealed
        ledger.deliver(entry, '{"value": 3}')
        assert '{"value": 3}' == ledger.answered("q")


def test_answered_questions_are_found_by_their_beginning(place):
    with clinic(place) as ledger:
        for question in ("ab12", "ab0f", "ab", "ac", "aaff", "ab99"):
            entry = ask(ledger, question=question)
            if question != "ab99":
                ledger.deliver(entry, "[]")
        with ledger.snapshot() as seen:
            assert ("ab12", "ab0f", "ab") == seen.alike("ab")
            assert () == seen.alike("b")


def test_a_charge_pays_for_one_answer_that_is_not_simulated(place):
    with clinic(place) as ledger:
        entry = ask(ledger, question="q")
        with pytest.raises(InvalidDeclaration, match="simulated"):
            ledger.deliver(entry, '{"simulated": true}')
        with pytest.raises(InvalidDeclaration, match="JSON"):
            ledger.deliver(entry, "three")
        delivery = ledger.deliver(entry, "[]")
        for id, reason in [(entry, "before"), (delivery, "not a charge"), ("4-0000", "no entry"), ("x", "no entry")]:
            with pytest.raises(InvalidDeclaration, match=reason):
                ledger.deliver(id, "[]")
        assert "[]" == ledger.answered("q")


# What everybody may see -----------------------------------------------------------------------------------------------


def test_a_receipt_tells_everything_that_could_have_used_the_persons_data(place):
    with clinic(place) as ledger:
        entry = ask(ledger)
        ledger.prefer("people", "eve", 0.5)
        ask(ledger)
        receipt = ledger.receipt("people", "eve")
        assert [(1.0, 1.0, "enrolment"), (0.5, 0.5, "person")] == [
            (one.epsilon, one.level, one.by) for one in receipt.statements
        ]
        assert [0.1, 0.05] == [use.epsilon for use in receipt.releases]
        assert (entry, "visits", "SELECT 1") == (
            receipt.releases[0].entry,
            receipt.releases[0].table,
            receipt.releases[0].question,
        )
        assert str(receipt).startswith("Receipt\nregister  allowed  spent  left\npeople        0.5   0.15  0.35\n")


def test_where_being_in_the_data_is_the_secret_another_value_is_two_steps_away():
    guarantee = {"protects": "presence", "model": "personalized", "arithmetic": "exact"}
    hidden = in_plain_words(guarantee, 0.1, 0.0)
    assert "odds that you are in it by a factor of at most 1.106 (ε = 0.1)" in hidden
    assert hidden.endswith("about your values, for somebody certain that you are in it, by 1.222.")  # e^0.2, upwards
    known = in_plain_words({**guarantee, "protects": "value"}, 0.1, 0.0)
    assert known.endswith("it moved anybody's odds about them by a factor of at most 1.106 (ε = 0.1).")


def test_a_receipt_says_what_its_allowance_bounds_however_large(place):
    with clinic(place) as ledger:
        told = ledger.receipt("people", "eve").summary
        assert "they can give it at most 24 in 100" in told
        assert "by a factor of at most 2.719. Where it is secret" in told
        assert "the factor for your values is at most 7.39.)" in told
    assert ["1", "1.0000011", "1.0013", "1.052", "148.5", "e^1,000"] == list(
        map(factor, (0, 1e-6, 0.00123, 0.05, 5, 1_000))
    )


@pytest.mark.parametrize("epsilon", [1e-6, 2e-6, 0.000123, 0.05, 0.1, 0.693147, 1, 2.302585, 5, 20])
def test_no_factor_is_told_as_less_than_it_is(epsilon):
    told = float(factor(epsilon).replace(",", ""))
    assert math.exp(epsilon) <= told <= 1 + 1.1 * math.expm1(epsilon)


def test_receipts_of_people_who_chose_alike_are_the_same(place):
    with clinic(place) as ledger:
        ask(ledger)
        assert ledger.receipt("people", "ann") == ledger.receipt("people", "ben")
        ask(ledger, share=0.9)
        assert "left out" in ledger.receipt("people", "ann").summary
        with pytest.raises(InvalidDeclaration, match="no such person"):
            ledger.receipt("people", "stranger")


def test_balance_and_history_are_plain_tables(place):
    with clinic(place) as ledger:
        ledger.deliver(ask(ledger), "{}")
        ledger.prefer("people", "eve", 0.5)
        rows = ledger.balance("people").to_pylist()
        assert [0.0, 0.1, 0.5, 0.5, 1.0] == [row["epsilon"] for row in rows]
        assert [0.0, 0.09, 0.45, 0.4, 0.9] == [row["remaining"] for row in rows]
        assert [1, 2, 2, 1, 0] == [row["people"] for row in rows]
        history = ledger.history().to_pylist()
        assert ["create", "enroll", "declare", "charge", "deliver", "change"] == [row["kind"] for row in history]
        assert (0.1, 0.01, 0.1, True) == tuple(
            history[3][name] for name in ("share", "least_epsilon", "largest_epsilon", "answered")
        )
        assert json.dumps(history)
        assert not set(PEOPLE) & set(re.findall(r"\w+", json.dumps(history)))


def test_tables_and_registers_are_listed(place):
    with clinic(place) as ledger:
        assert (visits(),) == ledger.tables()
        assert visits() == ledger.table("visits")
        assert ["people"] == [one.name for one in ledger.registers()]
        with pytest.raises(InvalidDeclaration, match="no register"):
            ledger.balance("nowhere")
        assert repr(ledger).startswith("Ledger('")


def test_no_refusal_names_a_person(place):
    attempts = [
        lambda ledger: ledger.join("people", "eve", 0.5),
        lambda ledger: ledger.prefer("people", "stranger", 0.5),
        lambda ledger: ledger.receipt("people", "stranger"),
        lambda ledger: ledger.prefer("people", "eve", float("nan")),
        lambda ledger: ledger.enroll("more", people({"eve": 1}), source="", fingerprint=""),
        lambda ledger: ask(ledger, share=0.5),
    ]
    with clinic(place) as ledger:
        ask(ledger, share=0.8)
        for attempt in attempts:
            with pytest.raises(DiscretionError) as refusal:
                attempt(ledger)
            assert not {*PEOPLE, "stranger"} & set(re.findall(r"\w+", str(refusal.value)))
