"""A plug-in in about 40 lines: a machine that the market alone uses, with its book in a file.

A package names `Desk` in the entry point group `ramp.resource_plugins`; `examples/plugin_package` is a whole one.
"""

import pickle
from dataclasses import replace

from ramp.errors import ConfigurationError
from ramp.model.offer import Refusal, RefusalCode
from ramp.plugins.answers import iso_or_empty, request_refusal
from ramp.plugins.interface import Reservation, ResourcePlugin, Slot
from ramp.runtime.atomic_writes import write_whole


class Desk(ResourcePlugin):
    """A machine that the market alone uses."""

    def __init__(self, settings):
        if settings.options:
            raise ConfigurationError("unknown option, this machine has none", key=min(settings.options))
        self.resource, self.capacity = settings.resource, settings.cores
        self.file = settings.state_dir / "book"
        self.book = pickle.loads(self.file.read_bytes()) if self.file.exists() else {}  # noqa: S301 -- its own

    def quote(self, unit, now):
        if refused := request_refusal(unit, self.capacity, now):
            return refused
        cores, (first, run) = unit.cores.total, unit.run_from(now)
        starts = sorted({first, *(each.slot.end for each in self.reservations(now) if each.slot.end > first)})
        start = next(at for at in starts if self.taken(at, at + run, now) + cores <= self.capacity)
        if start + run > unit.deadline:
            return Refusal(unit.number, RefusalCode.CORES_TAKEN, iso_or_empty(start))
        return Slot(start, start + run, cores, load=self.taken(start, start + run, now) / self.capacity)

    def hold(self, key, unit, slot, until, now):
        if key not in self.book and until > now:
            if self.taken(slot.start, slot.end, now) + slot.cores > self.capacity:
                return Refusal(unit.number, RefusalCode.SLOT_TAKEN)
            self.write(key, Reservation(key, f"{self.resource}-{len(self.book)}", slot, firm=False, held_until=until))
        return self.reservation(key, now) or self.refusal(key)

    def confirm(self, key, now):
        if held := self.reservation(key, now):
            self.write(key, replace(held, firm=True, held_until=None))
        return self.reservation(key, now) or self.refusal(key)

    def release(self, key, now):
        self.write(key, None)

    def reservation(self, key, now):
        found = self.book.get(key)
        return found if found and (found.firm or found.held_until > now) else None

    def reservations(self, now):
        found = [each for each in (self.reservation(key, now) for key in self.book) if each and each.slot.end > now]
        return tuple(sorted(found, key=lambda each: each.slot.start))

    def refusal(self, key):
        released = key in self.book and self.book[key] is None
        return Refusal(0, RefusalCode.CANCELLED if released else RefusalCode.HOLD_EXPIRED)

    def taken(self, begin, end, now):
        slots = [each.slot for each in self.reservations(now) if each.slot.start < end and begin < each.slot.end]
        return sum(slot.cores for slot in slots)

    def write(self, key, reservation):
        self.book[key] = reservation
        write_whole(self.file, pickle.dumps(self.book), private=True)
