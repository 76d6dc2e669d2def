"""The strategy `fragmentation`: worked by hand from its definition; the paper's price where nothing is spoilt."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ramp.model.offer import RefusalCode
from ramp.protocol.pricing import PriceQuestion, PriceRefusal, paper_price
from ramp.protocol.resource.fragmentation_pricing import fragmentation_price, spoilt_share

QUESTION = PriceQuestion(asking=70, start_price=70, minimum_price=30, load=0.5)


@pytest.mark.parametrize("asking", [25, 30, 35, 50, 70, 90])
@pytest.mark.parametrize("load", [0.0, 0.25, 0.999, 1.0])
@pytest.mark.parametrize("best_offer", [False, True])
@pytest.mark.parametrize("own_last", [None, 50])
def test_a_job_that_spoils_nothing_pays_the_papers_price(
    asking: int, load: float, best_offer: bool, own_last: int | None
) -> None:
    question = replace(QUESTION, asking=asking, load=load, best_offer=best_offer, own_last=own_last)
    assert fragmentation_price(question) == paper_price(question)


def test_the_reduction_is_cut_by_what_is_spoilt() -> None:
    # (70 - 30) / 4 x (1 - 0.5) = 5 off; half of the room spoilt: 2.5 off, 67.5 rounds half up
    assert fragmentation_price(QUESTION) == 65
    assert fragmentation_price(replace(QUESTION, fragmentation=0.5)) == 68
    assert fragmentation_price(replace(QUESTION, links_taken=0.5)) == 68


def test_boxes_and_cables_count_together() -> None:
    # 1 - (1 - 1/2)(1 - 1/2) = 3/4
    assert spoilt_share(replace(QUESTION, fragmentation=0.5, links_taken=0.5)) == 0.75
    assert spoilt_share(replace(QUESTION, fragmentation=1.0, links_taken=0.5)) == 1


def test_a_job_that_spoils_everything_never_goes_below_the_start_price() -> None:
    spoiler = replace(QUESTION, fragmentation=1.0)
    assert fragmentation_price(spoiler) == 70
    assert fragmentation_price(replace(spoiler, asking=69)) == PriceRefusal(RefusalCode.PRICE, 70)
    assert fragmentation_price(replace(spoiler, asking=69, best_offer=True)) == 70


def test_the_least_price_lies_between_minimum_and_start() -> None:
    # a quarter spoilt: least price 70 - 40 x 3/4 = 40
    quarter = replace(QUESTION, fragmentation=0.25, asking=39)
    assert fragmentation_price(quarter) == PriceRefusal(RefusalCode.PRICE, 40)
    assert fragmentation_price(replace(quarter, asking=41)) == 40


def test_a_machine_that_says_more_than_all_means_all() -> None:
    """The shares come from a plug-in: what is above one is one, what is below nothing is nothing."""
    assert spoilt_share(replace(QUESTION, fragmentation=1.5)) == spoilt_share(replace(QUESTION, links_taken=7.0)) == 1
    assert spoilt_share(replace(QUESTION, fragmentation=-0.5, links_taken=-1.0)) == 0
    full = fragmentation_price(replace(QUESTION, asking=50, load=1.0))
    assert fragmentation_price(replace(QUESTION, asking=50, load=1.5)) == full == 50


def test_an_offer_that_stands_is_not_bettered() -> None:
    assert fragmentation_price(replace(QUESTION, own_last=70)) == PriceRefusal(RefusalCode.OWN_OFFER_STANDS)
