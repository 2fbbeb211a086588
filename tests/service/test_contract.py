"""The connection to a service keeps the contract of a local one: the same calls, answers and refusals."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from inspect import getmembers, signature
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import discretion as dn
from clinics import patients, write
from discretion.connection import Connection
from discretion.errors import (
    AccessDenied,
    BudgetExhausted,
    InvalidDeclaration,
    InvalidPreference,
    QueryRefused,
    ServiceFailed,
    SourceChanged,
    Unsuitable,
)
from discretion.service.client import RemoteConnection
from served import Served

PEOPLE = 600
SURE = 1 - 1e-9  # real noise: how often each of these may fail without a mistake
numbers = count(100)


def rows(name: str) -> pa.Table:
    """Return rows that no other table has: the same file would mean the same people."""
    return patients(PEOPLE, seed=int(name[1:]))


@dataclass
class Desk:
    """A connection, and the folder whose files it can protect."""

    db: Any
    folder: Path
    place: Callable[[str], Any]

    def table(self, **more: Any) -> str:
        """Protect a new table whose people belong to it alone; return its name."""
        name = f"t{next(numbers)}"
        write(rows(name), self.folder / f"{name}.parquet")
        declared = {"bounds": {"age": (0, 120)}, "keys": {"region": ["N", "S"]}, "separate": True} | more
        self.db.protect(name, self.place(f"{name}.parquet"), person="patient_id", epsilon="epsilon", **declared)
        return name


@pytest.fixture(scope="module", params=["local", "remote"])
def desk(request, tmp_path_factory) -> Iterator[Desk]:
    if request.param == "local":
        folder = tmp_path_factory.mktemp("local")
        with dn.connect(folder / "l.discretion", analyst="sam") as db:
            yield Desk(db, folder, lambda name: folder / name)
        return
    town: Served = request.getfixturevalue("town")
    with town.connect("sam") as db:
        yield Desk(db, town.folder, lambda name: name)


@pytest.fixture(scope="module")
def asked(desk) -> str:
    """A table that several tests ask about."""
    return desk.table()


def kept(plan) -> str:
    """The plan as an answer keeps it: without what other assumptions would give."""
    return "\n".join(line for line in str(plan).split("\n") if not line.startswith("assuming "))


def test_a_question_is_planned_charged_and_answered_once(desk):
    name, db = desk.table(), desk.db
    sql = f"SELECT region, AVG(age) AS age, COUNT(*) AS n FROM {name} WHERE age < 90 GROUP BY region"
    plan = db.explain(sql, share=0.3)
    assert "computed from one release" in str(plan)
    assert plan.specification.people
    assert ["AVG(age)", "COUNT(*)", "What people pay"] == [sheet.title.partition(":")[0] for sheet in plan.sheets()]
    release = db.sql(sql, share=0.3)
    assert ("N", "S") == release.columns["region"]
    assert plan.guarantee == release.guarantee
    assert kept(plan) == release.explain()
    spent = db.balance(name).to_arrow()
    assert release == db.sql(sql, share=0.3)
    assert spent == db.balance(name).to_arrow()
    assert {0.2, 1.0, 5.0} == {row["epsilon"] for row in db.balance(name)}
    assert release.to_arrow() == db.sql(sql, share=0.3).to_arrow()
    assert sql in [row["text"] for row in db.history()]


def test_an_answer_is_near_the_truth(desk):
    name = desk.table()
    truth = sum(rows(name)["smoker"].to_pylist())
    release = desk.db.sql(f"SELECT COUNT(*) FROM {name} WHERE smoker", share=1.0)
    assert abs(release.value - truth) <= release.error.half_width(SURE)


@pytest.mark.parametrize(
    "how",
    [
        {"with_interval": True, "partial": True},
        {"assume": "independent"},
        {"assume": 0.5, "expect": (20, 90)},
        {"mechanism": "sample"},
    ],
)
def test_every_option_reaches_the_plan(desk, asked, how):
    sql = f"SELECT {'MEDIAN' if 'with_interval' in how else 'AVG'}(age) FROM {asked} WHERE smoker"
    assert kept(desk.db.explain(sql, **how)) == desk.db.sql(sql, **how).explain()


@pytest.mark.parametrize(
    ("kind", "told", "act"),
    [
        (QueryRefused, "age", lambda db, name: db.sql(f"SELECT age FROM {name}")),
        (QueryRefused, "nowhere", lambda db, name: db.sql("SELECT COUNT(*) FROM nowhere")),
        (
            Unsuitable,
            "smooth",
            lambda db, name: db.sql(f"SELECT COUNT(*) FROM {name} WHERE smoker", mechanism="smooth"),
        ),
        (
            InvalidDeclaration,
            "'no'",
            lambda db, name: db.sql(f"SELECT COUNT(*) FROM {name} WHERE smoker", mechanism="no"),
        ),
        (InvalidDeclaration, "no register", lambda db, name: db.balance("nobody")),
        (InvalidDeclaration, "no such person", lambda db, name: db.receipt(10**6, register=name)),
        (InvalidPreference, "level", lambda db, name: db.prefer(3, "generous", register=name)),
        (InvalidDeclaration, "those in the table", lambda db, name: db.join(9_999, 1.0, register=name)),
        (InvalidDeclaration, "not stopped", lambda db, name: db.resume(name)),
    ],
)
def test_a_refusal_has_the_same_kind_and_words(desk, asked, kind, told, act):
    with pytest.raises(kind, match=told) as refusal:
        act(desk.db, asked)
    assert kind is refusal.type


def test_what_is_spent_is_refused(desk):
    name, db = desk.table(), desk.db
    db.sql(f"SELECT COUNT(*) FROM {name} WHERE smoker", share=0.8, mechanism="exponential")
    with pytest.raises(BudgetExhausted, match=r"at most 0\.2 would still fit"):
        db.sql(f"SELECT COUNT(*) FROM {name} WHERE age > 30", share=0.5)
    db.sql(f"SELECT COUNT(*) FROM {name} WHERE age > 30", share=0.5, partial=True, mechanism="exponential")
    assert {0.0} == {row["remaining"] for row in db.balance(name)}


def test_a_person_chooses_anew_and_reads_a_receipt(desk):
    name, db = desk.table(levels={"strict": 0.1, "open": 1.0}), desk.db
    db.sql(f"SELECT COUNT(*) FROM {name} WHERE smoker", mechanism="exponential")
    assert db.prefer(3, "strict", register=name)
    db.prefer(3, 0, register=name)
    receipt = db.receipt(3, register=name)
    assert (0, True) == (receipt.allowance, receipt.spent > 0)
    assert ["enrolment", "steward", "steward"] == [one.by for one in receipt.statements]
    assert 1 == len(receipt.releases)
    assert "you chose that your data are not used" in str(receipt).lower()
    assert "Receipt" in receipt._repr_html_()


def test_a_changed_source_is_refused_until_refresh(desk):
    name, db = desk.table(), desk.db
    table = rows(name)
    raised = table.set_column(5, "epsilon", pa.array([2.0] * PEOPLE))
    write(raised, desk.folder / f"{name}.parquet")
    with pytest.raises(SourceChanged):
        db.sql(f"SELECT COUNT(*) FROM {name} WHERE age > 30")
    assert db.refresh(name)
    assert "" == db.refresh(name)
    assert db.sql(f"SELECT COUNT(*) FROM {name} WHERE age > 30").entry


def test_a_shared_register_and_what_the_steward_is_warned_of(desk):
    db, name = desk.db, f"r{next(numbers)}"
    write(pa.table({"id": range(50), "choice": [0.5] * 50}), desk.folder / f"{name}.csv")
    people = db.register(name, desk.place(f"{name}.csv"), person="id", epsilon="choice", separate=True)
    assert [50] == [row["people"] for row in people]
    write(pa.table({"who": [1, 1, 2, 77], "cost": [1.0, 2.0, 3.0, 4.0]}), desk.folder / f"{name}v.parquet")
    table = db.protect(f"{name}v", desk.place(f"{name}v.parquet"), person="who", register=name, bounds={"cost": (0, 9)})
    assert ("presence", name) == (table.protects, table.register)
    assert len(db.warnings())
    assert db.join(51, 0.5, register=name)
    assert table in db.tables()


def test_the_policy_of_the_steward_holds(desk):
    name, db = desk.table(policy=dn.Policy(largest_share=0.2, quotas={"sam": 0.3})), desk.db
    with pytest.raises(QueryRefused, match=r"0\.2"):
        db.sql(f"SELECT COUNT(*) FROM {name} WHERE smoker", share=0.5)
    db.sql(f"SELECT COUNT(*) FROM {name} WHERE smoker", share=0.2)
    with pytest.raises(BudgetExhausted, match="quota of analyst 'sam'"):
        db.sql(f"SELECT COUNT(*) FROM {name} WHERE smoker", share=0.19)


def test_the_ledger_can_be_overseen(desk):
    name, db = desk.table(), desk.db
    entry = db.sql(f"SELECT COUNT(*) FROM {name} WHERE smoker").entry
    found = db.audit(head=db.head(), witnesses=[entry])
    assert found.passed
    assert found.head == db.head()
    assert not db.audit(witnesses=["1-000000000000"]).passed
    assert (0, 0, ()) == (len(db.stops()), len(db.notices()), db.cautions())
    assert "entry" in db.stops().columns


def test_what_everybody_sees_has_the_same_columns(desk, asked):
    db = desk.db
    (balance,) = db.balance(asked).sheets()
    assert ("register", "people", "epsilon", "spent", "remaining") == balance.columns
    (history,) = db.history().sheets()
    assert ("entry", "time", "most ε", "analyst", "what") == history.columns
    assert {"entry", "kind", "time", "analyst", "table", "largest_epsilon", "text"} < set(db.history().columns)
    assert "<td>presence</td>" in db.tables()._repr_html_() or "<td>value</td>" in db.tables()._repr_html_()


LOCAL_ONLY = {"ask", "finish", "outlook", "plan"}  # for the service itself and its pages


def test_both_connections_have_the_same_methods_with_the_same_options():
    local = {name: one for name, one in getmembers(Connection, callable) if not name.startswith("_")}
    remote = {name: one for name, one in getmembers(RemoteConnection, callable) if not name.startswith("_")}
    assert LOCAL_ONLY == set(local) - set(remote)
    assert set() == set(remote) - set(local)
    for name, method in remote.items():
        mine, theirs = signature(local[name]), signature(method)
        assert mine.parameters == theirs.parameters, name
        assert mine.return_annotation == theirs.return_annotation or name == "explain", name


# Only at a service --------------------------------------------------------------------------------------------------


def test_what_a_role_may_not_do_and_who_is_unknown_is_told(town):
    with town.connect("ada") as db, pytest.raises(AccessDenied, match="'analyst'"):
        db.receipt(3)
    with dn.connect(town.url, token="wrong") as db, pytest.raises(AccessDenied, match="not valid"):
        db.tables()
    with pytest.raises(AccessDenied, match="needs a token"):
        dn.connect(town.url)


def test_a_service_that_is_not_there_or_not_one_is_told(town):
    with dn.connect("http://127.0.0.1:9", token="x") as db, pytest.raises(ServiceFailed, match="cannot be reached"):
        db.tables()
    with dn.connect(f"{town.url}/nowhere", token=town.tokens["ada"]) as db, pytest.raises(InvalidDeclaration):
        db.tables()
    with pytest.raises(InvalidDeclaration, match="not encrypted"):
        dn.connect("http://clinic.example", token="x")
    with pytest.raises(InvalidDeclaration, match="token is for a service"):
        dn.connect(town.folder / "x.discretion", token="x")
    with pytest.raises(InvalidDeclaration, match="by the token"):
        dn.connect(town.url, token="x", analyst="eve")


def test_objects_in_memory_stay_at_home(town):
    with town.connect("sam") as db, pytest.raises(InvalidDeclaration, match="cannot take an object"):
        db.protect("t", patients(10), person="patient_id", epsilon="epsilon")


def test_the_steward_manages_members_from_afar(town):
    with town.connect("sam") as db:
        access = db.access
        access.add("zoe", "analyst")
        token = access.token("zoe", label="laptop")
        with dn.connect(town.url, token=token) as own:
            assert own.tables()
        (kept,) = [one for one in access.tokens() if one.member == "zoe"]
        access.withdraw(kept.id)
        with dn.connect(town.url, token=token) as own, pytest.raises(AccessDenied):
            own.tables()
        access.revoke("zoe")
        assert ["zoe"] == [one.name for one in access.members() if one.revoked]
        entry, letters = access.invite("patients", [11, 12])
        assert ["11", "12"] == [person for person, _ in letters]
        access.withdraw_all(entry)
        with town.http() as client:
            assert 403 == client.post("/sign-in", data={"code": letters[0][1]}).status_code
