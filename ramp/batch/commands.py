"""Run commands of batch systems and check their answers.

A `Question` is an argument list and a pure function that parses the output. Support for another system is a module of
questions, with recorded outputs as test data. Commands run without a shell, in a clean environment (UTC, the C locale,
without the caller's `SQUEUE_FORMAT`), with limits on time and output. PSI/J's batch scheduler executors inspired these
pairs of a command line and a parser.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import selectors
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Final, Generic, Protocol, TypeVar

from ramp.errors import CommandFailed, ConfigurationError, command_error
from ramp.text import one_line

Answer = TypeVar("Answer")

TIME_LIMIT_S: Final = 20.0
"""Seconds that a command may take; Slurm's own commands give up after 10 s if the controller hangs."""

OUTPUT_LIMIT: Final = 64 * 1024 * 1024
"""Bytes that a command may print; `squeue --json` of 10 000 jobs has some 50 MB."""

_PIECE: Final = 65_536
_LINGER_S: Final = 0.5
"""How long output is read after a command's end if a child keeps the pipe open."""


@dataclass(frozen=True, slots=True)
class Completed:
    """A command that has ended.

    Attributes:
        argv: the command and its arguments.
        code: its exit code; negative for a signal.
        stdout: its output; bytes that are not UTF-8 become U+FFFD.
        stderr: its messages.
    """

    argv: tuple[str, ...]
    code: int
    stdout: str
    stderr: str


@dataclass(frozen=True, slots=True)
class Question(Generic[Answer]):
    """A question to a batch system: its command and the parser of the answer.

    Attributes:
        argv: the command and its arguments, run without a shell.
        parse: reads standard output; raises `ValueError` if it is not as expected.
        stdin: the command's input.
        codes: exit codes that mean success.
        time_limit_s: seconds that it may take; None for the runner's own limit.
    """

    argv: tuple[str, ...]
    parse: Callable[[str], Answer]
    stdin: str = ""
    codes: tuple[int, ...] = (0,)
    time_limit_s: float | None = None


class Runner(Protocol):
    """Runs a command; in tests, a player of recorded outputs."""

    def __call__(self, argv: tuple[str, ...], stdin: str = "", time_limit_s: float | None = None) -> Completed:
        """Run a command to its end.

        Raises:
            BatchSystemError: there is no such program, or it may not be run;
                or it took too long or printed too much; it was killed, and its effect is unknown.
        """
        ...


def ask(question: Question[Answer], run: Runner) -> Answer:
    """Run a question's command and parse its answer.

    Raises:
        BatchSystemError: see `Runner`, or its output is not as expected.
        CommandFailed: it ended with another exit code.
    """
    done = run(question.argv, question.stdin, question.time_limit_s)
    if done.code not in question.codes:
        raise CommandFailed(done.argv, done.code, one_line(done.stderr or done.stdout))
    try:
        return question.parse(done.stdout)
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError, OverflowError) as error:
        raise command_error(done.argv, f"unreadable output: {one_line(str(error))}") from error


@dataclass(frozen=True, slots=True)
class CommandRunner:
    """Runs commands on this computer; a `Runner`.

    Attributes:
        environment: variables besides those of `clean_environment` (`SLURM_CONF`, `SGE_ROOT`); `PATH` is a folder of
            commands.
        time_limit_s: seconds that a command may take.
        output_limit: bytes that it may print, on either stream.
        process: further arguments for its process (`user`, `group`).
    """

    environment: Mapping[str, str] = field(default_factory=dict)
    time_limit_s: float = TIME_LIMIT_S
    output_limit: int = OUTPUT_LIMIT
    process: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self, argv: tuple[str, ...], stdin: str = "", time_limit_s: float | None = None) -> Completed:
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
            raise command_error(argv, f"cannot be run: {error}", transient=False) from error
        try:
            stdout, stderr = _talk(process, stdin.encode(), time.monotonic() + limit, self.output_limit)
            code = process.wait(timeout=limit)
        except (_Limit, subprocess.TimeoutExpired) as error:
            reason = str(error) if isinstance(error, _Limit) else f"it took more than {limit:g} s"
            raise command_error(argv, reason) from None
        finally:
            _end(process)
        return Completed(tuple(argv), code, stdout.decode(errors="replace"), stderr.decode(errors="replace"))


def clean_environment(more: Mapping[str, str]) -> dict[str, str]:
    """Return a command's environment: UTC, the C locale and `more`, whose PATH precedes the caller's."""
    folders = (more.get("PATH", ""), os.environ.get("PATH", os.defpath))
    path = os.pathsep.join(filter(None, folders))
    return {"HOME": os.environ.get("HOME", "/"), "TZ": "UTC", "LC_ALL": "C", **more, "PATH": path}


def own_account() -> str:
    """Return the account of this process."""
    return pwd.getpwuid(os.geteuid()).pw_name


def market_account(name: str, resource: str) -> str:
    """Return the account that holds belong to: the configured one, else this process's.

    Raises:
        ConfigurationError: if it does not exist.
    """
    account = name or own_account()
    try:
        pwd.getpwnam(account)
    except KeyError:
        right = "an account of this computer"
        raise ConfigurationError(f"got {account!r}, expected {right}", key=f"{resource}.market_user") from None
    return account


def check_installed(commands: Sequence[str], variables: Mapping[str, str], package: str, resource: str) -> None:
    """Check that a runner with these variables finds commands: in the folder PATH, if that is among them.

    Raises:
        ConfigurationError: naming the first that it does not find.
    """
    folder = Path(variables.get("PATH", ""))
    for command in (str(folder / each) for each in commands):
        if shutil.which(command) is None:
            raise ConfigurationError(
                f"command {command} not found; install {package}'s commands on this computer", key=resource
            )


class _Limit(Exception):
    """A command has reached a limit."""


def _talk(process: subprocess.Popen[bytes], stdin: bytes, until: float, limit: int) -> tuple[bytes, bytes]:
    """Feed a command its input and read both streams to their end.

    Raises:
        _Limit: too late, or too much output.
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
                break  # a child still has the pipe; the command's own output is read
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
    """Write some input; a command that ends before reading all of it has still answered."""
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
    if process.poll() is None:
        with contextlib.suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()
