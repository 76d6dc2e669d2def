"""The registry of conversations: deadlines, retention, and the machines' tables."""

from dataclasses import dataclass, field, replace
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ramp.errors import ProtocolError
from ramp.model.agreement import ORDER_VALIDITY_MAX
from ramp.model.instant import HOUR, MINUTE, SECOND, Duration, Instant
from ramp.model.seal import SEAL_AGE_MAX
from ramp.protocol.conversations import (
    ARCHIVE_PAUSE,
    RETENTION_MIN,
    STALE_MAX,
    Conversations,
    Recent,
    Registry,
    Retention,
    least_retention,
)
from ramp.protocol.effects import Effect, ForgetSlots
from ramp.protocol.machine import STORY_LENGTH, StateMachine, Transition
from ramp.protocol.timing import Timing
from ramp.protocol.transition_tables import AUCTION, AuctionState, BuyerChangeState

BUG = ValueError("a bug")


@dataclass
class Waiting:
    """Acts at its deadlines, one after the other."""

    name: str
    deadlines: list[Instant]
    acted: list[Instant] = field(default_factory=list)
    raises: bool = False

    @property
    def deadline(self) -> Instant | None:
        return self.deadlines[0] if self.deadlines else None

    def start(self) -> list[Effect]:
        return []

    def on_timer(self, now: Instant) -> list[Effect]:
        if self.raises:
            raise BUG
        self.deadlines.pop(0)
        self.acted.append(now)
        return [ForgetSlots((self.name,))]

    def clock_set(self, by: Duration) -> None:
        self.deadlines = [each + by for each in self.deadlines]


def registry_of(*waiting: Waiting) -> tuple[Registry, Conversations[Waiting]]:
    registry = Registry()
    group: Conversations[Waiting] = Conversations(registry)
    for each in waiting:
        group.add(each.name, each)
        group.act(each.name, each.start, 0)
    return registry, group


def names(effects: list[Effect]) -> list[str]:
    return [each.keys[0] for each in effects if isinstance(each, ForgetSlots)]


def test_replaced_alarms_do_not_pile_up() -> None:
    one = Waiting("one", [1])
    registry, group = registry_of(one, Waiting("two", [5]))
    for number in range(10 * STALE_MAX):
        one.deadlines = [10_000 + number]
        group.act("one", one.start, 0)
    assert len(registry._queue) <= STALE_MAX + 5
    assert registry.deadline == 5
    assert names(registry.tick(10_000 + 10 * STALE_MAX - 1)) == ["two", "one"]


@given(st.lists(st.lists(st.integers(0, 30), max_size=4).map(sorted), max_size=6), st.lists(st.integers(0, 40)))
def test_who_acts_is_as_if_all_were_looked_at_each_time(plans: list[list[int]], ticks: list[int]) -> None:
    registry, group = registry_of(*(Waiting(str(number), list(plan)) for number, plan in enumerate(plans)))
    left = {str(number): list(plan) for number, plan in enumerate(plans)}
    for now in sorted(ticks):
        due = [(plan[0], name) for name, plan in left.items() if plan and plan[0] <= now]
        assert sorted(names(registry.tick(now))) == sorted(name for _, name in due)
        for _, name in due:
            left[name].pop(0)
        assert registry.deadline == min((plan[0] for plan in left.values() if plan), default=None)
    assert len(group) == len(plans)


TIMING = Timing(retention=HOUR)


def test_the_standard_outlasts_everything_that_peers_may_say() -> None:
    timing = Timing()
    longest = max(ORDER_VALIDITY_MAX, SEAL_AGE_MAX, timing.offer_validity, timing.agreement_validity)
    assert longest + timing.message_age <= RETENTION_MIN
    assert timing.retention >= least_retention(timing) >= RETENTION_MIN


@pytest.mark.parametrize(
    ("limit", "times"), [("offer_validity", 1), ("agreement_validity", 1), ("hold_time", 1), ("message_age", 2)]
)
def test_nothing_is_forgotten_before_a_limit_is_over(limit: str, times: int) -> None:
    """Two clocks may be apart by as much as a message may be old."""
    assert least_retention(replace(Timing(), **{limit: 5 * HOUR})) == times * 5 * HOUR


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
    kept.drop("a")
    assert kept.deadline is None
    kept.keep("b", 0)
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


def test_values_go_at_the_end_of_their_lifetime_and_the_oldest_where_there_are_too_many() -> None:
    recent: Recent[str, int] = Recent(lifetime=10, most=3)
    for key, now in ("a", 0), ("b", 0), ("c", 1), ("d", 10):
        recent.put(key, now, now)
        recent.forget("a")
    assert list(recent) == ["c", "d"]
    recent.put("e", 10, 10)
    recent.put("f", 10, 10)
    recent.put("f", 12, 12)
    assert list(recent) == ["d", "e", "f"]
    recent.clock_set(-5)
    recent.put("g", 15, 15)
    assert list(recent) == ["f", "g"]


def test_a_machine_resumes_only_once_and_only_in_a_state_of_its_table() -> None:
    again = StateMachine("r1", AUCTION, AuctionState.NEW)
    with pytest.raises(ProtocolError, match="StateMachine cannot resume as new from new"):
        again._resume(AuctionState.NEW)
    again._resume(AuctionState.BIDDING)
    assert again.state is AuctionState.BIDDING
    with pytest.raises(ProtocolError, match="StateMachine cannot resume as closed from bidding") as caught:
        again._resume(AuctionState.CLOSED)
    assert (caught.value.story, caught.value.conversation_id) == (("resumed as bidding",), "r1")
    assert again.state is AuctionState.BIDDING


def test_a_move_that_is_not_in_the_table_is_our_own_fault_and_tells_the_story() -> None:
    new, asking = BuyerChangeState.NEW, BuyerChangeState.ASKING
    lamp = StateMachine("r1", frozenset({Transition(new, "on", asking), Transition(asking, "off", new)}), new)
    for _ in range(STORY_LENGTH):
        lamp._enter(asking, "on")
        lamp._enter(new, "off")
    with pytest.raises(ProtocolError, match="StateMachine cannot go from new to new on on") as caught:
        lamp._enter(new, "on")
    assert caught.value.story == ("new -on-> asking", "asking -off-> new") * (STORY_LENGTH // 2)
    assert caught.value.conversation_id == "r1"
    assert lamp.state is new
