"""Identifiers that count, so that simulated runs repeat."""

from __future__ import annotations

from collections import Counter


class CountedIds:
    """Gives `offer-res3-17`: kind, owner, count. The counts belong to the owner, not to its memory.

    Kept outside a party's volatile state, so that no identifier is given twice across a crash.
    """

    def __init__(self, owner: str) -> None:
        self._owner = owner
        self._counts: Counter[str] = Counter()

    def new(self, kind: str) -> str:
        """Return a new identifier."""
        self._counts[kind] += 1
        return f"{kind}-{self._owner}-{self._counts[kind]}"
