"""`make bench`: every table in turn, always ratios or errors against a baseline of the same run.

`python -m benchmarks counts ranks` runs only those.
"""

import importlib
import os
import sys
from pathlib import Path

from rich.console import Console

TOPICS = (
    *(
        "noise",
        "counts",
        "joint",
        "pooled",
        "widths",
        "ranks",
        "quantiles",
        "walk",
        "sql",
        "person",
        "sources",
        "ledger",
        "learn",
        "social",
        "peers",
    ),
    "service",
    "pages",
)


def main(topics: list[str]) -> None:
    if not sys.stdout.isatty():
        os.environ.setdefault("COLUMNS", "150")  # a file is as wide as its tables
    console = Console()
    unknown = set(topics) - set(TOPICS)
    if unknown:
        sys.exit(f"benchmarks must be among {', '.join(TOPICS)}, got {', '.join(sorted(unknown))}.")
    Path("bench-output").mkdir(exist_ok=True)
    for topic in topics or TOPICS:
        console.rule(topic)
        importlib.import_module(f"benchmarks.{topic}").main()


if __name__ == "__main__":
    main(sys.argv[1:])
