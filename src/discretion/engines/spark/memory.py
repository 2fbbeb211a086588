"""Memory: tables of Arrow in types that Spark has, and copies of Spark's own data frames."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count

import pyarrow as pa

from discretion.engines.bounding import MOST_LISTED
from discretion.engines.spark.place import content
from discretion.engines.spark.safe import columns_of, safe
from discretion.engines.spark.session import DataFrame, SparkSession

_WIDER = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
    pa.float16(): pa.float32(),
    pa.date64(): pa.date32(),
    pa.large_string(): pa.string(),
    pa.string_view(): pa.string(),
    pa.null(): pa.string(),
}
_NAMES = {
    pa.int8(): "TINYINT",
    pa.int16(): "SMALLINT",
    pa.int32(): "INTEGER",
    pa.int64(): "BIGINT",
    pa.float32(): "FLOAT",
    pa.float64(): "DOUBLE",
    pa.string(): "VARCHAR",
    pa.bool_(): "BOOLEAN",
    pa.date32(): "DATE",
    pa.timestamp("us"): "TIMESTAMP",
    pa.binary(): "BLOB",
}
_NUMBERS = count()


@dataclass(frozen=True, kw_only=True)
class FrameCopy:
    """A copy of a data frame of Spark, which its executors hold."""

    frame: DataFrame
    digest: str
    columns: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class PeopleList:
    """A list of people that is short enough to be sent to every executor."""

    frame: DataFrame
    rows: int  # of all of them together
    most: int  # of one of them


def spark_table(table: pa.Table) -> pa.Table:
    """Return a table in types that Spark has; the same table if it is in such types."""
    wanted = [_spark_type(field.type) for field in table.schema]
    if wanted == list(table.schema.types):
        return table
    columns = [column.cast(kind) for column, kind in zip(table.columns, wanted, strict=True)]
    return pa.table(dict(zip(table.column_names, columns, strict=True)))


def arrow_types(table: pa.Table) -> dict[str, str]:
    """Return the columns of a table with their types by the names in query/kind.py."""
    return {field.name: _named(field.type) for field in table.schema}


def checkpointed(session: SparkSession, frame: DataFrame, person: str) -> FrameCopy:
    """Return a copy of a data frame of the user's session, with NULL for what could make a question fail.

    Checkpoints go to the reliable folder of the Spark context if it has one, and else to its executors.
    """
    name = f"discretion_{next(_NUMBERS)}_{id(frame)}"
    frame.createOrReplaceGlobalTempView(name)
    try:
        ours = safe(session.table(f"global_temp.{name}"), person)
        reliable = session.sparkContext.getCheckpointDir() is not None
        copy = ours.checkpoint() if reliable else ours.localCheckpoint()
    finally:
        session.catalog.dropGlobalTempView(name)
    return FrameCopy(frame=copy, digest=content(copy), columns=columns_of(copy))


def kept(session: SparkSession, frame: DataFrame) -> DataFrame:
    """Return a data frame whose rows are computed once and kept by executors; those that are lost are computed again.

    What `persist` keeps is forgotten when a view of it is dropped.
    """
    rows = frame._jdf.rdd().cache()
    return DataFrame(session._jsparkSession.createDataFrame(rows, frame._jdf.schema()), session)


def listed(session: SparkSession, people: DataFrame) -> PeopleList | None:
    """Return a list of people, each once in column p, with their number of rows, n; None if it is too long.

    They get numbers from 0 in their order, `whose`; the list is kept, too.
    """
    found = kept(session, people)
    several, rows, most = found.selectExpr("COUNT(*)", "COALESCE(SUM(n), 0)", "COALESCE(MAX(n), 0)").collect()[0]
    if several > MOST_LISTED:
        return None
    together = found.repartition(1).sortWithinPartitions("p")
    numbered = kept(session, together.selectExpr("p", "MONOTONICALLY_INCREASING_ID() AS whose"))
    return PeopleList(frame=numbered, rows=rows, most=most)


def _spark_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_dictionary(kind):
        return _spark_type(kind.value_type)
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us")
    if pa.types.is_decimal(kind) and kind.bit_width != 128:
        return pa.decimal128(min(kind.precision, 38), kind.scale)
    return _WIDER.get(kind, kind)


def _named(kind: pa.DataType) -> str:
    if pa.types.is_decimal(kind):
        return f"DECIMAL({kind.precision},{kind.scale})"
    return _NAMES.get(kind, str(kind).upper())
