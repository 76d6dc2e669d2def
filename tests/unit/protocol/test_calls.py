"""Which calls of a round are sent again: lost ones soon and all, late ones hardly ever."""

from __future__ import annotations

from random import Random

from ramp.model.instant import MILLISECOND, SECOND
from ramp.protocol.timing import Pace, Timing
from ramp.protocol.user.calls import Calls

NAMES = tuple("abcdefghij")


def new_calls(names: tuple[str, ...] = NAMES, pace: Pace | None = None) -> Calls:
    return Calls(pace or Pace(Timing()), names, 0)


def test_every_answer_puts_the_time_out_off() -> None:
    """RFC 6298, 5.3: restart the timer when something new is acknowledged; 5.2: turn it off when all is."""
    calls = new_calls(("a", "b"))
    assert calls.due == SECOND
    assert calls.answered("a", 600 * MILLISECOND) == []
    assert calls.due == (600 + 3 * 600) * MILLISECOND
    assert not calls.is_due(SECOND)
    assert calls.answered("b", SECOND) == []
    assert calls.due is None


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


def test_after_a_loss_everybody_missing_is_called_within_a_few_round_trips() -> None:
    """All calls were lost: each answer to a repeated one lets two more out (RFC 5681, 3.1)."""
    calls = new_calls()
    now, line = calls.due, []
    line += calls.time_out(now)
    trips = 0
    while line:
        trips += 1
        now += 20 * MILLISECOND
        line = [again for name in line for again in calls.answered(name, now)]
    assert calls.due is None  # all have answered
    assert calls.sent_again == len(NAMES)
    assert trips <= 4


def test_answers_to_calls_sent_once_are_only_late() -> None:
    """F-RTO (RFC 5682): the time-out was spurious, so that nothing more is sent again."""
    calls = new_calls()
    assert calls.time_out(SECOND) == ["j", "i"]
    assert calls.answered("a", 1200 * MILLISECOND) == []
    assert calls.answered("j", 1300 * MILLISECOND) == []  # the first call's answer, as far as anybody knows
    for name in "bcdefghi":
        assert calls.answered(name, 2 * SECOND) == []
    assert calls.sent_again == 2


def test_strangers_and_copies_change_nothing() -> None:
    calls = new_calls(("a", "b"))
    calls.answered("a", 10)
    due = calls.due
    assert calls.answered("a", 500) == []
    assert calls.answered("z", 500) == []
    assert calls.due == due


def test_only_answers_to_calls_sent_once_are_measured() -> None:
    pace = Pace(Timing())
    calls = new_calls(("a", "b"), pace)
    calls.time_out(SECOND)
    calls.answered("a", 5 * SECOND)
    assert pace.pause == SECOND
    late = Calls(pace, ("a",), 0)
    late.answered("a", 2 * SECOND)
    assert pace.pause == 6 * SECOND


def test_a_slow_market_is_hardly_called_again() -> None:
    """Hundred resources that answer one after another for twenty seconds: 1 + 3 + 7 + 15 s would be 400 messages."""
    names = tuple(f"r{number}" for number in range(100))
    calls = new_calls(names)
    now = 0
    for number, name in enumerate(names):
        answered_at = 5 * SECOND + number * 150 * MILLISECOND
        while calls.due is not None and calls.due <= answered_at:
            now = calls.due
            calls.time_out(now)
        assert calls.answered(name, answered_at) == []
    assert 0 < calls.sent_again <= 6  # 2 after one second, 4 after three


def test_whatever_is_lost_everybody_is_called_until_the_answer() -> None:
    """Random losses of calls and answers: the round ends, and nobody is forgotten for long."""
    ends = []
    for seed in range(50):
        random = Random(seed)
        calls = new_calls(tuple(f"r{number}" for number in range(30)))
        arriving = [(20 * MILLISECOND, name) for name in calls._missing if random.random() > 0.3]
        while calls.due is not None:
            if arriving and arriving[0][0] <= calls.due:
                now, name = arriving.pop(0)
                again = calls.answered(name, now)
            else:
                now = calls.due
                again = calls.time_out(now)
            arriving += [(now + 20 * MILLISECOND, name) for name in again if random.random() > 0.3]
        ends.append(now)
    assert sorted(ends)[25] < 10 * SECOND
    assert max(ends) < 60 * SECOND
