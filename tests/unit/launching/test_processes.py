"""Processes below another one: found in whatever session they are, weighed together, and ended."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

from ramp.launching.processes import descendants, end_marked, kill, memory_of
from tests.waiting import is_alive, until

MEGABYTE = 2**20


def started(program: str, *, environment: dict[str, str] | None = None) -> subprocess.Popen[bytes]:
    """A Python process that has said that it is ready."""
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program)], stdout=subprocess.PIPE, env=environment
    )
    assert process.stdout.readline() == b"ready\n"
    return process


def end(process: subprocess.Popen[bytes]) -> None:
    kill([*descendants(process.pid), process.pid])
    process.communicate()


def test_memory_counts_what_is_shared_once_and_what_each_process_has() -> None:
    process = started("""
        import mmap, os, sys, time
        shared = mmap.mmap(-1, 64 * 2**20)
        shared.write(b"x" * 64 * 2**20)
        ready, told = os.pipe()
        for _ in range(3):
            if os.fork() == 0:
                own = bytearray(b"x" * (16 * 2**20))
                sum(shared[::4096])
                os.write(told, b"x")
                time.sleep(900)
        for _ in range(3):
            os.read(ready, 1)
        print("ready", flush=True)
        time.sleep(900)
    """)
    try:
        below = descendants(process.pid)
        assert len(below) == 3
        weight = memory_of([process.pid, *below])
        assert 112 * MEGABYTE <= weight < 170 * MEGABYTE
        assert memory_of([2**22 + 1]) == 0
    finally:
        end(process)


def test_whatever_is_below_a_process_that_adopts_orphans_is_ended() -> None:
    process = started(
        """
        import contextlib, os, signal, time
        from ramp.launching import processes
        processes.ask_kernel(processes.PR_SET_CHILD_SUBREAPER, 1)
        there, here = os.pipe()
        if os.fork() == 0:
            for _ in range(2):
                if os.fork() == 0:
                    os.setsid()
                    if os.fork() == 0:
                        signal.signal(signal.SIGTERM, signal.SIG_IGN)
                        os.write(here, b"x")
                        time.sleep(900)
                    os._exit(0)
            os._exit(0)
        def bury():
            with contextlib.suppress(ChildProcessError):
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
        for _ in range(2):
            os.read(there, 1)
        while len(processes.descendants(os.getpid())) != 2:  # those between have ended
            bury()
            time.sleep(0.01)
        print("ready", flush=True)
        print(*processes.descendants(os.getpid()), flush=True)
        print(processes.end_descendants(processes.kill, bury, 60), flush=True)
    """,
        environment={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    out, _ = process.communicate()
    pids, ended = out.decode().splitlines()
    assert ended == "True"
    assert len(pids.split()) == 2
    assert not any(is_alive(int(pid)) for pid in pids.split())


def test_processes_are_found_by_their_environment_alone(tmp_path: Path) -> None:
    mark = f"RAMP_TEST={tmp_path}"
    marked, longer = (
        started('import time; print("ready", flush=True); time.sleep(900)', environment={"RAMP_TEST": value})
        for value in (str(tmp_path), f"{tmp_path}2")
    )
    try:
        end_marked(mark, os.geteuid() + 1)
        assert is_alive(marked.pid), "of another account"
        end_marked(mark, os.geteuid())
        until(lambda: not is_alive(marked.pid))
        assert is_alive(longer.pid)
    finally:
        end(marked)
        end(longer)
