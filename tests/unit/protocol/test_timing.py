"""Retransmission: time-outs after RFC 6298, samples after Karn, and which calls of a round are sent again."""

from ramp.model.agreement import ORDER_VALIDITY_MAX
from ramp.model.contents import CallForProposals
from ramp.model.instant import MILLISECOND, SECOND
from ramp.model.request import RequestForQuotation
from ramp.protocol.timing import Pace, Retry, Timing
from ramp.protocol.user.bidding_round import BiddingRound


def pace(**limits: int) -> Pace:
    return Pace(Timing(**limits))


def test_the_pause_follows_the_round_trips_as_rfc_6298_says() -> None:
    """Section 2.2: SRTT = R, RTTVAR = R/2; 2.3: RTTVAR = 3/4 RTTVAR + 1/4 |SRTT-R|, SRTT = 7/8 SRTT + 1/8 R; K = 4."""
    measured = pace(retry_first=1, retry_longest=100 * SECOND)
    measured.observe(800 * MILLISECOND)
    assert measured.pause == (800 + 4 * 400) * MILLISECOND
    measured.observe(1600 * MILLISECOND)  # RTTVAR = 300 + 200 = 500, SRTT = 700 + 200 = 900
    assert measured.pause == (900 + 4 * 500) * MILLISECOND
    measured.observe(900 * MILLISECOND)  # RTTVAR = 375 + 0, SRTT = 787.5 + 112.5
    assert measured.pause == (900 + 4 * 375) * MILLISECOND


def test_slow_answers_leave_time_to_vote_again() -> None:
    measured = pace(vote_limit=8 * SECOND)
    assert measured.vote_limit == 8 * SECOND
    measured.observe(3 * SECOND)  # a pause of 9 s
    assert measured.vote_limit == 18 * SECOND
    assert measured.vote_limit < Timing().hold_time


def test_an_answer_that_nobody_waits_for_is_no_measurement() -> None:
    shared = pace()
    retry = Retry(shared)
    retry.begin(0)
    retry.answered(100 * MILLISECOND)
    retry.answered(9 * SECOND)
    retry.heard(9 * SECOND)
    assert retry.due is None
    assert shared.pause == SECOND


def test_a_sign_of_life_puts_the_time_out_off() -> None:
    retry = Retry(pace())
    retry.begin(0)
    retry.heard(900 * MILLISECOND)
    assert retry.due == 900 * MILLISECOND + 2700 * MILLISECOND


def test_patience_lasts_two_retransmissions_while_answers_are_slow() -> None:
    measured = pace()
    assert measured.patience(30 * SECOND) == 30 * SECOND
    measured.observe(4 * SECOND)  # a pause of 12 s: sent again after 12 and 36 s
    assert measured.patience(30 * SECOND) == 48 * SECOND


def test_the_limits_fit_one_another() -> None:
    timing = Timing()
    assert timing.retry_first < timing.vote_limit < timing.hold_time <= timing.agreement_validity
    assert timing.heartbeat * 2 < timing.lease
    assert timing.approval_limit + timing.hold_time < timing.offer_validity
    assert timing.decision_margin < timing.hold_time
    assert 2 * timing.retry_longest < timing.hold_time  # the longest that a vote is waited for
    assert timing.confirm_limit < timing.agreement_validity  # else the bank's deadline comes first
    assert timing.agreement_validity <= ORDER_VALIDITY_MAX


NAMES = tuple("abcdefghij")


def new_calls(names: tuple[str, ...] = NAMES) -> BiddingRound:
    return BiddingRound(CallForProposals("r1", 1, RequestForQuotation(())), names, pace(), 0)


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
    assert calls.answered("a", (), 1200 * MILLISECOND) == []
    assert calls.answered("j", (), 1300 * MILLISECOND) == []  # the first call's answer, as far as anybody knows
    for name in "bcdefghi":
        assert calls.answered(name, (), 2 * SECOND) == []
    assert calls.sent_again == 2


def test_strangers_and_copies_change_nothing() -> None:
    calls = new_calls(("a", "b"))
    calls.answered("a", (), 10)
    due = calls.due
    assert calls.answered("a", (), 500) == []
    assert calls.answered("z", (), 500) == []
    assert calls.due == due
