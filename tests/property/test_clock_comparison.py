"""Comparing a clock with the bank's: whatever the way takes, and whoever repeats answers, the bounds are true."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramp.errors import RemoteProtocolError
from ramp.model.acl import Message, Performative
from ramp.model.contents import ClockReading
from ramp.model.instant import DAY, HOUR, MINUTE, SECOND
from ramp.model.seal import Role, Seal
from ramp.protocol.clock_comparison import OFFSET_MAX, ClockComparison, compare, offset_text
from ramp.protocol.effects import Report, Send
from ramp.protocol.progress import ClockCompared

NOW = 1_800_000_000_000_000

offsets = st.integers(-400 * DAY, 400 * DAY) | st.integers(-2 * SECOND, 2 * SECOND)
ways = st.integers(0, MINUTE) | st.integers(0, 1000)


def reading(query_id: str, stated: int, role: Role = Role.BANK, signer: str = "bank") -> Message:
    seal = Seal(signer, role, "alice", query_id, stated, "")
    return Message(Performative.INFORM, signer, "alice", query_id, ClockReading(query_id, stated), seal=seal)


def hear(comparison: ClockComparison, message: Message, now: int) -> list[object]:
    assert isinstance(message.content, ClockReading)
    return list(comparison.answered(message, message.content, now))


@given(offset=offsets, there=ways, back=ways)
def test_the_true_offset_lies_within_the_uncertainty(offset: int, there: int, back: int) -> None:
    """The own clock is `offset` ahead; the bank reads its clock after the way there."""
    found = compare(NOW + offset, NOW + there + back + offset, NOW + there)
    assert abs(found.offset - offset) <= found.uncertainty
    assert found.uncertainty <= (there + back + 1) // 2
    assert abs(found.certain) <= abs(offset)
    assert found.certain * offset >= 0  # so it is 0 on one computer, where slow answers looked like -6294 ms
    if found.wrong:
        assert abs(offset) > OFFSET_MAX  # nobody is told so whose clock is right
    if abs(offset) - OFFSET_MAX > there + back + 1:
        assert found.wrong


@pytest.mark.parametrize("answered", [False, True])
def test_after_a_step_of_the_own_clock_nothing_is_known(answered: bool) -> None:
    """The bank's may have been set with it, before it answered or after."""
    comparison = ClockComparison("alice", "bank")
    comparison.ask("clock-1", NOW)
    if answered:
        hear(comparison, reading("clock-1", NOW), NOW)
    comparison.clock_set(HOUR)
    assert hear(comparison, reading("clock-1", NOW), NOW + HOUR) == []
    assert comparison.known is None
    comparison.ask("clock-2", NOW + HOUR)
    assert hear(comparison, reading("clock-2", NOW + HOUR), NOW + HOUR) == [Report(ClockCompared(0, 0, False))]


@given(lags=st.lists(st.tuples(st.integers(0, HOUR), st.integers(0, 5)), max_size=12))
def test_old_answers_make_no_clock_look_wrong(lags: list[tuple[int, int]]) -> None:
    """A clock that is right, and a peer that keeps the bank's answers and plays them again at any time."""
    comparison = ClockComparison("alice", "bank")
    kept: list[Message] = []
    now = NOW
    for number, (lag, which) in enumerate(lags):
        (sent,) = comparison.ask(f"clock-{number}", now)
        assert isinstance(sent, Send)
        kept.append(reading(f"clock-{number}", now))
        now += lag
        hear(comparison, kept[which % len(kept)], now)
        assert comparison.known is None or not comparison.known.wrong


def test_an_answer_serves_once_and_only_the_bank_s_own_word_does() -> None:
    comparison = ClockComparison("alice", "bank")
    right = reading("clock-1", NOW - HOUR)
    assert hear(comparison, right, NOW) == []
    comparison.ask("clock-1", NOW)
    for wrong in (
        replace(right, seal=None),
        reading("clock-1", NOW, role=Role.USER),
        reading("clock-1", NOW, signer="mallory"),
        replace(right, receiver="bob"),
    ):
        with pytest.raises(RemoteProtocolError):
            hear(comparison, wrong, NOW)
    assert hear(comparison, right, NOW + 10) == [Report(ClockCompared(HOUR + 5, 5, True))]
    assert hear(comparison, right, NOW + 20) == []
    assert comparison.known == ClockCompared(HOUR + 5, 5, True)


def test_the_owner_reads_how_far_and_to_which_side() -> None:
    ahead = compare(NOW, NOW + 20_000, NOW - 3 * SECOND + 10_000)
    assert offset_text(ahead).startswith("the clock here is 3.000 s ahead of the bank's (uncertainty 0.010 s),")
    assert "3600.000 s behind the bank's" in offset_text(compare(NOW, NOW, NOW + HOUR))


@pytest.mark.parametrize("side", [-1, 1])
def test_a_clock_is_wrong_only_if_it_is_certainly_more_than_a_second_off(side: int) -> None:
    half = 10  # of the round trip: so much is uncertain
    for offset, wrong in ((SECOND + half, False), (SECOND + half + 1, True)):
        assert compare(NOW - half, NOW + half, NOW - side * offset) == ClockCompared(side * offset, half, wrong)


def test_an_answer_can_name_its_question() -> None:
    """FIPA ACL: `in-reply-to` repeats `reply-with`."""
    (asked,) = ClockComparison("alice", "bank").ask("clock-1", NOW)
    assert isinstance(asked, Send)
    assert (asked.message.reply_with, asked.message.receiver) == ("clock-1", "bank")


@pytest.mark.parametrize(("off", "refused"), [(MINUTE, False), (5 * MINUTE, False), (5 * MINUTE + SECOND, True)])
def test_nothing_is_bought_by_a_clock_whose_word_nobody_takes(off: int, refused: bool) -> None:
    comparison = ClockComparison("alice", "bank")
    assert comparison.refusal(5 * MINUTE) == ""
    comparison.ask("clock-1", NOW)
    hear(comparison, reading("clock-1", NOW - off), NOW)
    assert bool(comparison.refusal(5 * MINUTE)) is refused
    comparison.clock_set(HOUR)
    assert comparison.refusal(5 * MINUTE) == ""


def test_a_clock_that_may_be_right_enough_refuses_nothing() -> None:
    """The answer took two minutes, so that 5.5 minutes may be 4.5."""
    comparison = ClockComparison("alice", "bank")
    comparison.ask("clock-1", NOW - MINUTE)
    hear(comparison, reading("clock-1", NOW - 5 * MINUTE - 30 * SECOND), NOW + MINUTE)
    assert comparison.known == ClockCompared(5 * MINUTE + 30 * SECOND, MINUTE, True)
    assert comparison.refusal(5 * MINUTE) == ""
