import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from discretion.errors import InvalidDeclaration, InvalidPreference, PeerRefused
from discretion.noise import simulation
from discretion.peers.holding import Holding, Terms
from discretion.peers.message import MOST_ITEMS

CATALOGUE = ["a", "b", "c"]


def test_a_profile_is_read_over_the_declared_catalogue(tmp_path):
    parquet.write_table(
        pa.table({"item": ["c", "z", "a", "c"], "weight": [0.5, 1.0, 0.0, 1.0]}), tmp_path / "mine.parquet"
    )
    (tmp_path / "items.csv").write_text("item\na\nb\nc\n")
    mine = Holding.read(tmp_path / "mine.parquet", tmp_path / "items.csv")
    assert ("a", "b", "c") == mine.catalogue
    assert [True, False, True] == mine.held.tolist()  # z is not in the catalogue
    assert [0, 0, 500] == mine.weights.tolist()  # an item given twice counts once


def test_numbers_in_a_text_file_stay_texts_and_one_weight_serves_all(tmp_path):
    (tmp_path / "mine.csv").write_text("item\n007\n")
    (tmp_path / "items.csv").write_text("item\n7\n007\n")
    mine = Holding.read(tmp_path / "mine.csv", tmp_path / "items.csv", weight=0.75)
    assert [0, 750] == mine.weights.tolist()
    with pytest.raises(InvalidDeclaration, match="no column 'weight'"):
        Holding.read(tmp_path / "mine.csv", tmp_path / "items.csv")


def test_malformed_files_are_refused(tmp_path):
    (tmp_path / "items.csv").write_text("item\na\n")
    (tmp_path / "other.csv").write_text("page,weight\na,1\n")
    (tmp_path / "gaps.csv").write_text("item,weight\na,1\n,1\n")
    (tmp_path / "broken.parquet").write_text("not parquet")
    parquet.write_table(pa.table({"item": ["a", None], "weight": [1.0, 1.0]}), tmp_path / "null.parquet")
    for name, message in (
        ("other.csv", "column 'item'"),
        ("broken.parquet", "cannot be read"),
        ("null.parquet", "rows"),
    ):
        with pytest.raises(InvalidDeclaration, match=message):
            Holding.read(tmp_path / name, tmp_path / "items.csv")
    with pytest.raises(InvalidDeclaration, match="every item once"):
        Holding.of(["a", "a"], [], [])
    with pytest.raises(InvalidDeclaration, match="one weight"):
        Holding.of(["a"], ["a"], [])
    with pytest.raises(InvalidPreference):
        Holding.of(["a"], ["a"], [np.nan])


def test_networks_with_other_terms_have_another_digest():
    same = Terms.of(CATALOGUE, method="product", epsilon=0.1)
    assert same.digest == Terms.of(CATALOGUE, method="product", epsilon=0.1).digest
    others = [
        Terms.of(["a", "b", "d"], method="product", epsilon=0.1),
        Terms.of(CATALOGUE, method="response", epsilon=0.1),
        Terms.of(CATALOGUE, method="product", epsilon=0.2),
        Terms.of(CATALOGUE, method="product", epsilon=0.1, publish=1.0),
    ]
    assert 5 == len({same.digest, *(other.digest for other in others)})
    for build in (
        lambda: Terms.of(CATALOGUE, method="cosine", epsilon=0.1),
        lambda: Terms.of(CATALOGUE, method="product", epsilon=0),
        lambda: Terms.of([str(n) for n in range(MOST_ITEMS + 1)], method="product", epsilon=1),
    ):
        with pytest.raises(InvalidDeclaration):
            build()


def test_a_publication_has_one_bit_per_item():
    agreed = Terms.of(CATALOGUE, method="response", epsilon=50.0)
    mine = Holding.of(CATALOGUE, ["b"], [1.0])
    packed = mine.report(agreed, simulation(1))
    assert [False, True, False] == agreed.unpack(packed).tolist()  # at ε = 50 a flip has a chance below e^-24
    assert np.allclose([0, 1, 0], agreed.estimates(packed), atol=1e-6)
    with pytest.raises(PeerRefused, match="one bit for each"):
        agreed.unpack(packed + b"1")
