"""Who has changed what of a market, and when: one line a change, in `audit.log` of the state folder.

Lines are JSON objects, appended in one write and durable before the change is told as done. Nothing of the program
takes one away.
"""

from __future__ import annotations

import json
import os
import pwd
import socket
import struct
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Final

from ramp.model.instant import Instant, from_iso, iso
from ramp.runtime.state_folder import StateFolder

_CREDENTIALS: Final = struct.Struct("3i")  # struct ucred of unix(7): process, user, group


@dataclass(frozen=True, slots=True)
class AuditLine:
    """One change.

    Attributes:
        time: when, ISO 8601.
        who: the system's user that asked for it.
        what: a sentence.
        verb: the kind of change, such as `user add`.
        name: whom it is about.
    """

    time: str
    who: str
    what: str
    verb: str
    name: str

    @property
    def at(self) -> Instant:
        """When."""
        return from_iso(self.time)


def add_line(state: StateFolder, now: Instant, who: str, verb: str, name: str, what: str) -> AuditLine:
    """Write a change down; it is durable when this returns.

    Args:
        state: whose market.
        now: the present.
        who: asked for it.
        verb: the kind of change.
        name: whom it is about.
        what: the sentence.

    Raises:
        OSError: if it cannot be written.
    """
    line = AuditLine(iso(now), who, what, verb, name)
    data = (json.dumps(asdict(line), ensure_ascii=False) + "\n").encode()
    descriptor = os.open(state.audit_log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.write(descriptor, data)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    return line


def lines_of(state: StateFolder, since: Instant = 0) -> Iterator[AuditLine]:
    """The changes of a market since a moment, in the order of writing; what is no line of ours is passed over."""
    try:
        text = state.audit_log.read_text("utf-8", errors="replace")
    except FileNotFoundError:
        return
    for each in text.splitlines():
        try:
            line = AuditLine(**json.loads(each))
            if line.at >= since:
                yield line
        except (ValueError, TypeError):  # a line that a full disk has cut short
            continue


def own_name() -> str:
    """The system's name of the user that runs this program."""
    return _name_of(os.getuid())


def peer_name(line: socket.socket) -> str:
    """The system's name of the user at the other end of a Unix socket, as the kernel tells it (SO_PEERCRED)."""
    raw = line.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    return _name_of(_CREDENTIALS.unpack(raw)[1])


def _name_of(user: int) -> str:
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return f"user {user}"
