"""Options: lists of options in docstrings, aligned by blanks, become lists on the pages of the reference."""

import re
from typing import Any

from griffe import Docstring, Extension, Object

OPTION = re.compile(r"^(\w+(?:, \w+)*) {1,}(?=\S)(.*)$")


class Options(Extension):
    """Turn `name   what it means` lines, and the indented lines below them, into items of a list."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        if obj.docstring is not None:
            obj.docstring = Docstring(listed(obj.docstring.value), parent=obj)


def listed(text: str) -> str:
    """Return the text with every block of options as a list."""
    return "\n\n".join(map(_block, text.split("\n\n")))


def _block(block: str) -> str:
    lines = block.split("\n")
    if len(lines) < 2 or not re.match(r"^\w+(, \w+)* {2,}\S", lines[0]):
        return block
    items: list[str] = []
    for line in lines:
        found = OPTION.match(line)
        if found and not line.startswith(" "):
            items.append(f"* `{found[1]}`: {found[2].strip()}")
        elif items:
            items[-1] += f" {line.strip()}"
    return "\n".join(items)
