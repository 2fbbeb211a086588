"""Processes that compete for the same budget, and processes that are killed, on SQLite and PostgreSQL."""

import json
import multiprocessing
import os
import time
from collections import Counter
from itertools import count
from multiprocessing.synchronize import Barrier
from pathlib import Path

import pytest

from discretion.connection import connect
from discretion.errors import BudgetExhausted, PlanOutdated
from discretion.ledger import Ledger
from discretion.ledger.audit import audit_ledger
from discretion.noise import simulation
from ledgers import PEOPLE, ask, clinic, spent

WRITERS = 8
SMALL = 0.00001  # a share small enough for any number of questions


@pytest.fixture(scope="module")
def processes():
    """Real processes, each forked from a server that has imported everything, so that they start at once."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["discretion.connection", "discretion.engines.duckdb", "psycopg", "pytest"])
    return context


def note(path: str, line: str) -> None:
    """Append one line in one write, as a terminal would show it: all of it or nothing."""
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(handle, f"{line}\n".encode())
    os.close(handle)


def lines(path: str) -> list[str]:
    return Path(path).read_text().splitlines() if Path(path).exists() else []


# Races ----------------------------------------------------------------------------------------------------------------


def answer_all(place: str, share: float, partial: bool, start: Barrier, seen: str) -> None:
    """Ask until the budget is gone."""
    with Ledger(place) as ledger:
        start.wait()
        while True:
            try:
                entry = ask(ledger, share, partial=partial)
                ledger.deliver(entry, json.dumps({"by": os.getpid()}))
                note(seen, f"{os.getpid()} {entry}")
            except PlanOutdated:
                continue
            except BudgetExhausted:
                return


def change_often(place: str, start: Barrier, times: int) -> None:
    """Change preferences while others ask."""
    with Ledger(place) as ledger:
        start.wait()
        for turn in range(times):
            person = f"{os.getpid()}-{turn}"
            ledger.join("people", person, 0.5)
            ledger.prefer("people", person, (0.1, 1.0)[turn % 2])
            ledger.prefer("people", person, 0)


def run_all(processes) -> None:
    for process in processes:
        process.start()
    for process in processes:
        process.join(120)
        assert 0 == process.exitcode


def race(processes, place: str, folder: Path, questions: int) -> None:
    clinic(place).close()
    start, seen = processes.Barrier(WRITERS), str(folder / "seen")
    arguments = (place, 1 / questions, False, start, seen)
    run_all([processes.Process(target=answer_all, args=arguments) for _ in range(WRITERS)])
    answered = lines(seen)
    assert questions == len(answered) == len(set(answered))
    assert len({line.split()[0] for line in answered}) > 1, "only one process got through: no race took place"
    with Ledger(place) as ledger:
        assert [0, 100_000, 500_000, 1_000_000] == [cohort.micro_spent for cohort in ledger.cohorts("people")]
    assert audit_ledger(place).passed


def test_eight_processes_get_exactly_the_answers_the_budget_allows(processes, place, tmp_path):
    race(processes, place, tmp_path, questions=40)


@pytest.mark.slow
@pytest.mark.parametrize("repetition", range(10))
def test_eight_processes_get_exactly_the_answers_the_budget_allows_every_time(processes, place, tmp_path, repetition):
    race(processes, place, tmp_path, questions=100)


def test_nobody_overspends_while_preferences_change(processes, place, tmp_path):
    clinic(place).close()
    start, seen = processes.Barrier(6), str(tmp_path / "seen")
    asking = [processes.Process(target=answer_all, args=(place, 0.05, True, start, seen)) for _ in range(4)]
    changing = [processes.Process(target=change_often, args=(place, start, 8)) for _ in range(2)]
    run_all(asking + changing)
    with Ledger(place) as ledger:
        assert all(one.micro_spent <= one.micro_allowance for one in ledger.cohorts("people") if one.enrolled)
        assert [0.1, 0.5, 1.0] == [spent(ledger, person) for person in ("ann", "dan", "eve")]
    assert audit_ledger(place).passed


def open_it(place: str, start: Barrier, seen: str) -> None:
    start.wait()
    with Ledger(place) as ledger:
        note(seen, ledger.head())


def test_eight_processes_that_create_a_ledger_share_one(processes, place, tmp_path):
    start, seen = processes.Barrier(WRITERS), str(tmp_path / "seen")
    run_all([processes.Process(target=open_it, args=(place, start, seen)) for _ in range(WRITERS)])
    assert (WRITERS, 1) == (len(lines(seen)), len(set(lines(seen))))
    assert audit_ledger(place).passed


# Kills ----------------------------------------------------------------------------------------------------------------


def protected(place: str, folder: Path) -> None:
    """A clinic with real files, for real questions."""
    rows = [f"{person},{micro / 1e6}" for person, micro in PEOPLE.items()]
    (folder / "people.csv").write_text("\n".join(["id,epsilon", *rows]))
    (folder / "visits.csv").write_text("\n".join(["id,cost", *(f"{person},7" for person in PEOPLE)]))
    with connect(place, copies=folder) as db:
        db.register("people", folder / "people.csv", person="id", epsilon="epsilon")
        db.protect("visits", folder / "visits.csv", person="id", register="people", rows_per_person=3)


def question(number: int) -> str:
    return f"SELECT COUNT(*) FROM visits WHERE cost < {number}"


def ask_forever(place: str, ready: str, seen: str, first: int) -> None:
    """Ask one question after the other and show the answers; and change a preference now and then."""
    with connect(place) as db:
        for number in count(first):
            release = db.sql(question(number), share=SMALL, partial=True)
            note(seen, f"{number} {release.entry} {release.value!r}")
            note(ready, "")  # warm from now on
            if number % 3 == 2:
                db.prefer("eve", (0.5, 1.0)[number % 2])


def kill_once(processes, place: str, seen: str, run: int, delay: float) -> Counter[str]:
    """Kill the process `delay` seconds into its work, then check everything; say what state it left."""
    ready = f"{seen}-{run}"  # a file: a lock would die with the process
    process = processes.Process(target=ask_forever, args=(place, ready, seen, run * 1_000_000))
    process.start()
    while not Path(ready).exists():
        assert process.is_alive()
        time.sleep(0.001)
    time.sleep(delay)
    process.kill()
    process.join(60)
    cut_short = Path(f"{place}-journal").exists()
    audit = audit_ledger(place)  # no charge is partial, every delivered answer has its charge, the chain holds
    assert audit.passed, audit.findings
    with connect(place) as db:
        history = {row["entry"]: row for row in db._ledger.history().to_pylist()}
        assert all(history[line.split()[1]]["answered"] for line in lines(seen))
        if lines(seen):
            number, entry, value = lines(seen)[-1].split()
            again = db.sql(question(int(number)), share=SMALL, partial=True)
            assert (entry, value, audit.head) == (again.entry, repr(again.value), db.head())  # the same, for nothing
        db.sql(question(-run), share=SMALL, partial=True)  # the next question works
    assert audit_ledger(place, head=audit.head).passed
    last = max(history.values(), key=lambda row: int(row["entry"].split("-")[0]))["kind"]
    return Counter({f"after {last}": 1, "transaction cut short": int(cut_short)})


def kill_often(processes, place: str, folder: Path, runs: int) -> Counter[str]:
    protected(place, folder)
    rng, states = simulation(runs), Counter[str]()
    for run in range(1, runs + 1):
        states += kill_once(processes, place, str(folder / "seen"), run, float(rng.uniform(0, 0.3)))
    assert len(lines(str(folder / "seen"))) >= runs
    return states


def test_a_process_killed_during_a_query_leaves_a_sound_ledger(processes, place, tmp_path):
    kill_often(processes, place, tmp_path, runs=6)


@pytest.mark.slow
def test_many_processes_killed_during_a_query_leave_a_sound_ledger(processes, place, tmp_path):
    states = kill_often(processes, place, tmp_path, runs=150)
    print(dict(states))
    assert states["after charge"] > 0, "no kill came between charge and delivery"
    assert place.startswith("postgresql") or states["transaction cut short"] > 0


def write_forever(place: str, seen: str, first: int) -> None:
    """Charge, deliver and change preferences without an end; note every charge that was reported."""
    with Ledger(place) as ledger:
        for number in count(first):
            entry = ask(ledger, SMALL, question=str(number), partial=True)
            note(seen, entry)
            ledger.deliver(entry, "{}")
            ledger.prefer("people", "eve", (0.5, 1.0)[number % 2])


def kill_writers(processes, place: str, folder: Path, runs: int) -> Counter[str]:
    """Kill one writer after the other at any moment; every charge that was reported must be on record."""
    clinic(place).close()
    rng, states = simulation(runs), Counter[str]()
    for run in range(runs):
        seen = str(folder / f"seen-{run}")
        process = processes.Process(target=write_forever, args=(place, seen, 1_000 * run))
        process.start()
        while not Path(seen).exists():
            assert process.is_alive()
            time.sleep(0.001)
        time.sleep(float(rng.uniform(0, 0.05)))
        process.kill()
        process.join(60)
        states["transaction cut short"] += Path(f"{place}-journal").exists()
        with Ledger(place) as ledger:
            recorded = ledger.history().to_pylist()
            states["lost"] += len(set(lines(seen)) - {row["entry"] for row in recorded})
            states["charges"] += len(lines(seen))
            states[f"after {recorded[-1]['kind']}"] += 1
        if run % 10 == 9:
            assert audit_ledger(place).passed
    assert (0, True) == (states["lost"], audit_ledger(place).passed)
    return states


def test_a_killed_writer_loses_no_charge_that_was_reported(processes, place, tmp_path):
    kill_writers(processes, place, tmp_path, runs=5)


@pytest.mark.slow
def test_three_hundred_killed_writers_lose_no_charge_that_was_reported(processes, place, tmp_path):
    print(dict(kill_writers(processes, place, tmp_path, runs=300)))
