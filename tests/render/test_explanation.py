"""Explanations: text for terminals, tables for notebooks, and plain values for the ledger."""

import pickle

from discretion.render.explanation import Explanation
from discretion.render.sheet import Sheet

SHEET = Sheet(title="mean", columns=("mechanism", "error"), rows=(("weighted", "3"),), numbers=frozenset({"error"}))


def test_an_explanation_is_text_and_shows_tables_in_notebooks():
    explanation = Explanation([SHEET, Sheet(notes=("a < b",))])
    assert "mean\nmechanism  error\nweighted       3\n\na < b" == explanation == repr(explanation)
    assert "<td>weighted</td>" in explanation._repr_html_()
    assert "a &lt; b" in explanation._repr_html_()


def test_an_explanation_survives_storage_and_processes():
    explanation = Explanation([SHEET])
    assert explanation.sheets == Explanation.of(explanation.plain()).sheets
    assert explanation.sheets == pickle.loads(pickle.dumps(explanation)).sheets


def test_text_without_tables_stays_the_same_text():
    for text in ("", "because", "first\n\nsecond"):
        assert text == Explanation.of(text)
