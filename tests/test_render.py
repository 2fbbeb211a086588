"""Whatever is shown to people is a sheet, whatever programs read is JSON; both say the same."""

import io
import json
from math import inf

import numpy as np
import pyarrow as pa
import pytest
from rich.console import Console

import discretion as dn
from discretion import render
from discretion.audit import Finding, LedgerAudit
from discretion.errors import QueryRefused
from discretion.ledger import Receipt, Statement, Use
from discretion.listing import Listing
from discretion.mechanisms import Belief
from discretion.noise import simulation
from discretion.plan import choose
from discretion.preference import Specification
from discretion.release import Error, Release
from discretion.statistics import Aggregate
from discretion.table import Table

SPECIFICATION = Specification(epsilons=tuple(range(10_000, 310_000, 10_000)), people=(100,) * 30)
COUNT = Aggregate(kind="count", protects="value")


@pytest.fixture
def release():
    return dn.count(np.arange(900) % 3 == 0, epsilon=[0.1, 0.5, 1.0] * 300, rng=simulation(1))


@pytest.fixture
def plan():
    return choose([COUNT, COUNT], SPECIFICATION, Belief(), labels=["COUNT(*)", "COUNT(x)"])


def shown(sheets, width=80):
    """What a terminal of this width shows."""
    text = io.StringIO()
    render.show(sheets, Console(file=text, width=width))
    return text.getvalue()


def test_an_answer_is_shown_with_error_promise_and_payment(release):
    (sheet,) = render.release_sheets(release, "Smokers")
    assert ("count",) == sheet.columns
    assert "±" in sheet.rows[0][0]
    text = shown([sheet])
    for part in ("Smokers", "personalized differential privacy", "protects nobody"):
        assert part in text, part


def test_an_answer_as_json_has_rows_errors_intervals_and_guarantee(release):
    content = json.loads(render.release_json(release))
    assert release.value == content["rows"][0]["count"]
    assert list(release.interval()) == content["errors"]["count"][0]["interval"]
    assert 3 == len(content["guarantee"]["losses"])


def test_infinities_and_unknown_answers_are_null_in_json(release):
    odd = Release(
        columns={"ratio": (None,)},
        errors={"ratio": (Error(bias=inf, noise=inf),)},
        mechanism="weighted",
        guarantee=release.guarantee,
    )
    (error,) = json.loads(render.release_json(odd))["errors"]["ratio"]
    assert (None, None) == (error["noise"], error["interval"])
    assert "None" in shown(render.release_sheets(odd))


def test_a_plan_shows_every_candidate_and_what_people_pay(plan):
    count, _, pay = render.plan_sheets(plan)
    assert "COUNT(*): weighted" == count.title
    assert {"weighted", "minimum", "threshold", "sample"} <= {row[0] for row in count.rows}
    assert "chosen" == count.rows[0][-1]
    assert any(note.startswith("not weighted_rank") for note in count.notes)
    assert any("split over 2 aggregates" in note for note in pay.notes)
    assert "more levels" in pay.rows[len(pay.rows) // 2][0]


def test_a_plan_as_json_adds_up_to_the_guarantee(plan):
    content = json.loads(render.plan_json(plan))
    assert 3_000 == sum(level["people"] for level in content["levels"])
    paid = [level["pays"] for level in content["levels"]]
    assert pytest.approx([loss.micro_epsilon / 1e6 for loss in plan.guarantee.losses.values()]) == paid
    assert any("unsuitable" in candidate for candidate in content["aggregates"][0]["candidates"])


def test_a_balance_shows_only_what_is_worth_a_column():
    held = {"register": ["a"], "people": [5], "epsilon": [1.0], "spent": [0.5], "remaining": [0.5]}
    plain = Listing(pa.table({**held, "delta": [0.0], "individual_spent": [0.0], "in_source": [True]}))
    assert tuple(held) == render.balance_sheets(plain)[0].columns
    gone = Listing(pa.table({**held, "delta": [1e-9], "individual_spent": [0.0], "in_source": [False]}))
    assert (*held, "delta", "in_source") == render.balance_sheets(gone)[0].columns


def test_a_history_tells_a_delivery_beside_its_charge():
    charge = {"entry": "2-b", "time": "2026-01-01T00:00:00", "kind": "charge", "table": "t", "analyst": "ada"}
    paid = {**charge, "text": "SELECT 1", "largest_epsilon": 0.25, "answered": True}
    lost = {**paid, "entry": "4-d", "text": "SELECT 2", "answered": False}
    told = {**paid, "entry": "3-c", "kind": "deliver", "text": "", "answered": None}
    declared = {**told, "entry": "1-a", "kind": "declare", "largest_epsilon": None, "analyst": None}
    (sheet,) = render.history_sheets(Listing(pa.Table.from_pylist([declared, paid, told, lost])))
    assert ("entry", "time", "kind", "most ε", "analyst", "what") == sheet.columns
    assert [("declare", "", "t"), ("charge", "0.25", "SELECT 1")] == [
        (row[2], row[3], row[5]) for row in sheet.rows[:2]
    ]
    assert "SELECT 2 (no answer was delivered)" == sheet.rows[2][5]


def test_a_receipt_says_what_was_promised():
    use = Use(
        entry="5-a", time="2026-01-02T03:04:05", table="t", question="SELECT 1", epsilon=0.1, delta=0, promise="P"
    )
    receipt = Receipt(
        register="people",
        allowance=1.0,
        spent=0.1,
        remaining=0.9,
        delta=0.0,
        rounding=0.0,
        statements=(Statement(time="2026-01-01T00:00", epsilon=None, level=1.0, by="source"),),
        releases=(use,),
        individual=(),
        individual_spent=0.0,
        summary="S",
    )
    text = shown(render.receipt_sheets(receipt))
    for part in ("people", "0.9", "2026-01-02 03:04", "SELECT 1", "P", "S"):
        assert part in text, part
    assert "5-a" == json.loads(render.to_json(receipt))["releases"][0]["entry"]
    assert "SELECT 1" in str(receipt)


def test_an_audit_names_what_it_found():
    kept = LedgerAudit(place="l", entries=3, head="3:f", findings=())
    assert "every promise on record was kept" in shown(render.audit_sheets(kept))
    broken = LedgerAudit(place="l", entries=3, head="3:f", findings=(Finding(entry=2, text="changed"),))
    assert "changed" in shown(render.audit_sheets(broken))


def test_a_declaration_says_what_is_public_and_what_each_column_is_for():
    table = Table(
        name="t",
        source="t.csv",
        person="id",
        register="t",
        protects="value",
        columns={"id": "BIGINT", "age": "BIGINT", "sex": "VARCHAR", "e": "DOUBLE", "note": "VARCHAR"},
        epsilon="e",
        bounds={"age": (0, 120)},
        keys={"sex": ("f", "m")},
    )
    (sheet,) = render.table_sheets(table)
    assert ("age", "BIGINT", "0 to 120", "WHERE, SUM, AVG, MEDIAN, ...") == sheet.rows[1]
    assert ("sex", "VARCHAR", "f, m", "WHERE, GROUP BY") == sheet.rows[2]
    assert ("note", "VARCHAR", "", "WHERE") == sheet.rows[4]
    assert any("Public" in note for note in sheet.notes)


def test_a_refusal_is_json_too():
    assert {"error": "QueryRefused", "message": "no"} == json.loads(render.to_json(QueryRefused("no")))


def test_text_that_looks_like_markup_is_printed_as_it_is():
    sheet = render.Sheet(title="[red]t[/]", columns=("[b]c",), rows=(("[/nonsense]",),), notes=("[i]n",))
    text = shown([sheet])
    assert "[red]t[/]" in text
    assert "[/nonsense]" in text
    assert "[b]c" in text
    assert "[i]n" in text


@pytest.mark.parametrize("width", [80, 120])
def test_nothing_is_wider_than_the_terminal(plan, release, width):
    text = shown([*render.plan_sheets(plan), *render.release_sheets(release)], width)
    assert max(map(len, text.splitlines())) <= width
