"""A bounded queue of messages that wait for the connection; it drops the oldest first."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

OUTBOX_MESSAGES_MAX = 2_000
"""Maximum number of messages kept while disconnected; a ten-round auction with 100 resources needs about 1 000."""

OUTBOX_BYTES_MAX = 16_000_000
"""Maximum length of all messages kept while disconnected, in characters; about 16 MB."""


class Outbox:
    """Stanzas in sending order."""

    def __init__(self) -> None:
        self._stanzas: deque[str] = deque()
        self._size = 0

    def __len__(self) -> int:
        return len(self._stanzas)

    def put(self, stanza: str) -> int:
        """Append a stanza and return the number of dropped stanzas."""
        self._stanzas.append(stanza)
        self._size += len(stanza)
        return self._shrink()

    def put_first(self, stanzas: Iterable[str]) -> int:
        """Put stanzas in front of all others, in their order, and return the number of dropped stanzas."""
        for stanza in reversed(list(stanzas)):
            self._stanzas.appendleft(stanza)
            self._size += len(stanza)
        return self._shrink()

    def take(self) -> str | None:
        """Remove and return the oldest stanza; None if the outbox is empty."""
        if not self._stanzas:
            return None
        stanza = self._stanzas.popleft()
        self._size -= len(stanza)
        return stanza

    def _shrink(self) -> int:
        gone = 0
        while len(self._stanzas) > OUTBOX_MESSAGES_MAX or (self._size > OUTBOX_BYTES_MAX and len(self._stanzas) > 1):
            self.take()
            gone += 1
        return gone
