"""Sold slots on a machine that is tended: whose they are, what becomes of those that it loses or moves."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from ramp.errors import RemoteProtocolError
from ramp.model import contents as c
from ramp.model.acl import Message, Performative
from ramp.model.agreement import Signed
from ramp.model.contents import Content, NotUnderstood, SlotMoved, SlotMoveHeard
from ramp.model.instant import DAY, MINUTE, SECOND
from ramp.model.seal import Role, Seal
from ramp.model.slot import SlotMove
from ramp.protocol import effects as fx
from ramp.protocol.conversations import Registry
from ramp.protocol.effects import Effect, Send, TendSlots
from ramp.protocol.events import MachineOpened, SlotsTended
from ramp.protocol.progress import SlotLost
from ramp.protocol.resource.jobs.launching import LaunchTerms
from ramp.protocol.resource.slots.kept_participants import Release
from ramp.protocol.resource.tending import LOOK_EVERY, REMIND_EVERY, TEND_EVERY, Tending
from ramp.protocol.timing import Pace, Timing
from ramp.protocol.transition_tables import ParticipantState
from ramp.protocol.user.moves import MOVES_MAX, Moves
from tests.unit.protocol.conftest import launching_resource, messages, reports

S = ParticipantState


class _Tending(Tending):
    """The only task of a registry."""

    def __init__(self, terms: LaunchTerms | None) -> None:
        self.registry = Registry()
        super().__init__("res1", terms, Pace(Timing()), self.registry)
        self.registry.task(self, self.on_timer)

    def tick(self, now: int) -> list[Effect]:
        return self.registry.tick(now)


def _tending() -> _Tending:
    return _Tending(LaunchTerms("slurm", {"alice@market": "alice1"}))


def _sale(key: str, user: str = "alice@market", end: int = 100 * SECOND) -> Any:
    """As much of a participant as is looked at."""
    agreed = SimpleNamespace(agreement_id=f"agreement-{key}", reservation_id="R", request_id="r1")
    return SimpleNamespace(offer=SimpleNamespace(offer_id=key), user=user, state=S.SOLD, size=(16, end), agreed=agreed)


def test_everybody_of_a_domain_is_mapped_and_a_line_of_ones_own_goes_before() -> None:
    terms = LaunchTerms("slurm", {"alice@market": "alice1", "*@market": "students"})
    assert [terms.account(user) for user in ("alice@market", "carol@market", "carol@other", "carol@far.market")] == [
        "alice1",
        "students",
        "",
        "",
    ]
    assert terms.problem("carol@market") == ""
    assert "[accounts]" in terms.problem("carol@other")
    tending = _Tending(terms)
    tending.opened(tended=True)
    tending.kept(_sale("o1", "carol@market"))
    assert tending.tick(SECOND) == [TendSlots((("o1", "students"),))]


def test_a_machine_is_told_at_once_of_a_sale_and_every_so_often_until_the_slot_ends() -> None:
    tending = _tending()
    tending.opened(tended=True)
    assert tending.tick(0) == [TendSlots(())], "a failure is noticed before there is a buyer"
    assert tending.registry.deadline == TEND_EVERY
    tending.kept(_sale("o1"))
    assert tending.registry.deadline == 0
    assert tending.tick(SECOND) == [TendSlots((("o1", "alice1"),))]
    assert tending.registry.deadline == SECOND + TEND_EVERY
    assert tending.tick(SECOND + TEND_EVERY - 1) == []
    tending.kept(_sale("o2", "stranger@market"))
    assert tending.tick(2 * SECOND) == [TendSlots((("o1", "alice1"), ("o2", "")))]
    assert tending.tick(100 * SECOND) == [TendSlots(())]


def test_a_machine_that_is_not_tended_is_asked_for_its_sold_slots_with_the_heartbeats() -> None:
    tending = _tending()
    tending.kept(_sale("o1", end=DAY))
    tending.opened(tended=False)
    assert tending.registry.deadline is None
    asked = [TendSlots((("o1", "alice1"),))]
    assert tending.look(SECOND) == asked
    assert tending.look(SECOND + LOOK_EVERY - 1) == []
    assert tending.look(SECOND + LOOK_EVERY) == asked
    assert tending.look(DAY) == []
    tending.opened(tended=True)
    assert tending.look(2 * DAY) == []


def test_a_sold_slot_that_its_machine_has_forgotten_is_paid_back(resource: Any) -> None:
    offer = resource.sell()
    (asked,) = [each for each in resource.party.tick(MINUTE) if isinstance(each, TendSlots)]
    assert asked.slots == ((offer.offer_id, ""),)
    effects = resource.party.handle(SlotsTended(((offer.offer_id, "the machine no longer has it"),)), MINUTE)
    told = messages(effects)
    assert {each.receiver for each in told} == {"alice", "bank"}
    (lost,) = reports(effects)
    assert lost == SlotLost(told[0].content.body.agreement_id, "alice", "the machine no longer has it")  # type: ignore[union-attr]
    assert all(isinstance(each.content, Signed) for each in told)


def _moved(end: int = 100 * SECOND) -> tuple[Tending, Message]:
    """A sold slot that was moved at 5, and what its buyer is told of it."""
    tending = _tending()
    tending.kept(_sale("o1", end=end))
    (said,) = tending.moved([("o1", SlotMove("n[2-3]", 5))], SECOND)
    assert isinstance(said, Send)
    return tending, said.message


def _answer(said: Message, content: Content, sender: str = "alice@market", role: Role | None = Role.USER) -> Message:
    seal = None if role is None else Seal(sender, role, "res1", "r1", 0, "text")
    performative = Performative.NOT_UNDERSTOOD if isinstance(content, NotUnderstood) else Performative.CONFIRM
    return Message(performative, sender, "res1", "r1", content, in_reply_to=said.reply_with, seal=seal)


def test_a_buyer_is_told_of_another_reservation_which_its_later_jobs_use_too() -> None:
    one = launching_resource(LaunchTerms("slurm", {"alice": "alice1"}))
    offer = one.sell()
    (said,) = one.party.handle(SlotsTended((), ((offer.offer_id, SlotMove("n1", 5, "17")),)), 0)
    assert said.message.content.reservation_id == "17"
    assert one.party.participants[offer.offer_id].reserved_as == "17"


def test_only_the_buyers_own_word_on_the_last_move_ends_the_telling() -> None:
    tending, said = _moved()
    heard = SlotMoveHeard("agreement-o1", 5)
    with pytest.raises(RemoteProtocolError):
        tending.answered(_answer(said, heard, role=None), heard, SECOND)
    with pytest.raises(RemoteProtocolError):
        tending.answered(_answer(said, heard, role=Role.RESOURCE), heard, SECOND)
    tending.answered(_answer(said, heard, "bob@market"), heard, SECOND)
    for other in (replace(heard, moved_at=4), replace(heard, agreement_id="agreement-o2")):
        tending.answered(_answer(said, other), other, SECOND)
    assert tending.registry.deadline is not None
    assert tending.tick(tending.registry.deadline) == [Send(said)]


def test_a_silent_buyer_is_told_ever_more_seldom_until_the_slot_ends() -> None:
    tending, said = _moved(end=DAY)
    at, pauses = SECOND, []
    while (due := tending.registry.deadline) is not None and due < DAY:
        assert tending.tick(due) == [Send(said)]
        pauses.append(due - at)
        at = due
    assert pauses[:4] == [1 * SECOND, 2 * SECOND, 4 * SECOND, 8 * SECOND]
    assert max(pauses) == REMIND_EVERY
    assert due is not None
    assert tending.tick(due) == []
    assert tending.registry.deadline is None


def test_each_move_is_told_and_ended_by_itself() -> None:
    tending = _tending()
    for key in ("o1", "o2"):
        tending.kept(_sale(key))
    moves = [(key, SlotMove("n[2-3]", 5)) for key in ("never-sold", "o1", "o2")]
    first, second = (each.message for each in tending.moved(moves, SECOND) if isinstance(each, Send))
    assert (first.content, second.content) == tuple(
        SlotMoved(f"agreement-{key}", "R", "n[2-3]", 5) for key in ("o1", "o2")
    )
    unknown = NotUnderstood("SlotMoved is no document")
    tending.answered(_answer(first, unknown, role=None), unknown, SECOND)
    assert tending.registry.deadline is not None
    assert tending.tick(tending.registry.deadline) == [Send(second)]


def test_a_resource_that_launches_tells_its_machine_of_whose_account_a_sold_slot_is() -> None:
    one = launching_resource(LaunchTerms("slurm", {"alice": "alice1"}))
    one.party.handle(MachineOpened("live", tended=True), 0)
    offer = one.sell()
    assert TendSlots(((offer.offer_id, "alice1"),)) in one.party.tick(SECOND)


def test_a_slot_that_is_not_sold_any_more_is_told_of_no_more() -> None:
    tending, _ = _moved()
    sale = _sale("o1")
    sale.state = S.ENDING
    tending.kept(sale)
    assert tending.registry.deadline is None
    assert tending.moved([("o1", SlotMove("n9", 9))], SECOND) == []


def word(alice: Any, placement: str = "n[2-3]", moved_at: int = 5, reservation_id: str = "") -> c.SlotMoved:
    agreement = next(iter(alice.party.agreements.values()))
    return c.SlotMoved(agreement.agreement_id, reservation_id or agreement.reservation_id, placement, moved_at)


def acknowledged(effects: list[fx.Effect]) -> c.SlotMoveHeard:
    (send,) = [each for each in effects if isinstance(each, fx.Send)]
    assert (send.message.performative, send.message.receiver) == (Performative.CONFIRM, "res1")
    content = send.message.content
    assert isinstance(content, c.SlotMoveHeard)
    return content


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


def test_nobody_is_told_of_a_move_at_the_end_of_the_slot() -> None:
    tending, _ = _moved(end=2 * SECOND)
    assert tending.registry.deadline == 2 * SECOND
    assert tending.tick(2 * SECOND) == []
    assert tending.moved([("o1", SlotMove("n9", 9))], 2 * SECOND) == []


def test_sold_slots_are_asked_for_as_often_as_before_when_the_clock_is_set() -> None:
    tending = _tending()
    tending.kept(_sale("o1", end=DAY))
    tending.look(SECOND)
    tending.registry.clock_set(MINUTE)
    assert tending.look(SECOND + MINUTE + LOOK_EVERY - 1) == []
    assert tending.look(SECOND + MINUTE + LOOK_EVERY) == [TendSlots((("o1", "alice1"),))]


def test_a_slot_that_is_released_twice_is_free_once_both_answers_are_in_without_doubt() -> None:
    for doubts, is_free in (((False, False), True), ((True, False), False), ((False, True), False)):
        release = Release("o1", Pace(Timing()))
        release.asked()
        release.asked()
        release.on_answer(0, in_doubt=doubts[0])
        assert not release.is_done
        release.on_answer(0, in_doubt=doubts[1])
        assert release.is_done is is_free
