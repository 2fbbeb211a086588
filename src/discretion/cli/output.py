"""Output: an answer as a file, or as text for another program."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import IO

import pyarrow.csv
import pyarrow.parquet

from discretion.errors import InvalidDeclaration, did_you_mean
from discretion.release import Release
from discretion.render.sheet import to_json
from discretion.service.shown import arrow_bytes, release_arrow


def _csv(release: Release, stream: IO[bytes]) -> None:
    pyarrow.csv.write_csv(release.to_arrow(), stream)


def _json(release: Release, stream: IO[bytes]) -> None:
    stream.write(f"{to_json(release)}\n".encode())


def _arrow(release: Release, stream: IO[bytes]) -> None:
    stream.write(arrow_bytes(release_arrow(release)))  # its metadata holds errors, guarantee and entry


def _parquet(release: Release, stream: IO[bytes]) -> None:
    pyarrow.parquet.write_table(release_arrow(release), stream)


FORMATS: dict[str, Callable[[Release, IO[bytes]], None]] = {
    "csv": _csv,
    "json": _json,
    "arrow": _arrow,
    "parquet": _parquet,
}


def format_of(output: Path | None, named: str) -> str:
    """Return the format that is asked for by name or by the ending of a file; refuse before anything is charged."""
    if named and named not in FORMATS:
        raise InvalidDeclaration(
            f"--format must be one of {', '.join(FORMATS)}, got {named!r}.{did_you_mean(named, FORMATS)}"
        )
    if output is None:
        return named
    if not (output.absolute().parent.is_dir() and not output.is_dir()):
        raise InvalidDeclaration(f"Cannot write {str(output)!r}: give the name of a file in a folder that exists.")
    ending = output.suffix.lower().removeprefix(".")
    if not named and ending not in FORMATS:
        raise InvalidDeclaration(
            f"The name of {str(output)!r} must end with {', '.join(f'.{one}' for one in FORMATS)}, or say which format "
            "it is to have: --format csv."
        )
    return named or ending


def write(release: Release, output: Path | None, form: str) -> None:
    """Write an answer to a file, or to the standard output."""
    if output is None:
        sys.stdout.flush()
        FORMATS[form](release, sys.stdout.buffer)
        sys.stdout.buffer.flush()
        return
    with output.open("wb") as stream:
        FORMATS[form](release, stream)
