"""SQL above released values: it runs in a database that holds these values and nothing else.

What may stand in it is read from DuckDB's own parser: an allow-list of functions, and no table but the released ones.
So it gives the same at any time and on any machine, and there is nothing that it could reach.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, suppress
from typing import Any

import duckdb
import pyarrow as pa

from discretion.engines.duckdb.connections import limited
from discretion.errors import QueryRefused
from discretion.query.reference import CONFINED

SECONDS = 20.0  # that a statement may take
MOST_ROWS = 10_000
MOST_BYTES = 16 * 2**20
_SAFE = """
+ - * / // % ** ^ || | & << >> ~ ~~ !~~ ~~* !~~* ~~~ = != <> < <= > >= ! @ like_escape not_like_escape ilike_escape
not_ilike_escape between in coalesce nullif ifnull if
abs ceil ceiling floor round round_even trunc sign sqrt cbrt exp ln log log2 log10 pow power mod fmod greatest least
sin cos tan asin acos atan atan2 pi degrees radians isfinite isnan isinf even gcd lcm divide add subtract multiply
lower upper lcase ucase trim ltrim rtrim length len strlen substr substring left right concat concat_ws replace
contains starts_with ends_with prefix suffix reverse strpos instr position split_part regexp_matches regexp_replace
regexp_extract regexp_full_match ascii
year quarter month week day hour minute second dayofweek dayofyear isodow weekday weekofyear yearweek isoyear dayname
monthname last_day date_part datepart date_trunc datetrunc date_diff datediff date_sub time_bucket strftime make_date
make_timestamp epoch to_days to_months to_years to_weeks to_hours to_minutes to_seconds to_quarters date_add
count count_star count_if countif sum avg mean min max median quantile quantile_cont quantile_disc mode variance
var_samp var_pop stddev stddev_samp stddev_pop covar_pop covar_samp corr regr_slope regr_intercept regr_r2 first last
any_value arg_max arg_min max_by min_by bool_and bool_or string_agg skewness kurtosis entropy row_number rank
dense_rank percent_rank cume_dist ntile lag lead first_value last_value nth_value
typeof grouping
"""  # operators, numbers, texts, dates, aggregates and windows
FUNCTIONS = frozenset(_SAFE.split())
_TABLES = ("BASE_TABLE", "JOIN", "SUBQUERY", "EMPTY", "EMPTY_FROM", "PIVOT", "EXPRESSION_LIST", "CTE", "COLUMN_DATA")
_NOW = """
current_date current_time current_timestamp localtime localtimestamp today now
current_user session_user user current_catalog current_schema current_role current_database
"""  # names that stand for a value without brackets
_VALUES = frozenset(_NOW.split())


def refuse_unsafe(sql: str, tables: Mapping[str, pa.Table]) -> None:
    """Refuse SQL that needs anything but these tables and functions that are known to be safe."""
    with closing(_database({})) as connection:
        (text,) = connection.execute("SELECT json_serialize_sql(?)", [sql]).fetchall()[0]
        parsed = json.loads(text)
        nodes = list(_nodes(parsed))
        defined = {str(one["key"]).lower() for node in nodes for one in _named(node)}
        for name in defined:
            _refuse_taken(connection, name)
    if parsed.get("error") or len(parsed["statements"]) != 1:
        raise QueryRefused(
            f"DuckDB cannot read what is above the aggregates: {_first_line(parsed.get('error_message'))}"
        )
    for node in nodes:
        _refuse_node(node, {*tables, *defined})


def select_released(sql: str, worlds: Iterable[Mapping[str, pa.Table]]) -> Iterator[pa.Table]:
    """Give what a checked SELECT gives over released tables, one world after the other.

    A failure is about these tables alone, so it is told in the database's own words.
    """
    try:
        with closing(_database({})) as connection, limited(connection, SECONDS):
            for tables in worlds:
                _fill(connection, tables)
                found = connection.sql(f"SELECT * FROM ({sql}) LIMIT {MOST_ROWS + 1}").to_arrow_table()
                if found.num_rows > MOST_ROWS or found.nbytes > MOST_BYTES:
                    raise QueryRefused(f"This answer has more than {MOST_ROWS:,} rows or 16 MB. Use LIMIT.")
                yield found
    except duckdb.Error as failure:
        raise QueryRefused(f"What is above the aggregates fails: {_first_line(str(failure))}") from None


def _database(tables: Mapping[str, pa.Table]) -> duckdb.DuckDBPyConnection:
    """Return a database of its own that holds these tables and cannot reach anything else."""
    connection = duckdb.connect(":memory:", config=dict(CONFINED))
    connection.execute("SET TimeZone = 'UTC'")
    connection.execute("SET lock_configuration = true")
    _fill(connection, tables)
    return connection


def _fill(connection: duckdb.DuckDBPyConnection, tables: Mapping[str, pa.Table]) -> None:
    for name, table in tables.items():
        connection.register("given", table)
        connection.execute(f"CREATE OR REPLACE TABLE {name} AS SELECT * FROM given")
        connection.unregister("given")


def _nodes(parsed: Any) -> Iterator[dict[str, Any]]:
    """Give every node of a statement that DuckDB's parser wrote out."""
    todo = [parsed]
    while todo:
        node = todo.pop()
        if isinstance(node, dict):
            yield node
            todo += list(node.values())
        elif isinstance(node, list):
            todo += node


def _named(node: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the definitions of a WITH."""
    definitions = node.get("cte_map")
    return list(definitions["map"]) if isinstance(definitions, dict) else []


def _refuse_taken(connection: duckdb.DuckDBPyConnection, name: str) -> None:
    """Refuse a name of WITH that means something without it, such as a view of settings or a file."""
    quoted = name.replace('"', '""')
    with suppress(duckdb.CatalogException):  # there is no such table: the name is free
        with suppress(duckdb.PermissionException, duckdb.IOException):
            connection.execute(f'SELECT 1 FROM "{quoted}" LIMIT 0')
        raise QueryRefused(f"WITH {name}: the database has a table of this name. Use another one.")


def _refuse_node(node: Mapping[str, Any], known: set[str]) -> None:
    name, kind = str(node.get("function_name", "")).lower(), str(node.get("type", ""))
    if name and (name not in FUNCTIONS or node.get("schema") or node.get("catalog")):
        raise QueryRefused(
            f"{name.upper()} is not allowed above the aggregates: the same question must give the same at any time, on "
            "any machine. Use arithmetic, CASE, window functions and the usual functions of numbers, texts and dates."
        )
    is_source = "sample" in node and "alias" in node and "class" not in node
    if node.get("sample") is not None or (is_source and kind not in _TABLES):
        raise QueryRefused("Above the aggregates, only what they released can be read: no files, functions or samples.")
    if kind == "BASE_TABLE":
        table = str(node.get("table_name", "")).lower()
        if table not in known or node.get("schema_name") or node.get("catalog_name"):
            raise QueryRefused(f"There is no table {table!r} here. Only what the aggregates released can be read.")
    names = node.get("column_names")
    if isinstance(names, list) and len(names) == 1 and str(names[0]).lower() in _VALUES:
        raise QueryRefused(
            f"{names[0]} is not allowed: the same question must mean the same tomorrow. Write the value."
        )
    if str(node.get("class", "")) in ("PARAMETER", "LAMBDA"):
        raise QueryRefused("Parameters and lambdas are not allowed above the aggregates.")


def _first_line(text: Any) -> str:
    return str(text).splitlines()[0].rstrip(".") + "."
