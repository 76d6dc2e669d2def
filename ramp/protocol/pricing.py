"""Pricing strategies of the Resource Agent, by name (paper section 6.2.3).

The paper has lost the picture of its formula. The rule as recovered from the original system: the asking price is
reduced by (start price - minimum price) / n x (1 - load), where n is the number of rounds that the resource expects and
load is the share of the machine taken while the job runs.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from ramp.fast_dataclass import fast_dataclass
from ramp.model.offer import RefusalCode

LOAD_FLOOR: Final = Fraction(1, 10)
"""The original treats a load below 0.1 as 0.1."""

ORIGINAL_ROUNDS: Final = 4
"""Rounds the original expects, built into it."""


@fast_dataclass(frozen=True, slots=True)
class PriceQuestion:
    """The question to a strategy for one unit in one round; made for it alone.

    Attributes:
        asking: asking price, credits per core-hour charged: the greatest whole price at which the slot costs no more
            than the request allows; 0 if it costs more at any price.
        start_price: the machine's start price.
        minimum_price: the machine's minimum price.
        load: share of the machine taken over the job's window, 0 to 1.
        rounds_expected: the strategy's n.
        own_last: this resource's latest offer for the same unit, unless it was rejected; else None.
        best_offer: True in the extra round, in which the asking price need not be met.
        cores: of the slot.
        fragmentation: share of the machine's largest free box that the job would destroy beyond its own units, 0 to 1;
            0 if unknown.
        links_taken: share of the machine's free cables that the job would take, 0 to 1; 0 if unknown.
    """

    asking: int
    start_price: int
    minimum_price: int
    load: float
    rounds_expected: int = ORIGINAL_ROUNDS
    own_last: int | None = None
    round_number: int = 1
    best_offer: bool = False
    user: str = ""
    cores: int = 1
    fragmentation: float = 0.0
    links_taken: float = 0.0


@dataclass(frozen=True, slots=True)
class PriceRefusal:
    """No bid: the code, the nearest asking price that would get one (None without one), and a detail."""

    code: RefusalCode
    nearest: int | None = None
    detail: str = ""


PricingStrategy = Callable[[PriceQuestion], int | PriceRefusal]
"""Whole credits per core hour, or why not."""


def _bounded(bid: int, question: PriceQuestion) -> int | PriceRefusal:
    """Replace a bid below the minimum by the minimum, or refuse if that is above the asking price."""
    if bid >= question.minimum_price:
        return bid
    if question.minimum_price <= question.asking or question.best_offer:
        return question.minimum_price
    return PriceRefusal(RefusalCode.PRICE, question.minimum_price)


def paper_price(question: PriceQuestion) -> int | PriceRefusal:
    """The paper's formula with the exact quotient (default)."""
    if question.own_last is not None and question.own_last == question.asking and not question.best_offer:
        return PriceRefusal(RefusalCode.OWN_OFFER_STANDS)
    load = min(question.load, 1.0) if question.load >= 0.1 else LOAD_FLOOR
    taken, whole = load.as_integer_ratio()  # in whole numbers, which is exact and faster than fractions
    parts = question.rounds_expected * whole
    decrement = (question.start_price - question.minimum_price) * (whole - taken)
    rounded_half_up = (2 * (question.asking * parts - decrement) + parts) // (2 * parts)
    return _bounded(rounded_half_up, question)


def _single(value: float) -> float:
    """Round to a 32-bit float, as the original computes."""
    return float(struct.unpack("f", struct.pack("f", value))[0])


def original_price(question: PriceQuestion) -> int | PriceRefusal:
    """The original system's exact rule: integer division by 4 before the multiplication.

    Kept to compare its price paths. `rounds_expected` is ignored.
    """
    if question.own_last is not None and question.own_last == question.asking and not question.best_offer:
        return PriceRefusal(RefusalCode.OWN_OFFER_STANDS)
    load = _single(max(float(LOAD_FLOOR), question.load))
    whole = (question.start_price - question.minimum_price) // ORIGINAL_ROUNDS
    step = _single(whole * _single(1 - load))
    bid = math.floor(question.asking - step + 0.5)
    if bid > question.asking:
        return PriceRefusal(RefusalCode.CORES_TAKEN)
    return _bounded(bid, question)
