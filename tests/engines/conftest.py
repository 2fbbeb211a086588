"""The engines that keep the contract: every test with the fixture `engine` runs with each of them.

Spark takes about a second for a statement, so most of its tests are slow ones.
"""

import pytest

from discretion.engines import Engine
from discretion.engines.duckdb import DuckDB

QUICK = {  # what Spark is tested for in every run
    "test_several_kinds_of_aggregates_come_from_one_text",
    "test_nan_and_infinity_are_null_before_anything_else[spark-nan]",
    "test_rows_that_no_group_shows_take_nobodys_place",
    "test_individual_changes_win[spark-True]",
    "test_a_coin_keeps_all_rows_of_a_person_or_none",
    "test_a_lookup_never_repeats_a_row_whatever_its_file_says",
    "test_somebody_with_two_preferences_is_an_error_that_names_nobody",
    "test_a_steward_is_told_what_is_odd_about_a_table",
    "test_what_could_make_a_question_fail_is_null_and_a_person_has_one_spelling[spark-parquet]",
    "test_an_operation_that_some_row_makes_fail_is_refused",
    "test_a_dialect_refuses_what_it_has_no_form_for",
}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        parameters = getattr(item, "callspec", None)
        on_spark = parameters is not None and parameters.params.get("engine") == "spark"
        if on_spark and not {item.name, getattr(item, "originalname", "")} & QUICK:
            item.add_marker(pytest.mark.slow)


@pytest.fixture(params=["duckdb", pytest.param("spark", marks=pytest.mark.xdist_group("spark"))])
def engine(request: pytest.FixtureRequest) -> Engine:
    """A new engine of each kind."""
    if request.param == "duckdb":
        return DuckDB()
    from discretion.engines.spark import Spark

    return Spark(request.getfixturevalue("spark_session"))
