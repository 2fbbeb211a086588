import pytest

from discretion.declaration.table import Lookup, Policy, Table
from discretion.errors import InvalidDeclaration

VISITS = Table(
    name="visits",
    source="visits.parquet",
    person="id",
    register="people",
    protects="presence",
    columns={"id": "BIGINT", "cost": "DOUBLE", "region": "VARCHAR"},
    rows_per_person=10,
    bounds={"cost": (0, 500)},
    grid={"cost": 0.5},
    keys={"region": ("N", "S")},
    required=("cost",),
    lookups={"regions": Lookup(source="regions.csv", key="code", columns={"code": "VARCHAR"})},
    policy=Policy(largest_share=0.2, quotas={"ann": 0.5}),
)


def test_a_declaration_survives_the_ledger():
    assert VISITS == Table.from_stored(VISITS.stored())


def test_a_declaration_is_a_table_in_a_notebook_and_text_elsewhere():
    assert str(VISITS) == repr(VISITS)
    assert repr(VISITS).startswith("Table 'visits', paid for by register 'people'\n")
    html = VISITS._repr_html_()
    for text in ("<td>cost</td><td>DOUBLE</td><td>0 to 500</td>", "Protected: whether somebody is in the table at all"):
        assert text in html, text


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"person": "nobody"}, "no column 'nobody'"),
        ({"epsilon": "eps"}, "no column 'eps'"),
        ({"bounds": {"cost": (5, 5)}}, "ascend"),
        ({"bounds": {"cost": (0, float("inf"))}}, "finite"),
        ({"grid": {"cost": 0}}, "above 0"),
        ({"keys": {"region": ()}}, "one or more"),
        ({"keys": {"region": ("N", "N")}}, "different"),
        ({"rows_per_person": 0}, "at least 1"),
        ({"rows_per_person": 1.5}, "whole"),
    ],
)
def test_a_wrong_declaration_says_what_to_mend(wrong, says):
    declared = {name: getattr(VISITS, name) for name in VISITS.__dataclass_fields__}
    with pytest.raises(InvalidDeclaration, match=says):
        Table(**(declared | wrong))


@pytest.mark.parametrize(
    "wrong", [{"largest_share": 0}, {"largest_share": 1.5}, {"largest_delta": 1}, {"preferences_are": "private"}]
)
def test_a_policy_that_cannot_be_kept_is_refused(wrong):
    with pytest.raises(InvalidDeclaration):
        Policy(**wrong)
