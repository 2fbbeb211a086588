"""An answer tells how many people it is without."""

import discretion as dn


def test_an_answer_says_how_many_people_it_is_without():
    told = "This answer is without 2 people, who have nothing left to spend, or chose that their data are not used."
    values, bounds = [3.0, 1.0, 2.0, 4.0], (0, 5)
    assert told in str(dn.sum(values, epsilon=[0, 0, 1, 1], bounds=bounds))
    assert "without 1 person, who has" in str(dn.median(values, epsilon=[0, 1, 1, 1], bounds=bounds))
    assert "without" not in str(dn.sum(values, epsilon=[1, 1, 1, 1], bounds=bounds))
