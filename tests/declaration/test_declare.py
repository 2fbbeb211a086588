"""A declaration is checked against the schema, and everything wrong is told at once."""

from datetime import date
from decimal import Decimal

import numpy as np
import pytest

from discretion.declaration.declare import declare
from discretion.declaration.table import Table
from discretion.errors import InvalidDeclaration

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
    expected = (
        "`person`",
        "`epsilon`",
        "`register`",
        "'size'",
        "'colour'",
        "are numbers, but the column holds texts",
        "age INTEGER",
    )
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
    assert {"born": ("2024-01-31", None)} == Table.from_stored(table.stored()).keys


@pytest.mark.parametrize(("column", "key"), [("code", "one"), ("ill", "perhaps")])
def test_a_key_that_its_column_cannot_hold_is_refused(column, key):
    with pytest.raises(InvalidDeclaration, match=f"{key}.*{column}"):
        declared(epsilon="eps", keys={column: [key]})


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ({"bounds": {"age": 5}}, "bounds of 'age' must be two numbers or two dates, low and high, got 5"),
        ({"bounds": {"age": "05"}}, "bounds of 'age'"),
        ({"bounds": {"age": (0, 1, 2)}}, "bounds of 'age'"),
        ({"bounds": {"age": ("0", "120")}}, "bounds of 'age'"),
        ({"bounds": ["age"]}, "`bounds` must be {column: (low, high)}, got ['age']"),
        ({"grid": {"age": "1"}}, "grid step of 'age' must be a number"),
        ({"keys": {"region": "NS"}}, "keys of 'region' must be a list of values, got 'NS'"),
        ({"required": "age"}, "`required` must be a list of columns, got 'age'"),
        ({"policy": {"largest_share": 0.5}}, "`policy` must be a Policy"),
    ],
)
def test_what_is_said_in_a_form_that_means_nothing_is_refused(said, told):
    with pytest.raises(InvalidDeclaration) as refusal:
        declared(epsilon="eps", **said)
    assert told in str(refusal.value)


def test_numbers_of_every_kind_are_bounds():
    table = declared(epsilon="eps", bounds={"age": (Decimal(0), np.float64(120))}, grid={"age": np.int64(2)})
    assert ((0.0, 120.0), 2.0) == (Table.from_stored(table.stored()).bounds["age"], table.grid["age"])
