"""Memory: a data frame of any library becomes an Arrow table."""

from typing import Any

import pyarrow as pa
import pyarrow.dataset
from pyarrow import interchange

from discretion.errors import InvalidDeclaration


def arrow_table(name: str, given: Any) -> pa.Table:
    """Return the rows of a pandas, Polars, Arrow or other data frame, of a dataset, a reader or a lazy frame."""
    try:
        return _taken(given)
    except (TypeError, ValueError, pa.ArrowException):
        mixed = _mixed_columns(given) if hasattr(given, "iloc") else []
    if mixed:
        raise InvalidDeclaration(
            f"Column {mixed[0]!r} of {name!r} mixes types. Convert it first, as in frame[{mixed[0]!r}].astype(str)."
        )
    raise InvalidDeclaration(
        f"{name!r} must be an Arrow, pandas or Polars table or a file, got {type(given).__name__}."
    ) from None


def _taken(given: Any) -> pa.Table:
    if hasattr(given, "iloc"):
        return pa.Table.from_pandas(given, preserve_index=False)
    if isinstance(given, pyarrow.dataset.Dataset):
        return given.to_table()
    if isinstance(given, pa.RecordBatch):
        return pa.Table.from_batches([given])
    if hasattr(given, "collect") and hasattr(given, "lazy"):  # a Polars LazyFrame
        return pa.table(given.collect())
    if hasattr(given, "__dataframe__") and not hasattr(given, "__arrow_c_stream__"):
        return interchange.from_dataframe(given)
    return pa.table(given)


def _mixed_columns(frame: Any) -> list[str]:
    """Return the columns of a pandas frame that have no type in common."""
    found = []
    for place, name in enumerate(frame.columns):
        try:
            pa.array(frame.iloc[:, place], from_pandas=True)
        except pa.ArrowException:
            found.append(str(name))
    return found
