"""A listing prints as a table and hands out its rows."""

import json

import pyarrow as pa

from discretion.render.listing import Listing

PEOPLE = pa.table({"epsilon": [0.1, 1.0], "people": [12_000, 5], "in_source": [True, False], "note": [None, "x"]})


def test_it_prints_one_aligned_line_a_row():
    assert [
        "epsilon  people  in_source  note",
        "    0.1  12,000  yes",
        "      1       5  no         x",
    ] == str(Listing(PEOPLE)).splitlines()


def test_every_micro_epsilon_is_shown():
    assert ["spent", "1.684411"] == str(Listing(pa.table({"spent": [1.684411]}))).split()


def test_wide_signs_keep_columns_aligned():
    towns = Listing(pa.table({"town": ["東京", "Bern"], "people": [9, 10]}))
    assert ["town  people", "東京       9", "Bern      10"] == str(towns).splitlines()


def test_several_tables_become_one_that_says_which_is_which():
    joined = Listing.joined("register", {"a": PEOPLE, "b": PEOPLE})
    assert ["a", "a", "b", "b"] == [row["register"] for row in joined]
    assert 4 == len(joined)
    assert 0 == len(Listing.joined("register", {}))


def test_it_is_available_as_arrow_pandas_json_and_html():
    listing = Listing(PEOPLE)
    assert PEOPLE is listing.to_arrow()
    assert [12_000, 5] == listing.to_pandas()["people"].tolist()
    assert {"epsilon": 0.1, "people": 12_000, "in_source": True, "note": None} == json.loads(listing.to_json())[0]
    assert '<td style="text-align: right">12,000</td>' in listing._repr_html_()
    assert "<td>x</td>" in listing._repr_html_()


def test_html_is_escaped():
    assert "<b>" not in Listing(pa.table({"<b>": ["<b>"]}))._repr_html_()
