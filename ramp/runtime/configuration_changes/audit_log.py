"""Authors and times of a market's changes: one JSON object a line, in `audit.log` of the state folder.

Each line is appended in one write and durable before the change is reported as done. RAMP deletes no line.
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
from ramp.runtime.logs import json_lines
from ramp.runtime.state_folder import StateFolder

_CREDENTIALS: Final = struct.Struct("3i")  # struct ucred of unix(7): process, user, group


@dataclass(frozen=True, slots=True)
class AuditLine:
    """A change.

    Attributes:
        time: ISO 8601.
        who: user of the operating system.
        what: the change as a sentence.
        verb: kind of change, such as `user add`.
        name: name of the changed party.
    """

    time: str
    who: str
    what: str
    verb: str
    name: str

    @property
    def at(self) -> Instant:
        return from_iso(self.time)


def add_line(state: StateFolder, now: Instant, who: str, verb: str, name: str, what: str) -> AuditLine:
    """Append a change; it is durable when this returns. The arguments are those of `AuditLine`.

    Raises:
        OSError: the line cannot be written.
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
    """Return the changes of a market since a time, in order of writing; skip invalid lines."""
    try:
        text = state.audit_log.read_text("utf-8", errors="replace")
    except FileNotFoundError:
        return
    yield from (line for line in json_lines(text, AuditLine) if line.at >= since)


def own_name() -> str:
    """Return the name of the user who runs this program."""
    return _name_of(os.getuid())


def peer_name(line: socket.socket) -> str:
    """Return the name of the user at the other end of a Unix socket, as the kernel states it (SO_PEERCRED)."""
    raw = line.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    return _name_of(_CREDENTIALS.unpack(raw)[1])


def _name_of(user: int) -> str:
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return f"user {user}"
