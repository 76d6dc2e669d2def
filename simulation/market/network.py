"""A network that loses, doubles, delays and reorders messages, by the numbers of a plan and a seed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from ramp.model.acl import Message
from ramp.model.instant import MILLISECOND, Duration, Instant


@dataclass(frozen=True, slots=True)
class NetworkFaults:
    """How bad the network is; all of it ends at the plan's healing.

    Attributes:
        loss: probability that a message is lost.
        duplication: probability that a message comes twice.
        delay_floor: least time a message takes.
        delay_mean: mean of the exponential delay on top of that; large means reorder messages.
    """

    loss: float = 0.0
    duplication: float = 0.0
    delay_floor: Duration = 1 * MILLISECOND
    delay_mean: Duration = 0


HEALTHY = NetworkFaults()


@dataclass(slots=True)
class NetworkCounts:
    """What the network did, for reports and for tests that faults really happened."""

    sent: int = 0
    lost: int = 0
    doubled: int = 0
    by_performative: dict[str, int] = field(default_factory=dict)


class Network:
    """Takes messages and says when they arrive.

    Args:
        faults: how bad it is before `healed_at`.
        healed_at: from then on it is healthy, with the floor delay.
        random: its own stream.
        schedule: called with the arrival time and the message, once for each copy.
    """

    def __init__(
        self,
        faults: NetworkFaults,
        healed_at: Instant,
        random: Random,
        schedule: Callable[[Instant, Message], None],
    ) -> None:
        self.counts = NetworkCounts()
        self._faults = faults
        self._healed_at = healed_at
        self._random = random
        self._schedule = schedule

    def send(self, message: Message, now: Instant) -> None:
        """Take one message."""
        self.counts.sent += 1
        name = message.performative.value
        self.counts.by_performative[name] = self.counts.by_performative.get(name, 0) + 1
        faults = self._faults if now < self._healed_at else HEALTHY
        if faults.loss and self._random.random() < faults.loss:
            self.counts.lost += 1
            return
        self._schedule(now + self._delay(faults), message)
        if faults.duplication and self._random.random() < faults.duplication:
            self.counts.doubled += 1
            self._schedule(now + self._delay(faults), message)

    def _delay(self, faults: NetworkFaults) -> Duration:
        extra = int(self._random.expovariate(1 / faults.delay_mean)) if faults.delay_mean else 0
        return self._faults.delay_floor + extra
