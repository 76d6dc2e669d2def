"""Which calls of a round are sent again: lost ones soon and all, late ones hardly ever."""

from __future__ import annotations

from ramp.model.instant import MILLISECOND, SECOND
from ramp.protocol.timing import Pace, Timing
from ramp.protocol.user.calls import Calls

NAMES = tuple("abcdefghij")


def new_calls(names: tuple[str, ...] = NAMES, pace: Pace | None = None) -> Calls:
    return Calls(pace or Pace(Timing()), names, 0)


def test_a_time_out_sends_a_few_again_and_doubles_the_pause() -> None:
    """RFC 6298, 5.4 and 5.5."""
    calls = new_calls()
    sent, due = [], []
    while sum(map(len, sent)) < 14:
        due.append(calls.due)
        sent.append(calls.time_out(calls.due))
    assert due == [SECOND, 3 * SECOND, 7 * SECOND]
    assert sent == [["j", "i"], ["h", "g", "f", "e"], ["d", "c", "b", "a", "j", "i", "h", "g"]]
    assert calls.sent_again == 14


def test_answers_to_calls_sent_once_are_only_late() -> None:
    """F-RTO (RFC 5682): the time-out was spurious, so that nothing more is sent again."""
    calls = new_calls()
    assert calls.time_out(SECOND) == ["j", "i"]
    assert calls.answered("a", 1200 * MILLISECOND) == []
    assert calls.answered("j", 1300 * MILLISECOND) == []  # the first call's answer, as far as anybody knows
    for name in "bcdefghi":
        assert calls.answered(name, 2 * SECOND) == []
    assert calls.sent_again == 2
