"""When what has ended may go: after its retention, together, and never earlier because a clock was set."""

from __future__ import annotations

from itertools import pairwise
from random import Random

from ramp.model.agreement import ORDER_VALIDITY_MAX
from ramp.model.instant import HOUR, MINUTE, SECOND
from ramp.protocol.conversations import ARCHIVE_PAUSE, RETENTION_MIN, Retention, least_retention
from ramp.protocol.timing import Timing
from ramp.rfql.codec import SEAL_AGE_MAX

TIMING = Timing(retention=HOUR)


def test_the_standard_outlasts_everything_that_peers_may_say() -> None:
    timing = Timing()
    longest = max(ORDER_VALIDITY_MAX, SEAL_AGE_MAX, timing.offer_validity, timing.agreement_validity)
    assert longest + timing.message_age <= RETENTION_MIN
    assert timing.retention >= least_retention(timing) >= RETENTION_MIN


def test_nothing_is_forgotten_while_a_message_of_it_is_believed() -> None:
    """The two clocks may be apart by as much as a message may be old."""
    assert least_retention(Timing(message_age=5 * HOUR)) == 10 * HOUR


def test_nothing_goes_early_and_all_goes_in_batches() -> None:
    """Against a plain list: whatever is told, it is told once, after its time and within a pause of it."""
    random = Random(5)
    kept, ends, told = Retention(TIMING), {}, {}
    for now in range(0, 6 * HOUR, 10 * SECOND):
        if now < 3 * HOUR and random.random() < 0.3:
            reference = f"r{random.randrange(200)}"
            if reference not in told:
                ends[reference] = max(ends.get(reference, 0), now + random.randrange(HOUR))
                kept.keep(reference, ends[reference])
        if kept.deadline is not None and now >= kept.deadline:
            for reference in kept.due(now):
                assert reference not in told
                told[reference] = now
    assert told.keys() == ends.keys()
    assert all(0 <= now - ends[reference] - HOUR <= ARCHIVE_PAUSE + 10 * SECOND for reference, now in told.items())
    batches = sorted(set(told.values()))
    assert all(later - earlier >= ARCHIVE_PAUSE for earlier, later in pairwise(batches))
    assert (len(kept), kept.deadline, kept.due(7 * HOUR)) == (0, None, [])


def test_what_goes_on_after_all_is_not_told() -> None:
    kept = Retention(TIMING)
    kept.keep("a", 0)
    kept.keep("b", 0)
    kept.drop("a")
    kept.keep("b", MINUTE)
    kept.keep("b", 0)  # an earlier end changes nothing
    assert kept.deadline == HOUR + MINUTE
    assert kept.due(HOUR) == []
    assert kept.due(HOUR + MINUTE) == ["b"]


def test_a_clock_set_back_does_not_stop_the_archiving() -> None:
    kept = Retention(TIMING)
    kept.keep("a", 0)
    assert kept.due(10 * HOUR) == ["a"]
    kept.clock_set(-9 * HOUR)
    kept.keep("b", 0)
    assert kept.deadline == HOUR + ARCHIVE_PAUSE
