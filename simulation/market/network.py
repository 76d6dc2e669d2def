"""A network that loses, doubles, delays and reorders messages, by the numbers of a plan and a seed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from ramp.model.acl import Message
from ramp.model.instant import MILLISECOND, SECOND, Duration, Instant


@dataclass(frozen=True, slots=True)
class NetworkFaults:
    """How bad the network is; all of it ends at the plan's healing.

    Attributes:
        loss: probability that a message is lost.
        duplication: probability that a message comes twice.
        late_copies: probability that a copy comes long after, as from a server that has been away.
        delay_floor: least time a message takes.
        delay_mean: mean of the exponential delay on top of that; large means reorder messages.
    """

    loss: float = 0.0
    duplication: float = 0.0
    late_copies: float = 0.0
    delay_floor: Duration = 1 * MILLISECOND
    delay_mean: Duration = 0


@dataclass(frozen=True, slots=True)
class FaultWindow:
    """When one party cannot be reached, cannot write, or is down.

    Attributes:
        name: the party.
        since: first instant, or time after the run's start in a plan.
        until: first instant at which all is well again.
    """

    name: str
    since: Instant
    until: Instant

    def after(self, start: Instant) -> FaultWindow:
        """Return the same in virtual time."""
        return FaultWindow(self.name, start + self.since, start + self.until)

    def strikes(self, names: Sequence[str], now: Instant) -> bool:
        """Return whether one of these parties is struck now."""
        return self.since <= now < self.until and self.name in names


HEALTHY = NetworkFaults()

LATE = (100 * MILLISECOND, SECOND, 15 * SECOND, 90 * SECOND)
"""A late copy comes within one of these: in the next round of an auction, in the next attempt, after everything."""


class Network:
    """Takes messages and says when they arrive.

    Args:
        faults: of the network before `healed_at`; afterwards it is healthy, with the floor delay.
        healed_at: virtual time.
        random: its own stream.
        isolations: parties that cannot be reached.

    Attributes:
        steady: the delays of every message while no fault is possible, so that none need be routed; None otherwise.
        lost: number of messages.
    """

    def __init__(
        self,
        faults: NetworkFaults,
        healed_at: Instant,
        random: Random,
        isolations: Sequence[FaultWindow] = (),
    ) -> None:
        self._faults = faults
        self._healed_at = healed_at
        self._random = random
        self._isolations = tuple(isolations)
        self.steady = (faults.delay_floor,) if faults == HEALTHY and not isolations else None
        self.lost = 0

    def cut(self, isolation: FaultWindow) -> None:
        """Cut one more line for a while, in virtual time; no isolation lasts beyond the healing."""
        until = min(isolation.until, self._healed_at)
        self._isolations = (*self._isolations, FaultWindow(isolation.name, isolation.since, until))
        self.steady = None

    def route(self, message: Message, now: Instant) -> tuple[Duration, ...]:
        """Take one message: the delays of the copies that will arrive, none where it is lost."""
        faults = self._faults if now < self._healed_at else HEALTHY
        isolated = any(each.strikes((message.sender, message.receiver), now) for each in self._isolations)
        if isolated or (faults.loss and self._random.random() < faults.loss):
            self.lost += 1
            return ()
        delays = [self._delay(faults)]
        if faults.duplication and self._random.random() < faults.duplication:
            delays.append(self._delay(faults))
        if faults.late_copies and self._random.random() < faults.late_copies:
            delays.append(delays[0] + self._random.randrange(self._random.choice(LATE)))
        return tuple(delays)

    def _delay(self, faults: NetworkFaults) -> Duration:
        extra = int(self._random.expovariate(1 / faults.delay_mean)) if faults.delay_mean else 0
        return self._faults.delay_floor + extra
