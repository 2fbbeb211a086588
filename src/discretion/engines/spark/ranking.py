"""Ranking: the rows of each person are put in order as one array of whole numbers, instead of by a window.

A window compares rows, holds each of them several times, and computes row by row. An array of numbers is sorted without
any of this, but it must fit in memory. So it is used where nobody on the list has more than `TOGETHER` rows, and rows
are moved in so many parts that a task holds about as many.
"""

from typing import Any, ClassVar

from sqlglot import exp

from discretion.engines.bounding import RANKED
from discretion.engines.column import number
from discretion.engines.spark.memory import PeopleList

TOGETHER = 200_000  # rows of one person, and on average of all people of a task, that are in memory at a time


class Ranked(exp.Expression):
    """Rows (who, content), moved in `parts`, with the place of each among those of `who`, and the number of these."""

    arg_types: ClassVar = {"this": True, "parts": True}


def in_arrays(select: exp.Expr, people: PeopleList) -> exp.Expr:
    """Return a statement, using it up, that ranks the rows of the people on a list in arrays if these are short."""
    if people.most > TOGETHER:
        return select
    for placed in [one for one in select.find_all(exp.Subquery) if one.this.meta_get(RANKED)]:
        moved = placed.this.args["from_"].this.this
        moved.set("distribute", None)
        placed.replace(Ranked(this=moved, parts=number(1 + people.rows // TOGETHER)))
    return select


def ranked(write: Any, node: Ranked) -> str:
    """Write the table of rows and their places; equal contents are equal rows, so their order says nothing."""
    parts = f"/*+ REPARTITION({write.sql(node, 'parts')}, who) */"
    moved = f"SELECT {parts} who, content FROM ({write.sql(node, 'this')}) AS found"
    sorted_rows = f"SELECT who, SORT_ARRAY(COLLECT_LIST(content)) AS contents FROM ({moved}) AS moved GROUP BY who"
    numbered = "SELECT who, CAST(SIZE(contents) AS BIGINT) AS n, POSEXPLODE(contents) AS (behind, content)"
    columns = "who, content, CAST(behind AS BIGINT) + 1 AS place, n"
    return f"(SELECT {columns} FROM ({numbered} FROM ({sorted_rows}) AS sorted_rows) AS numbered) AS placed"
