"""One heap of timers for all conversations of a party: which of them act, when, and what a bug in one does."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from ramp.model.instant import Duration, Instant
from ramp.protocol.conversations import STALE_MAX, Conversations, Registry
from ramp.protocol.effects import Effect, ForgetSlots, TakeUpAgain

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


def test_what_is_named_otherwise_is_resumed_under_that_name() -> None:
    registry = Registry()
    group: Conversations[Waiting] = Conversations(registry, lambda each: f"offer of {each.name}")
    one = group.add("one", Waiting("one", [5], raises=True))
    group.act("one", one.start, 0)
    assert registry.tick(5) == [TakeUpAgain("offer of one", BUG)]


def test_replaced_alarms_do_not_pile_up() -> None:
    one = Waiting("one", [1])
    registry, group = registry_of(one)
    for number in range(10 * STALE_MAX):
        one.deadlines = [10_000 + number]
        group.act("one", one.start, 0)
    assert len(registry._queue) <= STALE_MAX + 3
    assert registry.deadline == 10_000 + 10 * STALE_MAX - 1


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
