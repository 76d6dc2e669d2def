"""Message routing of the embedded server (RFC 6121, 8.5).

The router knows the open sessions of each account. It delivers messages under the sender's authenticated address, keeps
messages for offline accounts, and bounces undeliverable ones.
"""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ramp.servers.embedded_process import Connection

KEPT_PER_ACCOUNT_MAX = 1_000
KEPT_BYTES_PER_ACCOUNT_MAX = 2_000_000
"""Maximum number and bytes of messages kept for one offline account; the oldest are dropped first."""

KEPT_BYTES_MAX = 32_000_000
"""Maximum size of all kept messages in bytes; further ones bounce."""

SESSIONS_MAX = 10
"""Maximum number of sessions of an account, each with data not read yet; the first of them ends."""

_CLIENT = "{jabber:client}"
_STANZAS = "urn:ietf:params:xml:ns:xmpp-stanzas"


@dataclass(slots=True)
class _Session:
    line: Connection
    available: bool = False


class Router:
    """Routing of one XMPP domain."""

    def __init__(self, domain: str, account_exists: Callable[[str], bool]) -> None:
        self.domain = domain
        self._account_exists = account_exists
        self._sessions: dict[str, dict[str, _Session]] = {}
        self._kept: dict[str, deque[bytes]] = {}
        self._kept_bytes = 0

    def logged_in(self, bare: str, resource: str, line: Connection) -> None:
        """Add the session of a client that has logged in, so that it ends with its account."""
        sessions = self._sessions.setdefault(bare, {})
        if len(sessions) >= SESSIONS_MAX:
            next(iter(sessions.values())).line.cut(f"more than {SESSIONS_MAX} sessions of one account")
        sessions[resource] = _Session(line)

    def gone(self, bare: str, resource: str) -> None:
        """Remove the session of a client whose connection has ended."""
        del self._sessions[bare][resource]
        if not self._sessions[bare]:
            del self._sessions[bare]

    def close(self, name: str) -> None:
        """End all sessions of a closed account, and drop its messages: the name may get another owner."""
        bare = f"{name}@{self.domain}"
        self._take_kept(bare)
        for session in list(self._sessions.get(bare, {}).values()):
            session.line.close()

    def set_available(self, bare: str, resource: str, available: bool) -> None:
        """Set whether a session accepts messages; if so, deliver the kept messages of its account in order."""
        session = self._sessions[bare].pop(resource)
        session.available = available
        self._sessions[bare][resource] = session  # the one that became available last has priority
        if available:
            for stanza in self._take_kept(bare):
                session.line.write(stanza)

    def deliver(self, element: ElementTree.Element, sender: str) -> bytes | None:
        """Deliver a message.

        Args:
            element: the message; its `from` is replaced.
            sender: full address with which the sender has logged in.

        Returns:
            An error stanza for the sender if the message cannot be delivered, else None.
        """
        element.set("from", sender)
        receiver = element.get("to") or sender.partition("/")[0]
        is_error = element.get("type") == "error"
        condition = self._hand_over(receiver, ElementTree.tostring(element), keep=not is_error)
        return bounce(element, condition) if condition and not is_error else None

    def _hand_over(self, receiver: str, stanza: bytes, *, keep: bool) -> str:
        """Write a message, or keep it for an absent receiver; return the condition of an error, or an empty string."""
        bare, _, resource = receiver.partition("/")
        user, _, domain = bare.rpartition("@")
        if domain != self.domain:
            return "remote-server-not-found"
        session = self._session_for(bare, resource)
        if session is not None:
            session.line.write(stanza)
            return ""
        if not keep or not self._account_exists(user):
            return "service-unavailable"
        return "" if self._keep(bare, stanza) else "resource-constraint"

    def _session_for(self, bare: str, resource: str) -> _Session | None:
        """Return the addressed session, else the one that became available last, else None."""
        sessions = self._sessions.get(bare)
        if not sessions:
            return None
        exact = sessions.get(resource)
        if exact is not None and not exact.line.is_closing():
            return exact
        for session in reversed(sessions.values()):
            if session.available and not session.line.is_closing():
                return session
        return None

    def _take_kept(self, bare: str) -> deque[bytes]:
        """Return the messages kept for an account, and keep them no longer."""
        kept = self._kept.pop(bare, deque())
        self._kept_bytes -= sum(map(len, kept))
        return kept

    def _keep(self, bare: str, stanza: bytes) -> bool:
        if self._kept_bytes + len(stanza) > KEPT_BYTES_MAX:
            return False
        kept = self._kept.setdefault(bare, deque())
        kept.append(stanza)
        self._kept_bytes += len(stanza)
        while len(kept) > KEPT_PER_ACCOUNT_MAX or sum(map(len, kept)) > KEPT_BYTES_PER_ACCOUNT_MAX:
            self._kept_bytes -= len(kept.popleft())
        return True


def bounce(element: ElementTree.Element, condition: str) -> bytes:
    """Return the error stanza for a stanza's sender."""
    answer = ElementTree.Element(element.tag, dict(element.attrib))
    answer.set("from", element.get("to") or "")
    answer.set("to", element.get("from") or "")
    answer.set("type", "error")
    answer.extend(child for child in element if child.tag != f"{_CLIENT}body")
    error = ElementTree.SubElement(answer, f"{_CLIENT}error", {"type": "cancel"})
    ElementTree.SubElement(error, f"{{{_STANZAS}}}{condition}")
    return bytes(ElementTree.tostring(answer))
