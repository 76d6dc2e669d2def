"""The conversations of one party, and what they have in common.

A conversation is one exchange that waits for an answer or for a time: a request, an accepted offer, a job, a question.
It is a pure state machine with three entries:

- `on_message` takes a peer's message, `on_answer` the answer of machine, ledger or launcher (under names of their own
  where a conversation expects several answers);
- `on_timer` acts at its `deadline`.

A `Registry` keeps one heap with the deadlines of all conversations of its party. After an action only the conversation
that acted is armed again, so an event costs as little in a party with a thousand conversations as in one with a few.
The registry passes on steps of the clock, and confines a bug to its conversation: an exception becomes an effect at its
place in the order, so other conversations still do their work. The host then lets the party resume that conversation
from its journal (`ramp.protocol.party.Party.resume`).

Ended conversations stay in memory for a stated time, then their records are archived (`ramp.runtime.journal`).

`Timing.retention` counts from the end of an agreement's slot, or of a conversation without an agreement. It exceeds the
time in which peers may still send messages about it. So late and repeated messages find their subject, and no forgotten
document starts anything again. An order is valid up to `ORDER_VALIDITY_MAX` (15 minutes), an offer for
`Timing.offer_validity` (10), a seal for `SEAL_AGE_MAX` (10), a first message for `Timing.message_age` (5), twice that
if two clocks differ. One hour exceeds their sum, and serves an agent that was away as long.

A later document is unknown: an acceptance finds no offer, an agreement no held slot, and the bank, which never forgets,
pays an agreement id once. Ids are random, so none occurs twice.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from functools import partial
from heapq import heapify, heappop, heappush
from typing import Final, Protocol, TypeVar

from ramp.errors import RemoteProtocolError
from ramp.model.instant import MINUTE, Duration, Instant
from ramp.protocol.effects import Effect, TakeUpAgain
from ramp.protocol.timing import Timing, moved


class Remembering(Protocol):
    """A part of a party that remembers times."""

    def clock_set(self, by: Duration) -> None:
        """Move what is measured from now on with the clock; dates stay."""
        ...


class Timed(Remembering, Protocol):
    """A part of a party that has a deadline."""

    @property
    def deadline(self) -> Instant | None:
        """When to act; None while only an event can change something."""
        ...


class Conversation(Timed, Protocol):
    """What a registry knows of a conversation."""

    def on_timer(self, now: Instant) -> list[Effect]:
        """Act after the deadline."""
        ...


def guarded(reference: str, act: Callable[[], list[Effect]]) -> list[Effect]:
    """Run an action outside a conversation; an exception other than RemoteProtocolError becomes `TakeUpAgain`.

    Args:
        reference: names what acts to `Party.resume`.
        act: returns its effects.

    Raises:
        RemoteProtocolError: if a peer's message is unexpected.
    """
    try:
        return act()
    except RemoteProtocolError:
        raise
    except Exception as error:
        return [TakeUpAgain(reference, error)]


STALE_MAX: Final = 100
"""Replaced alarms in the heap, besides as many as there are valid ones, before it is cleared of them."""

C = TypeVar("C", bound=Conversation)
Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")

_Alarm = tuple[Instant, int, "Conversations[Conversation]", str]
"""A deadline, the number of its alarm, the group and the key of its conversation."""

Followed = Callable[[C, list[Effect], Instant], list[Effect]]
"""Called with a conversation after its action, the effects and the present; returns the effects."""


class Registry:
    """All conversations of one party, in groups of one kind each, and its standing tasks."""

    def __init__(self) -> None:
        self._groups: list[Conversations[Conversation]] = []
        self._tasks: list[tuple[Timed, Callable[[Instant], list[Effect]]]] = []
        self._others: list[Remembering] = []
        self._queue: list[_Alarm] = []
        self._armed = 0

    @property
    def deadline(self) -> Instant | None:
        """The earliest deadline of all conversations and tasks."""
        queue = self._queue
        while queue and queue[0][2].alarms.get(queue[0][3]) is not queue[0]:
            heappop(queue)  # it has been armed again, or has ended
        earliest = queue[0][0] if queue else None
        for part, _ in self._tasks:
            due = part.deadline
            if due is not None and (earliest is None or due < earliest):
                earliest = due
        return earliest

    def task(self, part: Timed, on_timer: Callable[[Instant], list[Effect]]) -> None:
        """Add a task that never ends, such as renewing a registration, which acts at a part's deadline."""
        self._tasks.append((part, on_timer))

    def follow(self, part: Remembering) -> None:
        """Pass on steps of the clock to a part that never acts by itself."""
        self._others.append(part)

    def tick(self, now: Instant) -> list[Effect]:
        """Let every conversation and task act whose deadline has passed, once each, the earliest first."""
        due: list[_Alarm] = []
        while self._queue and self._queue[0][0] <= now:
            due.append(heappop(self._queue))
        effects: list[Effect] = []
        for alarm in due:
            _, _, group, key = alarm
            if group.alarms.get(key) is alarm:
                effects += group.rings(key, now)
        for part, on_timer in self._tasks:
            if part.deadline is not None and now >= part.deadline:
                effects += on_timer(now)
        return effects

    def clock_set(self, by: Duration) -> None:
        """Pass on a step of the clock."""
        self._queue.clear()
        for group in self._groups:
            group.clock_set(by)
        for part in (*(part for part, _ in self._tasks), *self._others):
            part.clock_set(by)

    def enrol(self, group: Conversations[C]) -> None:
        """Take up a new group."""
        self._groups.append(group)  # type: ignore[arg-type]

    def arm(self, group: Conversations[C], key: str, deadline: Instant) -> _Alarm:
        """Queue a conversation's deadline; return its alarm, which replaces earlier ones."""
        if len(self._queue) > 2 * sum(len(each.alarms) for each in self._groups) + STALE_MAX:
            self._queue = [each for each in self._queue if each[2].alarms.get(each[3]) is each]
            heapify(self._queue)
        self._armed += 1
        alarm: _Alarm = (deadline, self._armed, group, key)  # type: ignore[assignment]
        heappush(self._queue, alarm)
        return alarm


class Alarm:
    """The deadline of a task, which the task sets itself.

    Args:
        is_date: whether it stays if the clock is set.
    """

    def __init__(self, *, is_date: bool = False) -> None:
        self.deadline: Instant | None = None
        self._is_date = is_date

    def clock_set(self, by: Duration) -> None:
        if not self._is_date:
            self.deadline = moved(self.deadline, by)


class Conversations(dict[str, C]):
    """The conversations of one kind, by key.

    Args:
        registry: of their party.
        reference: returns the name under which the party resumes a conversation; None if its key is that name.
        followed: called after every action; None changes nothing.

    Attributes:
        alarms: the present alarm of each conversation that has a deadline; others in the queue are stale.
    """

    def __init__(
        self,
        registry: Registry,
        reference: Callable[[C], str] | None = None,
        followed: Followed[C] | None = None,
    ) -> None:
        super().__init__()
        self._registry = registry
        self._reference = reference
        self._followed = followed
        self.alarms: dict[str, _Alarm] = {}
        registry.enrol(self)

    def add(self, key: str, conversation: C) -> C:
        """Take up a conversation, which is not armed before its first action or `arm`."""
        self[key] = conversation
        self.alarms.pop(key, None)
        return conversation

    def drop(self, key: str) -> C | None:
        """Forget a conversation, and return it."""
        self.alarms.pop(key, None)
        return self.pop(key, None)

    def act(self, key: str, action: Callable[[], list[Effect]], now: Instant) -> list[Effect]:
        """Run a conversation's action, and arm it again; a bug stays in it (`TakeUpAgain`).

        Raises:
            RemoteProtocolError: if a peer's message is unexpected.
        """
        conversation = self[key]
        reference = key if self._reference is None else self._reference(conversation)
        try:
            effects = action()
            if self._followed is not None:
                effects = self._followed(conversation, effects, now)
            if self.get(key) is conversation:
                self.arm(key)
        except RemoteProtocolError:
            raise
        except Exception as error:
            return [TakeUpAgain(reference, error)]
        return effects

    def arm(self, key: str) -> None:
        """Set the alarm of a conversation to its deadline."""
        due = self[key].deadline
        armed = self.alarms.get(key)
        if due is None:
            self.alarms.pop(key, None)
        elif armed is None or armed[0] != due:
            self.alarms[key] = self._registry.arm(self, key, due)

    def rings(self, key: str, now: Instant) -> list[Effect]:
        """Let a conversation act at its deadline."""
        del self.alarms[key]
        return self.act(key, partial(self[key].on_timer, now), now)

    def clock_set(self, by: Duration) -> None:
        """Pass on a step of the clock, and arm all conversations again."""
        self.alarms.clear()
        for key, conversation in self.items():
            conversation.clock_set(by)
            self.arm(key)


RETENTION_MIN: Duration = 20 * MINUTE
"""Minimum retention in a configuration: an order's longest validity, and five minutes between clocks."""

ARCHIVE_PAUSE: Duration = 5 * MINUTE
"""Minimum pause between two moves to the archive, as each waits for the disk."""


def least_retention(timing: Timing) -> Duration:
    """Return the minimum retention for the other limits."""
    return max(
        RETENTION_MIN, timing.offer_validity, timing.agreement_validity, timing.hold_time, 2 * timing.message_age
    )


class Retention:
    """Times until which ended conversations are kept, by the party's own references.

    Attributes:
        deadline: when `due` next returns something, or None.
    """

    def __init__(self, timing: Timing) -> None:
        self.deadline: Instant | None = None
        self._retention = timing.retention
        self._until: dict[str, Instant] = {}
        self._queue: list[tuple[Instant, str]] = []
        self._not_before: Instant = 0

    def __len__(self) -> int:
        return len(self._until)

    def keep(self, reference: str, ended_at: Instant) -> None:
        """Record that something ended at an instant, or later than recorded before."""
        until = ended_at + self._retention
        if self._until.get(reference, -1) < until:
            self._until[reference] = until
            heappush(self._queue, (until, reference))
            self._set_deadline()

    def drop(self, reference: str) -> None:
        """Forget a reference that is active again or gone."""
        if self._until.pop(reference, None) is not None:
            self._set_deadline()

    def _set_deadline(self) -> None:
        while self._queue and self._until.get(self._queue[0][1]) != self._queue[0][0]:
            heappop(self._queue)  # it has been put off or dropped
        self.deadline = max(self._queue[0][0], self._not_before) if self._queue else None

    def clock_set(self, by: Duration) -> None:
        """Keep everything at least as long as before."""
        self._not_before += by
        if by > 0:
            self._until = {reference: until + by for reference, until in self._until.items()}
            self._queue = [(until, reference) for reference, until in self._until.items()]
            heapify(self._queue)
        self._set_deadline()

    def due(self, now: Instant) -> list[str]:
        """Drop and return all expired references, at most once per `ARCHIVE_PAUSE`."""
        if self.deadline is None or now < self.deadline:
            return []
        self._not_before = now + ARCHIVE_PAUSE
        found: list[str] = []
        while self._queue and self._queue[0][0] <= now:
            until, reference = heappop(self._queue)
            if self._until.get(reference) == until:
                del self._until[reference]
                found.append(reference)
        self._set_deadline()
        return found


class Waiting(OrderedDict[str, Value]):
    """What waits for an answer of machine, strategy or launcher, by the id of its question.

    Args:
        most: maximum number; the oldest are dropped, as if lost on the way.
    """

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most
        self._asked = 0

    def put(self, value: Value) -> str:
        """Keep a value, and return the id of its question."""
        self._asked += 1
        call_id = f"call-{self._asked}"
        self[call_id] = value
        if len(self) > self._most:
            self.popitem(last=False)
        return call_id


class Recent(OrderedDict[Key, Value]):
    """Values by key; the oldest go first.

    Args:
        lifetime: of a value since it was set; expired values go when the next one is set.
        most: maximum number of values.
    """

    def __init__(self, lifetime: Duration, most: int) -> None:
        super().__init__()
        self._lifetime = lifetime
        self._most = most
        self._until: dict[Key, Instant] = {}

    def standing(self, key: Key, now: Instant) -> Value | None:
        """Return the value if its lifetime has not ended, else None."""
        return self[key] if key in self and now < self._until[key] else None

    def forget(self, key: Key) -> None:
        if self.pop(key, None) is not None:
            del self._until[key]

    def clock_set(self, by: Duration) -> None:
        self._until = {key: until + by for key, until in self._until.items()}

    def put(self, key: Key, value: Value, now: Instant) -> None:
        self[key] = value
        self.move_to_end(key)
        self._until[key] = now + self._lifetime
        while len(self) > self._most or now >= self._until[next(iter(self))]:
            self.forget(next(iter(self)))
