"""A guest's process: opens one plug-in or price strategy and passes it the agent's questions; and its warden.

The agent runs it as `python -m ramp.agents.guests.worker` and sends the opening and the questions over a socket.
Exceptions and invalid answers of the guest return as failures. The guest's output goes to the agent's log and cannot
mix with the answers.

The process first forks: it becomes the warden, which adopts all orphans among its descendants, and the child becomes
the guest. When the guest ends, all of its processes together take too much memory, the warden is terminated, or the
agent's process ends, the warden kills all remaining descendants, in whatever session they are. If the warden itself is
killed, the kernel ends the guest, and the agent ends what the guest has started (`GuestProcess`).
"""

from __future__ import annotations

import argparse
import contextlib
import os
import resource
import signal
import socket
import sys
from collections.abc import Callable
from functools import partial
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any, Final, NoReturn

from ramp.launching import processes
from ramp.text import one_line

WEIGH_EVERY_S: Final = 1.0
"""Pause in seconds between two sums of the memory of all processes of the guest."""

END_LIMIT_S: Final = 60.0
"""Timeout of the end of all descendants in seconds."""

KILLED_BASE: Final = 128
"""The warden's exit status is this plus the signal's number if a signal has ended the guest, as in a shell."""

OUT_OF_MEMORY_STATUS: Final = 99
"""Exit status of a guest without enough memory to report that, and of a warden whose guest takes too much."""


def divide(parent: int, channel: int, memory_mb: int) -> int | None:
    """Turn this process into a warden, and fork the guest.

    Args:
        parent: process id of the agent's process.
        channel: file descriptor for the guest only.
        memory_mb: maximum memory of all processes of the guest in MB of 2**20 bytes.

    Returns:
        None in the guest; in the warden the exit status, after all descendants have ended.

    Raises:
        SystemExit: the agent's process has already ended.
    """
    signal.signal(signal.SIGTERM, _told_to_end)
    processes.ask_kernel(processes.PR_SET_PDEATHSIG, signal.SIGTERM)
    processes.ask_kernel(processes.PR_SET_CHILD_SUBREAPER, 1)
    if os.getppid() != parent:
        raise SystemExit("the process that started this one has ended")
    warden = os.getpid()
    guest = os.fork()
    if guest == 0:
        _become_guest(warden, memory_mb)
        return None
    try:
        os.close(channel)
        signal.signal(signal.SIGALRM, partial(_weigh, memory_mb * 2**20))
        signal.setitimer(signal.ITIMER_REAL, WEIGH_EVERY_S, WEIGH_EVERY_S)
        return _watch(guest)
    except _End as end:
        return end.status
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        processes.end_descendants(processes.kill, _bury, END_LIMIT_S)


class _End(BaseException):
    """The warden must end with a status: SIGTERM has arrived, or the processes of the guest exceed the limit."""

    def __init__(self, status: int) -> None:
        self.status = status


def _told_to_end(*_: object) -> NoReturn:
    raise _End(KILLED_BASE + signal.SIGTERM)


def _weigh(limit: int, *_: object) -> None:
    if processes.memory_of(processes.descendants(os.getpid())) > limit:
        raise _End(OUT_OF_MEMORY_STATUS)


def _become_guest(warden: int, memory_mb: int) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    processes.ask_kernel(processes.PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != warden:
        os._exit(1)
    os.setsid()
    with contextlib.suppress(OSError):  # if memory runs out, the kernel ends the guest first
        Path("/proc/self/oom_score_adj").write_text("1000", "ascii")
    # only private writable memory; a limit of the address space would include libraries
    resource.setrlimit(resource.RLIMIT_DATA, (memory_mb * 2**20, memory_mb * 2**20))


def _watch(guest: int) -> int:
    while True:
        ended, status = os.waitpid(-1, 0)
        if ended == guest:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else KILLED_BASE - code


def _bury() -> None:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def main(arguments: list[str] | None = None) -> int:
    """Run one guest until the agent closes the channel."""
    parser = argparse.ArgumentParser(prog="python -m ramp.agents.guests.worker", description=main.__doc__)
    parser.add_argument("--parent", type=int, required=True)
    parser.add_argument("--channel", type=int, required=True)
    parser.add_argument("--memory-mb", type=int, required=True)
    options = parser.parse_args(arguments)
    status = divide(options.parent, options.channel, options.memory_mb)
    if status is not None:
        return status
    os.set_inheritable(options.channel, False)
    with socket.socket(fileno=options.channel) as channel:
        try:
            _Worker(channel).run()
        except MemoryError:  # outside of a call of the guest, whose failure would be an answer
            os._exit(OUT_OF_MEMORY_STATUS)
    sys.stdout.flush()
    os._exit(0)  # despite remaining threads of the guest


class _Worker:
    """Answers questions from the socket to the agent, one after another."""

    def __init__(self, channel: socket.socket) -> None:
        from ramp.agents.guests import messages

        self._messages = messages
        self._channel, self._lines = channel, channel.makefile("rb")
        self._findings: list[messages.Finding] = []

    def run(self) -> None:
        messages = self._messages
        opening = self._receive()
        if not isinstance(opening, messages.Opening):
            return
        try:
            opened, answer = self._open(opening)
        except Exception as error:
            opened, answer = _not_opened(error), None
        self._channel.sendall(messages.write(opened))
        while answer is not None:
            asked = self._receive()
            if not isinstance(asked, messages.Asked):
                return
            self._findings.clear()
            told = messages.Told(asked.number, answer(asked.question, asked.now), tuple(self._findings))
            self._channel.sendall(self._written(asked, told))

    def _open(self, opening: Any) -> tuple[Any, Callable[[Any, int], Any]]:
        from ramp.plugins.interface import SOURCES, checked_plugin
        from ramp.runtime.guests.questions import GuardedGuest

        made = EntryPoint(opening.name, opening.value, opening.group).load()
        if opening.settings is None:
            return self._messages.Opened(""), GuardedGuest(made, self).ask
        plugin = checked_plugin(made(opening.settings))
        source = plugin.source
        if source not in SOURCES:
            raise ValueError(f"invalid source: got {source!r:.50}, expected one of {', '.join(SOURCES)}")
        return self._messages.Opened(source, plugin.tended), GuardedGuest(plugin, self, own_memory=False).ask

    def _written(self, asked: Any, told: Any) -> bytes:
        """Encode an answer, or a failure if the answer cannot be encoded."""
        messages = self._messages
        try:
            written: bytes = messages.write(told)
        except (messages.NonsenseSaid, ValueError, TypeError, AttributeError, RecursionError) as error:
            from ramp.runtime.guests.questions import ROW_OF, raised, without_answer

            call = ROW_OF[type(asked.question)].call
            reason = f"{call}: cannot encode the answer: {raised(error)}"
            instead = without_answer(asked.question, reason, asked=True)
            finding = messages.Finding(call, reason)
            written = messages.write(messages.Told(asked.number, instead, (finding,)))
        return written

    def _receive(self) -> Any:
        line = self._lines.readline()
        return self._messages.read_opening_or_question(line) if line else None

    # -- health as the guards report it; the agent decides about pauses ------------------------------------------------

    is_well = False  # only the agent knows of earlier failures, so every answer is reported to it

    def resting(self, call: str, now: int) -> str:
        """Return why to skip the rest of a question: the failure of an earlier part."""
        del call, now
        return next((finding.reason for finding in self._findings if finding.reason), "")

    def failed(self, call: str, reason: str, now: int) -> None:
        del now
        self._findings.append(self._messages.Finding(call, reason))

    def answered(self, call: str) -> None:
        finding = self._messages.Finding(call)
        if finding not in self._findings:
            self._findings.append(finding)


def _not_opened(error: Exception) -> Any:
    from ramp.agents.guests.messages import NotOpened
    from ramp.errors import ConfigurationError, PluginError
    from ramp.runtime.guests.questions import raised

    if isinstance(error, ConfigurationError):
        return NotOpened(one_line(str(error)), "configuration")
    if isinstance(error, PluginError):
        return NotOpened(one_line(error.reason), "nobody" if error.transient else "guest")
    return NotOpened(raised(error), "nobody")


if __name__ == "__main__":
    sys.exit(main())
