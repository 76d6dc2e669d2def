"""Prices, worked out by hand: the recovered rule (paper section 6.2.3), the original's, and `fragmentation`."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ramp.model.offer import RefusalCode
from ramp.protocol.pricing import PriceQuestion, PriceRefusal, original_price, paper_price
from ramp.protocol.resource.fragmentation_pricing import fragmentation_price, spoilt_share


def ask(asking: int, start: int, minimum: int, load: float = 0.0, **more: object) -> PriceQuestion:
    return PriceQuestion(asking, start, minimum, load, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("question", "price"),
    [
        (ask(70, 80, 30, 0.5), 64),  # 50/4 x 0.5 = 6.25 -> 63.75
        (ask(70, 80, 30, 0.0), 59),  # the load counts as 0.1: 11.25 -> 58.75
        (ask(70, 80, 30, 1.0), 70),  # a full machine does not go down
        (ask(70, 80, 30, 2.5), 70),  # nor does an overfull one go up
        (ask(39, 45, 25, 0.1), 35),  # 5 x 0.9 = 4.5 -> 34.5, halves up
        (ask(70, 60, 20, 0.5, rounds_expected=10), 68),  # 4 x 0.5 = 2
        (ask(30, 80, 28, 0.1), 28),  # 18.3 is below the minimum, which is within the price asked
        (ask(28, 80, 28, 0.1), 28),
        (ask(70, 43, 40, 0.0), 69),  # the exact quotient 0.75 x 0.9 = 0.675 -> 69.325
    ],
)
def test_paper_price(question: PriceQuestion, price: int) -> None:
    assert paper_price(question) == price


@pytest.mark.parametrize(
    ("question", "price"),
    [
        (ask(39, 45, 25), 35),  # 39 - 4.5
        (ask(70, 80, 30), 59),  # 50 div 4 = 12, x 0.9 = 10.8 -> 59.2
        (ask(70, 43, 40), 70),  # 3 div 4 = 0: it bids the price asked
        (ask(200, 80, 30), 189),  # the start price is no upper limit
        (ask(70, 80, 40, 0.28), 63),  # 10 x 0.72 = 7.2 -> 62.8
        (ask(26, 33, 25), 25),  # 2 x 0.9 = 1.8 -> 24.2, below the minimum
    ],
)
def test_original_price(question: PriceQuestion, price: int) -> None:
    assert original_price(question) == price


def test_the_original_computes_in_32_bit_floats() -> None:
    # 1 - 0.9 is 0.100000024 in 32 bits and 0.09999999999999998 in 64, so 10 - 5 x that is just under or over 9.5
    assert original_price(ask(10, 25, 5, 0.9)) == 9


@pytest.mark.parametrize("strategy", [paper_price, original_price])
def test_own_offer_stands(strategy: object) -> None:
    assert strategy(ask(50, 80, 30, own_last=50)) == PriceRefusal(RefusalCode.OWN_OFFER_STANDS)  # type: ignore[operator]
    assert isinstance(strategy(ask(50, 80, 30, own_last=49)), int)  # type: ignore[operator]
    assert isinstance(strategy(ask(50, 80, 30, own_last=50, best_offer=True)), int)  # type: ignore[operator]


QUESTION = PriceQuestion(asking=70, start_price=70, minimum_price=30, load=0.5)


def test_the_reduction_is_cut_by_what_is_spoilt() -> None:
    # (70 - 30) / 4 x (1 - 0.5) = 5 off; half of the room spoilt: 2.5 off, 67.5 rounds half up
    assert fragmentation_price(QUESTION) == 65
    assert fragmentation_price(replace(QUESTION, fragmentation=0.5)) == 68
    assert fragmentation_price(replace(QUESTION, links_taken=0.5)) == 68


def test_a_job_that_spoils_everything_never_goes_below_the_start_price() -> None:
    spoiler = replace(QUESTION, fragmentation=1.0)
    assert fragmentation_price(spoiler) == 70
    assert fragmentation_price(replace(spoiler, asking=69)) == PriceRefusal(RefusalCode.PRICE, 70)
    assert fragmentation_price(replace(spoiler, asking=69, best_offer=True)) == 70


def test_a_machine_that_says_more_than_all_means_all() -> None:
    """The shares come from a plug-in: what is above one is one, what is below nothing is nothing."""
    assert spoilt_share(replace(QUESTION, fragmentation=1.5)) == spoilt_share(replace(QUESTION, links_taken=7.0)) == 1
    assert spoilt_share(replace(QUESTION, fragmentation=-0.5, links_taken=-1.0)) == 0
    full = fragmentation_price(replace(QUESTION, asking=50, load=1.0))
    assert fragmentation_price(replace(QUESTION, asking=50, load=1.5)) == full == 50


def test_an_offer_that_stands_is_not_bettered() -> None:
    assert fragmentation_price(replace(QUESTION, own_last=70)) == PriceRefusal(RefusalCode.OWN_OFFER_STANDS)
