"""Tables of the SQL benchmarks: people with a row each, visits with ten rows a person, their patients, registers."""

from pathlib import Path

import duckdb

OUTPUT = Path("bench-output")
THREADS = 2
GENERATE = {
    "people": """SELECT i AS person, (hash(i) % 100 + 1) / 100.0::DOUBLE AS epsilon, (hash(i, 1) % 91)::INT AS age,
        (hash(i, 2) % 1000000) / 10.0::DOUBLE AS income, hash(i, 3) % 5 = 0 AS smoker FROM range({rows}) t(i)""",
    "visits": """SELECT (i * 7919) % {people} AS person,
        (hash((i * 7919) % {people}) % 100 + 1) / 100.0::DOUBLE AS epsilon,
        'R' || lpad((hash(i, 4) % 50)::VARCHAR, 2, '0') AS region, (hash(i, 2) % 100000) / 100.0::DOUBLE AS amount
        FROM range({rows}) t(i)""",
    "patients": """SELECT i AS person, (hash(i) % 100 + 1) / 100.0::DOUBLE AS epsilon, (hash(i, 1) % 91)::INT AS age
        FROM range({people}) t(i)""",
    "people_register": "SELECT i AS person, (hash(i) % 100 + 1) / 100.0::DOUBLE AS epsilon FROM range({rows}) t(i)",
    "visits_register": "SELECT i AS person, (hash(i) % 100 + 1) / 100.0::DOUBLE AS epsilon FROM range({people}) t(i)",
}


def generate(rows: int) -> Path:
    """The data, written once."""
    folder = OUTPUT / f"sql-{rows}"
    folder.mkdir(parents=True, exist_ok=True)
    with duckdb.connect() as connection:
        for name, select in GENERATE.items():
            path = folder / f"{name}.parquet"
            if not path.exists():
                body = select.format(rows=rows, people=max(rows // 10, 1))
                connection.execute(f"COPY ({body}) TO '{path}' (FORMAT parquet)")
    return folder
