"""Message: what peers may say to one another, as length-prefixed JSON; anything else is refused on both sides.

A message is four bytes with the length of the rest, most significant first, and a JSON object in UTF-8 with the keys
`version`, `kind` and exactly the fields of its kind (docs/peers.md lists them). Fields are checked before a message is
sent and after it is received, so nothing but these fields can be on the wire.
"""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from discretion.errors import PeerRefused

VERSION = 1
LONGEST = 8 << 20  # bytes of one message
MOST_MEMBERS = 1_000  # addresses in one message
MOST_ITEMS = 4_096  # encrypted numbers in one message
KEY_BITS = 2_048  # of the homomorphic encryption

Fields = Mapping[str, Any]
Check = Callable[[Any], bool]


def _hexadecimal(most: int, least: int = 1) -> Check:
    pattern = re.compile(f"[0-9a-f]{{{least},{most}}}")
    return lambda value: isinstance(value, str) and pattern.fullmatch(value) is not None


def _octets(most: int, least: int = 1) -> Check:
    pattern = re.compile(f"([0-9a-f]{{2}}){{{least},{most}}}")
    return lambda value: isinstance(value, str) and pattern.fullmatch(value) is not None


def _whole(least: int, most: int) -> Check:
    return lambda value: type(value) is int and least <= value <= most


def _among(*words: str) -> Check:
    return lambda value: isinstance(value, str) and value in words


def _many(most: int, each: Check) -> Check:
    return lambda value: isinstance(value, list) and len(value) <= most and all(map(each, value))


def _host(value: Any) -> bool:
    return isinstance(value, str) and re.fullmatch(r"[0-9A-Za-z.:_-]{1,255}", value) is not None


def _address(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 3 and NAME(value[0]) and _host(value[1]) and PORT(value[2])


NAME = _hexadecimal(64, 64)
PORT = _whole(1, 65_535)
REASONS = ("terms", "spent", "busy", "nothing published")

KINDS: Mapping[str, Mapping[str, Check]] = {
    "challenge": {"nonce": _hexadecimal(64, 64)},
    "hello": {
        "key": _octets(100, 32),
        "signature": _octets(64, 64),
        "terms": _hexadecimal(64, 64),
        "host": _host,
        "port": PORT,
    },
    "refused": {"reason": _among(*REASONS)},
    "members": {"addresses": _many(MOST_MEMBERS, _address)},
    "friends of": {},
    "friends": {"addresses": _many(MOST_MEMBERS, _address)},
    "swap": {"bits": _octets(LONGEST // 4)},
    "publication of": {},
    "publication": {"bits": _octets(LONGEST // 4)},
    "compare": {},
    "accept": {},
    "wait": {},
    "vector": {
        "modulus": _hexadecimal(KEY_BITS // 4, 16),
        "values": _many(MOST_ITEMS, _hexadecimal(KEY_BITS // 2)),
    },
    "masked": {"value": _hexadecimal(KEY_BITS // 2)},
    "score": {"steps": _whole(-(2**62), 2**62)},
    "goodbye": {},
    "done": {},
}


def encode(kind: str, fields: Fields) -> bytes:
    """Return the message with its length in front; refuse whatever a message of this kind cannot hold."""
    _refuse_others(kind, fields)
    text = json.dumps({"version": VERSION, "kind": kind, **fields}, separators=(",", ":")).encode()
    if len(text) > LONGEST:
        raise PeerRefused(f"A message may have at most {LONGEST:,} bytes, this one has {len(text):,}.")
    return len(text).to_bytes(4, "big") + text


def decode(text: bytes) -> tuple[str, dict[str, Any]]:
    """Return kind and fields of a message without its length, or raise PeerRefused."""
    try:
        fields = json.loads(text.decode())
    except (ValueError, RecursionError):
        raise PeerRefused("The other side sent something that is not a message.") from None
    if not isinstance(fields, dict) or fields.pop("version", None) != VERSION:
        raise PeerRefused(f"The other side does not speak version {VERSION} of the protocol. Update one of you.")
    kind = fields.pop("kind", None)
    _refuse_others(kind, fields)
    return kind, fields


def _refuse_others(kind: Any, fields: Fields) -> None:
    if not isinstance(kind, str) or kind not in KINDS:
        raise PeerRefused("There is no message of this kind.")
    checks = KINDS[kind]
    if set(fields) != set(checks) or not all(check(fields[name]) for name, check in checks.items()):
        raise PeerRefused(f"A message of the kind {kind!r} must have valid fields {sorted(checks)} and no others.")
