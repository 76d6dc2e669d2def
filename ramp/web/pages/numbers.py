"""Numbers on the pages: narrow no-break spaces between thousands, as the tables' columns write them."""

from __future__ import annotations

from ramp.model import money

SPACE = "\u202f"


def whole(number: int) -> str:
    """Write a whole number: `1 234`."""
    return money.grouped(number).replace(" ", SPACE)


def amount(minor_units: int) -> str:
    """Write an amount in credits with two decimals: `-1 234.50`."""
    return money.credits_text(minor_units).replace(" ", SPACE)


def credits_named(minor_units: int) -> str:
    """Write an amount with its unit: `1 234.50 credits`."""
    return f"{amount(minor_units)} credits"


def signed(minor_units: int) -> str:
    """Write an amount with its sign: `+1 234.50`."""
    return f"{'+' if minor_units > 0 else ''}{amount(minor_units)}"
