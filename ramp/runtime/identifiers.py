"""Identifiers that nobody can guess: an offer id is also the right to accept it."""

from __future__ import annotations

import secrets


class RandomIds:
    """Draws 96 random bits for every identifier from the operating system."""

    def new(self, kind: str) -> str:
        """A new identifier such as `offer-1f0c9a5e7b3d2c4a6f8e0d1b`."""
        return f"{kind}-{secrets.token_hex(12)}"
