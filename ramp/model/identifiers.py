"""Identifiers: where new ones come from, so that no pure machine draws its own."""

from __future__ import annotations

from typing import Protocol


class IdSource(Protocol):
    """Gives identifiers that never repeat; they are the idempotency keys of the protocol.

    In production they are unguessable; in the simulator they are counted, so that runs repeat.
    """

    def new(self, kind: str) -> str:
        """A new identifier whose text begins with `kind` (`request`, `offer`, `agreement`, `nonce`)."""
        ...
