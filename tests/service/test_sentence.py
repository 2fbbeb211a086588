"""Questions in words: what people read about every answer. No literal and no made-up name is in it."""

import pytest

from discretion.service.sentence import UNKNOWN, sentence

KNOWN = frozenset(
    {"patients", "visits", "patient_id", "region", "age", "smoker", "day", "cost", "department", "places"}
)


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        (
            "SELECT region, AVG(age) FROM patients WHERE smoker GROUP BY region",
            "the average of age by region among patients with a condition on smoker",
        ),
        ("SELECT COUNT(*) FROM patients", "the number of rows among patients"),
        (
            "SELECT COUNT(DISTINCT patient_id) AS n FROM visits WHERE department = 'surgery' AND cost > 10",
            "the number of people among visits with a condition on department and cost",
        ),
        (
            "SELECT date_trunc('month', day) AS m, SUM(cost), COUNT(*) FROM visits GROUP BY m",
            "the total of cost and the number of rows by day among visits",
        ),
        (
            "SELECT region, MEDIAN(age) FROM patients GROUP BY 1",
            "the median (the middle value) of age by region among patients",
        ),
        ("SELECT region, MAX(age) FROM patients GROUP BY ALL", "the largest age by region among patients"),
        ("SELECT SUM(cost) / COUNT(*) AS mean FROM visits", "the total of cost and the number of rows among visits"),
        (
            "SELECT QUANTILE_CONT(age, 0.9), PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY cost) FROM visits",
            "a quantile of age and a quantile of cost among visits",
        ),
        ("SELECT STDDEV(age), VARIANCE(age) FROM patients", None),
        (
            'WITH "Jane" AS (SELECT age AS "Roe" FROM patients WHERE region = \'N\') SELECT AVG("Roe") FROM "Jane"',
            "the average of a computed value among patients with a condition on region",
        ),
        (
            "SELECT COUNT(*) FROM visits JOIN places USING (department)",
            "the number of rows among visits with places",
        ),
        (
            "SELECT COUNT(*) FROM patients WHERE 1 = 1",
            "the number of rows among patients with a condition on a computed value",
        ),
        ("SELECT COUNT(*) FILTER (WHERE smoker) FROM patients", None),
        ("SELECT COUNT(DISTINCT v.patient_id) FROM visits v", "the number of people among visits"),
        (  # a lookup's column of the same name
            "SELECT COUNT(DISTINCT places.patient_id) FROM visits JOIN places USING (department)",
            "how many different patient_id there are among visits with places",
        ),
        ("SELECT COUNT(DISTINCT patient_id) FROM places", "how many different patient_id there are among places"),
        (
            "SELECT COUNT(DISTINCT patient_id) FROM (SELECT region AS patient_id FROM patients)",
            "how many different patient_id there are among patients",
        ),
        ("not SQL at all: Jane", UNKNOWN),
        ("SELECT (((", UNKNOWN),
        ("", UNKNOWN),
    ],
)
def test_a_question_is_told_in_words(sql, words):
    told = sentence(sql, KNOWN, frozenset({("visits", "patient_id"), ("patients", "patient_id")}))
    assert words is None or words == told
    assert told


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) AS \"Jane Roe\" FROM patients WHERE patient_id = 1712 AND region = 'Nowhereville' OR 41.5",
        "SELECT AVG(CASE WHEN patient_id = 1712 THEN age END) AS Jane FROM patients GROUP BY region || 'Nowhereville'",
        'SELECT AVG(Jane) FROM Roe WHERE Nowhereville = 1712 GROUP BY "41.5"',
        "WITH Jane AS (SELECT 1712 AS Roe) SELECT SUM(Roe) FROM Jane -- Nowhereville",
        "SELECT Jane(age) FROM patients ORDER BY 'Roe' LIMIT 1712",
    ],
)
def test_no_literal_and_no_made_up_name_is_told(sql):
    told = sentence(sql, KNOWN)
    assert [] == [hint for hint in ("jane", "roe", "1712", "nowhere", "41.5") if hint in told.lower()]
