"""Retransmission: pauses double from the first to the longest."""

from __future__ import annotations

from ramp.model.instant import SECOND
from ramp.protocol.timing import Retry, Timing, earliest


def test_pauses_double_up_to_the_longest() -> None:
    retry = Retry(Timing(retry_first=SECOND, retry_longest=5 * SECOND))
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


def test_beginning_again_starts_with_the_first_pause() -> None:
    retry = Retry(Timing(retry_first=SECOND))
    retry.begin(0)
    retry.again(SECOND)
    retry.begin(10 * SECOND)
    assert retry.due == 11 * SECOND


def test_the_limits_fit_one_another() -> None:
    timing = Timing()
    assert timing.retry_first < timing.vote_limit < timing.hold_time < timing.agreement_validity
    assert timing.heartbeat * 2 < timing.lease
    assert timing.approval_limit + timing.hold_time < timing.offer_validity
    assert timing.decision_margin < timing.hold_time


def test_earliest() -> None:
    assert earliest() is None
    assert earliest(None, None) is None
    assert earliest(None, 5, 3) == 3
