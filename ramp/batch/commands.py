"""Commands of batch systems, run and believed with care.

A question to a system is an argument list and a pure function that reads what the command prints (`Question`); a
third system is then one module of such pairs, and its recorded outputs are its test data. A command is run without a
shell, in an environment of its own (UTC, the C locale, none of the caller's `SQUEUE_FORMAT`), and may take only so long
and print only so much. The idea of pairs of a command line and a parser is PSI/J's (its batch scheduler executors).
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import IO, Any, Final, Generic, Protocol, TypeVar

from ramp.errors import AnswerUnreadable, CommandFailed, CommandMissing, CommandTimedOut, plain

Answer = TypeVar("Answer")

TIME_LIMIT_S: Final = 20.0
"""Seconds that a command may take: Slurm's own give up after 10 s where the controller hangs."""

OUTPUT_LIMIT: Final = 64 * 1024 * 1024
"""Bytes that a command may print: `squeue --json` of 10 000 jobs has some 50 MB."""

_PIECE: Final = 65_536
_LINGER_S: Final = 0.5
"""How long a command's output is read after its end, where a child of it keeps the pipe open."""


@dataclass(frozen=True, slots=True)
class Completed:
    """A command that has ended.

    Attributes:
        argv: what was run.
        code: its exit code; negative for a signal.
        stdout: what it printed; bytes that are no UTF-8 stand as U+FFFD.
        stderr: what it complained of.
    """

    argv: tuple[str, ...]
    code: int
    stdout: str
    stderr: str


@dataclass(frozen=True, slots=True)
class Question(Generic[Answer]):
    """One question to a batch system: the command that asks it, and how its answer is read.

    Attributes:
        argv: the command and its arguments; no shell sees them.
        parse: reads standard output; raises `ValueError` where it is not what the command is known to print.
        stdin: what the command is given to read.
        codes: exit codes of commands that have answered.
        time_limit_s: seconds that it may take; None for the runner's own limit.
    """

    argv: tuple[str, ...]
    parse: Callable[[str], Answer]
    stdin: str = ""
    codes: tuple[int, ...] = (0,)
    time_limit_s: float | None = None


class Runner(Protocol):
    """Runs a command; in tests, whatever answers from recorded outputs."""

    def __call__(self, argv: tuple[str, ...], stdin: str = "", time_limit_s: float | None = None) -> Completed:
        """Run to the end.

        Raises:
            CommandMissing: there is no such program, or it may not be run.
            CommandTimedOut: it took too long, or printed too much; it was killed, and nobody knows what it has done.
        """
        ...


def ask(question: Question[Answer], run: Runner) -> Answer:
    """Run a question's command and read its answer.

    Raises:
        CommandMissing: see `Runner`.
        CommandTimedOut: see `Runner`.
        CommandFailed: it ended with another exit code.
        AnswerUnreadable: what it printed is not what such a command prints.
    """
    done = run(question.argv, question.stdin, question.time_limit_s)
    if done.code not in question.codes:
        raise CommandFailed(done.argv, done.code, plain(done.stderr or done.stdout))
    try:
        return question.parse(done.stdout)
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError, OverflowError) as error:
        raise AnswerUnreadable(done.argv, plain(f"{error}")) from error


@dataclass(frozen=True, slots=True)
class CommandRunner:
    """Runs commands on this computer; a `Runner`.

    Attributes:
        environment: variables beside the clean environment's own (`SLURM_CONF`, `SGE_ROOT`).
        time_limit_s: seconds that a command may take.
        output_limit: bytes that it may print, on either stream.
        process: with what its process is made beside that (`user`, `group`).
    """

    environment: Mapping[str, str] = field(default_factory=dict)
    time_limit_s: float = TIME_LIMIT_S
    output_limit: int = OUTPUT_LIMIT
    process: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self, argv: tuple[str, ...], stdin: str = "", time_limit_s: float | None = None) -> Completed:
        """See `Runner`."""
        limit = self.time_limit_s if time_limit_s is None else time_limit_s
        try:
            process = subprocess.Popen(
                argv,
                stdin=subprocess.PIPE if stdin else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=clean_environment(self.environment),
                start_new_session=True,
                **self.process,
            )
        except (OSError, ValueError) as error:
            raise CommandMissing(argv, f"{error}") from error
        try:
            stdout, stderr = _talk(process, stdin.encode(), time.monotonic() + limit, self.output_limit)
            code = process.wait(timeout=limit)
        except (_Limit, subprocess.TimeoutExpired) as error:
            reason = str(error) if isinstance(error, _Limit) else f"it took more than {limit:g} s"
            raise CommandTimedOut(argv, reason) from None
        finally:
            _end(process)
        return Completed(tuple(argv), code, stdout.decode(errors="replace"), stderr.decode(errors="replace"))


def clean_environment(more: Mapping[str, str]) -> dict[str, str]:
    """The environment of a command: times in UTC, words in English, nothing of the caller's taste.

    Args:
        more: what it needs beside that.
    """
    path = os.environ.get("PATH", os.defpath)
    return {"PATH": path, "HOME": os.environ.get("HOME", "/"), "TZ": "UTC", "LC_ALL": "C", **more}


class _Limit(Exception):
    """A command has come to one of its limits."""


def _talk(process: subprocess.Popen[bytes], stdin: bytes, until: float, limit: int) -> tuple[bytes, bytes]:
    """Give a command its input and read what it prints, to the end of both streams.

    Raises:
        _Limit: it is too late, or too much.
    """
    started = time.monotonic()
    out, err = bytearray(), bytearray()
    assert process.stdout is not None
    assert process.stderr is not None
    with selectors.DefaultSelector() as waiting:
        waiting.register(process.stdout, selectors.EVENT_READ, out)
        waiting.register(process.stderr, selectors.EVENT_READ, err)
        if process.stdin is not None:
            os.set_blocking(process.stdin.fileno(), False)
            waiting.register(process.stdin, selectors.EVENT_WRITE)
        while any(key.data is not None for key in waiting.get_map().values()):
            left = until - time.monotonic()
            if left <= 0:
                raise _Limit(f"it took more than {until - started:.3g} s")
            ended = process.poll() is not None
            ready = waiting.select(min(left, _LINGER_S))
            if not ready and ended:
                break  # a child of it has the pipe still; what the command itself had to say is read
            for key, _ in ready:
                if key.data is None:
                    stdin = _feed(waiting, key.fileobj, stdin)  # type: ignore[arg-type]
                    continue
                piece = os.read(key.fd, _PIECE)
                key.data.extend(piece)
                if not piece:
                    waiting.unregister(key.fileobj)
                if len(key.data) > limit:
                    raise _Limit(f"it printed more than {limit} bytes")
    return bytes(out), bytes(err)


def _feed(waiting: selectors.BaseSelector, pipe: IO[bytes], left: bytes) -> bytes:
    """Write some input; a command that has ended before it read all of it has answered all the same."""
    try:
        left = left[os.write(pipe.fileno(), left[:_PIECE]) :]
    except BlockingIOError:
        return left
    except OSError:  # EPIPE
        left = b""
    if not left:
        waiting.unregister(pipe)
        with contextlib.suppress(OSError):
            pipe.close()
    return left


def _end(process: subprocess.Popen[bytes]) -> None:
    """Leave nothing of a command behind: neither itself, nor its children where it was cut short, nor pipes."""
    if process.poll() is None:
        with contextlib.suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()
