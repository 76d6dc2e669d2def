"""The price strategy `half_empty`: the start price while the machine is half full, the minimum when it is empty."""

from __future__ import annotations

from ramp.model.offer import RefusalCode
from ramp.protocol.pricing import PriceQuestion, PriceRefusal


def half_empty_price(question: PriceQuestion) -> int | PriceRefusal:
    """Whole credits per core hour between the two prices that the administrator has set, by the load alone."""
    share = min(1.0, 2 * question.load)
    price = question.minimum_price + round(share * (question.start_price - question.minimum_price))
    if question.own_last == price:
        return PriceRefusal(RefusalCode.OWN_OFFER_STANDS)
    if price > question.asking and not question.best_offer:
        return PriceRefusal(RefusalCode.PRICE, nearest=price)
    return price
