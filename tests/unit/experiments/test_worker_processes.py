"""Simulations in several processes: answers in order, and no process left behind by whatever ends the experiment."""

import contextlib
import math
import multiprocessing
import signal
import subprocess
import sys
import time
from multiprocessing import connection
from pathlib import Path

import psutil
import pytest

from simulation.experiments.worker_processes import run_all
from tests.waiting import LIMIT_S, ended_by, until

ENDLESS = """
import time
from simulation.experiments.worker_processes import ending_on_sigterm, run_all
if __name__ == "__main__":
    with ending_on_sigterm():
        run_all(time.sleep, [600, 600, 600], processes=2, on_progress=None)
"""


@pytest.mark.parametrize("processes", [1, 2])
def test_answers_come_in_the_order_of_the_tasks(processes: int) -> None:
    seen: list[tuple[int, int]] = []
    answers = run_all(
        math.factorial, [5, 1, 4], processes=processes, on_progress=lambda done, total: seen.append((done, total))
    )
    assert answers == [120, 1, 24]
    assert seen == [(1, 3), (2, 3), (3, 3)]


def test_a_task_that_fails_ends_those_that_are_still_at_work() -> None:
    begun = time.monotonic()
    with pytest.raises(ValueError, match="negative"):
        run_all(time.sleep, [600, -1], processes=2, on_progress=None)
    # the pool's own thread waits for its workers too, and only one of two waiting threads is told of an end: so look
    # at what the operating system says of each
    for worker in multiprocessing.active_children():
        assert connection.wait([worker.sentinel], LIMIT_S), f"{worker} is still at work"
    assert time.monotonic() - begun < 600


def workers_of(process: psutil.Process) -> list[psutil.Process]:
    """All descendants, once both workers are there and follow their parent."""

    def both() -> list[psutil.Process] | None:
        family = process.children(recursive=True)
        with contextlib.suppress(psutil.Error):
            if sum("spawn_main" in " ".join(each.cmdline()) and each.num_threads() > 1 for each in family) >= 2:
                return family
        return None

    found: list[psutil.Process] = until(both, "both workers are up")
    return found


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_no_worker_stays_behind(number: signal.Signals, tmp_path: Path) -> None:
    script = tmp_path / "endless.py"
    script.write_text(ENDLESS)
    program = subprocess.Popen(
        [sys.executable, str(script)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True
    )
    ended_by(number, program, workers_of)
    if number is signal.SIGTERM:
        assert program.returncode == 128 + signal.SIGTERM
