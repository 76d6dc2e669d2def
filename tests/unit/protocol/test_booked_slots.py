"""A seller's own book bounds what it sells, whatever its machine answers: this one has 64 cores and always says yes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramp.model import contents as c
from ramp.model.instant import HOUR, MINUTE
from ramp.model.offer import RefusalCode
from ramp.protocol.resource.quotas import Booked


def _answers(effects: list[Any]) -> list[Any]:
    return [each.message.content for each in effects if hasattr(each, "message")]


def test_the_third_slot_of_sixty_cores_is_refused_on_a_machine_of_sixty_four(resource: Any) -> None:
    answers = [
        _answers(resource.hold(f"r{n}", user, cores=60)[1])[-1] for n, user in enumerate(("alice", "bob", "eve"))
    ]
    assert isinstance(answers[0], c.HoldGranted)
    assert [each.code for each in answers[1:]] == [RefusalCode.SLOT_TAKEN] * 2
    assert answers[1].detail == "60 of 64 cores are held or sold in that time, so 60 more do not fit"


def test_a_slot_that_is_given_back_may_be_sold_again(resource: Any) -> None:
    offer, _ = resource.hold("r1", "alice", cores=60)
    resource.hear("alice", c.HoldCancelled("r1", offer.offer_id))
    assert isinstance(_answers(resource.hold("r2", "bob", cores=60)[1])[-1], c.HoldGranted)


def test_a_sold_slot_counts_after_a_restart(resource: Any, restarted_resource: Any) -> None:
    journal = []
    offer = resource.call(cores=60).content.offers[0]
    for effects in (resource.hear("alice", c.Acceptance("r1", offer.offer_id)), resource.commit(offer)):
        journal += [each.record for each in effects if hasattr(each, "record")]
    again, _ = restarted_resource(journal, MINUTE)
    again.call(request_id="r9")  # the ids of offers start anew here
    assert _answers(again.hold("r2", "bob", cores=16)[1])[-1].code == RefusalCode.SLOT_TAKEN


INSTANTS = st.integers(0, 8)
SLOTS = st.lists(st.tuples(INSTANTS, st.integers(1, 4), st.integers(1, 9)), max_size=8)


@given(SLOTS, INSTANTS, st.integers(1, 4), st.integers(1, 9))
def test_a_slot_fits_where_it_fits_at_every_instant(slots: Any, start: int, length: int, cores: int) -> None:
    booked = Booked(12)
    for number, (begin, lasting, wanted) in enumerate(slots):
        booked.put(str(number), begin, begin + lasting, wanted)
    taken = [sum(c for b, n, c in slots if b <= at < b + n) for at in range(start, start + length)]
    assert bool(booked.problem(start, start + length, cores)) == (max(taken) + cores > 12)


@pytest.mark.parametrize(("cores", "fits"), [(64, False), (4, True)])
def test_an_addition_counts_too(resource: Any, cores: int, fits: bool) -> None:
    booked = Booked(64)
    booked.put("o1", HOUR, 2 * HOUR, 60)
    assert bool(booked.problem(HOUR, 3 * HOUR, cores, without="o1")) is False
    assert bool(booked.problem(HOUR, 3 * HOUR, cores)) is not fits
