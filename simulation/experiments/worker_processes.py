"""Simulations in several processes, of which none outlives the experiment."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import connection, get_context, parent_process
from types import FrameType
from typing import Final, NoReturn, TypeVar

from simulation.experiments.executors import chosen_executor
from simulation.seldom_collected import collect_seldom, seldom_collected

TaskT = TypeVar("TaskT")
AnswerT = TypeVar("AnswerT")

EXIT_BASE: Final = 128
"""Exit status of a program that a signal ends, less the signal's number: the shells' convention."""


def run_all(
    function: Callable[[TaskT], AnswerT],
    tasks: Sequence[TaskT],
    *,
    processes: int | None,
    on_progress: Callable[[int, int], None] | None,
    on_answer: Callable[[int, AnswerT], None] | None = None,
) -> list[AnswerT]:
    """Answers of a function for all tasks, in their order, computed in several processes, or where `executors` says.

    Args:
        function: of a module, so that other processes can import it.
        tasks: arguments.
        processes: how many of this computer; None = one a core; 1 = this process alone.
        on_progress: told how many of how many tasks are done.
        on_answer: given each answer as it comes, with the index of its task.
    """
    elsewhere = chosen_executor()
    if elsewhere is not None and len(tasks) > 1:
        return elsewhere.run(function, tasks, on_progress, on_answer)
    count = processes if processes is not None else os.cpu_count() or 1
    answers: dict[int, AnswerT] = {}

    def answered(index: int, answer: AnswerT) -> None:
        answers[index] = answer
        if on_answer is not None:
            on_answer(index, answer)
        if on_progress is not None:
            on_progress(len(answers), len(tasks))

    if count == 1 or len(tasks) < 2:
        with seldom_collected():
            for index, task in enumerate(tasks):
                answered(index, function(task))
        return [answers[index] for index in range(len(tasks))]
    others = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(min(count, len(tasks)), mp_context=get_context("spawn"), initializer=_begin_worker)
    try:
        futures = {pool.submit(function, task): index for index, task in enumerate(tasks)}
        for future in as_completed(futures):
            answered(futures[future], future.result())
    except BaseException:
        # leaving the pool in good order would first finish what the workers are at, which may take minutes
        pool.shutdown(wait=False, cancel_futures=True)
        for worker in set(multiprocessing.active_children()) - others:
            worker.terminate()
        raise
    pool.shutdown()
    return [answers[index] for index in range(len(tasks))]


def _begin_worker() -> None:
    collect_seldom()
    _follow_parent()


def _follow_parent() -> None:
    """Let this worker end with its parent, whatever that ends by, and leave Ctrl-C to the parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = parent_process()
    assert parent is not None, "a worker has a parent"

    def watch() -> None:
        connection.wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=watch, name="parent", daemon=True).start()


@contextlib.contextmanager
def ending_on_sigterm() -> Iterator[None]:
    """Meanwhile a SIGTERM ends the program in good order, as Ctrl-C does, so that no process stays behind."""

    def end(number: int, _: FrameType | None) -> NoReturn:
        signal.signal(number, signal.SIG_IGN)  # once is enough: the next would cut the clearing up short
        raise SystemExit(EXIT_BASE + number)

    if threading.current_thread() is not threading.main_thread():  # only the main thread receives signals
        yield
        return
    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
