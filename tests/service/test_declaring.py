"""The form of a table: what was typed becomes a declaration, or all that is wrong is told, next to its field."""

import pytest

from discretion.declaration.table import Policy
from discretion.errors import InvalidDeclaration
from discretion.service.declaring import TypedForm, draft, policy, reading, told, typed_policy

COLUMNS = {"id": "BIGINT", "age": "BIGINT", "region": "VARCHAR", "choice": "VARCHAR", "day": "DATE"}
TYPED = {
    "name": " people ",
    "person": "id",
    "whose": "own",
    "epsilon": "choice",
    "levels": "strict = 0,1\nopen=1\n",
    "menu": "0.1; 0.5 1",
    "default": "strict",
    "rows_per_person": "3",
    "column": list(COLUMNS),
    "low": ["", "0", "", "", "2025-01-01"],
    "high": ["", "120", "", "", "2025-12-31"],
    "keys": ["", "", "N\nS \n\n", "", ""],
    "required": ["age", "gone"],
    "largest_share": "20",
    "quotas": "ada = 30\nbob=5.5",
}


def test_what_was_typed_becomes_a_declaration():
    made = draft(TYPED, COLUMNS)
    assert [] == made.problems
    expected = {
        "person": "id",
        "epsilon": "choice",
        "levels": {"strict": 0.1, "open": 1.0},
        "menu": [0.1, 0.5, 1.0],
        "separate": False,
        "default": "strict",
        "bounds": {"age": (0.0, 120.0), "day": ("2025-01-01", "2025-12-31")},
        "keys": {"region": ["N", "S"]},
        "required": ["age"],
        "rows_per_person": 3,
        "policy": Policy(largest_share=0.2, quotas={"ada": 0.3, "bob": 0.055}),
    }
    assert expected == made.declared


def test_every_problem_is_told_at_once_next_to_its_field():
    typed = TYPED | {
        "name": " ",
        "person": "nobody",
        "epsilon": "",
        "levels": "strict\nopen = much\nopen2 = 1\nopen2 = 2",
        "menu": "0.1 x -1",
        "default": "none of them",
        "rows_per_person": "0",
        "low": ["1", "120", "", "", "never"],
        "high": ["", "0", "", "", ""],
        "keys": ["", "", "N\nN", "", ""],
        "largest_share": "0",
        "quotas": "ada = 101",
        "largest_delta": "1",
    }
    wrong = {field for field, _ in draft(typed, COLUMNS).problems}
    expected = {"name", "person", "epsilon", "levels", "menu", "default", "rows_per_person", "low-1", "low-4", "high-0"}
    assert expected | {"keys-2", "largest_share", "quotas", "largest_delta"} == wrong


@pytest.mark.parametrize(
    ("typed", "field"),
    [
        ({"whose": ""}, "whose-own"),
        ({"whose": "register", "register": ""}, "register"),
        ({"epsilon": "id"}, "epsilon"),
        ({"low": ["", "", "", "", ""]}, "low-1"),
    ],
)
def test_what_does_not_go_together_is_told(typed, field):
    assert field in {place for place, _ in draft(TYPED | typed, COLUMNS).problems}


def test_people_enrolled_before_need_no_levels():
    made = draft(TYPED | {"whose": "register", "register": "patients", "levels": "nonsense"}, COLUMNS)
    assert [] == made.problems
    assert "patients" == made.declared["register"]
    assert not {"levels", "menu", "epsilon", "separate"} & set(made.declared)


def test_a_policy_is_shown_as_it_is_typed():
    allowed = Policy(largest_share=0.125, quotas={"ada": 0.3}, largest_delta=1e-6, float_arithmetic=True)
    assert allowed == policy(TypedForm(), typed_policy(allowed))
    assert Policy() == policy(TypedForm(), typed_policy(Policy()))


def test_reading_options_are_passed_on_if_they_were_typed():
    assert {} == reading({"delimiter": "", "null": " "})
    assert {"delimiter": ";", "null": ["NA", "-"]} == reading({"delimiter": ";", "null": "NA, -"})


def test_types_zones_steps_and_lookups_are_declared_as_typed():
    typed = TYPED | {
        "type": ["", "DOUBLE", "", "", "TIMESTAMP"],
        "zone": ["", "", "", "", " Europe/Berlin "],
        "step": ["", "0,5", "", "", ""],
        "lookups": "regions = regions.csv, code\nwards = wards.csv , ward, public\n",
    }
    made = draft(typed, COLUMNS)
    assert [] == made.problems
    assert {"age": 0.5} == made.declared["grid"]
    assert {"regions": ("regions.csv", "code"), "wards": ("wards.csv", "ward", "public")} == made.declared["lookups"]
    assert {"types": {"age": "DOUBLE", "day": "TIMESTAMP"}, "zones": {"day": "Europe/Berlin"}} == reading(typed)


@pytest.mark.parametrize("line", ["regions", "= a.csv, b", "r = a.csv", "r = a.csv, b, secret", "r = a, b\nr = c, d"])
def test_a_lookup_that_is_not_one_is_told(line):
    assert ["lookups"] == [field for field, _ in draft(TYPED | {"lookups": line}, COLUMNS).problems]


@pytest.mark.parametrize("step", ["0", "-1", "much", "inf"])
def test_a_step_is_above_zero(step):
    assert ["step-1"] == [field for field, _ in draft(TYPED | {"step": ["", step]}, COLUMNS).problems]


def test_a_refusal_is_told_line_by_line():
    several = InvalidDeclaration(
        "Table 'x' cannot be protected yet:\n  - there is no column 'a'\n  - more\nIts columns are b."
    )
    assert [("", "There is no column 'a'"), ("", "More")] == told(several)
    assert [("", "No.")] == told(InvalidDeclaration("No."))
