"""Retransmission: time-outs after RFC 6298, pauses that double up to the longest, samples after Karn."""

from __future__ import annotations

from ramp.model.agreement import ORDER_VALIDITY_MAX
from ramp.model.instant import MILLISECOND, SECOND
from ramp.protocol.timing import Pace, Retry, Timing, earliest
from ramp.runtime.ledger.bank_ledger import NONCE_LIFETIME


def pace(**limits: int) -> Pace:
    return Pace(Timing(**limits))


def test_pauses_double_up_to_the_longest() -> None:
    retry = Retry(pace(retry_first=SECOND, retry_longest=5 * SECOND))
    assert not retry.is_due(10**15)
    retry.begin(0)
    sent = []
    for now in range(0, 30 * SECOND, SECOND // 2):
        if retry.is_due(now):
            sent.append(now // SECOND)
            retry.again(now)
    assert sent == [1, 3, 7, 12, 17, 22, 27]
    retry.stop()
    assert retry.due is None
    assert not retry.is_due(10**15)


def test_what_is_not_done_yet_is_asked_for_ever_more_seldom_and_measures_nothing() -> None:
    shared = pace(retry_first=SECOND, retry_longest=15 * SECOND)
    retry = Retry(shared, longest=3 * SECOND)
    retry.begin(0)
    assert retry.due == SECOND
    pauses = []
    for _ in range(3):
        now = retry.due
        assert now is not None
        retry.again(now)
        assert retry.due is not None
        pauses.append(retry.due - now)
    assert pauses == [2 * SECOND, 3 * SECOND, 3 * SECOND]
    retry.answered(9 * SECOND)
    assert shared.pause == SECOND  # as before the first measurement


def test_beginning_again_starts_with_the_first_pause() -> None:
    retry = Retry(pace(retry_first=SECOND))
    retry.begin(0)
    retry.again(SECOND)
    retry.begin(10 * SECOND)
    assert retry.due == 11 * SECOND


def test_before_the_first_answer_the_pause_is_the_first() -> None:
    """RFC 6298, 2.1: one second until a round trip has been measured."""
    assert pace().pause == SECOND


def test_the_pause_follows_the_round_trips_as_rfc_6298_says() -> None:
    """Section 2.2: SRTT = R, RTTVAR = R/2; 2.3: RTTVAR = 3/4 RTTVAR + 1/4 |SRTT-R|, SRTT = 7/8 SRTT + 1/8 R; K = 4."""
    measured = pace(retry_first=1, retry_longest=100 * SECOND)
    measured.observe(800 * MILLISECOND)
    assert measured.pause == (800 + 4 * 400) * MILLISECOND
    measured.observe(1600 * MILLISECOND)  # RTTVAR = 300 + 200 = 500, SRTT = 700 + 200 = 900
    assert measured.pause == (900 + 4 * 500) * MILLISECOND
    measured.observe(900 * MILLISECOND)  # RTTVAR = 375 + 0, SRTT = 787.5 + 112.5
    assert measured.pause == (900 + 4 * 375) * MILLISECOND


def test_the_pause_stays_between_the_first_and_the_longest() -> None:
    measured = pace(retry_first=SECOND, retry_longest=15 * SECOND)
    measured.observe(2 * MILLISECOND)
    assert measured.pause == SECOND
    measured.observe(60 * SECOND)
    assert measured.pause == 15 * SECOND


def test_slow_answers_leave_time_to_vote_again() -> None:
    measured = pace(vote_limit=8 * SECOND)
    assert measured.vote_limit == 8 * SECOND
    measured.observe(3 * SECOND)  # a pause of 9 s
    assert measured.vote_limit == 18 * SECOND
    assert measured.vote_limit < Timing().hold_time


def test_an_answer_to_something_sent_twice_is_no_measurement() -> None:
    """Karn's algorithm (RFC 6298, 3): nobody knows which of the two was answered."""
    shared = pace()
    retry = Retry(shared)
    retry.begin(0)
    retry.again(SECOND)
    retry.answered(5 * SECOND)
    assert shared.pause == SECOND
    retry.begin(10 * SECOND)
    retry.answered(12 * SECOND)
    assert shared.pause == 6 * SECOND  # 2 s + 4 * 1 s
    retry.begin(20 * SECOND)
    assert retry.due == 26 * SECOND


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
    assert timing.message_age < NONCE_LIFETIME  # a nonce is remembered as long as its query could be taken again


def test_earliest() -> None:
    assert earliest() is None
    assert earliest(None, None) is None
    assert earliest(None, 5, 3) == 3
