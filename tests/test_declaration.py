"""A declaration is checked against the schema, and everything wrong is told at once."""

from datetime import date

import pytest

from discretion.declaration import declare
from discretion.errors import InvalidDeclaration
from discretion.table import Table

COLUMNS = {
    "id": "BIGINT",
    "age": "INTEGER",
    "region": "VARCHAR",
    "code": "BIGINT",
    "ill": "BOOLEAN",
    "born": "DATE",
    "eps": "DOUBLE",
}


def declared(**said):
    return declare("t", "t.parquet", COLUMNS, ["people"], **{"person": "id", "epsilon": "", "register": "", **said})


def test_a_column_of_preferences_protects_values():
    table = declared(epsilon="eps", bounds={"age": (0, 120)})
    assert ("value", "t", (0.0, 120.0)) == (table.protects, table.register, table.bounds["age"])


def test_a_register_protects_presence():
    table = declared(register="people", rows_per_person=3)
    assert ("presence", "people", 3) == (table.protects, table.register, table.rows_per_person)


def test_everything_missing_or_wrong_is_told_in_one_go():
    with pytest.raises(InvalidDeclaration) as refusal:
        declared(person="", bounds={"region": (0, 1), "size": (0, 1)}, keys={"colour": ["red"]})
    told = str(refusal.value)
    expected = ("`person`", "`epsilon`", "`register`", "'size'", "'colour'", "bounds are for numbers", "age INTEGER")
    assert [] == [word for word in expected if word not in told]


def test_preferences_come_from_one_place():
    with pytest.raises(InvalidDeclaration, match="not both"):
        declared(epsilon="eps", register="people")


def test_an_unknown_register_is_named_with_those_there_are():
    with pytest.raises(InvalidDeclaration, match=r"'persons'.*'people'"):
        declared(register="persons")


def test_keys_written_as_text_become_values_of_their_column():
    table = declared(epsilon="eps", keys={"code": ["1", "2"], "ill": ["true", "false"], "region": ["1"]})
    assert {"code": (1, 2), "ill": (True, False), "region": ("1",)} == table.keys


def test_dates_are_keys_that_survive_the_ledger():
    table = declared(epsilon="eps", keys={"born": [date(2024, 1, 31), None]})
    assert {"born": ("2024-01-31", None)} == Table.from_json(table.to_json()).keys


@pytest.mark.parametrize(("column", "key"), [("code", "one"), ("ill", "perhaps")])
def test_a_key_that_its_column_cannot_hold_is_refused(column, key):
    with pytest.raises(InvalidDeclaration, match=key):
        declared(epsilon="eps", keys={column: [key]})
