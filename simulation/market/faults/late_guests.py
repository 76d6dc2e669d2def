"""Machines and price strategies that answer late, fail, or whose answers get lost: a real batch system's ways.

A question travels to the guest, is carried out there, and the answer travels back; both ways take time, and questions
overtake each other. An answer that never comes is turned into "in doubt" by a time limit, as in the agents' shell, and
the question may be carried out long after that. A party that crashes meanwhile gets no answer: its question is carried
out all the same, and the answer is not for its next incarnation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any, Final, Generic, TypeVar

from ramp.model.instant import MILLISECOND, SECOND, Duration, Instant
from ramp.protocol import effects as fx
from ramp.protocol import events as ev
from ramp.runtime.guests.questions import ROW_OF, about, without_answer
from ramp.runtime.host import Guest, Host
from simulation.market.random_streams import stream
from simulation.resource.reservation_book import Standing
from simulation.resource.steady import SteadyMachine

Question = TypeVar("Question", bound="fx.AskMachine | fx.PriceSlots")

LONG: Final = (10 * SECOND, 45 * SECOND, 200 * SECOND)
"""An answer that takes long comes within one of these: before a hold has run out, about then, after everything."""


@dataclass(frozen=True, slots=True)
class GuestFaults:
    """How badly one machine or price strategy answers; all of it but `takes` ends at the plan's healing.

    Attributes:
        takes: how long every answer takes.
        delay_mean: mean of the exponential delay on top of that; large means that answers overtake each other.
        long: probability that an answer takes up to minutes.
        fails: probability that a call fails, half of the times after the question has been carried out.
        lost: probability that an answer never comes, whether or not the question is carried out.
        limit: time after which the shell reports that the result is unknown.
        asks_well: whether only changes are slow and fail, and quotes come at once.
    """

    takes: Duration = 0
    delay_mean: Duration = 0
    long: float = 0.0
    fails: float = 0.0
    lost: float = 0.0
    limit: Duration = 10 * SECOND
    asks_well: bool = False


@dataclass(frozen=True, slots=True)
class Fate:
    """The fate of one question; all durations are counted from the asking.

    Attributes:
        done_after: when it is carried out; None: never.
        doubt_after: when the resource learns that the result is unknown; None: it need not be.
        answered_after: when the true answer comes; None: never.
    """

    done_after: Duration | None = 0
    doubt_after: Duration | None = None
    answered_after: Duration | None = 0


AT_ONCE: Final = Fate()


def draw_fate(faults: GuestFaults, random: Random, *, healed: bool) -> Fate:
    """Draw the fate of one question from the guest's own stream; `healed`: whether all faults are over."""
    delay = faults.takes
    if healed:
        return Fate(delay, None, delay) if delay else AT_ONCE
    if faults.delay_mean:
        delay += int(random.expovariate(1 / faults.delay_mean))
    if faults.long and random.random() < faults.long:
        delay += random.randrange(random.choice(LONG))
    done_after = random.randint(0, delay)
    trouble = random.random() if faults.fails or faults.lost else 1.0
    if trouble < faults.fails:
        return Fate(done_after if random.random() < 0.5 else None, min(delay, faults.limit), None)
    if trouble < faults.fails + faults.lost:
        return Fate(done_after if random.random() < 0.5 else None, faults.limit, None)
    return Fate(done_after, faults.limit if delay > faults.limit else None, delay)


@dataclass(slots=True)
class GuestCounts:
    """Counts of the guests' faults, for reports and for tests that faults really happened.

    Attributes:
        late: answers that came later than the question.
        in_doubt: questions whose result the resource learned to be unknown.
        unheard: answers to a resource that had crashed meanwhile.
    """

    late: int = 0
    in_doubt: int = 0
    unheard: int = 0


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What late guests need of their market; a name is a resource's.

    Attributes:
        after: lets something happen after a while.
        time: what a resource's clock shows.
        is_healed: whether all faults are over.
        host: what runs a resource now; None while it is down.
        answer: gives a resource an answer.
        scripted: what a script wants to become of a question, if anything.
    """

    after: Callable[[Duration, Callable[[], None]], object]
    time: Callable[[str], Instant]
    is_healed: Callable[[], bool]
    host: Callable[[str], Host | None]
    answer: Callable[[str, ev.Answer], None]
    scripted: Callable[[str, fx.AskMachine | fx.PriceSlots], Fate | None] | None


class LateGuests:
    """All late guests of one market.

    Args:
        seed: of the market.
        around: the market.

    Attributes:
        counts: what they did.
    """

    def __init__(self, seed: int, around: Surroundings) -> None:
        self.counts = GuestCounts()
        self._seed = seed
        self._around = around
        self._all: dict[str, list[LateGuest[Any]]] = {}

    def behind(self, name: str, guest: Guest[Question], kind: str, faults: GuestFaults | None) -> Guest[Question]:
        """Return a resource's guest behind such a line, if it has faults or there is a script.

        `kind` names its stream of random numbers.
        """
        if faults is None and self._around.scripted is None:
            return guest
        random = stream(self._seed, f"{kind}/{name}")
        late = LateGuest(name, guest, faults or GuestFaults(), random, self._around, self.counts)
        self._all.setdefault(name, []).append(late)
        return late

    def is_asking(self, name: str, key: str = "") -> bool:
        """Return whether a question about a slot's key (empty: any) is under way, of this life or an earlier one."""
        return any(key in late.under_way if key else late.under_way for late in self._all.get(name, ()))


class LateGuest(Generic[Question]):
    """A machine or price strategy behind such a line.

    Args:
        name: its resource.
        guest: what answers in the end.
        faults: how badly.
        random: its own stream.
        around: the market.
        counts: of all guests.

    Attributes:
        under_way: questions that are not through yet, by key or call.
    """

    def __init__(
        self,
        name: str,
        guest: Guest[Question],
        faults: GuestFaults,
        random: Random,
        around: Surroundings,
        counts: GuestCounts,
    ) -> None:
        self.under_way: Counter[str] = Counter()
        self._name = name
        self._guest = guest
        self._faults = faults
        self._random = random
        self._around = around
        self._counts = counts

    def ask(self, question: Question, now: Instant) -> ev.Answer | None:
        """Return an answer that comes at once, else None."""
        around = self._around
        fate = around.scripted(self._name, question) if around.scripted is not None else None
        fate = fate or self._draw(question)
        if fate == AT_ONCE:
            return self._guest.ask(question, now)
        asking = around.host(self._name)
        key = about(question)
        done: list[ev.Answer] = []
        self.under_way[key] += 1

        def act() -> None:
            answer = self._guest.ask(question, around.time(self._name))
            if answer is not None:
                done.append(answer)

        def doubt() -> None:
            self._counts.in_doubt += 1
            self._tell(asking, without_answer(question, "no answer within the time limit", asked=True))

        def answer() -> None:
            if fate.doubt_after is None or ROW_OF[type(question)].may_follow:
                self._tell(asking, *done)  # of others, who asks again is not to take an old answer for the new one

        def through() -> None:
            self.under_way[key] -= 1
            if not self.under_way[key]:
                del self.under_way[key]

        for delay, step in ((fate.done_after, act), (fate.doubt_after, doubt), (fate.answered_after, answer)):
            if delay is not None:
                around.after(delay, step)
        around.after(max(fate.done_after or 0, fate.doubt_after or 0, fate.answered_after or 0), through)
        return None

    def _draw(self, question: Question) -> Fate:
        if self._faults.asks_well and ROW_OF[type(question)].can_be_repeated:
            return AT_ONCE
        return draw_fate(self._faults, self._random, healed=self._around.is_healed())

    def _tell(self, asking: Host | None, *answers: ev.Answer) -> None:
        self._counts.late += 1
        if self._around.host(self._name) is not asking:
            self._counts.unheard += 1
            return
        for answer in answers:
            self._around.answer(self._name, answer)


class ForgetfulMachine(SteadyMachine):
    """A machine that keeps no note of the release of an unknown key, as most batch systems keep no such note.

    A hold that arrives after its release takes cores until it runs out, or is released once more.
    """

    def release(self, key: str, now: Instant) -> None:
        """Give a hold or reservation back, where there is one, or was: its clock may be set back, and it is again."""
        if self._book.standing(key, now) is not Standing.UNKNOWN:
            super().release(key, now)


def draw_machine_faults(random: Random) -> GuestFaults:
    """Draw how badly one machine answers: from some milliseconds late to lost one time in five."""
    return GuestFaults(
        takes=random.choice((0, 0, 20, 200)) * MILLISECOND,
        delay_mean=random.choice((0, 50, 1_000, 3_000, 8_000)) * MILLISECOND,
        long=random.choice((0.0, 0.0, 0.1, 0.4)),
        fails=random.choice((0.0, 0.05, 0.3)),
        lost=random.choice((0.0, 0.05, 0.2)),
        limit=random.choice((500, 2_000, 2_000, 10_000, 60_000)) * MILLISECOND,
        asks_well=random.random() < 0.75,
    )


def draw_strategy_faults(random: Random) -> GuestFaults:
    """Draw how badly one price strategy answers; nothing hangs on it but bids."""
    return GuestFaults(
        delay_mean=random.choice((5, 200, 3_000)) * MILLISECOND,
        long=random.choice((0.0, 0.0, 0.2)),
        lost=random.choice((0.0, 0.2)),
        limit=random.choice((2, 10)) * SECOND,
    )
