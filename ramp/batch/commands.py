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
from typing import IO, Final, Generic, Protocol, TypeVar

from ramp.errors import CommandFailed, ConfigurationError, command_error
from ramp.text import one_line

Answer = TypeVar("Answer")

TIME_LIMIT_S: Final = 20.0
"""Seconds that a command may take; Slurm's own commands give up after 10 s if the controller hangs."""

OUTPUT_LIMIT: Final = 64 * 1024 * 1024
"""Bytes that a command may print on either stream; `scontrol show job` of 10 000 jobs has some 15 MB."""

READ_BYTES: Final = 1 << 16
"""Bytes that are read at once; as many as a pipe has room for."""


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
        time_limit_s: seconds that it may take; None for the runner's own limit.
    """

    argv: tuple[str, ...]
    parse: Callable[[str], Answer]
    stdin: str = ""
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
    if done.code:
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
    """

    environment: Mapping[str, str] = field(default_factory=dict)
    time_limit_s: float = TIME_LIMIT_S

    def __call__(self, argv: tuple[str, ...], stdin: str = "", time_limit_s: float | None = None) -> Completed:
        limit = self.time_limit_s if time_limit_s is None else time_limit_s
        with os.fdopen(os.memfd_create("stdin"), "w+b") as given:  # unlike a pipe, it need not be fed
            given.write(stdin.encode())
            given.seek(0)
            try:
                process = subprocess.Popen(
                    argv,
                    stdin=given,
                    stdout=subprocess.PIPE,  # whose writer ends if this process is killed
                    stderr=subprocess.PIPE,
                    env=clean_environment(self.environment),
                    start_new_session=True,
                )
            except (OSError, ValueError) as error:
                raise command_error(argv, f"cannot be run: {error}", transient=False) from error
        assert process.stdout is not None
        assert process.stderr is not None
        with process.stdout as out, process.stderr as err:
            outputs = {out: bytearray(), err: bytearray()}
            if problem := self._over(process, limit, outputs):
                raise command_error(argv, problem)
            printed, said = (outputs[each].decode(errors="replace") for each in (out, err))
        return Completed(tuple(argv), process.returncode, printed, said)

    def _over(self, process: subprocess.Popen[bytes], limit_s: float, outputs: Mapping[IO[bytes], bytearray]) -> str:
        """Read a command's outputs until it has ended, or kill it at a limit; return which limit it has reached.

        A child of the command may keep the outputs open; it is not waited for.
        """
        until = time.monotonic() + limit_s
        watched = os.pidfd_open(process.pid)
        try:
            with selectors.DefaultSelector() as waiting:
                waiting.register(watched, selectors.EVENT_READ)
                for output in outputs:
                    os.set_blocking(output.fileno(), False)
                    waiting.register(output, selectors.EVENT_READ)
                while True:
                    left = until - time.monotonic()
                    ready = [key.fileobj for key, _ in waiting.select(max(left, 0))]
                    for output, found in outputs.items():
                        if _read_available(output.fileno(), found) and output in ready:
                            waiting.unregister(output)
                        if len(found) > OUTPUT_LIMIT:
                            return f"it printed more than {OUTPUT_LIMIT} bytes"
                    if watched in ready:
                        return ""
                    if left <= 0:
                        return f"it took more than {limit_s:g} s"
        finally:
            os.close(watched)
            with contextlib.suppress(OSError):
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _read_available(file: int, found: bytearray) -> bool:
    """Read what is there, up to just above `OUTPUT_LIMIT`; return whether the output has been closed."""
    while len(found) <= OUTPUT_LIMIT:
        try:
            data = os.read(file, READ_BYTES)
        except BlockingIOError:
            return False
        if not data:
            return True
        found += data
    return False


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
