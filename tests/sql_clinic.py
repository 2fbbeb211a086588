"""A small clinic for the SQL tests: finite values within bounds and on the grids, every declared key present."""

import duckdb
import pyarrow as pa

from discretion.declaration.table import Lookup, Table
from discretion.engines.duckdb import DuckDB
from discretion.noise import simulation

LEVELS = {0.1: 0, 0.5: 1, 1.0: 2}
PEOPLE = 401

_PATIENTS = f"""
SELECT i::BIGINT AS id, [0.1, 0.5, 1.0][1 + i % 3]::DOUBLE AS epsilon, (1 + a % 99)::INTEGER AS age,
    CASE WHEN b % 20 = 0 THEN NULL ELSE (b % 1000) * 100.0 END::DOUBLE AS income, c % 3 = 0 AS smoker,
    ['N', 'S', 'E', 'W'][1 + c % 4] AS region, ['a', 'b', 'c'][1 + a % 3]::ENUM('a', 'b', 'c') AS grade,
    DATE '1930-01-01' + (b % 30000)::INTEGER AS born, TIMESTAMP '2024-01-01' + INTERVAL 1 HOUR * (a % 8000) AS seen,
    (40 + c % 60 + 0.5)::DECIMAL(5, 1) AS weight, CASE WHEN a % 7 = 0 THEN NULL ELSE 'note ' || (b % 50) END AS note,
    (c % 5)::TINYINT AS children
FROM numbers WHERE i < {PEOPLE}"""
_VISITS = f"""
SELECT (i % {PEOPLE})::BIGINT AS patient_id, DATE '2023-01-01' + (a % 700)::INTEGER AS day, (b % 500)::DOUBLE AS cost,
    ['check', 'acute', NULL][1 + c % 3] AS kind, ['A', 'B', 'C', 'D'][1 + a % 4] AS site, (c % 600)::INTEGER AS minutes
FROM numbers WHERE i < {3 * PEOPLE}"""
_SITES = """
SELECT * FROM (VALUES ('A', 'Aston', 20, true), ('B', 'Berg', 5, false), ('C', 'Ceel', 80, true))
    t(code, city, beds, urban)"""


def rows() -> dict[str, pa.Table]:
    """The clinic's tables, the same every time."""
    draws = simulation(20240501).integers(0, 10**6, (3, 3 * PEOPLE))
    numbers = pa.table({"i": pa.array(range(3 * PEOPLE)), **dict(zip("abc", map(pa.array, draws), strict=True))})
    with duckdb.connect() as connection:
        connection.register("numbers", numbers)
        selects = {"patients": _PATIENTS, "visits": _VISITS, "sites": _SITES}
        return {name: connection.sql(select).to_arrow_table() for name, select in selects.items()}


def declared(engine: DuckDB, tables: dict[str, pa.Table]) -> dict[str, Table]:
    """The clinic as a steward protects it: patients by value, visits by presence with the patients' register."""
    places = {name: engine.attach(name, table) for name, table in tables.items()}
    sites = Lookup(source=places["sites"], key="code", columns=dict(engine.schema(places["sites"])))
    patients = Table(
        name="patients",
        source=places["patients"],
        person="id",
        epsilon="epsilon",
        register="patients",
        protects="value",
        columns=dict(engine.schema(places["patients"])),
        bounds={"age": (0, 120), "income": (0, 100_000), "weight": (20, 250), "children": (0, 20)},
        grid={"weight": 0.5},
        keys={"region": ("N", "S", "E", "W"), "grade": ("a", "b", "c")},
        required=("age",),
    )
    visits = Table(
        name="visits",
        source=places["visits"],
        person="patient_id",
        register="patients",
        protects="presence",
        columns=dict(engine.schema(places["visits"])),
        rows_per_person=3,
        bounds={"cost": (-50, 500), "minutes": (0, 600)},
        grid={"cost": 1},
        keys={"kind": ("check", "acute", None), "site": ("A", "B", "C", "D")},
        lookups={"sites": sites},
    )
    return {"patients": patients, "visits": visits}
