"""Sizes that no slot can have are refused before anybody is asked: the limits are those of requests."""

from datetime import UTC, datetime

import pytest

from ramp.client import dialogues
from ramp.control.events import AgreementsListed, AgreementStanding, RequestsListed
from ramp.errors import ConfigurationError
from ramp.model.agreement import Agreement
from ramp.model.instant import HOUR, SECOND, Instant, from_datetime
from ramp.model.offer import Offer
from ramp.model.request import RequestUnit, TotalCores
from ramp.protocol.events import AgreementResized

OFFER = Offer("o1", "r1", 1, "res", 60, HOUR, 5 * HOUR, 16, 0.0, HOUR)
UNIT = RequestUnit(1, 70, 5 * HOUR, TotalCores(16), HOUR)
AGREEMENT = Agreement("a1", "r1", 1, "alice", "res", "bank", UNIT, OFFER, "R1", OFFER.cost, 0, "order-1", HOUR)
LONGEST = (10**10 - 1) * SECOND
"""Longest run that a request may ask for: ten digits of seconds."""


def year(number: int) -> Instant:
    return from_datetime(datetime(number, 12, 31, tzinfo=UTC))


@pytest.mark.parametrize(
    ("wish", "right"),
    [
        (AgreementResized("", cores=900_000_000_000_000_000_000), "must be 1 to 1000000000000"),
        (AgreementResized("", cores=10**12 + 1), "must be 1 to 1000000000000"),
    ],
)
def test_what_no_request_may_name_is_refused_at_once(wish: AgreementResized, right: str) -> None:
    with pytest.raises(ConfigurationError, match=right):
        next(dialogues.resize_together(("R1",), wish))


def asked(wish: AgreementResized) -> object:
    """What the agent is asked once it has told what was bought."""
    dialogue = dialogues.resize_together(("R1",), wish)
    next(dialogue)
    dialogue.send(RequestsListed(()))
    return dialogue.send(AgreementsListed((AgreementStanding(AGREEMENT, "active"),)))


def test_no_slot_lasts_longer_than_the_longest_run() -> None:
    for wish in (AgreementResized("", until=year(8999)), AgreementResized("", until=OFFER.start + LONGEST + 1)):
        with pytest.raises(ConfigurationError, match="must be 2286-11-20T18:46:39Z at the latest"):
            asked(wish)
    longest = AgreementResized("", cores=10**12, until=OFFER.start + LONGEST)
    assert asked(longest) == AgreementResized("a1", 10**12, OFFER.start + LONGEST)
