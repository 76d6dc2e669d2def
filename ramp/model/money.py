"""Money: market credits as integer minor units; prices per core hour as whole credits, as RFQL's CPUHourCost is.

The paper's virtual currency (section 6.3) has no name; the project calls the unit a credit. Prices travel as
RFQL integers, so a price is a whole number of credits per core hour; a cost is price x cores x time and is kept in
hundredths of a credit, rounded half up once, here.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Final

from ramp.model.instant import HOUR, Duration

MINOR_UNITS_PER_CREDIT: Final = 100
"""Hundredths of a credit: amounts on accounts are integers of this unit."""


def cost(cpu_hour_cost: int, cores: int, duration: Duration) -> int:
    """Return the cost of a slot in minor units, rounded half up.

    Args:
        cpu_hour_cost: whole credits per core hour.
        cores: cores charged for.
        duration: length of the slot in microseconds.
    """
    numerator = cpu_hour_cost * MINOR_UNITS_PER_CREDIT * cores * duration
    return (2 * numerator + HOUR) // (2 * HOUR)


def per_core_hour(minor_units: int, cores: int, duration: Duration) -> Decimal:
    """Return a slot's cost in credits per core-hour."""
    return Decimal(minor_units) * HOUR / (MINOR_UNITS_PER_CREDIT * cores * duration)


def price_number(price: Decimal) -> str:
    """Write a price with two decimals, a whole one without."""
    return f"{price:.2f}".removesuffix(".00")


def grouped(number: int) -> str:
    """Write a whole number with thousands separated by spaces: `1 234`."""
    return f"{number:,}".replace(",", " ")


def credits_text(minor_units: int) -> str:
    """Write an amount in credits with two decimals, thousands separated by spaces: `-1 234.50`."""
    sign = "-" if minor_units < 0 else ""
    whole, fraction = divmod(abs(minor_units), MINOR_UNITS_PER_CREDIT)
    return f"{sign}{grouped(whole)}.{fraction:02d}"


def parse_credits(text: str) -> int:
    """Read an amount of credits such as `100`, `99.5` or `1 234.50` into minor units.

    Raises:
        ValueError: if it is no decimal number of at most two decimals.
    """
    cleaned = text.strip().replace(" ", "").replace("_", "")
    negative = cleaned.startswith("-")
    whole, _, fraction = cleaned.lstrip("+-").partition(".")
    if not (whole or fraction) or not (whole + fraction).isdecimal() or len(fraction) > 2:
        raise ValueError(f"invalid amount of credits: got {text!r}, expected an amount such as 100 or 99.50")
    amount = int(whole or "0") * MINOR_UNITS_PER_CREDIT + int(fraction.ljust(2, "0") or "0")
    return -amount if negative else amount
