"""Clock: answers and entries come on a tick, so that how long a question took shows in whole ticks only."""

from dataclasses import dataclass
from datetime import UTC, datetime
from math import isfinite
from time import sleep, time

from discretion.errors import InvalidDeclaration


@dataclass(frozen=True)
class Clock:
    """A clock that ticks every so many seconds; 0 is a clock without ticks."""

    every: float = 0.0

    def __post_init__(self) -> None:
        if not (isfinite(self.every) and self.every >= 0):
            raise InvalidDeclaration(f"answer_every must be a number of seconds, 0 or more, got {self.every!r}.")

    def wait(self) -> None:
        """Sleep until the next tick."""
        if self.every:
            sleep(self.every - time() % self.every)

    def now(self) -> str:
        """Return the time of the last tick as text; without ticks, the time to the millisecond."""
        seconds = time()
        if self.every:
            seconds = round(seconds - seconds % self.every, 3)
        return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
