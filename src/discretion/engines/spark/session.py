"""Session: a Spark session of our own next to the user's: it shares their cluster and catalog, but not their settings.

Settings that change what SQL means are ours, so the user's session stays as it was. PySpark's logger of errors prints
expressions and values: it is silent while we run something.
"""

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from discretion.errors import EngineFailed, InvalidDeclaration, needed

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # about versions of pandas, which is not used here
    try:
        from py4j.protocol import Py4JError  # type: ignore[import-untyped]
        from pyspark.errors import PySparkException
        from pyspark.logger import PySparkLogger
        from pyspark.sql import DataFrame, SparkSession
    except ImportError:
        raise InvalidDeclaration(
            f"{needed('spark', 'The engine Spark', 'pyspark')}. It needs Java 17 or newer too."
        ) from None

logger = logging.getLogger(__name__)

FAILURES = (PySparkException, Py4JError)
FAILED = "The database failed; the operator's log names the kind of failure."
MEANING = {  # what a statement means must not depend on what somebody configured
    "spark.sql.ansi.enabled": "false",  # with it, a row could make a statement fail
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.timestampType": "TIMESTAMP_NTZ",
    "spark.sql.caseSensitive": "true",
    "spark.sql.decimalOperations.allowPrecisionLoss": "false",
    "spark.sql.variable.substitute": "false",
    "spark.sql.parser.quotedRegexColumnNames": "false",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.ansi.doubleQuotedIdentifiers": "false",
    "spark.sql.groupByOrdinal": "true",
    "spark.sql.legacy.exponentLiteralAsDecimal.enabled": "false",
    "spark.sql.legacy.literal.pickMinimumPrecision": "true",
    "spark.sql.legacy.timeParserPolicy": "CORRECTED",
    "spark.sql.legacy.charVarcharAsString": "false",
    "spark.sql.function.concatBinaryAsString": "false",
    "spark.sql.files.ignoreCorruptFiles": "false",  # rows would be left out in silence
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.parquet.mergeSchema": "false",
    "spark.sql.parquet.binaryAsString": "false",
    "spark.sql.parquet.inferTimestampNTZ.enabled": "true",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
    "spark.sql.sources.partitionColumnTypeInference.enabled": "true",
}
PARTS, PART = 32, "1m"  # of what is moved: how many for each task at a time, before those smaller than PART are joined
SORTED = {"spark.sql.objectHashAggregate.sortBased.fallbackThreshold": str(10**9)}  # by ranking.py, which fits memory
LOCAL = {  # of a session that we start: nothing listens beyond this machine, and nothing is drawn on the terminal
    "spark.ui.enabled": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.sql.catalogImplementation": "in-memory",
}
_OURS: ContextVar[bool] = ContextVar("ours", default=False)


class _Silence(logging.Filter):
    """Keep PySpark from printing what failed in a statement of ours."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Tell whether a record may be printed."""
        return not _OURS.get()


PySparkLogger.getLogger("SQLQueryContextLogger").addFilter(_Silence())  # a logger of another class would fail


def own_session(given: Any = None) -> SparkSession:
    """Return a new session with our settings, on the Spark of the session given, of the active one or of a new one."""
    if "connect" in type(given).__module__:
        raise InvalidDeclaration("Spark Connect is not supported yet. Give a session that runs in this program.")
    if given is not None and not isinstance(given, SparkSession):
        raise InvalidDeclaration(f"`session` must be a SparkSession, got {type(given).__name__}.")
    with quiet(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        user = given or SparkSession.getActiveSession() or _started()
        session = user.newSession()
        for name, setting in {**MEANING, **SORTED, **_small_parts(session)}.items():
            session.conf.set(name, setting)
    return session


def _small_parts(session: SparkSession) -> dict[str, str]:
    """Return settings by which rows are moved in many small parts: they are sorted in less memory, and no slower.

    Spark joins small parts until there is one for each task at a time, so that tasks hold all rows at once.
    """
    most = max(
        int(session.conf.get("spark.sql.shuffle.partitions") or 0), PARTS * session.sparkContext.defaultParallelism
    )
    adaptive = "spark.sql.adaptive"
    return {
        f"{adaptive}.coalescePartitions.initialPartitionNum": str(most),
        f"{adaptive}.advisoryPartitionSizeInBytes": PART,
    }


@contextmanager
def quiet() -> Iterator[None]:
    """Turn failures of Spark into an `EngineFailed` without its own words: they may quote a private value."""
    token = _OURS.set(True)
    try:
        yield
    except FAILURES as failure:
        logger.error("Spark failed: %s", type(failure).__name__)
        raise EngineFailed(FAILED) from None
    finally:
        _OURS.reset(token)


def _started() -> SparkSession:
    builder = SparkSession.builder.appName("discretion")
    for name, setting in LOCAL.items():
        builder = builder.config(name, setting)
    return builder.getOrCreate()


__all__ = ["FAILED", "FAILURES", "DataFrame", "SparkSession", "logger", "own_session", "quiet"]
