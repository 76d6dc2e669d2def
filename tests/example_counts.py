"""How many examples hypothesis tries a property with: a twelfth of them in `make test`, all of them in `make slow`."""

from __future__ import annotations

import os

ALL = os.environ.get("RAMP_EXAMPLES") == "all"
PART = 12
FEWEST = 3


def examples(number: int) -> int:
    """The number of examples to try now.

    Args:
        number: how many there are to be in all.
    """
    return number if ALL else min(number, max(FEWEST, number // PART))
