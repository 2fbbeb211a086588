"""Turn: whose task is next. Members take turns, so that nobody who asks much makes others wait."""

from collections import OrderedDict, deque
from typing import Generic, TypeVar

from discretion.errors import ServiceFailed

T = TypeVar("T")


class Turns(Generic[T]):
    """A bounded queue with one line for each member; the lines are served in turn."""

    def __init__(self, most: int, most_each: int) -> None:
        self._most, self._most_each = most, most_each
        self._lines: OrderedDict[str, deque[T]] = OrderedDict()

    def __len__(self) -> int:
        return sum(map(len, self._lines.values()))

    def join(self, member: str, task: T) -> None:
        """Put a task at the end of a member's line, or refuse it if that line or the whole queue is full."""
        line = self._lines.get(member, deque())
        if len(line) >= self._most_each:
            raise ServiceFailed(f"You have {len(line)} questions waiting, which is the most. Ask again later.")
        if len(self) >= self._most:
            raise ServiceFailed("The service is busy: too many questions are waiting. Ask again later.")
        line.append(task)
        self._lines[member] = line

    def next(self) -> T:
        """Take the first task of the line whose turn it is; the line goes to the end."""
        member, line = self._lines.popitem(last=False)
        task = line.popleft()
        if line:
            self._lines[member] = line
        return task

    def leave(self, member: str, task: T) -> bool:
        """Take a task out of its line; tell whether it was still there."""
        line = self._lines.get(member, deque())
        if task not in line:
            return False
        line.remove(task)
        if not line:
            del self._lines[member]
        return True
