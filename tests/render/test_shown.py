"""Whatever is shown to people is a sheet, whatever programs read is JSON; both say the same."""

import io
import json
from dataclasses import replace
from fractions import Fraction
from math import inf

import numpy as np
import pyarrow as pa
import pytest
from rich.console import Console

import discretion as dn
from discretion.declaration.table import Lookup, Policy, Table
from discretion.ledger import Receipt, StatedPreference, Use
from discretion.ledger.audit import Finding, LedgerAudit
from discretion.ledger.listing import Balance, History
from discretion.mechanisms import Belief
from discretion.noise import simulation
from discretion.plan import choose
from discretion.preference import Specification
from discretion.release import Error, Release
from discretion.render.sheet import Sheet
from discretion.render.terminal import show, terminal
from discretion.statistics import Aggregate

SPECIFICATION = Specification(epsilons=tuple(range(10_000, 310_000, 10_000)), people=(100,) * 30)
COUNT = Aggregate(kind="count", protects="value")


@pytest.fixture
def release():
    return dn.count(np.arange(900) % 3 == 0, epsilon=[0.1, 0.5, 1.0] * 300, rng=simulation(1))


@pytest.fixture
def plan():
    return choose([COUNT, COUNT], SPECIFICATION, Belief(), labels=["COUNT(*)", "COUNT(x)"])


def shown(sheets, width=80, screen=True):
    """What a terminal of this width shows, or a file holds."""
    text = io.StringIO()
    show(sheets, Console(file=text, width=width, force_terminal=screen, color_system=None))
    return text.getvalue()


def test_an_answer_is_shown_with_error_promise_and_payment(release):
    sheet = release.sheets()[0]
    assert ("count",) == sheet.columns
    assert "±" in sheet.rows[0][0]
    text = shown([sheet])
    for part in ("Answer", "personalized differential privacy", "protects nobody"):
        assert part in text, part


def test_an_answer_as_json_has_rows_errors_intervals_and_guarantee(release):
    content = json.loads(release.to_json())
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
    (error,) = json.loads(odd.to_json())["errors"]["ratio"]
    assert (None, None) == (error["noise"], error["interval"])
    assert "None" in shown([odd.sheets()[0]])


def test_a_plan_shows_every_candidate_and_what_people_pay(plan):
    count, _, pay = plan.sheets()
    assert "COUNT(*): weighted" == count.title
    assert {"weighted", "minimum", "threshold", "sample"} <= {row[0] for row in count.rows}
    assert "chosen" == count.rows[0][-1]
    assert any(note.startswith("not weighted_rank") for note in count.notes)
    assert any("split over 2 releases" in note for note in pay.notes)
    assert "more levels" in pay.rows[len(pay.rows) // 2][0]


def test_a_plan_of_a_median_says_once_that_errors_are_in_ranks():
    median = Aggregate(kind="quantile", protects="value", rank=Fraction(1, 2), upper=100)
    (sheet, _) = choose([median], SPECIFICATION, Belief()).sheets()
    assert all(row[1].endswith("%") for row in sheet.rows)
    assert 1 == sum("are in ranks" in note for note in sheet.notes)


def test_a_plan_as_json_adds_up_to_the_guarantee(plan):
    content = json.loads(plan.to_json())
    assert 3_000 == sum(level["people"] for level in content["levels"])
    paid = [level["pays"] for level in content["levels"]]
    assert pytest.approx([loss.micro_epsilon / 1e6 for loss in plan.guarantee.losses.values()]) == paid
    assert any("unsuitable" in candidate for candidate in content["aggregates"][0]["candidates"])


def test_a_balance_shows_only_what_is_worth_a_column():
    held = {"register": ["a"], "people": [5], "epsilon": [1.0], "spent": [0.5], "remaining": [0.5]}
    plain = Balance(pa.table({**held, "delta": [0.0], "individual_spent": [0.0], "in_source": [True]}))
    assert tuple(held) == plain.sheets()[0].columns
    gone = Balance(pa.table({**held, "delta": [1e-9], "individual_spent": [0.0], "in_source": [False]}))
    assert (*held, "delta", "in_source") == gone.sheets()[0].columns


def test_a_history_tells_a_delivery_beside_its_charge():
    charge = {"entry": "2-b", "time": "2026-01-01T00:00:00", "kind": "charge", "table": "t", "analyst": "ada"}
    paid = {**charge, "text": "SELECT 1", "largest_epsilon": 0.25, "answered": True}
    lost = {**paid, "entry": "4-d", "text": "SELECT 2", "answered": False}
    told = {**paid, "entry": "3-c", "kind": "deliver", "text": "", "answered": None}
    declared = {**told, "entry": "1-a", "kind": "declare", "largest_epsilon": None, "analyst": None}
    (sheet,) = History(pa.Table.from_pylist([declared, paid, told, lost])).sheets()
    assert ("entry", "time", "most ε", "analyst", "what") == sheet.columns
    assert [("1", "", "declare: t"), ("2", "0.25", "SELECT 1")] == [(row[0], row[2], row[4]) for row in sheet.rows[:2]]
    assert "SELECT 2 (no answer was delivered)" == sheet.rows[2][4]


def test_a_receipt_says_what_was_promised():
    use = Use(
        entry="5-a",
        time="2026-01-02T03:04:05",
        table="t",
        question="SELECT 1",
        epsilon=0.1,
        delta=0,
        protects="value",
        arithmetic="exact",
        promise="P",
    )
    hidden = replace(use, table="v", protects="presence")
    rounded = replace(use, arithmetic="float", promise="Computed with rounded arithmetic.")
    doubtful = replace(use, delta=1e-9, promise="Beyond that, δ.")
    unsafe = replace(use, question="SELECT 2", promise="This release was NOT differentially private.")
    receipt = Receipt(
        register="people",
        allowance=1.0,
        spent=0.1,
        remaining=0.9,
        delta=0.0,
        rounding=0.0,
        statements=(StatedPreference(time="2026-01-01T00:00", epsilon=None, level=1.0, by="source"),),
        releases=(use, use, hidden, rounded, doubtful),
        individual=(unsafe,),
        individual_spent=0.0,
        summary="S",
    )
    text = shown(receipt.sheets())
    for part in ("people", "0.9", "2026-01-02 03:04", "SELECT 1", "× 1.106", "no limit", "S"):
        assert part in text, part
    for caveat in ("NOT differentially private", "Computed with rounded arithmetic", "Beyond that, δ"):
        assert f"2026-01-02 03:04: {caveat}" in text.replace("This release was ", ""), caveat
    assert 1 == text.count("t: The answer protects your values (")  # the same promise is told once
    assert "factor twice" in text  # where being in the data is the secret, another value is two steps away
    assert "5-a" == json.loads(receipt.to_json())["releases"][0]["entry"]
    assert "Answers that could have used your data\n" in str(receipt)
    assert str(receipt) == repr(receipt)
    for part in ("<b>Receipt</b>", "<td>SELECT 1</td>", "factor twice", "NOT differentially private"):
        assert part in receipt._repr_html_(), part


def test_an_audit_names_what_it_found():
    kept = LedgerAudit(place="l", entries=3, head="3:f", findings=())
    assert "every promise on record was kept" in shown(kept.sheets())
    broken = LedgerAudit(place="l", entries=3, head="3:f", findings=(Finding(entry=2, text="changed"),))
    assert "changed" in shown(broken.sheets())


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
    (sheet,) = table.sheets()
    assert ("age", "BIGINT", "0 to 120", "WHERE, GROUP BY, SUM, AVG, ...") == sheet.rows[1]
    assert ("sex", "VARCHAR", "f, m", "WHERE, GROUP BY") == sheet.rows[2]
    assert ("note", "VARCHAR", "", "WHERE") == sheet.rows[4]
    assert any("Public" in note for note in sheet.notes)


def test_a_declaration_tells_lookups_and_whatever_the_policy_changes():
    columns = {"id": "BIGINT", "income": "BIGINT", "paid": "BOOLEAN", "day": "DATE"}
    plain = Table(
        name="t",
        source="t.csv",
        person="id",
        register="people",
        protects="presence",
        columns=columns,
        rows_per_person=9,
    )
    (sheet,) = plain.sheets()
    assert ["WHERE", "WHERE, GROUP BY", "WHERE, GROUP BY month, ..."] == [row[3] for row in sheet.rows[1:]]
    assert 3 == len(sheet.notes)
    special = replace(
        plain,
        bounds={"income": (0, 1e6)},
        lookups={"towns": Lookup(source="towns.csv", key="town", columns={"town": "VARCHAR", "zone": "VARCHAR"})},
        policy=Policy(
            largest_share=0.5, quotas={"ada": 0.3}, largest_delta=1e-6, float_arithmetic=True, individual=True
        ),
    )
    (sheet,) = special.sheets()
    assert ("income", "BIGINT", "0 to 1,000,000", "WHERE, SUM, AVG, ...") == sheet.rows[1]  # too many to group by
    told = " ".join(sheet.notes)
    for part in ("joined on town", "at most 0.5", "ada 0.3", "1e-06", "exact sampler", "NOT differential privacy"):
        assert part in told, part


def test_an_answer_that_cannot_be_is_shown_as_drawn_and_remarked_upon(release):
    def notes(value, error):
        odd = replace(release, columns={"n": (value,)}, errors={"n": (error,)})
        notes = odd.sheets()[0].notes
        assert set(json.loads(odd.to_json())["remarks"]) <= set(notes)
        return " ".join(notes)

    assert "from 0 to 3,000,000; noise took" in notes(-15.0, Error(bias=0, noise=9, limits=(0, 3e6)))
    assert "noise took" not in notes(15.0, Error(bias=0, noise=9, limits=(0, 3e6)))
    assert "too much noise" in notes(15.0, Error(bias=0, noise=9, limits=(10, 20)))
    assert "too much noise" in notes(15.0, Error(bias=0, noise=1, unit="rank", asked=0.5, limits=(0, 1)))
    assert "too much noise" in notes(15.0, Error(bias=10, noise=0, limits=(10, 20)))
    assert "noise" not in notes(15.0, Error(bias=5, noise=0, limits=(10, 20), bought=True))
    assert "noise" not in notes("North", Error(bias=0, noise=1, unit="rank", limits=(0, 1)))


def test_nobody_enrolled_is_said_so():
    assert "Nobody is enrolled yet" in shown(Balance.joined("register", {}).sheets())


def test_text_that_looks_like_markup_is_printed_as_it_is():
    sheet = Sheet(title="[red]t[/]", columns=("[b]c",), rows=(("[/nonsense]",),), notes=("[i]n",))
    text = shown([sheet])
    assert "[red]t[/]" in text
    assert "[/nonsense]" in text
    assert "[b]c" in text
    assert "[i]n" in text


@pytest.mark.parametrize("width", [80, 120])
def test_nothing_is_wider_than_the_terminal(plan, release, width):
    text = shown([*plan.sheets(), release.sheets()[0]], width)
    assert max(map(len, text.splitlines())) <= width


def test_where_columns_do_not_fit_no_digit_is_lost():
    columns = tuple(f"column {place}" for place in range(9))
    row = tuple(f"{10**8 + place:,} ± 12,345" for place in range(9))
    text = shown([Sheet(title="t", columns=columns, rows=(row, row), numbers=frozenset(columns))])
    for cell in (*columns, *row):
        assert 2 == text.count(cell), cell
    assert max(map(len, text.splitlines())) <= 80


def test_a_file_gets_plain_lines_without_drawing_signs_or_blanks_at_the_end(plan):
    text = shown(plan.sheets(), screen=False)
    assert "─" not in text
    assert "---" in text
    assert [line.rstrip() for line in text.splitlines()] == text.splitlines()


def test_a_file_has_no_right_edge_unless_one_is_asked_for(monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    assert terminal().width > 10_000
    monkeypatch.setenv("COLUMNS", "60")
    assert 60 == terminal().width
