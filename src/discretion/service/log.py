"""Log: one JSON object a line, for the operator. Never a literal of a question, a person, a token, a link or a path."""

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any

FACTS = "facts"  # the attribute of a record that holds its fields
NOISY = ("uvicorn", "uvicorn.error", "uvicorn.access")


class Lines(logging.Formatter):
    """Formats a record as one line of JSON. An exception is named by its type: its text may hold private values."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        told: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="seconds"),
            "level": record.levelname.lower(),
        }
        facts = getattr(record, FACTS, None)
        told |= facts if facts is not None else {"event": record.getMessage().split("\n")[0][:500]}
        if record.exc_info and record.exc_info[0] is not None:
            told["error"] = record.exc_info[0].__name__
        return json.dumps(told)


def configure(level: str = "INFO") -> None:
    """Send all lines to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Lines())
    for name in ("discretion", *NOISY):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel("WARNING" if name == "uvicorn.access" else level)


def note(logger: logging.Logger, event: str, **facts: object) -> None:
    """Write one event down."""
    logger.info(event, extra={FACTS: {"event": event, **facts}})
