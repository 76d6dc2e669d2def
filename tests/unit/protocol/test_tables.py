"""The tables: every state can be reached, no final state is left, and only what is in them can happen."""

from __future__ import annotations

import re

import pytest

from ramp.errors import ProtocolError
from ramp.protocol.machine import StateMachine
from ramp.protocol.transition_tables import AUCTION, TABLES, AuctionState, mermaid


@pytest.mark.parametrize("name", sorted(TABLES))
def test_the_diagram_has_every_transition_and_no_other(name: str) -> None:
    drawn = set()
    for line in mermaid(name).splitlines()[1:]:
        match = re.fullmatch(r"    (\w+) --> (\w+): (.+)", line)
        assert match
        drawn |= {(match[1], stimulus, match[2]) for stimulus in match[3].split(" / ")}
    assert drawn == {(move.state.value, move.stimulus, move.next_state.value) for move in TABLES[name]}


class _Again(StateMachine[AuctionState]):
    def again(self, state: AuctionState) -> None:
        self._resume(state)


def test_a_machine_resumes_only_once_and_only_in_a_state_of_its_table() -> None:
    again = _Again("r1", AUCTION, AuctionState.NEW)
    with pytest.raises(ProtocolError, match="_Again cannot resume as new from new"):
        again.again(AuctionState.NEW)
    again.again(AuctionState.BIDDING)
    assert again.state is AuctionState.BIDDING
    with pytest.raises(ProtocolError, match="_Again cannot resume as closed from bidding") as caught:
        again.again(AuctionState.CLOSED)
    assert caught.value.story == ("resumed as bidding",)
    assert again.state is AuctionState.BIDDING
