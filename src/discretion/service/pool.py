"""Pool: worker processes compute what members ask; one that dies costs nobody an answer."""

import asyncio
import logging
import os
from collections import Counter, OrderedDict, deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing import get_context
from pickle import loads
from shutil import rmtree
from tempfile import mkdtemp
from threading import Thread
from time import monotonic
from typing import Any, Generic, TypeVar

from discretion.errors import DiscretionError, ServiceFailed
from discretion.noise import secret_bytes
from discretion.service.rescue import Rescue
from discretion.service.shown import restored
from discretion.service.worker import Kind, Task, WorkerTerms, run

T = TypeVar("T")


class Turns(Generic[T]):
    """A bounded queue with one line for each member; the lines are served in turn."""

    def __init__(self, most: int, most_each: int) -> None:
        self._most, self._most_each = most, most_each
        self._lines: OrderedDict[str, deque[T]] = OrderedDict()

    def __len__(self) -> int:
        return sum(map(len, self._lines.values()))

    def join(self, member: str, task: T) -> None:
        """Put a task at the end of a member's line, or refuse it if that line or the whole queue is full."""
        line = self._lines.get(member, deque())
        if len(line) >= self._most_each:
            raise ServiceFailed(f"You have {len(line)} questions waiting, which is the most. Ask again later.")
        if len(self) >= self._most:
            raise ServiceFailed("The service is busy: too many questions are waiting. Ask again later.")
        line.append(task)
        self._lines[member] = line

    def next(self) -> T:
        """Take the first task of the line whose turn it is; the line goes to the end."""
        member, line = self._lines.popitem(last=False)
        task = line.popleft()
        if line:
            self._lines[member] = line
        return task

    def leave(self, member: str, task: T) -> bool:
        """Take a task out of its line; tell whether it was still there."""
        line = self._lines.get(member, deque())
        if task not in line:
            return False
        line.remove(task)
        if not line:
            del self._lines[member]
        return True


logger = logging.getLogger(__name__)

# Workers are forked from a process that has loaded everything and has no threads: they start at once and share memory.
PROCESSES = get_context("forkserver")
PROCESSES.set_forkserver_preload(["discretion.service.worker", "discretion.engines.duckdb"])
ALONE = 2  # processes for tasks that are tried again; each has one in hand, so one that kills takes nobody along
AGAIN = "discretion-again-"  # begins the names of their folders, in which they run: so an operator can tell them apart
LOST = "The process that worked on this ended twice. Nothing was charged. Ask in another way, or ask the operator."
SLOW = "This took longer than {seconds:g} seconds before anything was charged, so it was given up."
CLOSED = "The service is stopping. Ask again when it is back; what was answered is kept and costs nothing again."


@dataclass(eq=False)
class Job:
    """A task on its way: where its result goes, whether it was charged, and whether it was tried before."""

    task: Task
    member: str
    result: asyncio.Future[Any]
    identity: str = ""  # of the question, once it is known
    paid: bytes = b""  # the charged question, once there is one
    progress: int = 0  # how much is done, where the worker tells it
    again: bool = False
    started: float = 0.0

    def refuse(self, refusal: DiscretionError) -> None:
        """End the job with a refusal, unless nobody waits for it any more."""
        if not self.result.done():
            self.result.set_exception(refusal)


@dataclass(eq=False)
class Worker:
    """A process, the pipe to it, and the jobs it has in hand."""

    process: Any
    pipe: Any
    folder: str  # of its temporary files, which may hold rows
    alone: bool  # takes one job at a time, which was tried before
    ready: bool = False
    jobs: dict[int, Job] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Says how many processes there are, and how long anything may take or wait."""

    workers: int = 4
    seconds: float = 600.0  # from the start of a task, ticks included
    waiting: int = 256  # tasks in the queue, of everybody
    waiting_each: int = 32  # of one member


class WorkerPool:
    """Runs tasks in worker processes. All methods belong to one event loop."""

    def __init__(self, terms: WorkerTerms, limits: Limits, rescue: Rescue) -> None:
        self._terms, self._limits, self._rescue = terms, limits, rescue
        self._turns: Turns[Job] = Turns(limits.waiting, limits.waiting_each)
        self._workers: set[Worker] = set()
        self._retries: list[Job] = []
        self._number, self._closing = 0, False
        self._failed_starts = 0
        self._tasks: set[asyncio.Task[None]] = set()  # kept: the loop has weak references only
        self.counts: Counter[str] = Counter()

    # The service ----------------------------------------------------------------------------------------------------

    async def open(self) -> None:
        """Start the workers and the watch over time limits."""
        self._loop = asyncio.get_running_loop()
        for _ in range(self._limits.workers):
            self._start()
        self._background(self._watch())

    async def close(self, patience: float = 30.0) -> None:
        """Take nothing new, let what is in hand finish, and end the workers."""
        self._closing = True
        while self._turns:
            self._turns.next().refuse(ServiceFailed(CLOSED))
        end = monotonic() + patience
        while any(worker.jobs for worker in self._workers) and monotonic() < end:
            await asyncio.sleep(0.05)
        for worker in list(self._workers):
            with suppress(OSError):
                worker.pipe.send(None)
        for worker in list(self._workers):
            await asyncio.to_thread(worker.process.join, 5)
            if worker.process.is_alive():
                worker.process.kill()
        for task in self._tasks:
            task.cancel()

    def submit(self, kind: Kind, payload: Any, *, member: str) -> Job:
        """Put a task into the queue; its result comes later. Refused if too much is waiting."""
        if self._closing:
            raise ServiceFailed(CLOSED)
        self._number += 1
        task = Task(number=self._number, kind=kind, payload=payload, secret=secret_bytes())
        job = Job(task=task, member=member, result=self._loop.create_future())
        self._turns.join(member, job)
        self._dispatch()
        return job

    def cancel(self, job: Job) -> bool:
        """Give up a job that nobody began; one that was begun goes on, because it may have been charged."""
        return self._turns.leave(job.member, job)

    @property
    def waiting(self) -> int:
        """Return how many tasks wait for a worker."""
        return len(self._turns)

    @property
    def alive(self) -> int:
        """Return how many workers are ready."""
        return sum(worker.ready and not worker.alone for worker in self._workers)

    # Workers --------------------------------------------------------------------------------------------------------

    def _start(self, alone: bool = False) -> Worker:
        ours, theirs = PROCESSES.Pipe()
        folder = mkdtemp(prefix=AGAIN if alone else "discretion-")
        process = PROCESSES.Process(target=run, args=(theirs, self._terms, folder), daemon=True)
        process.start()
        theirs.close()
        worker = Worker(process=process, pipe=ours, folder=folder, alone=alone)
        self._workers.add(worker)
        Thread(target=self._listen, args=(worker,), daemon=True).start()
        return worker

    def _listen(self, worker: Worker) -> None:
        """Pass on what a worker sends, in a thread of its own, until it is gone."""
        with suppress(RuntimeError):  # the loop is closed
            try:
                while True:
                    self._loop.call_soon_threadsafe(self._hear, worker, worker.pipe.recv())
            except (EOFError, OSError):
                self._loop.call_soon_threadsafe(self._lose, worker)
            finally:
                rmtree(worker.folder, ignore_errors=True)

    def _hear(self, worker: Worker, message: tuple[int, str, Any]) -> None:
        number, what, content = message
        if what == "ready":
            worker.ready, self._failed_starts = True, 0
        job = worker.jobs.get(number)
        if what == "identified" and job is not None:
            job.identity = content
        elif what == "charged" and job is not None:
            job.paid = content
        elif what == "progress" and job is not None:
            job.progress = content
        elif job is not None:
            del worker.jobs[number]
            self._settle(job, what, content)
        self._dispatch()
        if worker.alone and worker.ready and not worker.jobs:
            with suppress(OSError):  # it died meanwhile: its listener says so
                worker.pipe.send(None)
            worker.ready = False

    def _settle(self, job: Job, what: str, content: Any) -> None:
        self.counts[f"{job.task.kind} {what}"] += 1
        if what == "refused":
            kind, text, place = content
            job.refuse(restored(kind, text, place))
        elif not job.result.done():
            job.result.set_result(content)

    def _lose(self, worker: Worker) -> None:
        """Replace a worker that is gone, and try what it had in hand again, once."""
        self._workers.discard(worker)
        worker.pipe.close()
        if self._closing and not worker.jobs:
            return
        if worker.jobs or not worker.alone:
            self.counts["worker died"] += 1
            logger.error("A worker process ended with %d tasks in hand.", len(worker.jobs))
        if not worker.alone:
            self._failed_starts += not worker.ready
            self._later(min(30.0, 2.0**self._failed_starts - 1), self._replace)
        for job in worker.jobs.values():
            self._retry(job)
        self._dispatch()

    def _replace(self) -> None:
        if not self._closing:
            self._start()

    def _retry(self, job: Job) -> None:
        if self._closing:
            job.refuse(ServiceFailed(CLOSED))
        elif not job.again:
            job.again = True
            self._background(self._prepare(job))
        elif job.paid:
            self._background(self._count(job))
        else:
            job.refuse(ServiceFailed(LOST))

    async def _prepare(self, job: Job) -> None:
        """Give up a charge whose worker died before it could say so: nobody read a row for it."""
        others = {one.identity for worker in self._workers for one in worker.jobs.values()}
        if job.identity and not job.paid and job.identity not in others:
            await asyncio.to_thread(self._rescue.give_up, job.identity, job.member)
        self._retries.append(job)
        self._dispatch()

    async def _count(self, job: Job) -> None:
        """Stop the register: a row may have caused the failure, so it must not tell more than once."""
        self.counts["failed twice"] += 1
        try:
            answer = await asyncio.to_thread(self._rescue.fail, loads(job.paid))
        except DiscretionError as refusal:
            job.refuse(refusal)
        else:
            self._settle(job, "done", answer)

    def _dispatch(self) -> None:
        while self._retries and (alone := self._alone()) is not None:
            self._give(alone, self._retries.pop(0))
        while self._turns and (free := self._free()) is not None:
            job = self._turns.next()
            if not job.result.cancelled():
                self._give(free, job)

    def _alone(self) -> Worker | None:
        """Return a process that tries one job at a time: one that finished its last, or a new one if few are there."""
        alone = [one for one in self._workers if one.alone]
        idle = next((one for one in alone if one.ready and not one.jobs), None)
        return idle or (self._start(alone=True) if len(alone) < ALONE else None)

    def _free(self) -> Worker | None:
        """Return the worker with the fewest jobs, if it can take one more."""
        able = [one for one in self._workers if one.ready and not one.alone and len(one.jobs) < self._terms.threads]
        return min(able, key=lambda one: len(one.jobs), default=None)

    def _give(self, worker: Worker, job: Job) -> None:
        task = job.task
        if job.paid:
            task = Task(number=task.number, kind="finish", payload=job.paid, secret=task.secret)
        job.started, worker.jobs[task.number] = monotonic(), job
        with suppress(OSError):  # it died meanwhile: its listener says so
            worker.pipe.send(task)

    async def _watch(self) -> None:
        """End workers that take too long or too much temporary space; a charged task that is late counts as failed."""
        while True:
            await asyncio.sleep(min(1.0, self._limits.seconds / 4))
            for worker in list(self._workers):
                late = [job for job in worker.jobs.values() if monotonic() - job.started > self._limits.seconds]
                for job in late:
                    job.again = True  # it would take as long again
                    if not job.paid:
                        job.refuse(ServiceFailed(SLOW.format(seconds=self._limits.seconds)))
                if late or await asyncio.to_thread(_bytes_in, worker.folder) > self._terms.temp:
                    worker.process.kill()

    def _background(self, work: Any) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _later(self, seconds: float, act: Callable[[], None]) -> None:
        self._loop.call_later(seconds, act)


def _bytes_in(folder: str) -> int:
    """Return what all files below a folder take, without those that go away meanwhile."""
    taken = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                taken += os.lstat(os.path.join(place, name)).st_blocks * 512
    return taken
