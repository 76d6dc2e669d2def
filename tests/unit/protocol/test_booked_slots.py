"""A seller's own book bounds what it sells, whatever its machine answers: this one has 64 cores and always says yes."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ramp.protocol.resource.quotas import Booked

INSTANTS = st.integers(0, 8)
SLOTS = st.lists(st.tuples(INSTANTS, st.integers(1, 4), st.integers(1, 9)), max_size=8)


@given(SLOTS, INSTANTS, st.integers(1, 4), st.integers(1, 9))
def test_a_slot_fits_where_it_fits_at_every_instant(slots: Any, start: int, length: int, cores: int) -> None:
    booked = Booked(12)
    for number, (begin, lasting, wanted) in enumerate(slots):
        booked.put(str(number), begin, begin + lasting, wanted)
    taken = [sum(c for b, n, c in slots if b <= at < b + n) for at in range(start, start + length)]
    assert bool(booked.problem(start, start + length, cores)) == (max(taken) + cores > 12)
