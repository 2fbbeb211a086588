"""Limit: how often somebody may ask, how large a body may be, and how long it may take to arrive."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from math import ceil
from time import monotonic

from starlette.requests import ClientDisconnect, Request

from discretion.service.problem import Refused

LARGEST_BODY = 1 << 20
BODY_SECONDS = 10.0
MOST_KNOWN = 50_000  # whom a limit remembers


@dataclass(frozen=True, kw_only=True)
class Rate:
    """So many a second in the long run, and so many at once."""

    second: float
    burst: int


@dataclass(frozen=True, kw_only=True)
class Rates:
    """The limits of a service."""

    requests: Rate = Rate(second=50, burst=200)  # of one member, person or address
    changes: Rate = Rate(second=1 / 30, burst=20)  # of one person: every change is an entry that others wait for
    sign_in: Rate = Rate(second=0.2, burst=10)  # failures of one address
    guesses: Rate = Rate(second=5, burst=100)  # failures of all addresses together


class Buckets:
    """A bucket of tokens for everybody who comes; it fills with time."""

    def __init__(self, rate: Rate, clock: Callable[[], float] = monotonic) -> None:
        self._rate, self._clock = rate, clock
        self._levels: OrderedDict[str, tuple[float, float]] = OrderedDict()  # who -> tokens left, as of when

    def take(self, who: str, tokens: int = 1) -> None:
        """Take a token, or refuse with the time to wait; with 0 tokens, only refuse if none is left."""
        now = self._clock()
        left, since = self._levels.pop(who, (float(self._rate.burst), now))
        left = min(self._rate.burst, left + (now - since) * self._rate.second)
        self._levels[who] = (left - tokens if left >= 1 else left, now)
        if len(self._levels) > MOST_KNOWN:
            self._levels.popitem(last=False)
        if left < 1:
            seconds = ceil((1 - left) / self._rate.second)
            raise Refused(429, f"Too many requests. Try again in {seconds} s.", {"Retry-After": str(seconds)})


def address(request: Request) -> str:
    """Return where a request comes from."""
    return f"address:{request.client.host}" if request.client else "address:"


async def body_of(request: Request, largest: int = LARGEST_BODY, seconds: float = BODY_SECONDS) -> bytes:
    """Return the body, unless it is too large or too slow."""
    told = request.headers.get("content-length", "0")
    if not told.isascii() or not told.isdigit() or int(told) > largest:
        raise Refused(413, f"A body may have at most {largest:,} bytes.")
    content = bytearray()
    try:
        async with asyncio.timeout(seconds):
            async for part in request.stream():
                content += part
                if len(content) > largest:
                    raise Refused(413, f"A body may have at most {largest:,} bytes.")
    except TimeoutError:
        raise Refused(408, f"The body did not arrive within {seconds:g} s.") from None
    except ClientDisconnect:
        raise Refused(400, "The body is incomplete.") from None
    return bytes(content)
