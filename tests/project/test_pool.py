from __future__ import annotations

import os
import signal
import threading
import time

from hipport import pool


def _job(job: str) -> str:
    if job == "crash":
        os.kill(os.getpid(), signal.SIGKILL)
    if job == "exit":
        os._exit(3)
    if job == "hang":
        time.sleep(60)
    if job == "raise":
        raise KeyError("x")
    if job == "deep":
        raise RecursionError
    return job.upper()


def _run(jobs: list[str], workers: int = 2) -> dict[str, str | pool.Failure]:
    results = pool.run(
        _job, jobs, workers=workers, seconds=lambda _: 1.0, weight=lambda job: len(job)
    )
    return {jobs[index]: result for index, result in results}


def test_all_jobs_are_done_once() -> None:
    jobs = [f"j{n}" for n in range(200)]
    assert _run(jobs) == {job: job.upper() for job in jobs}
    assert _run([]) == {}


def test_bad_jobs_fail_alone() -> None:
    good = [f"j{n}" for n in range(60)]
    bad = {
        "crash": "SIGKILL",
        "exit": "exit status 3",
        "hang": "took longer than 1 s",
        "raise": "internal error: KeyError",
        "deep": "nested too deeply",
    }
    done = _run([*good[:20], *bad, *good[20:]])
    for job in good:
        assert done[job] == job.upper()
    for job, reason in bad.items():
        result = done[job]
        assert isinstance(result, pool.Failure)
        assert reason in result.reason


def test_workers_end_with_the_run() -> None:
    results = pool.run(
        _job, ["hang", "hang", "a"], workers=3, seconds=lambda _: 60.0, weight=lambda _: 1
    )
    assert next(iter(results))[1] == "A"
    results.close()  # type: ignore[attr-defined]
    import multiprocessing

    assert not multiprocessing.active_children()


def test_a_program_with_threads() -> None:
    done = threading.Event()
    thread = threading.Thread(target=done.wait)
    thread.start()
    try:
        assert _run(["a", "raise", "b"])["b"] == "B"
    finally:
        done.set()
        thread.join()
