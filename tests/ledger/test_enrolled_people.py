"""Everybody's digest and rows are the same, however many people are written together."""

from hashlib import sha256

import pyarrow as pa
import pytest

from discretion.ledger import people as module
from discretion.ledger.people import digest_people, listed


@pytest.mark.parametrize("part", [1, 2, 3, 7, 100])
@pytest.mark.parametrize("count", [0, 1, 6, 7])
def test_parts_change_neither_the_digest_nor_the_rows(part: int, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PART", part)
    people = [(f"é{number}:", number * 10) for number in range(count)]
    names, levels = [name for name, _ in people], [level for _, level in people]
    table = pa.table({"person": pa.array(names, pa.string()), "micro_epsilon": pa.array(levels, pa.int64())})
    lines = "\n".join(f"{len(name.encode())}:{name}:{level}" for name, level in people)
    assert sha256(lines.encode()).hexdigest() == digest_people(table)
    assert people == list(listed(table))
