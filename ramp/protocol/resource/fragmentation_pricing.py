"""The pricing strategy `fragmentation`: a job pays for the room it spoils for others, not only for the load it meets.

A job in the middle of the machine's largest free box, or a torus that takes cables of lines it hardly uses, leaves
pieces that later large jobs cannot have, at no more core hours than a job that stands in a corner. Here its share of
spoilt room (of the largest free box beyond its own units, and of the free cables) moves the price from the paper's
formula towards the start price: the reduction is scaled by what is not spoilt, and so is the distance of the least
price from the start price. A job that spoils nothing is priced exactly by the paper's formula.
"""

from __future__ import annotations

import math
from fractions import Fraction

from ramp.model.offer import RefusalCode
from ramp.protocol.pricing import LOAD_FLOOR, PriceQuestion, PriceRefusal


def spoilt_share(question: PriceQuestion) -> Fraction:
    """Share of the room for others that the job spoils, 0 to 1: what it spares of boxes and cables, taken off one."""
    boxes, cables = (
        max(Fraction(0), min(Fraction(1), Fraction(share))) for share in (question.fragmentation, question.links_taken)
    )
    return 1 - (1 - boxes) * (1 - cables)


def fragmentation_price(question: PriceQuestion) -> int | PriceRefusal:
    """The paper's formula (section 6.2.3), its reduction and the room below the start price cut by what is spoilt.

    Args:
        question: `fragmentation` and `links_taken` come from the machine's plug-in with the slot.

    Returns:
        Whole credits per core hour, or why there is no bid; then the nearest price is the least one for this job.
    """
    if question.own_last is not None and question.own_last == question.asking and not question.best_offer:
        return PriceRefusal(RefusalCode.OWN_OFFER_STANDS)
    spared = 1 - spoilt_share(question)
    margin = question.start_price - question.minimum_price
    least = question.start_price - math.floor(margin * spared)
    load = max(LOAD_FLOOR, min(Fraction(1), Fraction(question.load)))
    reduction = Fraction(margin, question.rounds_expected) * (1 - load) * spared
    bid = math.floor(question.asking - reduction + Fraction(1, 2))
    if least <= question.asking or question.best_offer:
        return max(bid, least)
    return PriceRefusal(RefusalCode.PRICE, least)
