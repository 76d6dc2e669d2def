"""Unguessable identifiers: an offer id is also the right to accept it."""

from __future__ import annotations

import secrets


class RandomIds:
    """Draws 96 random bits of the operating system for every identifier."""

    def new(self, kind: str) -> str:
        return f"{kind}-{secrets.token_hex(12)}"
