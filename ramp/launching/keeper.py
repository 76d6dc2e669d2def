"""The keeper of one job on this computer: it starts the job as the buyer's account, keeps its record and ends it.

The keeper belongs to the site and survives the Resource Agent. It waits for the slot, starts the worker as the account,
and records the start before the worker may run the job's command; so a job without a recorded start has never run. A
start that fails is tried again until the latest start. When the command ends, the slot ends, or the agent sends
SIGTERM, everything that the job has started is ended. A keeper that finds the record of a started job, because the
keeper before it was killed, only ends what is left of the job.

    FOLDER/RESOURCE/JOB.json    the record, in the agent's state folder: where the buyer's account cannot write
    FOLDER/RESOURCE/JOB.lock    locked while the keeper lives; its process id
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import math
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from ramp.launching import processes, worker

START_LIMIT_S: Final = 20.0
"""Timeout of the worker's start in seconds; then it is tried again."""

RETRY_S: Final = 2.0
"""Pause between two attempts in seconds."""

WAIT_MAX_S: Final = 5.0
"""Longest wait in seconds, after which the clock is read again: it may have been set."""

END_LIMIT_S: Final = 60.0
"""Timeout in seconds for the end of everything that a job has started."""

RUN: Final = {"version": worker.VERSION, "verb": "run"}
"""First line of the worker's question; the job follows when its start is recorded."""

ENVIRONMENT: Final = {"PATH": worker.PATH, "LC_ALL": "C.UTF-8"}
"""Environment of the worker."""

_PROCESS: Final[dict[str, Any]] = {"cwd": "/", "env": ENVIRONMENT, "start_new_session": True}


@dataclass(frozen=True, slots=True)
class KeeperTask:
    """What the agent asks of a keeper.

    Attributes:
        record: path of the record, without suffix.
        command: starts the worker as the buyer's account.
        uid: the account's number.
        job: the second line of the worker's question `run`.
        begin_s: earliest start, in seconds since 1970.
        start_by_s: latest start.
        end_s: end of the slot.
        patience_s: seconds between SIGTERM and SIGKILL at the end.
    """

    record: str
    command: list[str]
    uid: int
    job: dict[str, Any]
    begin_s: float
    start_by_s: float
    end_s: float
    patience_s: float = 5.0


def main() -> int:
    """Read a task, and keep its job in a process of its own; return when the record exists."""
    task = KeeperTask(**json.load(sys.stdin))
    ready, told = os.pipe()
    if os.fork():
        os.close(told)
        problem = b"".join(iter(lambda: os.read(ready, 1000), b""))
        sys.stderr.write(problem.decode("utf-8", "replace"))
        return 1 if problem else 0
    os.setsid()
    os.close(ready)
    keeper = Keeper(task)
    signal.signal(signal.SIGTERM, keeper.on_term)
    try:
        if not keeper.locked():
            return 0  # another keeper has the job
        keeper.note()
    except OSError as error:
        os.write(told, str(error).encode())
        return 1
    nothing = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(nothing, standard)
    os.close(told)
    keeper.keep()
    return 0


def read_record(path: Path) -> dict[str, Any] | None:
    """Return the record of a job, or None; `ValueError` if it is damaged."""
    try:
        found: dict[str, Any] = json.loads(path.with_name(f"{path.name}.json").read_text("utf-8"))
    except FileNotFoundError:
        return None
    return found


def keeper_of(record: Path) -> int:
    """Return the process id of a job's keeper; 0 if none lives."""
    try:
        lock = os.open(record.with_name(f"{record.name}.lock"), os.O_RDWR)
    except FileNotFoundError:
        return 0
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return int(os.pread(lock, 20, 0) or b"0")
    finally:
        os.close(lock)
    return 0


@dataclass(slots=True)
class Keeper:
    """One job and its record."""

    task: KeeperTask
    sight: dict[str, Any] = field(default_factory=lambda: worker.sight("queued"))
    _lock: int = -1
    _status: int | None = None
    _was_stopped: bool = False
    _told_to_end: bool = False
    _heard: int = -1
    _worker: subprocess.Popen[bytes] | None = None
    _unsent: bytes = b""
    _group: processes.ControlGroup | None = None

    @property
    def _record(self) -> Path:
        return Path(self.task.record)

    def locked(self) -> bool:
        """Take the job's lock; return whether that was possible."""
        path = self._record.with_name(f"{self._record.name}.lock")
        path.parent.mkdir(parents=True, exist_ok=True)
        self._lock = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        for _ in range(10):  # the agent looks at it for an instant
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.ftruncate(self._lock, 0)
                os.pwrite(self._lock, str(os.getpid()).encode(), 0)
                return True
            time.sleep(0.05)
        return False

    def note(self, **values: Any) -> None:
        """Write the record durably, with changed values; the first time, take over an earlier keeper's record."""
        known = read_record(self._record) if not values else None
        self.sight = known or {**self.sight, **values}
        new = self._record.with_name(f"{self._record.name}.new")
        with new.open("w", encoding="utf-8") as file:
            json.dump(self.sight, file)
            file.flush()
            os.fsync(file.fileno())
        new.rename(self._record.with_name(f"{self._record.name}.json"))

    def keep(self) -> None:
        """Keep the job until nothing of it is left."""
        processes.ask_kernel(processes.PR_SET_CHILD_SUBREAPER, 1)
        self._heard, hearing = os.pipe()
        for end in (self._heard, hearing):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(hearing, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self._group = processes.ControlGroup.made(f"ramp-{self._record.parent.name}:{self._record.name}")
        try:
            self._lived()
        finally:
            if self._group is not None:
                self._group.remove()

    def on_term(self, *_: object) -> None:
        """Note that the agent wants the job ended."""
        self._told_to_end = True

    def _is_cancelled(self) -> bool:
        return self._told_to_end

    def _has_started(self) -> bool:
        return self.sight["started_at"] is not None

    def _lived(self) -> None:
        if worker.is_over(self.sight):
            return
        if self._has_started():  # an earlier keeper was killed
            self._end_all()
            self._ended(None, "its keeper was killed")
            return
        self._wait(self._is_cancelled, at=self.task.begin_s)
        while not self._is_cancelled() and time.time() < self.task.start_by_s:
            problem = self._started()
            if not problem:
                break
            self._end_all()
            self.note(detail=problem[:300])
            self._wait(self._is_cancelled, at=self.task.start_by_s, limit_s=RETRY_S)
        if not self._has_started():
            detail = self.sight["detail"] or "its latest start had passed"
            self.note(**({"state": "cancelled"} if self._is_cancelled() else {"state": "failed", "detail": detail}))
            return
        self._wait(lambda: self._is_over() or self._is_cancelled(), at=self.task.end_s)
        detail = ""
        if not self._is_over():
            detail = "" if self._is_cancelled() else "its slot ended"
            self._kill(processes.descendants(os.getpid()), signal.SIGTERM)
            self._wait(self._is_over, limit_s=self.task.patience_s)
        if not self._end_all():
            detail = f"some of its processes did not end within {END_LIMIT_S:g} s"
        self._ended(self._status, detail or self._complaint())

    def _ended(self, status: int | None, detail: str) -> None:
        code = None if status is None else os.waitstatus_to_exitcode(status)
        state = "done" if code == 0 else "cancelled" if self._is_cancelled() else "failed"
        self.note(state=state, exit_code=code, ended_at=int(time.time() * 1e6), detail=detail)

    # -- the worker ----------------------------------------------------------------------------------------------

    def _started(self) -> str:
        """Start the worker as the account, record the start, and let it run the job; return what is wrong, or ''."""
        self._status, self._was_stopped = None, False
        pipe = subprocess.PIPE
        try:
            started = subprocess.Popen(self.task.command, stdin=pipe, stdout=pipe, stderr=pipe, **_PROCESS, bufsize=0)
        except (OSError, subprocess.SubprocessError) as error:
            return str(error)
        self._worker = started
        assert started.stdin is not None
        assert started.stdout is not None
        assert started.stderr is not None
        for stream in (started.stdin, started.stdout, started.stderr):
            os.set_blocking(stream.fileno(), False)
        if self._group is not None:
            with contextlib.suppress(OSError):
                self._group.add(started.pid)
        self._unsent = _line(RUN)
        come_to_rest = lambda: self._is_over() or self._was_stopped  # noqa: E731
        self._wait(come_to_rest, limit_s=START_LIMIT_S, readable=started.stdout.fileno())
        if not started.stdout.read(1000) and not self._is_held_up():
            complaint = (started.stderr.read(10_000) or b"").decode("utf-8", "replace").strip().splitlines()
            return (complaint or [f"{self.task.command[0]} did not start within {START_LIMIT_S:g} s"])[-1]
        self.note(state="running", started_at=int(time.time() * 1e6), cores=self.task.job["job"]["cores"], detail="")
        self._unsent += _line(self.task.job)
        return ""

    def _is_held_up(self) -> bool:
        """Return whether a signal has ended or stopped the worker, which only its account can have sent."""
        if self._was_stopped or processes.stopped(processes.descendants(os.getpid())):
            return True
        self._wait(self._is_over, limit_s=RETRY_S)
        return self._status is not None and os.WIFSIGNALED(self._status)

    def _complaint(self) -> str:
        assert self._worker is not None
        assert self._worker.stdout is not None
        with contextlib.suppress(ValueError, OSError, KeyError, TypeError):
            return str(json.loads(self._worker.stdout.read(10_000) or b"")["error"])[:300]
        return ""

    def _is_over(self) -> bool:
        """Bury what has ended; return whether the command has."""
        with contextlib.suppress(ChildProcessError):
            while True:
                changed, status = os.waitpid(-1, os.WNOHANG | os.WUNTRACED)
                if not changed:
                    break
                if self._worker is not None and changed == self._worker.pid:
                    self._was_stopped |= os.WIFSTOPPED(status)
                    self._status = None if os.WIFSTOPPED(status) else status
        return self._status is not None

    def _wait(
        self, until: Callable[[], bool], *, at: float = math.inf, limit_s: float = math.inf, readable: int = -1
    ) -> None:
        """Wait until a condition holds, a time has come, a limit is over, or a file can be read.

        What is written to the worker meanwhile never makes the keeper wait, because the account may stop the worker.
        """
        begun = time.monotonic()
        while not until():
            left = min(at - time.time(), limit_s - (time.monotonic() - begun))
            if left <= 0:
                return
            stdin = None if self._worker is None else self._worker.stdin
            writing = [stdin] if self._unsent and stdin is not None else []
            reading = [self._heard] if readable < 0 else [self._heard, readable]
            found, free, _ = select.select(reading, writing, [], min(left, WAIT_MAX_S))
            if self._heard in found:
                os.read(self._heard, 1000)
            for each in free:
                try:
                    self._unsent = self._unsent[os.write(each.fileno(), self._unsent) :]
                except OSError:  # the worker has ended
                    self._unsent = b""
            if readable in found:
                return

    # -- the end -------------------------------------------------------------------------------------------------

    def _end_all(self) -> bool:
        """Kill everything that the job has started; return whether nothing is left."""
        if self._group is not None:
            self._group.kill()
        mark = f"RAMP_JOB={self._record.name}"
        if os.geteuid() in (0, self.task.uid):
            processes.kill(worker.carrying(mark, self.task.uid))
        else:
            self._ask_account([], mark, signal.SIGKILL)
        return processes.end_descendants(self._kill, self._is_over, END_LIMIT_S)

    def _kill(self, pids: list[int], sign: int = signal.SIGKILL) -> None:
        refused = processes.kill(pids, sign)
        if refused:
            self._ask_account(refused, "", sign)

    def _ask_account(self, pids: list[int], mark: str, sign: int) -> None:
        """Let the account itself send a signal to its processes, where the keeper may not."""
        asked = _line({"version": worker.VERSION, "verb": "end", "pids": pids, "mark": mark, "signal": int(sign)})
        nothing = subprocess.DEVNULL
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            subprocess.run(
                self.task.command,
                input=asked,
                stdout=nothing,
                stderr=nothing,
                timeout=START_LIMIT_S,
                check=False,
                **_PROCESS,
            )


def _line(question: dict[str, Any]) -> bytes:
    return json.dumps(question).encode() + b"\n"


if __name__ == "__main__":
    sys.exit(main())
