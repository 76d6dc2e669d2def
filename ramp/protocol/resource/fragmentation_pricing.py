"""The pricing strategy `fragmentation`: a job also pays for the room that it spoils for others.

A job in the middle of the machine's largest free box, or a torus that takes cables of hardly used lines, leaves pieces
that large jobs cannot use, for no more core hours than a job in a corner. Its share of spoilt room (of the largest free
box beyond its own units, and of the free cables) moves the price from the paper's formula towards the start price. Both
the reduction and the distance of the minimum price from the start price shrink with the share. A job that spoils
nothing pays exactly the paper's price.
"""

from __future__ import annotations

import math
from fractions import Fraction

from ramp.model.offer import RefusalCode
from ramp.protocol.pricing import LOAD_FLOOR, PriceQuestion, PriceRefusal


def spoilt_share(question: PriceQuestion) -> Fraction:
    """Return the share of others' room that the job spoils, 0 to 1."""
    boxes, cables = (
        max(Fraction(0), min(Fraction(1), Fraction(share))) for share in (question.fragmentation, question.links_taken)
    )
    return 1 - (1 - boxes) * (1 - cables)


def fragmentation_price(question: PriceQuestion) -> int | PriceRefusal:
    """Apply the paper's formula (section 6.2.3), with reduction and minimum scaled by the unspoilt share.

    Args:
        question: `fragmentation` and `links_taken` come from the machine's plug-in with the slot.

    Returns:
        Whole credits per core hour, or a refusal with the minimum price of this job.
    """
    if question.own_last == question.asking and not question.best_offer:
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
