"""Sold slots on a machine that is tended: when it is told whose they are, and what becomes of those that it loses."""

from __future__ import annotations

from dataclasses import dataclass

from ramp.model.instant import SECOND
from ramp.protocol.effects import TendSlots
from ramp.protocol.resource.launching import LaunchTerms
from ramp.protocol.resource.tending import TEND_EVERY, Tending
from ramp.protocol.tables import ParticipantState
from ramp.protocol.timing import Pace, Timing

S = ParticipantState


@dataclass
class _Offer:
    offer_id: str
    end: int


@dataclass
class _Sale:
    """As much of a participant as is looked at."""

    offer: _Offer
    user: str
    state: ParticipantState = S.SOLD


def _tending() -> Tending:
    return Tending("res1", LaunchTerms("slurm", {"alice@market": "alice1"}), Pace(Timing()))


def _sale(key: str, user: str = "alice@market", end: int = 100 * SECOND) -> _Sale:
    return _Sale(_Offer(key, end), user)


def test_a_machine_is_told_at_once_of_a_sale_and_every_so_often_until_the_slot_ends() -> None:
    tending = _tending()
    tending.opened(tended=True)
    assert tending.deadline is None
    tending.kept(_sale("o1"))  # type: ignore[arg-type]
    assert tending.deadline == 0
    assert tending.tick(SECOND) == [TendSlots((("o1", "alice1"),))]
    assert tending.deadline == SECOND + TEND_EVERY
    assert tending.tick(SECOND + TEND_EVERY - 1) == []
    tending.kept(_sale("o2", "stranger@market"))  # type: ignore[arg-type]
    assert tending.tick(2 * SECOND) == [TendSlots((("o1", "alice1"), ("o2", "")))]
    assert tending.tick(100 * SECOND) == []
    assert tending.deadline is None


def test_what_is_released_or_was_never_sold_is_not_told() -> None:
    tending = _tending()
    tending.opened(tended=True)
    sale = _sale("o1")
    sale.state = S.SETTLING
    tending.kept(sale)  # type: ignore[arg-type]
    assert tending.deadline is None
    sale.state = S.SOLD
    tending.kept(sale)  # type: ignore[arg-type]
    sale.state = S.FAILING
    tending.kept(sale)  # type: ignore[arg-type]
    assert tending.tick(SECOND) == []


def test_a_machine_that_is_not_tended_is_never_asked() -> None:
    tending = _tending()
    tending.kept(_sale("o1"))  # type: ignore[arg-type]
    assert tending.deadline is None
    tending.opened(tended=False)
    assert tending.deadline is None


def test_a_machine_that_is_opened_again_is_told_again() -> None:
    tending = _tending()
    tending.opened(tended=True)
    tending.kept(_sale("o1"))  # type: ignore[arg-type]
    tending.tick(SECOND)
    tending.opened(tended=True)
    assert tending.tick(SECOND + 1) == [TendSlots((("o1", "alice1"),))]
