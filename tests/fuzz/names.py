"""Names that an analyst can give to columns: the table's own, those of our generated SQL, and odd ones."""

import re
from collections.abc import Iterable, Mapping, Sequence

from fuzz.expressions import NUMBERS, TIMES

OWN = ("id", *NUMBERS, "t", "k", "e", "b", *TIMES)  # of the table
JOINED = ("who", "od", "oi", "om", "ot", "ok", "ob", "oday", "oat")  # of the other table
LOOKED_UP = ("code", "worth", "label", "mark", "codes", "labels")
# What the engine's SQL calls tables and columns, and what the SQL above released values does.
INTERNAL = (
    *(
        "p",
        "c",
        "e",
        "g",
        "g0",
        "k0",
        "a0",
        "a1",
        "a0_by",
        "x0",
        "v0",
        "m",
        "n",
        "l0",
        "j0",
        "t",
        "id_0",
        "who_0",
        "c0",
    ),
    *("cohort", "preference", "person", "place", "start", "digest", "drawn", "value", "n_all", "a0_n", "a0_coin", "_"),
    *("protected", "register", "levels", "changes", "thresholds", "busy", "exceeding", "ordered", "both", "kept"),
    *("found", "counted", "source", "gathered", "ranked", "rows_found", "kept_rows", "keys_k0", "part_0", "rowid"),
)
ODD = (
    *(
        "a b",
        'say "no"',
        "it's",
        "é",
        "É",
        "名前",
        " id",
        "id ",
        "id.d",
        "t.id",
        "MAX(d)",
        "COUNT(*)",
        "?",
        "$1",
        "*",
        ";",
    ),
    *("1", "1e3", "--", "/* */", "%", "\\", "{x}", "a\tb", "id\n"),
)
RESERVED = ("select", "group", "order", "where", "null", "true", "case", "table", "user", "current_date", "interval")
_QUOTED = re.compile(r"""('(?:[^']|'')*')""")


def mapped(columns: Sequence[str], style: int, turn: int) -> dict[str, str]:
    """Return a name for each column, no two of them alike; `style` is 0 to 7, and `turn` any number."""
    others = [*OWN, *JOINED, *LOOKED_UP]
    pools: dict[int, Sequence[str]] = {
        1: [columns[(place + turn) % len(columns)] for place in range(len(columns))],
        2: [others[(7 * place + turn) % len(others)] for place in range(len(columns))],
        3: [INTERNAL[(5 * place + turn) % len(INTERNAL)] for place in range(len(columns))],
        4: [ODD[(place + turn) % len(ODD)] for place in range(len(columns))],
        5: [RESERVED[(place + turn) % len(RESERVED)] for place in range(len(columns))],
        6: [name.upper() if (place + turn) % 2 else name.title() for place, name in enumerate(columns)],
    }
    wanted = list(pools.get(style, columns))
    if style == 7:  # another column has the person's name
        other = 1 + turn % (len(columns) - 1)
        wanted[0], wanted[other] = wanted[other], wanted[0]
    found: dict[str, str] = {}
    for column, name in zip(columns, wanted, strict=True):
        taken = {one.lower() for one in found.values()}
        found[column] = next(one for one in (name, f"v_{column}") if one.lower() not in taken)
    return found


def neutral(columns: Iterable[str]) -> dict[str, str]:
    """Return names that nothing else has."""
    return {column: f"v_{column}" for column in columns}


def quoted(name: str) -> str:
    """Return a name as SQL writes it."""
    plain = name.isascii() and name.isidentifier() and name.lower() not in RESERVED
    return name if plain else '"' + name.replace('"', '""') + '"'


def renamed(text: str, names: Mapping[str, str]) -> str:
    """Return an expression of the grammar with other names of columns, which are the words in small letters."""
    if not names:
        return text
    word = re.compile(r"(?<![\w.\"])(" + "|".join(sorted(names, key=len, reverse=True)) + r")(?![\w.(\"])")
    parts = _QUOTED.split(text)
    parts[::2] = [word.sub(lambda found: names[found.group(1)], part) for part in parts[::2]]
    return "".join(parts)
