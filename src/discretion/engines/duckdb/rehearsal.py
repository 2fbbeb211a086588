"""Made-up rows become temporary tables of DuckDB, or a Parquet file: the plan over a file may differ."""

from collections.abc import Iterator

from discretion.engines.duckdb.place import named, quoted
from discretion.engines.rehearsal import PLACE, MadeUp


def in_table(name: str, made_up: MadeUp) -> Iterator[str]:
    """Return the commands that make a table with made-up rows."""
    declared = ", ".join(f"{named(column)} {kind}" for column, kind in made_up.columns.items())
    yield f"CREATE TEMP TABLE {name} ({declared}, {named(PLACE)} INTEGER)"
    if not made_up.values:
        return
    lists = ", ".join(f"[{', '.join(values)}] AS v{place}" for place, values in enumerate(made_up.values.values(), 1))
    taken = ", ".join(f"v{place}[n[{place}]]" for place in range(1, len(made_up.values) + 1))
    rows = f"CAST('{made_up.rows}' AS INTEGER[][])"  # one text is quick to parse
    numbered = f"SELECT UNNEST({rows}) AS n, UNNEST(range(1, {len(made_up.rows) + 1})) AS place"
    names = ", ".join(map(named, [*made_up.values, PLACE]))
    yield f"INSERT INTO {name} ({names}) SELECT {taken}, place FROM (SELECT {lists}), ({numbered})"


def in_file(path: str) -> Iterator[str]:
    """Return the commands that move the made-up rows of the protected table to a Parquet file."""
    yield f"COPY protected TO {quoted(path)} (FORMAT parquet)"
    yield "DROP TABLE protected"
    yield f"CREATE TEMP VIEW protected AS SELECT * FROM read_parquet({quoted(path)})"
