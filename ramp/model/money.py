"""Money: market credits as integer minor units; prices per core hour as whole credits, as RFQL's CPUHourCost is.

The paper's virtual currency (section 6.3) has no name; the project calls the unit a credit. Prices travel as
RFQL integers, so a price is a whole number of credits per core hour; a cost is price x cores x time and is kept in
hundredths of a credit, rounded half up once, here.
"""

from __future__ import annotations

import re
from decimal import Decimal
from functools import lru_cache
from typing import Final

from ramp.model.instant import HOUR, Duration

MINOR_UNITS_PER_CREDIT: Final = 100
"""Hundredths of a credit: amounts on accounts are integers of this unit."""

AMOUNT_MAX: Final = 10**13
"""Maximum amount and overdraft in minor units, so that no balance can exceed 64 bits."""


@lru_cache(maxsize=1024)  # every step of an offer asks for its cost again
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


def credits_decimal(minor_units: int) -> str:
    """Write an amount in credits for programs, as an exact decimal: `-1234.50`."""
    return credits_text(minor_units).replace(" ", "")


def exact_credits(minor_units: int) -> Decimal:
    """Return an amount in credits."""
    return Decimal(minor_units) / MINOR_UNITS_PER_CREDIT


def credits_of(given: int | str | Decimal, *, zero: bool = False) -> int:
    """Read an amount above 0, or from 0 on, that a person or a program gives; `ValueError` if it is no such amount."""
    amount = parse_credits(format(given, "f") if isinstance(given, Decimal) else str(given))
    if amount < (0 if zero else 1):
        least = "0 or more" if zero else "above 0"
        raise ValueError(f"must be {least}: got {str(given)!r}, expected an amount such as 100 or 99.50")
    return amount


def parse_credits(text: str) -> int:
    """Read an amount of credits such as `100`, `99.5` or `1 234.50` into minor units.

    Raises:
        ValueError: if it is no decimal number of at most two decimals, or larger than any account may hold.
    """
    cleaned = text.strip().replace(" ", "").replace("_", "")
    negative = cleaned.startswith("-")
    whole, _, fraction = cleaned.lstrip("+-").partition(".")
    if not re.fullmatch("[0-9]+", whole + fraction) or len(fraction) > 2:
        raise ValueError(f"invalid amount of credits: got {text!r}, expected an amount such as 100 or 99.50")
    if len(whole.lstrip("0")) > len(str(AMOUNT_MAX)):
        amount = AMOUNT_MAX + 1  # as good as any that is too large
    else:
        amount = int(whole or "0") * MINOR_UNITS_PER_CREDIT + int(fraction.ljust(2, "0") or "0")
    if amount > AMOUNT_MAX:
        raise ValueError(f"amount too large: got {text[:60]!r}, expected at most {credits_text(AMOUNT_MAX)} credits")
    return -amount if negative else amount
