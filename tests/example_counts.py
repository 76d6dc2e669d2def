"""How many examples hypothesis tries for a property: all of them, or a part (RAMP_EXAMPLES=12: a twelfth)."""

import os

PART = int(os.environ.get("RAMP_EXAMPLES", "12"))
FEWEST = 3


def examples(number: int) -> int:
    """Return the number of examples to try now.

    Args:
        number: how many the property asks for.
    """
    return min(number, max(FEWEST, number // PART))
