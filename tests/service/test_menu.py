"""What a person may choose, and what each level would mean: from the register alone."""

from types import SimpleNamespace

from clinics import clinic
from discretion.service.menu import MOST_LEVELS, menu


def offered(db, person):
    register = db._ledger.register("patients")
    return menu(register, db.tables(), db._ledger.receipt("patients", person, most=0))


def test_the_menu_has_every_level_and_zero_and_marks_the_one_held(tmp_path):
    with clinic(tmp_path) as db:
        before = offered(db, 3)
        assert [0, 0.2, 1, 5] == [level.epsilon for level in before.levels]
        assert 1 == sum(level.held for level in before.levels)
        assert not before.chosen
        assert "Do not use my data" == before.levels[0].title
        assert ("visits",) == before.certain
        db.prefer(3, 0.2, by="steward")
        assert not offered(db, 3).chosen  # somebody else entered it
        db.prefer(3, 0, by="person")
        after = offered(db, 3)
    assert after.chosen
    assert 0 == after.held.epsilon
    assert "24 in 100" == str(after.levels[2].chances[1])


def test_what_was_used_already_counts_for_stricter_levels_too(tmp_path):
    """A choice counts from now on: answers that were given before still tell as much as they told."""
    with clinic(tmp_path) as db:
        db.prefer(3, 5, by="person")
        db.sql("SELECT COUNT(*) FROM patients WHERE age > 40", share=0.2, assume="gradual")
        found = offered(db, 3)
        assert 1 == db._ledger.receipt("patients", 3).spent
    assert [1, 1, 1, 5] == [level.reach for level in found.levels]
    assert ["24 in 100"] * 3 == [str(level.chances[1]) for level in found.levels[:3]]
    assert [0, 0, 0, 4] == [level.left for level in found.levels]


def test_levels_that_look_alike_are_told_more_finely(tmp_path):
    with clinic(tmp_path, menu=(0.05, 0.1, 0.2, 1, 5), levels={"strict": 0.1}) as db:
        found = offered(db, 3)
    told = [str(level.chances[1]) for level in found.levels]
    assert len(told) == len(set(told))
    assert ("100 in 1,000", "105 in 1,000") == (str(found.start[1]), told[1])
    assert "“strict”: an allowance of 0.1" == found.levels[2].title


def test_of_very_many_levels_few_are_shown_with_those_that_have_names(tmp_path):
    with clinic(tmp_path, menu=[n / 100 for n in range(1, 600)], levels={"open": 3.0}) as db:
        found = offered(db, 3)
    assert not found.complete
    assert len(found.levels) <= MOST_LEVELS + 1
    assert {0, 3.0, found.held.epsilon} <= {level.epsilon for level in found.levels}


def test_the_menu_of_somebody_absent_from_the_data_is_the_same(tmp_path):
    """Visits has rows of some people of the register only; the menu does not look."""
    with clinic(tmp_path) as db:
        first = SimpleNamespace(level=db._ledger.receipt("patients", 1, most=0).allowance)
        alike = [n for n in range(200) if db._ledger.receipt("patients", n, most=0).allowance == first.level]
        assert 1 == len({repr(offered(db, person)) for person in alike[:10]})
