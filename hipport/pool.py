"""Worker processes that outlive any file: a crash or a hang costs that file and nothing else.

The standard pools cannot end one stuck task, and a worker's death breaks all that is pending.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Generic, TypeVar

J = TypeVar("J")
R = TypeVar("R")

_BATCH_JOBS = 24
_BATCH_WEIGHT = 400_000


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a job has no result."""

    reason: str


@dataclass
class _Worker(Generic[J]):
    process: BaseProcess
    pipe: Connection
    batch: list[tuple[int, J]]
    deadline: float = 0.0


def can_fork() -> bool:
    """Whether workers start as cheap copies of this process."""
    return sys.platform.startswith("linux")


def default_workers() -> int:
    """The processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@contextlib.contextmanager
def _no_interrupt() -> Iterator[None]:
    """Hold Ctrl-C back while a worker starts, so that none is hit before it can ignore it."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _serve(function: Callable[[J], R], pipe: Connection, others: list[Connection]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for other in others:
        # A copy of a sibling's pipe would keep it open after the main process has gone.
        other.close()
    if not os.environ.get("HIPPORT_DEBUG"):
        with contextlib.suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with contextlib.suppress(EOFError, OSError):
        while (batch := pipe.recv()) is not None:
            pipe.send([attempt(function, job) for job in batch])
    os._exit(0)


def attempt(function: Callable[[J], R], job: J) -> R | Failure:
    """Run one job; an exception becomes a `Failure`."""
    try:
        return function(job)
    except MemoryError:
        return Failure("not enough memory")
    except RecursionError:
        return Failure("nested too deeply")
    except Exception as error:
        if os.environ.get("HIPPORT_DEBUG"):
            import traceback

            traceback.print_exc()
        return Failure(f"internal error: {type(error).__name__}: {error}")


def _batches(jobs: Sequence[J], weight: Callable[[J], int]) -> deque[list[tuple[int, J]]]:
    """Heavy jobs first and alone, light ones together."""
    order = sorted(enumerate(jobs), key=lambda item: -weight(item[1]))
    out: deque[list[tuple[int, J]]] = deque()
    batch: list[tuple[int, J]] = []
    total = 0
    for item in order:
        batch.append(item)
        total += weight(item[1])
        if len(batch) >= _BATCH_JOBS or total >= _BATCH_WEIGHT:
            out.append(batch)
            batch, total = [], 0
    if batch:
        out.append(batch)
    return out


def run(
    function: Callable[[J], R],
    jobs: Sequence[J],
    *,
    workers: int,
    seconds: Callable[[J], float],
    weight: Callable[[J], int],
) -> Iterator[tuple[int, R | Failure]]:
    """Run a function over jobs; yield each job's index and result as it comes.

    Args:
        function: a module-level function or a `functools.partial` of one.
        jobs: small picklable things.
        workers: number of processes, at least 1.
        seconds: how long a job may take before its worker is ended.
        weight: a job's expected cost, in bytes.
    """
    # A fork copies locks that other threads may hold, so a threaded program starts afresh.
    method = "fork" if can_fork() and threading.active_count() == 1 else "spawn"
    queue = _batches(jobs, weight)
    # A few batches a worker at least, so that none idles while another has all that is left.
    while len(queue) < workers and any(len(batch) > 1 for batch in queue):
        batch = max(queue, key=len)
        queue.remove(batch)
        half = len(batch) // 2
        queue.extend((batch[:half], batch[half:]))
    pool = _Pool(function, multiprocessing.get_context(method), seconds)
    try:
        for _ in range(min(workers, len(queue))):
            pool.start(queue)
        while pool.workers:
            yield from pool.step(queue)
    finally:
        pool.end()


class _Pool(Generic[J, R]):
    def __init__(
        self,
        function: Callable[[J], R],
        context: multiprocessing.context.BaseContext,
        seconds: Callable[[J], float],
    ) -> None:
        self.function = function
        self.context = context
        self.seconds = seconds
        self.workers: list[_Worker[J]] = []

    def start(self, queue: deque[list[tuple[int, J]]]) -> None:
        ours, theirs = self.context.Pipe()
        forks = self.context.get_start_method() == "fork"
        inherited = [w.pipe for w in self.workers] + [ours] if forks else []
        process = self.context.Process(  # type: ignore[attr-defined]
            target=_serve, args=(self.function, theirs, inherited), daemon=True
        )
        with _no_interrupt():
            process.start()
        theirs.close()
        worker: _Worker[J] = _Worker(process, ours, [])
        self.workers.append(worker)
        self.give(worker, queue)

    def give(self, worker: _Worker[J], queue: deque[list[tuple[int, J]]]) -> None:
        if not queue:
            self.drop(worker)
            return
        worker.batch = queue.popleft()
        worker.deadline = time.monotonic() + max(self.seconds(job) for _, job in worker.batch)
        # A worker that is gone already shows when its pipe is read.
        with contextlib.suppress(OSError):
            worker.pipe.send([job for _, job in worker.batch])

    def drop(self, worker: _Worker[J]) -> None:
        self.workers.remove(worker)
        worker.pipe.close()
        worker.process.kill()
        worker.process.join()

    def step(self, queue: deque[list[tuple[int, J]]]) -> Iterator[tuple[int, R | Failure]]:
        first = min(w.deadline for w in self.workers)
        ready = set(wait([w.pipe for w in self.workers], max(0.0, first - time.monotonic())))
        for worker in list(self.workers):
            if worker.pipe in ready:
                try:
                    results = worker.pipe.recv()
                except (EOFError, OSError):
                    yield from self.failed(worker, queue, None)
                    continue
                batch = worker.batch
                self.give(worker, queue)
                for (index, _), result in zip(batch, results, strict=True):
                    yield index, result
            elif worker.deadline <= time.monotonic():
                yield from self.failed(worker, queue, "took longer than {:.0f} s")

    def failed(
        self, worker: _Worker[J], queue: deque[list[tuple[int, J]]], slow: str | None
    ) -> Iterator[tuple[int, R | Failure]]:
        """A batch that failed is tried again job by job; a job that failed alone has failed."""
        batch = worker.batch
        self.drop(worker)
        if len(batch) > 1:
            queue.extendleft([item] for item in reversed(batch))
        else:
            index, job = batch[0]
            if slow is not None:
                reason = slow.format(self.seconds(job))
            else:
                reason = f"the worker process died ({_exit(worker.process.exitcode)})"
            yield index, Failure(reason)
        if queue:
            self.start(queue)

    def end(self) -> None:
        for worker in list(self.workers):
            self.drop(worker)


def _exit(code: int | None) -> str:
    if code is None or code >= 0:
        return f"exit status {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"
