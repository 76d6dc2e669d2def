"""A guest's process: opens one plug-in or price strategy and asks it what the agent asks.

Run by the agent as `python -m ramp.agents.guests.worker`. It is told over one socket what to open, and then question by
question what to ask; whatever the guest raises or answers that cannot be goes back as that. The guest's own output
goes to the agent's log and cannot get among the answers.
"""

from __future__ import annotations

import argparse
import os
import socket
import sys
from collections.abc import Callable
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

from ramp.agents.guests import warden


def main(arguments: list[str] | None = None) -> int:
    """Be the process of one guest until the agent has no more questions."""
    parser = argparse.ArgumentParser(prog="python -m ramp.agents.guests.worker", description=main.__doc__)
    parser.add_argument("--parent", type=int, required=True)
    parser.add_argument("--channel", type=int, required=True)
    parser.add_argument("--memory-mb", type=int, required=True)
    options = parser.parse_args(arguments)
    status = warden.divide(options.parent, options.channel, options.memory_mb)
    if status is not None:
        return status
    os.set_inheritable(options.channel, False)
    with socket.socket(fileno=options.channel) as channel:
        try:
            _Worker(channel).run()
        except MemoryError:  # outside of a call of the guest, which would have been told as its failure
            os._exit(warden.OUT_OF_MEMORY_STATUS)
    sys.stdout.flush()
    os._exit(0)  # whatever threads the guest has left


class _Worker:
    """Answers questions, one after another.

    Args:
        channel: to the agent.
    """

    def __init__(self, channel: socket.socket) -> None:
        from ramp.agents.guests import messages

        self._messages = messages
        self._channel = channel
        self._findings: list[messages.Finding] = []

    def run(self) -> None:
        """Open the guest and answer until the agent closes the channel."""
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
        from ramp.plugins.interface import PluginSettings, TendedPlugin
        from ramp.runtime.guests.answers import SOURCES
        from ramp.runtime.guests.guarded_plugin import GuardedPlugin
        from ramp.runtime.guests.guarded_strategy import GuardedStrategy

        made = EntryPoint(opening.name, opening.value, opening.group).load()
        if opening.settings is None:
            return self._messages.Opened(""), GuardedStrategy(made, self).ask
        fields = opening.settings
        folder = fields["state_dir"]
        plugin = made(PluginSettings(**{**fields, "state_dir": None if folder is None else Path(folder)}))
        source = plugin.source
        if source not in SOURCES:
            raise ValueError(f"its source is {source!r:.50}; right would be one of {', '.join(SOURCES)}")
        return self._messages.Opened(source, isinstance(plugin, TendedPlugin)), GuardedPlugin(
            plugin, self, own_memory=False
        ).ask

    def _written(self, asked: Any, told: Any) -> bytes:
        """An answer as bytes; one that cannot be written is none."""
        messages = self._messages
        try:
            written: bytes = messages.write(told)
        except (messages.NonsenseSaid, ValueError, TypeError, AttributeError, RecursionError) as error:
            from ramp.runtime.guests.answers import call_of, raised, without_answer

            reason = f"{call_of(asked.question)}: the answer cannot be written: {raised(error)}"
            instead = without_answer(asked.question, reason, asked=True)
            finding = messages.Finding(call_of(asked.question), reason)
            written = messages.write(messages.Told(asked.number, instead, (finding,)))
        return written

    def _receive(self) -> Any:
        """The next message, or None where the agent has closed the channel."""
        head = self._exactly(self._messages.LENGTH_BYTES)
        if not head:
            return None
        return self._messages.read_opening_or_question(self._exactly(int.from_bytes(head, "big")))

    def _exactly(self, size: int) -> bytes:
        return self._channel.recv(size, socket.MSG_WAITALL)

    # -- the health that the guards tell; who is left alone for how long, the agent decides ----------------------------

    def resting(self, call: str, now: int) -> str:
        """Why the rest of a question is not asked: a part of it has failed. All else the agent decides."""
        del call, now
        return next((finding.reason for finding in self._findings if finding.reason), "")

    def failed(self, call: str, reason: str, now: int) -> None:
        """Note that a call has failed."""
        del now
        self._findings.append(self._messages.Finding(call, reason))

    def answered(self, call: str) -> None:
        """Note, once, that a call was answered well."""
        finding = self._messages.Finding(call)
        if finding not in self._findings:
            self._findings.append(finding)


def _not_opened(error: Exception) -> Any:
    from ramp.agents.guests.messages import Blame, NotOpened
    from ramp.errors import ConfigurationError, PluginError, plain
    from ramp.runtime.guests.answers import raised

    if isinstance(error, ConfigurationError):
        return NotOpened(plain(str(error)), Blame.CONFIGURATION)
    if isinstance(error, PluginError):
        return NotOpened(plain(error.reason), Blame.NOBODY if error.transient else Blame.GUEST)
    return NotOpened(raised(error), Blame.NOBODY)


if __name__ == "__main__":
    sys.exit(main())
