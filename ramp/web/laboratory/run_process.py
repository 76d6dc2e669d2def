"""The process of a run: it outlives the server that has begun it, and the next server finds it again.

What it says and answers goes into files, for a pipe ends with whoever reads it. It is known by its number and by when
it was begun, for numbers come again (proc(5)).
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from ramp.web.laboratory.command_line import LINE_MAX, shown

GATE: Final = ("/bin/sh", "-c", 'read -r _ && exec "$@" </dev/null', "sh")
"""Becomes the program when it is told to, once it is on record which process it is; it ends with a server that dies
before that, so that no run is lost."""

STOP_LIMIT_S: Final = 15.0
"""How long a process that is to end may take to clear up, in seconds; then it is killed with all that it has begun."""

_STATE_FIELD: Final = 0
_START_FIELD: Final = 19
"""Fields of `/proc/PID/stat` behind the name: the third and the twenty-second of proc(5)."""


@dataclass(frozen=True, slots=True)
class ProcessMark:
    """A process that no other can be taken for.

    Attributes:
        pid: its number, which is its process group's too.
        started: when it was begun, in clock ticks since the computer was.
        boot: id of the computer's start.
    """

    pid: int
    started: int
    boot: str

    @classmethod
    def of(cls, pid: int) -> Self | None:
        """The mark of a process; None where there is none, or it has ended and nobody has asked how."""
        try:
            text = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
            boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
        except OSError:
            return None
        fields = text.rpartition(")")[2].split()
        return None if fields[_STATE_FIELD] in "ZX" else cls(pid, int(fields[_START_FIELD]), boot)

    def is_going(self) -> bool:
        """Whether that process goes on."""
        return self.pid > 1 and ProcessMark.of(self.pid) == self


class RunProcess:
    """A process that goes on, or has ended.

    Args:
        mark: which.
        child: the same, where this server has begun it.
    """

    def __init__(self, mark: ProcessMark, child: subprocess.Popen[bytes] | None = None) -> None:
        self.mark = mark
        self._child = child

    @classmethod
    def begin(cls, command: Sequence[str], words: Sequence[str], said: Path, answer: Path, niceness: int) -> Self:
        """Begin a process that waits at the gate; see `let_go`.

        Args:
            command: program and first arguments.
            words: further arguments.
            said: file of what it says on standard error, made anew.
            answer: file of what it prints on standard output, made anew.
            niceness: by how much it is nicer than this process (setpriority(2)).

        Raises:
            OSError: if there is no such program, no room for another process, or the files cannot be written.
        """
        if shutil.which(command[0]) is None:
            raise FileNotFoundError(2, f"there is no program {command[0]}")
        with _private(said) as error_file, _private(answer) as output_file:
            child = subprocess.Popen(
                [*GATE, *command, *words],
                stdin=subprocess.PIPE,
                stdout=output_file,
                stderr=error_file,
                start_new_session=True,  # what ends the server, or its terminal, does not end the run
                env={**os.environ, "PYTHONUNBUFFERED": "1"},
            )
        mark = ProcessMark.of(child.pid)
        if mark is None:
            child.wait()
            raise OSError(3, "the process has ended at once")
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, child.pid, os.getpriority(os.PRIO_PROCESS, child.pid) + niceness)
        return cls(mark, child)

    def let_go(self) -> None:
        """Open the gate."""
        assert self._child is not None
        assert self._child.stdin is not None
        with contextlib.suppress(OSError):  # it may have been killed
            self._child.stdin.write(b"\n")
            self._child.stdin.close()

    def is_going(self) -> bool:
        """Whether it goes on."""
        return self.mark.is_going() if self._child is None else self._child.poll() is None

    @property
    def exit_code(self) -> int | None:
        """How it has ended; None while it goes on, and where another server had begun it."""
        return None if self._child is None else self._child.returncode

    def end(self) -> None:
        """Ask it to end what it has begun and to clear up."""
        if self.is_going():
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.mark.pid, signal.SIGTERM)

    def kill(self) -> None:
        """Kill it with all that it has begun, where it has not ended."""
        if self.is_going():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.mark.pid, signal.SIGKILL)


class SaidLines:
    """Lines of a file that is being written, each read once and cut to `LINE_MAX`.

    Args:
        path: of the file; it may not be there.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0
        self._rest = b""

    def new(self, *, ended: bool) -> Iterator[str]:
        """Lines that have been written since; with `ended` also what no line end follows.

        Raises:
            OSError: if the file cannot be read.
        """
        try:
            file = self._path.open("rb")
        except FileNotFoundError:
            return
        with file:
            file.seek(self._offset)
            while chunk := file.read(1 << 16):
                self._offset += len(chunk)
                *whole, rest = (self._rest + chunk).split(b"\n")
                self._rest = rest[:LINE_MAX]
                yield from map(shown, whole)
        if ended and self._rest:
            yield shown(self._rest)
            self._rest = b""


@contextlib.contextmanager
def _private(path: Path) -> Iterator[int]:
    """A new file that only its owner reads, to write."""
    path.unlink(missing_ok=True)  # a process that was killed may have left one that writes into it
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
