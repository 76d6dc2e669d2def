"""The buyer's side of a moved slot: what is believed, what is kept, and what is acknowledged."""

from __future__ import annotations

from typing import Any

import pytest

from ramp.errors import RemoteProtocolError
from ramp.model import contents as c
from ramp.model.acl import Performative
from ramp.model.seal import Role
from ramp.protocol import effects as fx
from ramp.protocol.progress import UnitMoved
from ramp.protocol.records import MoveHeard
from ramp.protocol.user.moves import MOVES_MAX, Moves


def word(alice: Any, placement: str = "n[2-3]", moved_at: int = 5, reservation_id: str = "") -> c.SlotMoved:
    agreement = next(iter(alice.party.agreements.values()))
    return c.SlotMoved(agreement.agreement_id, reservation_id or agreement.reservation_id, placement, moved_at)


def kinds(effects: list[fx.Effect]) -> list[type]:
    return [type(each) for each in effects]


def acknowledged(effects: list[fx.Effect]) -> c.SlotMoveHeard:
    (send,) = [each for each in effects if isinstance(each, fx.Send)]
    assert (send.message.performative, send.message.receiver) == (Performative.CONFIRM, "res1")
    content = send.message.content
    assert isinstance(content, c.SlotMoveHeard)
    return content


def test_a_move_is_on_record_before_it_is_acknowledged_and_is_reported(alice: Any) -> None:
    bought = alice.bought()
    effects = alice.hear("res1", word(alice), role=Role.RESOURCE)
    assert kinds(effects) == [fx.Persist, fx.Report, fx.Send]
    assert isinstance(effects[0], fx.Persist)
    assert isinstance(effects[0].record, MoveHeard)
    assert isinstance(effects[1], fx.Report)
    assert effects[1].progress == UnitMoved("r1", bought, "res1", "n[2-3]", 5)
    assert acknowledged(effects) == c.SlotMoveHeard(bought, 5)


def test_only_the_agreements_own_resource_is_believed_of_its_own_reservation(alice: Any) -> None:
    alice.bought()
    with pytest.raises(RemoteProtocolError, match="res2 may not speak for res1"):
        alice.hear("res2", word(alice), role=Role.RESOURCE)
    with pytest.raises(RemoteProtocolError, match="agreement-7 is not an agreement of this user"):
        alice.hear("res1", c.SlotMoved("agreement-7", "R", "n1", 5), role=Role.RESOURCE)
    assert alice.party.moves.last == {}


def test_the_last_word_outlives_a_restart_until_its_request_is_archived(alice: Any) -> None:
    bought = alice.bought()
    records = []
    for moved_at in (5, 9):
        effects = alice.hear("res1", word(alice, f"n{moved_at}", moved_at), role=Role.RESOURCE)
        records += [each.record for each in effects if isinstance(each, fx.Persist)]
    again = Moves(alice.party.agreements)
    again.recover(records)
    assert again.last[bought].placement == "n9"
    again.forget(["another"])
    assert bought in again.last
    again.forget(["r1"])
    assert again.last == {}


def test_a_seller_fills_no_journal_with_moves_not_even_over_a_restart(alice: Any) -> None:
    bought = alice.bought()
    records = []
    for moved_at in range(1, MOVES_MAX + 1):
        effects = alice.hear("res1", word(alice, moved_at=moved_at), role=Role.RESOURCE)
        records += [each.record for each in effects if isinstance(each, fx.Persist)]
    assert len(records) == MOVES_MAX
    alice.party.moves = Moves(alice.party.agreements)
    alice.party.moves.recover(records)
    with pytest.raises(RemoteProtocolError, match=f"{bought} has moved 100 times"):
        alice.hear("res1", word(alice, moved_at=MOVES_MAX + 1), role=Role.RESOURCE)
    assert acknowledged(alice.hear("res1", word(alice, moved_at=MOVES_MAX), role=Role.RESOURCE)).moved_at == MOVES_MAX
