"""The tables: every state can be reached, no final state is left, and only what is in them can happen."""

from __future__ import annotations

import re
from enum import StrEnum

import pytest

from ramp.errors import ProtocolError
from ramp.protocol.machine import STORY_LENGTH, StateMachine
from ramp.protocol.transition_tables import AUCTION, BUYER_CHANGE, TABLES, AuctionState, BuyerChangeState, mermaid

FINAL = {
    "auction": {"closed"},
    "voting": {"ended"},
    "confirmation": {"ended"},
    "participant": {"released"},
    "buyer_change": {"ended"},
    "job": {"done", "failed", "cancelled"},
    "size_change": {"ended"},
}
FIRST = {"job": "taken"}  # the others begin as new


@pytest.mark.parametrize("name", sorted(TABLES))
def test_every_state_can_be_reached_and_can_end(name: str) -> None:
    table = TABLES[name]
    kind = type(next(iter(table)).state)
    of_kind = [each for each in TABLES.values() if type(next(iter(each)).state) is kind]
    states = {state for move in table for state in (move.state, move.next_state)}
    # machines that have most states in common share an enumeration; each state is in one of their tables
    assert set(kind) == {state for each in of_kind for move in each for state in (move.state, move.next_state)}
    reached: set[StrEnum] = {next(state for state in states if state.value == FIRST.get(name, "new"))}
    while more := {move.next_state for move in table if move.state in reached} - reached:
        reached |= more
    assert reached == states
    assert not [move for move in table if move.state.value in FINAL[name]]
    handed_on = {"agreed"}  # the vote hands over to the confirmation
    ends = {state.value for state in states if not any(move.state is state for move in table)}
    assert ends <= FINAL[name] | handed_on


@pytest.mark.parametrize("name", sorted(TABLES))
def test_the_diagram_has_every_transition_and_no_other(name: str) -> None:
    drawn = set()
    for line in mermaid(name).splitlines()[1:]:
        match = re.fullmatch(r"    (\w+) --> (\w+): (.+)", line)
        assert match
        drawn |= {(match[1], stimulus, match[2]) for stimulus in match[3].split(" / ")}
    assert drawn == {(move.state.value, move.stimulus, move.next_state.value) for move in TABLES[name]}


def test_the_diagram_is_one_that_mermaid_draws() -> None:
    """Its name of the kind, in its spelling, alone on the first line (Mermaid's manual, "State diagrams")."""
    assert {mermaid(name).partition("\n")[0] for name in TABLES} == {"stateDiagram-v2"}


class _Lamp(StateMachine[BuyerChangeState]):
    def move(self, state: BuyerChangeState, stimulus: str) -> None:
        self._enter(state, stimulus)


def test_a_move_that_is_not_in_the_table_is_our_own_fault_and_tells_the_story() -> None:
    lamp = _Lamp("r1", BUYER_CHANGE, BuyerChangeState.NEW)
    lamp.move(BuyerChangeState.ASKING, "start")
    with pytest.raises(ProtocolError, match="_Lamp cannot go from asking to new on start") as caught:
        lamp.move(BuyerChangeState.NEW, "start")
    assert caught.value.story == ("new -start-> asking",)
    assert caught.value.conversation_id == "r1"
    assert lamp.state is BuyerChangeState.ASKING
    assert len(caught.value.story) <= STORY_LENGTH


def test_a_long_story_is_told_from_near_its_end() -> None:
    class Rounds(StateMachine[AuctionState]):
        def move(self, state: AuctionState, stimulus: str) -> None:
            self._enter(state, stimulus)

    rounds = Rounds("r1", AUCTION, AuctionState.BIDDING)
    for _ in range(STORY_LENGTH + 5):
        rounds.move(AuctionState.BIDDING, "Proposal")
    with pytest.raises(ProtocolError) as caught:
        rounds.move(AuctionState.NEW, "start")
    assert caught.value.story == ("bidding -Proposal-> bidding",) * STORY_LENGTH
