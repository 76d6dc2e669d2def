"""A machine that does not reserve, for trials of the market: each job's start is drawn when it is let go.

It sells probable starts (`ramp.model.probable_start`): what its inner machine has room for at the latest start of a
window is offered with a stated probability, and the job starts in time about as often, else late or never. Nothing of a
queue is modelled; `ramp.batch.waiting` sells starts on queues.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any, Final

from ramp.model.instant import MINUTE, Duration, Instant
from ramp.model.offer import Refusal
from ramp.model.request import RequestUnit
from ramp.plugins.interface import Reservation, ResourcePlugin, Slot

LATENESS: Final[Duration] = 5 * MINUTE
"""Most by which a job is late that starts at all."""

NEVER: Final = 0.3
"""Share of the late jobs that never start."""


class DrawnStarts(ResourcePlugin):
    """A machine over another, whose slots become jobs.

    Args:
        inner: keeps holds and what is firm.
        probability: with which it says that jobs start in time, and with which they do.
        seed: of the draws; the same key always draws the same.
    """

    def __init__(self, inner: ResourcePlugin, probability: float, seed: int) -> None:
        self.source, self.resource, self.capacity = inner.source, inner.resource, inner.capacity
        self._inner = inner
        self._probability = probability
        self._seed = seed
        self._starts: dict[str, Instant | None] = {}
        """When confirmed jobs start; None = never."""

    def quote(self, unit: RequestUnit, now: Instant) -> Slot | Refusal:
        """Return a slot at the latest start of the window; see `ResourcePlugin.quote`."""
        latest = max(unit.deadline - unit.length_from(now), unit.not_before or now, now)
        found = self._inner.quote(replace(unit, not_before=latest), now)
        return found if isinstance(found, Refusal) else replace(found, start_probability=self._probability)

    def hold(self, key: str, unit: RequestUnit, slot: Slot, until: Instant, now: Instant) -> Reservation | Refusal:
        plain = replace(slot, start_probability=None)
        held = self._inner.hold(key, replace(unit, not_before=slot.start), plain, until, now)
        return held if isinstance(held, Refusal) else self._told(held, now)

    def confirm(self, key: str, now: Instant) -> Reservation | Refusal:
        """Let the job go, and draw when it will start; see `ResourcePlugin.confirm`."""
        firm = self._inner.confirm(key, now)
        if isinstance(firm, Refusal):
            return firm
        if key not in self._starts:
            self._starts[key] = self._drawn(key, firm.slot.start, now)
        return self._told(firm, now)

    def _drawn(self, key: str, latest: Instant, now: Instant) -> Instant | None:
        random = Random(f"{self._seed}/{key}")
        if random.random() < self._probability:
            return now + int(random.random() * max(latest - now, 0))
        return None if random.random() < NEVER else max(latest, now) + 1 + int(random.random() * LATENESS)

    def _told(self, found: Reservation, now: Instant) -> Reservation:
        start = self._starts.get(found.key) if found.firm else None
        began = start if start is not None and start <= now else None
        return replace(found, slot=replace(found.slot, start_probability=self._probability), started_at=began)

    def release(self, key: str, now: Instant) -> None:
        self._inner.release(key, now)

    def reservation(self, key: str, now: Instant) -> Reservation | None:
        """Return the reservation with the start of its job, once that has started; see `ResourcePlugin.reservation`."""
        found = self._inner.reservation(key, now)
        return None if found is None else self._told(found, now)

    def reservations(self, now: Instant) -> tuple[Reservation, ...]:
        return tuple(self._told(each, now) for each in self._inner.reservations(now))

    def forget(self, keys: Sequence[str], now: Instant) -> None:
        for key in keys:
            self._starts.pop(key, None)
        self._inner.forget(keys, now)

    def snapshot(self, now: Instant, horizon: Duration) -> dict[str, Any]:
        return self._inner.snapshot(now, horizon)
