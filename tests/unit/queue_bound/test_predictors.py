"""Both predictors on histories that are worked out by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import bdtr  # the binomial distribution; scipy.stats takes a second to load

from ramp.errors import ConfigurationError
from ramp.queue_bound.groups import Groups, octave
from ramp.queue_bound.order_statistic import RecentValues, fewest, rank
from ramp.queue_bound.predictor import PREDICTORS, Predictor, QueuedJob, predictor

MINUTE = 60_000_000


def learn(one: Predictor, job: QueuedJob, waits: list[int]) -> None:
    """Let jobs start one after the other, each after its wait; a bound that passes meanwhile is missed at once."""
    for wait in waits:
        bound = one.bound(job)
        overdue = bound is not None and wait > bound
        if overdue:
            one.overdue(job)
        one.started(job, wait, bound, overdue=overdue)


def test_they_are_found_by_their_names() -> None:
    assert [each.name for each in PREDICTORS.listed() if each.declaration] == ["bmbp", "planned"]
    with pytest.raises(ConfigurationError, match="did you mean 'bmbp'"):
        PREDICTORS.find("bmpb")
    with pytest.raises(ConfigurationError, match="quantil"):
        PREDICTORS.find("bmbp").new({"quantil": 0.9})
    with pytest.raises(ConfigurationError, match="expected a callable and a dataclass"):
        predictor(lambda _: None, options=int)  # type: ignore[arg-type, return-value]


def test_bmbp_bounds_by_the_largest_of_59_waits() -> None:
    one, job = PREDICTORS.find("bmbp").new(), QueuedJob("", 1, MINUTE)
    learn(one, job, list(range(58)))
    assert one.bound(job) is None
    assert one.chance(job, 5) is None
    learn(one, job, [7])
    assert one.bound(job) == 57
    assert one.chance(job, 5) == 6 / 59
    assert one.bound(QueuedJob("", 100, MINUTE)) is None  # of another size nothing is known


def test_bmbp_begins_anew_after_three_misses_in_a_row() -> None:
    one, job = PREDICTORS.find("bmbp").new(), QueuedJob("", 1, MINUTE)
    learn(one, job, [10] * 1000)
    learn(one, job, [90, 90, 5, 80, 80])
    assert one.bound(job) == 10  # two in a row are chance
    learn(one, job, [80])
    # 53 waits of 10 are left beside the last six, 90, 90, 5, 80, 80 and 80
    assert one.bound(job) == 90
    assert one.chance(job, 10) == 54 / 59


def test_a_job_that_is_planned_to_start_at_once_has_bound_0() -> None:
    one = PREDICTORS.find("planned").new()
    job = QueuedJob("", 1, MINUTE, planned=0)
    assert one.bound(job) == 0
    assert one.chance(job, 0) == 1
    for _ in range(100):
        one.overdue(job)
        one.started(job, 5, 0)
    assert one.bound(QueuedJob("", 1, MINUTE, planned=1)) is None


def test_planned_adds_the_quantile_of_the_errors() -> None:
    one = PREDICTORS.find("planned").new({"target": 0.5, "gamma": 0.001})
    job = QueuedJob("", 1, MINUTE, planned=100)
    # errors -40 to 40; the smallest 41 of 81 are not above 0, and 0.5 x 82 = 41
    learn(one, job, [100 + error for error in range(-40, 41)])
    bound = one.bound(QueuedJob("", 1, MINUTE, planned=1000))
    assert bound is not None
    assert abs(bound - 1000) <= 1  # the level has moved by some thousandths
    assert one.bound(QueuedJob("", 1, MINUTE, planned=10)) is not None
    # 50 of 81 waited at most 109 of the 100 planned
    assert one.chance(job, 109) == 50 / 81
    assert one.chance(QueuedJob("", 1, MINUTE, planned=40 * MINUTE), MINUTE) is None  # another octave


def test_a_miss_counts_as_soon_as_the_bound_has_passed() -> None:
    """Gibbs and Candès 2021, equation 2: alpha grows by gamma x (alpha of the target - 1 for a miss)."""
    one = PREDICTORS.find("planned").new({"target": 0.9, "gamma": 0.1, "enough": 10, "window": 100})
    job = QueuedJob("", 1, MINUTE, planned=100)
    learn(one, job, [100 + error for error in range(10)])
    # level 0.9 of ten errors is rank ceil(11 x 0.9) = 10
    assert one.bound(job) == 109
    one.started(job, 109, 109)  # a hit: level 0.89, rank 10 of 11 errors
    assert one.bound(job) == 109
    one.overdue(job)  # a miss of another: level 0.98, the largest
    before = one.bound(job)
    one.started(job, 500, 109, overdue=True)  # it is counted once, but its error is known now: the largest of 12
    assert (before, one.bound(job)) == (109, 500)


def test_another_rule_than_the_plans_gives_a_bound_to_those_planned_at_once() -> None:
    one = PREDICTORS.find("planned").new({"same_rule": False, "groups": "plan-size-length"})
    at_once, later = QueuedJob("", 1, MINUTE, planned=0), QueuedJob("", 1, MINUTE, planned=MINUTE)
    learn(one, at_once, [MINUTE] * 80)
    learn(one, later, [3 * MINUTE] * 80)
    assert one.bound(at_once) == MINUTE
    assert one.bound(later) == 3 * MINUTE
    assert (one.chance(at_once, MINUTE - 1), one.chance(at_once, MINUTE)) == (0, 1)


def test_groups() -> None:
    job = QueuedJob("fast", 17, 3_600_000_000, planned=3 * MINUTE)
    told = {groups.value: groups.of(job) for groups in Groups}
    assert told == {
        "one": (),
        "queue": ("fast",),
        "size": (2,),
        "queue-size": ("fast", 2),
        "size-length": (2, 1),
        "plan-size-length": (2, 2, 1),
    }
    assert [octave(minutes * MINUTE) for minutes in (0, 1, 2, 3, 4, 8)] == [0, 1, 2, 2, 3, 4]


def test_59_waits_are_needed_for_95_per_cent() -> None:
    """Brevik, Nurmi and Wolski, PPoPP 2006, section 3.2."""
    assert fewest(0.95, 0.95) == 59
    assert rank(58, 0.95, 0.95) is None
    assert rank(59, 0.95, 0.95) == 59


@pytest.mark.parametrize("count", [59, 60, 93, 500, 1_000, 10_000])
@pytest.mark.parametrize(("quantile", "confidence"), [(0.95, 0.95), (0.5, 0.95), (0.9, 0.8)])
def test_the_rank_is_the_smallest_that_holds(count: int, quantile: float, confidence: float) -> None:
    place = rank(count, quantile, confidence)
    assert place is not None
    assert bdtr(place - 1, count, quantile) >= confidence
    assert bdtr(place - 2, count, quantile) < confidence


@given(st.lists(st.integers(0, 9), min_size=1), st.integers(1, 5), st.integers(0, 9))
def test_recent_values(values: list[int], most: int, other: int) -> None:
    recent: RecentValues[int] = RecentValues(most)
    for value in values:
        recent.add(value)
    kept = sorted(values[-most:])
    assert [recent.smallest(place + 1) for place in range(len(recent))] == kept
    assert recent.not_above(other) == sum(value <= other for value in kept)
    recent.keep_last(2)
    assert [recent.smallest(place + 1) for place in range(len(recent))] == sorted(values[-most:][-2:])
