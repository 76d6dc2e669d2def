"""The strategy `half_empty`, by hand."""

from __future__ import annotations

import pytest

from filebatch.half_empty_price import half_empty_price
from ramp.model.offer import RefusalCode
from ramp.protocol.pricing import PriceQuestion, PriceRefusal


@pytest.mark.parametrize(("load", "price"), [(0.0, 20), (0.25, 40), (0.5, 60), (0.9, 60)])
def test_the_price_follows_the_load(load: float, price: int) -> None:
    assert half_empty_price(PriceQuestion(70, start_price=60, minimum_price=20, load=load)) == price


def test_it_does_not_bid_above_what_is_asked_and_says_what_would_do() -> None:
    answer = half_empty_price(PriceQuestion(30, start_price=60, minimum_price=20, load=0.25))
    assert answer == PriceRefusal(RefusalCode.PRICE, nearest=40)


def test_it_does_not_bid_against_itself() -> None:
    answer = half_empty_price(PriceQuestion(40, start_price=60, minimum_price=20, load=0.25, own_last=40))
    assert answer == PriceRefusal(RefusalCode.OWN_OFFER_STANDS)
