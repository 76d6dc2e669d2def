"""A seller that names another's offer when it says that it failed gets no claim started: the bank would refuse it."""

from dataclasses import replace
from typing import Any

import pytest

from ramp.errors import RemoteProtocolError
from ramp.protocol import effects as fx
from ramp.protocol.records import FailureTold, RefundClaimed


def written(effects: list[Any]) -> list[type]:
    return [type(each.record) for each in effects if isinstance(each, fx.Persist)]


def test_of_a_bought_unit_only_its_own_offer_can_have_failed(alice: Any) -> None:
    alice.committed()
    failed = alice.failed()
    alice.hear("res1", alice.proof())
    with pytest.raises(RemoteProtocolError, match="got offer-res9-9"):
        alice.hear("res1", replace(failed, offer_id="offer-res9-9"))
    assert RefundClaimed in written(alice.hear("res1", failed))


def test_of_a_unit_that_is_being_confirmed_too(alice: Any) -> None:
    alice.committed()
    failed = alice.failed()
    with pytest.raises(RemoteProtocolError, match="got offer-res9-9"):
        alice.hear("res1", replace(failed, offer_id="offer-res9-9"))
    assert FailureTold in written(alice.hear("res1", failed))
