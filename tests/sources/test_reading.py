"""Every option of reading a source is at every door, and the one for time zones works there."""

from datetime import datetime
from inspect import signature
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest
from typer.testing import CliRunner

import discretion as dn
from discretion.cli import app, option
from discretion.connection import Connection
from discretion.declaration.source import OPTIONS
from discretion.errors import InvalidDeclaration, InvalidPreference
from discretion.service.routes.steward import READING

HOURS = "SELECT HOUR(seen) AS hour, COUNT(*) AS n FROM visits GROUP BY hour"
BOUNDS = {"seen": ("2024-06-30", "2024-07-01")}
BERLIN = {"seen": "Europe/Berlin"}


@pytest.fixture
def visits(tmp_path: Path) -> str:
    """Return a file of two visits, at 22:15 and 10:00 in UTC: 0:15 and 12:00 in Berlin."""
    times = pa.array([datetime(2024, 6, 30, 22, 15), datetime(2024, 7, 1, 10)], pa.timestamp("us", tz="UTC"))
    place = tmp_path / "visits.parquet"
    pyarrow.parquet.write_table(pa.table({"id": [1, 2], "epsilon": [1_000.0] * 2, "seen": times}), place)
    return str(place)


def hours(ledger: Path) -> list[int]:
    with dn.connect(ledger) as db:
        return [hour for hour, n in db.sql(HOURS, share=1) if n > 0.5]


@pytest.mark.parametrize("name", ["register", "protect", "refresh", "columns"])
def test_every_option_of_reading_is_in_the_signature(name):
    assert set(OPTIONS) <= set(signature(getattr(Connection, name)).parameters)


def test_every_option_of_reading_is_at_the_service_and_at_the_command_line():
    assert set(OPTIONS) == set(READING)
    typed = {"zone": "zones"}
    assert set(OPTIONS) == {typed.get(name, name) for name in signature(option.reading).parameters}


def test_times_are_read_in_the_zone_that_python_declares(tmp_path, visits):
    ledger = tmp_path / "python.discretion"
    with dn.connect(ledger) as db:
        db.protect("visits", visits, person="id", epsilon="epsilon", bounds=BOUNDS, zones=BERLIN)
        assert "TIMESTAMP" == db.columns(visits, zones=BERLIN)["seen"]
        assert "" == db.refresh("visits", zones=BERLIN)
    assert [0, 12] == hours(ledger)
    with dn.connect(tmp_path / "people.discretion") as db:
        assert 2 == sum(
            row["people"] for row in db.register("people", visits, person="id", epsilon="epsilon", zones=BERLIN)
        )


def test_a_zone_of_no_column_is_refused_at_every_method(tmp_path, visits):
    wrong = {"zones": {"sene": "Europe/Berlin"}}
    with dn.connect(tmp_path / "refusing.discretion") as db:
        db.protect("visits", visits, person="id", epsilon="epsilon")
        for ask in (
            lambda: db.protect("other", visits, person="id", epsilon="epsilon", **wrong),
            lambda: db.register("people", visits, person="id", epsilon="epsilon", **wrong),
            lambda: db.refresh("visits", visits, **wrong),
        ):
            with pytest.raises(InvalidDeclaration, match="`zones` names 'sene'"):
                ask()


@pytest.mark.parametrize(("zone", "found"), [([], [10, 22]), (["--zone", "seen=Europe/Berlin"], [0, 12])])
def test_times_are_read_in_the_zone_that_the_command_line_declares(tmp_path, visits, zone, found):
    ledger = tmp_path / "cli.discretion"
    told = ["--person", "id", "--epsilon", "epsilon", "--bounds", "seen=2024-06-30:2024-07-01", *zone]
    outcome = CliRunner().invoke(app, ["protect", "visits", visits, *told, "--ledger", str(ledger)])
    assert 0 == outcome.exit_code, outcome.output
    assert found == hours(ledger)


def test_decimal_commas_are_refused_with_the_option_that_reads_them(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("id;choice;cost\n1;0,5;1,5\n2;1,0;2,25\n")
    how = {"person": "id", "epsilon": "choice"}
    with dn.connect(tmp_path / "l.discretion") as db:
        with pytest.raises(InvalidPreference, match=r"look like 0,5, give decimal=',' \(--decimal ,\)"):
            db.protect("t", path, **how)
        with pytest.raises(InvalidDeclaration, match=r"look like 1,5, give decimal=',' \(--decimal ,\)"):
            db.protect("t", path, **how, bounds={"cost": (0, 10)})
        read = db.protect("t", path, **how, bounds={"cost": (0, 10)}, decimal=",")
        assert ("DOUBLE", "DOUBLE") == (read.columns["choice"], read.columns["cost"])
    path.write_text("id;choice;cost\n1;0.5;1,5\n2;1.0;2,25\n")
    found = CliRunner().invoke(
        app,
        [
            "protect",
            "u",
            str(path),
            "--person",
            "id",
            "--epsilon",
            "choice",
            "--ledger",
            str(tmp_path / "m.discretion"),
        ],
    )
    assert "decimal commas. Give decimal=',' (--decimal ,)." in found.stderr
