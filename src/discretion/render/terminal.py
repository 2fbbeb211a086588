"""Terminal: sheets of text printed for people, on a screen as wide as it is or into a file."""

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Literal

from rich.box import SIMPLE_HEAD, Box
from rich.cells import cell_len
from rich.console import Console, Group
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from discretion.render.sheet import Sheet

SHORT = 16  # columns of texts up to this wide are not wrapped, and those of numbers never
GAP = 3  # between columns
ENDLESS = 1_000_000  # a file has no right edge
PLAIN = Box(str(SIMPLE_HEAD).replace("─", "-"), ascii=True)


def terminal() -> Console:
    """Return where commands print. In a pipe nothing is wrapped: a row is a line, for grep and for files."""
    console = Console()
    wrapped = console.is_terminal or "COLUMNS" in os.environ
    return console if wrapped else Console(width=ENDLESS)


def show(sheets: Iterable[Sheet], console: Console) -> None:
    """Print sheets one below the other; without drawing signs and blanks at the end where no screen is."""
    for sheet in sheets:
        if console.is_terminal:
            console.print(_rich(sheet, SIMPLE_HEAD, console.width))
            continue
        with console.capture() as printed:
            console.print(_rich(sheet, PLAIN, console.width))
        console.file.writelines(f"{line.rstrip()}\n" for line in printed.get().splitlines())


def _rich(sheet: Sheet, box: Box, width: int) -> Group:
    widths = [max(map(cell_len, column)) for column in zip(sheet.columns, *sheet.rows, strict=True)]
    least = [
        wide if name in sheet.numbers else min(wide, SHORT) for name, wide in zip(sheet.columns, widths, strict=True)
    ]
    fits = sum(least) + GAP * (len(least) - 1) <= width
    table = _table(sheet, box, widths) if fits else _records(sheet)
    notes = [Text(note, style="dim") for note in sheet.notes]
    return Group(Text(sheet.title, style="bold"), *([table] if sheet.columns else []), *notes, "")


def _table(sheet: Sheet, box: Box, widths: Sequence[int]) -> Table:
    table = Table(box=box, header_style="bold cyan", pad_edge=False, show_edge=False)
    for name, wide in zip(sheet.columns, widths, strict=True):
        number = name in sheet.numbers
        justify: Literal["left", "right"] = "right" if number else "left"
        table.add_column(Text(name), justify=justify, no_wrap=number or wide <= SHORT, overflow="fold")
    for row in sheet.rows:
        table.add_row(*map(Text, row))
    return table


def _records(sheet: Sheet) -> Table:
    """One line a value, where columns do not fit side by side: no digit is ever cut off."""
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold cyan", overflow="fold")
    table.add_column(overflow="fold")
    for row in sheet.rows:
        for name, cell in zip(sheet.columns, row, strict=True):
            if cell:
                table.add_row(Text(name), Text(cell))
        table.add_row()
    return table


@contextmanager
def working(text: str) -> Iterator[None]:
    """A spinner with the time, for people who look at a terminal."""
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        progress.add_task(text, total=None)
        yield
