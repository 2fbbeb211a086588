"""The walk of one SQL question through discretion's own code: functions, files, changes of file, ledger visits."""

import sqlite3  # noqa: F401  its audit events are counted
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from types import CodeType, FrameType
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table as Sheet

import discretion as dn

SOURCE = Path(dn.__file__).parent
SQL = "SELECT COUNT(*) FROM patients WHERE age > 40"
MOST = {"functions": 180, "files": 30, "changes of file": 90, "ledger connections": 3}
PEOPLE = 1_000


@dataclass
class Walk:
    """What was called, in the order in which it was called first."""

    functions: dict[CodeType, None] = field(default_factory=dict)
    connections: int = 0
    running: bool = False

    @property
    def files(self) -> list[str]:
        """The file of each function, in the order of first calls."""
        return [one.co_filename for one in self.functions]

    def counts(self) -> dict[str, int]:
        """Each number of the table; a change of file is between a function and the next new one."""
        files = self.files
        changes = sum(one != other for one, other in pairwise(files))
        found = len(files), len(set(files)), changes, self.connections
        return dict(zip(MOST, found, strict=True))

    def called(self, frame: FrameType, event: str, _: Any) -> None:
        """Note a call of a named function of discretion."""
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(str(SOURCE)) and not code.co_name.startswith("<"):
            self.functions.setdefault(code)

    def audited(self, event: str, _: object) -> None:
        """Note that SQLite was opened."""
        self.connections += self.running and event == "sqlite3.connect"

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Note what is called in the block."""
        self.running = True
        sys.setprofile(self.called)
        try:
            yield
        finally:
            sys.setprofile(None)
            self.running = False


def walk(folder: Path) -> dict[str, Walk]:
    """Ask a question for the first time, ask one of the same form, explain one, and ask the first again."""
    people = {"id": range(PEOPLE), "age": [number % 90 for number in range(PEOPLE)]}
    pq.write_table(pa.table(people | {"epsilon": [0.1, 0.5] * (PEOPLE // 2)}), folder / "patients.parquet")
    walks = {"first question": SQL, "same form": SQL.replace("40", "50"), "explain": SQL, "stored answer": SQL}
    found = {}
    with dn.connect(folder / "walk.discretion") as db:
        declared: dict[str, Any] = {"person": "id", "epsilon": "epsilon", "bounds": {"age": (0, 120)}}
        db.protect("patients", folder / "patients.parquet", **declared)
        for name, sql in walks.items():
            one = found[name] = Walk()
            sys.addaudithook(one.audited)
            with one.watching():
                (db.explain if name == "explain" else db.sql)(sql)
    return found


def main() -> None:
    """Print the table."""
    with TemporaryDirectory() as folder:
        found = walk(Path(folder))
    sheet = Sheet(title=f"The walk of {SQL}")
    for heading in ("", *found, "at most"):
        sheet.add_column(heading, justify="right" if heading else "left")
    for name, most in MOST.items():
        sheet.add_row(name, *(str(one.counts()[name]) for one in found.values()), str(most))
    Console().print(sheet)


if __name__ == "__main__":
    main()
