"""Plain English: the worst patterns stay out of docstrings, errors, help and documents."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCES = sorted((ROOT / "src").rglob("*.py"))
DOCUMENTS = [
    *sorted((ROOT / "docs").rglob("*.md")),
    *map(ROOT.joinpath, ("README.md", "SECURITY.md", "CONTRIBUTING.md")),
]
CLAUSE = re.compile(r"(What|Whether|How|Who|Whom|Whose|Where|Which|When|Why)\b")
NOT_ENGLISH = {  # pattern -> what to write instead
    r"is none either": "is not a ... either",
    r"\bbut is none\b": "is not a valid ...",
    r"\bas it is found\b": "raw",
    r"\bsays again\b": "repeats, or what really happens",
    r"\b[a-z]{4,}\(s\)(?![\w(=`])": "1 answer, 2 answers",
    r"\bwhatever it is\b": "any",
    r"\bit be known\b": "say who knows",
}


def docstrings() -> Iterator[tuple[str, str]]:
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and (
                text := ast.get_docstring(node)
            ):
                yield f"{path.relative_to(ROOT)}:{node.lineno}", text


def texts() -> Iterator[tuple[str, str]]:
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield f"{path.relative_to(ROOT)}:{node.lineno}", node.value
    for path in DOCUMENTS:
        yield str(path.relative_to(ROOT)), path.read_text()


def test_docstrings_begin_with_a_verb_and_not_with_a_clause():
    assert [] == [place for place, text in docstrings() if CLAUSE.match(text)]


@pytest.mark.parametrize("pattern", NOT_ENGLISH)
def test_no_text_has_to_be_read_twice(pattern):
    found = [place for place, text in texts() if re.search(pattern, text)]
    assert [] == found, f"write: {NOT_ENGLISH[pattern]}"
