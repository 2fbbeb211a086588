import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discretion.errors import PeerRefused
from discretion.peers.message import KINDS, LONGEST, MOST_ITEMS, VERSION, decode, encode

NAME = "ab" * 32
VALID = {
    "challenge": {"nonce": NAME},
    "hello": {"key": "ab" * 44, "signature": "cd" * 64, "terms": NAME, "host": "peer.example", "port": 7000},
    "refused": {"reason": "spent"},
    "members": {"addresses": [[NAME, "::1", 1]]},
    "friends of": {},
    "friends": {"addresses": []},
    "swap": {"bits": "00ff"},
    "publication of": {},
    "publication": {"bits": "00"},
    "compare": {},
    "accept": {},
    "wait": {},
    "vector": {"modulus": "f" * 512, "values": ["1", "2"]},
    "masked": {"value": "abc"},
    "score": {"steps": -5},
    "goodbye": {},
    "done": {},
}
WRONG = [None, 1.5, True, "", "ABC", "x" * 10, -1, 10**30, [], {}, [[1]], [["a", "b", 3]], {"a": 1}]
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(), lambda inner: st.lists(inner, max_size=3)
)


def test_every_kind_of_message_survives_the_way():
    assert set(VALID) == set(KINDS)
    for kind, fields in VALID.items():
        sent = encode(kind, fields)
        assert len(sent) - 4 == int.from_bytes(sent[:4], "big")
        assert (kind, fields) == decode(sent[4:])


@pytest.mark.parametrize("kind", KINDS)
def test_fields_that_are_missing_wrong_or_too_many_are_refused_on_both_sides(kind):
    fields = VALID[kind]
    spoilt = [{**fields, "profile": [1, 0, 1]}]
    spoilt += [{name: value for name, value in fields.items() if name != left} for left in fields]
    spoilt += [{**fields, name: wrong} for name in fields for wrong in WRONG if not KINDS[kind][name](wrong)]
    assert len(spoilt) > 6 * len(fields)
    for each in spoilt:
        with pytest.raises(PeerRefused):
            encode(kind, each)
        with pytest.raises(PeerRefused):
            decode(json.dumps({"version": VERSION, "kind": kind, **each}).encode())


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"\xff\xfe",
        b"[]",
        b"1",
        b'"hello"',
        b"{" * 100_000,
        b"[" * 100_000,
        b'{"version":2,"kind":"compare"}',
        b'{"kind":"compare"}',
        b'{"version":1}',
        b'{"version":1,"kind":["compare"]}',
        b'{"version":1,"kind":"shell"}',
        b'{"version":1,"kind":"score","steps":NaN}',
        b'{"version":1,"kind":"score","steps":' + b"9" * 5_000 + b"}",
    ],
)
def test_what_is_no_message_is_refused(text):
    with pytest.raises(PeerRefused):
        decode(text)


def test_sizes_are_bounded():
    with pytest.raises(PeerRefused, match="valid fields"):
        encode("vector", {"modulus": "f" * 512, "values": ["1"] * (MOST_ITEMS + 1)})
    with pytest.raises(PeerRefused, match="valid fields"):
        encode("publication", {"bits": "0" * LONGEST})


@given(st.binary(max_size=200) | json_values.map(lambda value: json.dumps(value).encode()))
def test_hostile_bytes_end_in_a_refusal_and_nothing_else(text):
    with pytest.raises(PeerRefused):
        decode(text)


@given(st.sampled_from(sorted(KINDS)), st.dictionaries(st.sampled_from(["bits", "steps", "values", "x"]), json_values))
def test_hostile_fields_end_in_a_refusal_or_in_checked_fields(kind, fields):
    try:
        found, read = decode(json.dumps({"version": VERSION, "kind": kind, **fields}).encode())
    except PeerRefused:
        return
    assert all(KINDS[found][name](value) for name, value in read.items())
