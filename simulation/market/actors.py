"""A party of a simulated market with everything of it that survives a crash."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from ramp.composition import Composition
from ramp.model.instant import Duration, Instant
from ramp.protocol import events as ev
from ramp.protocol.party import Party
from ramp.runtime.host import Host, Ports
from simulation.kernel import EventQueue
from simulation.market.faults.breakdowns import WatchedJournal
from simulation.market.faults.happenings import Happening, Tick
from simulation.market.party_clock import PartyClock


class CountedIds:
    """Gives `offer-res3-17`: kind, owner, count. The counts belong to the owner, not to its memory.

    Kept outside a party's volatile state, so that no identifier is given twice across a crash.
    """

    def __init__(self, owner: str) -> None:
        self._owner = owner
        self._counts: Counter[str] = Counter()

    def new(self, kind: str) -> str:
        """Return a new identifier."""
        self._counts[kind] += 1
        return f"{kind}-{self._owner}-{self._counts[kind]}"


BANK = "bank"
DIRECTORY = "directory"
KEEPER = "keeper"

COMPOSITION: Final = Composition(BANK, (DIRECTORY,), KEEPER)
"""A market with the usual limits."""


class Crashed(Exception):
    """A party crashes.

    Args:
        down_for: how long until it restarts; None: until a command restarts it.
    """

    def __init__(self, down_for: Duration | None) -> None:
        self.down_for = down_for
        super().__init__()


@dataclass(slots=True)
class Actor:
    """A party, up or down.

    Attributes:
        name: the party's name.
        build: makes its protocol anew.
        ports: makes its host's ports anew.
        clock: what it takes for the time.
        journal: its durable memory, if it has one.
        host: what runs it; None while it is down.
        ticket: of the tick that is scheduled.
        armed_for: the deadline, by its clock, for which that is.
        doom: it crashes after the effect that it is carrying out; the pause until its restart.
        unheeded: commands that it has not noted yet.
    """

    name: str
    build: Callable[[], Party]
    ports: Callable[[], Ports]
    clock: PartyClock
    journal: WatchedJournal | None = None
    host: Host | None = None
    ticket: int | None = None
    armed_for: Instant | None = None
    doom: Duration | None = None
    unheeded: list[ev.Command] = field(default_factory=list)

    def time(self, now: Instant) -> Instant:
        """Return what its clock shows at a true time."""
        return now if self.clock.is_right else self.clock.time(now)

    def arm(self, deadline: Instant | None, queue: EventQueue[Happening]) -> None:
        """Wake the party at another deadline than before, by its own clock."""
        self.disarm(queue)
        self.armed_for = deadline
        if deadline is not None:
            due = max(deadline if self.clock.is_right else self.clock.when(deadline), queue.now)
            self.ticket = queue.schedule(due, Tick(self.name), priority=-1)

    def disarm(self, queue: EventQueue[Happening]) -> None:
        """Let it sleep."""
        if self.ticket is not None:
            queue.cancel(self.ticket)
        self.ticket = self.armed_for = None
