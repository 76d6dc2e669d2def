"""Named random streams derived from one seed.

A stream's numbers depend only on the seed and its own name, so adding a consumer never shifts another's numbers.
"""

from __future__ import annotations

import hashlib
import random


def stream(seed: int, name: str) -> random.Random:
    """Return a consumer's stream, for example of `network` or `crash/res3`."""
    digest = hashlib.sha256(f"{seed}/{name}".encode()).digest()
    return random.Random(int.from_bytes(digest[:8], "big"))
