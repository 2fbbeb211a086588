"""Questions run in processes of their own: what dies, hangs or floods costs nobody else an answer or a promise."""

import asyncio
import json
import os
import resource
import signal
import subprocess
import sys
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from time import sleep, time
from typing import Any

import pytest

import discretion as dn
from clinics import clinic
from discretion.answer import Question
from discretion.engines import Engine
from discretion.errors import BudgetExhausted, ServiceFailed, TableStopped
from discretion.ledger.audit import audit_ledger
from discretion.noise import coin_key, repeatable_coins
from discretion.service.pool import Job, Limits, Turns, Worker, WorkerPool
from discretion.service.worker import Task, WorkerTerms
from served import COUNT, Served, served

SAMPLED = "SELECT COUNT(*) FROM patients WHERE age > 50"
TICK = 1.0


@pytest.fixture
def slow(tmp_path):
    """A service that answers on a tick: between charge and answer there is time to kill a worker."""
    with served(tmp_path, answer_every=TICK) as town:
        yield town


def kinds(town: Served) -> list[str]:
    with dn.connect(town.ledger) as db:
        return [row["kind"] for row in db.history() if row["kind"] in ("charge", "deliver", "abandon", "stop")]


@contextmanager
def killing(town: Served, times: int):
    """Kill workers, that many times, as soon as a question they have in hand was charged."""
    done, left = Event(), [times]

    def watch() -> None:
        while not done.wait(0.005):
            for worker in list(town.house.pool._workers):
                if left[0] and any(job.paid for job in list(worker.jobs.values())):
                    left[0] -= 1
                    os.kill(worker.process.pid, signal.SIGKILL)
                    worker.process.join()

    thread = Thread(target=watch)
    thread.start()
    try:
        yield left
    finally:
        done.set()
        thread.join()


def asked(town: Served, sql: str, who: str = "ada", **how) -> Future:
    def ask():
        with town.connect(who) as db:
            return db.sql(sql, **how)

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(ask)


# Death --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sql", [COUNT, f"SELECT ({COUNT}) - ({SAMPLED}) AS more"])
def test_a_worker_that_dies_after_the_charge_is_replaced_and_the_question_answered_once(slow, sql):
    with killing(slow, 1) as left:
        release = asked(slow, sql).result()
    assert 0 == left[0]
    assert ["charge", "deliver"] == kinds(slow)
    assert release == asked(slow, sql).result()
    assert audit_ledger(slow.ledger).passed
    assert 1 == slow.house.pool.counts["worker died"]


def test_a_question_that_kills_two_workers_stops_its_register_for_everybody(slow):
    with killing(slow, 2), pytest.raises(TableStopped) as refusal:
        asked(slow, COUNT).result()
    assert TableStopped.sentence == str(refusal.value)
    assert ["charge", "stop"] == kinds(slow)
    with pytest.raises(TableStopped):
        asked(slow, "SELECT COUNT(*) FROM visits", "bob").result()
    with slow.connect("sam") as db:
        assert 1 == len(db.stops())
        db.resume()
    assert asked(slow, SAMPLED, "bob").result().entry
    assert audit_ledger(slow.ledger).passed


def test_others_whose_worker_dies_with_them_get_their_answers(slow):
    """Several questions share a worker; each is tried again alone, so one that kills takes nobody along."""
    with ThreadPoolExecutor(3) as pool, killing(slow, 1):
        found = [
            pool.submit(lambda age=age: asked(slow, f"SELECT COUNT(*) FROM patients WHERE age > {age}").result())
            for age in (20, 30, 40)
        ]
        assert all(one.result().entry for one in found)
    told = kinds(slow)  # the worker may die between a charge and the message about it: that charge is given up
    assert 3 == told.count("deliver") == told.count("charge") - told.count("abandon")


class Wire:
    """What the service writes to a process that is not there."""

    def __init__(self) -> None:
        self.sent: list[Any] = []

    def send(self, what: Any) -> None:
        self.sent.append(what)


def test_a_process_that_tried_one_task_again_takes_the_next_one():
    """Starting a process takes long on a busy machine, so two of them try five tasks, one at a time each."""
    pool = WorkerPool(WorkerTerms(ledger=""), Limits(), rescue=None)
    started = []

    def start(alone=False):
        started.append(Worker(process=None, pipe=Wire(), folder="", alone=alone))
        pool._workers.add(started[-1])
        return started[-1]

    pool._start = start
    loop = asyncio.new_event_loop()
    tasks = [Task(number=number, kind="explain", payload=None, secret=b"") for number in range(1, 6)]
    jobs = [Job(task=task, member="ada", result=loop.create_future(), again=True) for task in tasks]
    pool._retries = list(jobs)
    pool._dispatch()
    assert [[1], [2]] == [list(one.jobs) for one in started]
    for worker, number in ((started[0], 1), (started[0], 3), (started[1], 2), (started[0], 4), (started[1], 5)):
        pool._hear(worker, (0, "ready", None))
        pool._hear(worker, (number, "done", number))
    assert 2 == len(started)
    assert [1, 2, 3, 4, 5] == [job.result.result() for job in jobs]
    assert all(None is one.pipe.sent[-1] and 1 == one.pipe.sent.count(None) for one in started)
    loop.close()


def test_a_charge_whose_worker_could_not_tell_of_it_is_given_up(town):
    """The worker dies between its charge and the message about it: nobody may wait for that answer."""
    with dn.connect(town.ledger, analyst="ada") as db:
        paid = []

        def tell(what):
            paid.append(what)
            if len(paid) == 2:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            db.ask(Question(sql="SELECT COUNT(*) FROM patients WHERE age > 61", share=0.01, analyst="ada"), tell=tell)
    identity, _ = paid
    rescue = town.house.pool._rescue
    rescue.give_up(identity, "bob")  # another one's charge is left alone
    with dn.connect(town.ledger) as db:
        assert "abandon" not in [row["kind"] for row in db.history()][-1:]
    rescue.give_up(identity, "ada")
    with dn.connect(town.ledger) as db:
        assert "abandon" == [row["kind"] for row in db.history()][-1]


def test_the_same_secret_gives_the_same_coins_and_another_one_others(tmp_path, monkeypatch):
    with clinic(tmp_path) as db:
        found = []
        whole = Engine.compute
        monkeypatch.setattr(Engine, "compute", lambda *a: found.append(whole(*a)) or found[-1])
        for number, secret in enumerate((b"a" * 32, b"a" * 32, b"b" * 32)):
            with repeatable_coins(secret):
                how = {"mechanism": "sample", "share": 0.01, "expect": (0, 1 + number / 10)}
                db.ask(Question(sql=SAMPLED, **how))
    first, again, other = (one[0].counts.tolist() for one in found)
    assert first == again
    assert first != other
    assert coin_key() != coin_key()


# Limits -------------------------------------------------------------------------------------------------------------


def test_a_question_that_takes_too_long_before_its_charge_costs_nothing(tmp_path):
    with served(tmp_path, answer_every=3.0, limits={"seconds": 0.8}) as town:
        sleep(3.0 - time() % 3.0 + 0.2)  # just after a tick: the next one is far
        with pytest.raises(ServiceFailed, match=r"longer than 0\.8 seconds before anything was charged"):
            asked(town, COUNT).result()
        assert [] == kinds(town)


def test_a_question_that_takes_too_long_after_its_charge_stops_the_register(tmp_path):
    for seconds in (4.0, 16.0, 64.0):  # a busy machine may miss the tick
        tick, folder = 1.5 * seconds, tmp_path / f"{seconds:g}"
        folder.mkdir()
        with served(folder, answer_every=tick, limits={"seconds": seconds}) as town:
            for _ in range(2):
                sleep(
                    (tick * 5 / 6 - time()) % tick
                )  # before a tick: it is charged there, and answered at the next one
                with pytest.raises((TableStopped, ServiceFailed)) as refusal:
                    asked(town, COUNT).result()
                if refusal.type is TableStopped:
                    assert ["charge", "stop"] == kinds(town)
                    return
                assert "before anything was charged" in str(refusal.value)
    pytest.fail("No question was charged in time.")


def test_a_worker_cannot_use_more_memory_or_disk_than_it_may(tmp_path):
    script = """
import sys
from discretion.service.worker import HEADROOM, WorkerTerms, _limit
_limit(WorkerTerms(ledger="", memory=64 << 20, temp=1 << 20))
try:
    bytearray(HEADROOM + (256 << 20))
except MemoryError:
    print("memory")
try:
    with open(sys.argv[1], "wb") as file:
        file.write(b"x" * (2 << 20))
except OSError:
    print("disk")
"""
    run = subprocess.run([sys.executable, "-c", script, str(tmp_path / "x")], capture_output=True, text=True)
    assert ["memory", "disk"] == run.stdout.split(), run.stderr
    assert resource.RLIM_INFINITY == resource.getrlimit(resource.RLIMIT_FSIZE)[0]


def test_temporary_files_of_a_worker_are_limited_together(tmp_path):
    """Many files, each of them small enough, are too much: the worker ends, and another one takes its place."""
    with served(tmp_path, temp=1 << 20) as town:
        [worker] = town.house.pool._workers
        ended, kill = [], worker.process.kill
        worker.process.kill = lambda: (ended.append(worker.folder), kill())
        for number in range(5):
            (Path(worker.folder) / f"{number}.tmp").write_bytes(b"x" * (300 << 10))
        worker.process.join(30)
        assert [worker.folder] == ended[:1]  # the pool did it; a fork server may lose the exit code (then it is 255)
        assert not worker.process.is_alive()
        with town.connect("ada") as db:
            db.sql(COUNT)
        assert not Path(worker.folder).exists()


def test_workers_log_in_json(tmp_path):
    script = """
import sys
from multiprocessing import Pipe
from discretion.service import worker
ours, theirs = Pipe()
ours.send(worker.Task(number=1, kind="call", payload=("no such method", (), {}), secret=b"0" * 32))
ours.send(None)
worker.run(theirs, worker.WorkerTerms(ledger=sys.argv[1]), sys.argv[2])
"""
    clinic(tmp_path).close()
    (tmp_path / "temp").mkdir()
    command = [sys.executable, "-c", script, str(tmp_path / "clinic.discretion"), str(tmp_path / "temp")]
    run = subprocess.run(command, capture_output=True, text=True)
    [line] = map(json.loads, run.stderr.splitlines())
    assert ("error", "A task of kind call failed: AttributeError") == (line["level"], line["event"])


def test_members_take_turns_and_nobody_fills_the_queue():
    turns: Turns[str] = Turns(most=6, most_each=4)
    for number in range(4):
        turns.join("ada", f"a{number}")
    with pytest.raises(ServiceFailed, match="You have 4"):
        turns.join("ada", "a4")
    turns.join("bob", "b0")
    turns.join("cy", "c0")
    with pytest.raises(ServiceFailed, match="busy"):
        turns.join("dan", "d0")
    assert turns.leave("ada", "a1")
    assert not turns.leave("ada", "a1")
    assert ["a0", "b0", "c0", "a2", "a3"] == [turns.next() for _ in range(5)]
    assert 0 == len(turns)


def test_a_caller_who_leaves_before_the_turn_is_not_charged_and_after_it_is_answered(slow):
    pool = slow.house.pool
    loop = pool._loop
    question = Question(sql=COUNT, analyst="ada")

    async def submit():
        jobs = [pool.submit("ask", question, member="ada")]
        jobs += [pool.submit("explain", ("SELECT COUNT(*) FROM visits", {}), member="bob") for _ in range(8)]
        last = pool.submit("ask", Question(sql=SAMPLED, analyst="ada"), member="ada")
        return jobs[0], last, pool.cancel(last), pool.cancel(jobs[0])

    first, last, left, kept = asyncio.run_coroutine_threadsafe(submit(), loop).result()
    assert (True, False) == (left, kept)
    assert not last.result.done()
    while not first.result.done():
        sleep(0.05)
    assert ["charge", "deliver"] == kinds(slow)


# Once ---------------------------------------------------------------------------------------------------------------


def test_a_key_answers_once_for_one_member_and_one_body(town):
    body, headers = {"sql": "SELECT COUNT(*) FROM patients WHERE age > 44", "share": 0.01}, {"Idempotency-Key": "k1"}
    with town.http("ada") as ada, town.http("bob") as bob:
        with ThreadPoolExecutor(4) as pool:
            sent = [pool.submit(ada.post, "/v1/query", json=body, headers=headers) for _ in range(4)]
            entries = {one.result().json()["entry"] for one in sent}
        assert 1 == len(entries)
        other = ada.post("/v1/query", json=body | {"share": 0.02}, headers=headers)
        assert (400, True) == (other.status_code, "another body" in other.json()["detail"])
        assert 200 == bob.post("/v1/query", json=body | {"share": 0.011}, headers=headers).status_code
        refused = {"sql": "SELECT age FROM patients"}
        for _ in range(2):
            assert 422 == ada.post("/v1/query", json=refused, headers={"Idempotency-Key": "k2"}).status_code


def test_many_who_ask_at_once_cannot_overspend_together(tmp_path):
    """Each question takes three tenths of every allowance: three of eight fit."""
    with served(tmp_path, workers=2) as town:

        def ask(age):
            try:
                sql = f"SELECT COUNT(*) FROM patients WHERE age > {age}"
                return asked(town, sql, share=0.3, mechanism="exponential").result().entry
            except BudgetExhausted:
                return ""

        with ThreadPoolExecutor(8) as pool:
            entries = list(pool.map(ask, range(30, 70, 5)))
        assert 3 == sum(map(bool, entries))
        with town.connect("sam") as db:
            assert {0.9} == {round(row["spent"] / row["epsilon"], 6) for row in db.balance()}
            assert db.audit().passed


def test_stopping_lets_questions_in_hand_finish(tmp_path):
    with served(tmp_path, answer_every=2.0) as town, ThreadPoolExecutor(1) as pool:
        found = pool.submit(lambda: asked(town, COUNT).result())
        while not any(worker.jobs for worker in list(town.house.pool._workers)):
            sleep(0.01)
        town.stop()
        assert found.result().entry
    assert ["charge", "deliver"] == kinds(town)
