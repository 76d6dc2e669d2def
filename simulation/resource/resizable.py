"""Simulated machines whose reservations change their size while they stand (`ResourcePlugin.resize`)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace

from ramp.model.instant import Instant
from ramp.model.offer import Refusal, RefusalCode
from ramp.model.slot import Reservation, Slot
from simulation.resource.booked_machine import BookedMachine
from simulation.resource.reservation_book import Standing


class ResizableMachine(BookedMachine, ABC):
    """A booked machine that changes the size of what it has set aside."""

    def resize(self, key: str, step: int, cores: int, until: Instant, now: Instant) -> Reservation | Refusal:
        with self._book.writing() as writer:
            entry = self._book.entry(key)
            if entry is None or entry.reservation is None or entry.standing(now) is not Standing.FIRM:
                return self._not_firm(key, now)
            slot = entry.reservation.slot
            if step < entry.step:
                overtaken = f"{key} has been changed by the later step {entry.step}"
                return Refusal(entry.unit, RefusalCode.SLOT_TAKEN, detail=overtaken)
            if step > entry.step:
                changed = self._resized(entry.reservation, entry.earlier, cores, until, now)
                if isinstance(changed, str):
                    return Refusal(entry.unit, RefusalCode.SLOT_TAKEN, detail=changed)
                writer.resize(key, step, slot, changed, now)
            elif (slot.cores, slot.end) != (cores, until):
                other = f"step {step} of {key} was a different change"
                return Refusal(entry.unit, RefusalCode.SLOT_TAKEN, detail=other)
            return self._answer(key, now)

    def _not_firm(self, key: str, now: Instant) -> Refusal:
        answer = self._answer(key, now)
        if isinstance(answer, Refusal):
            return answer
        return Refusal(0, RefusalCode.HOLD_EXPIRED, detail=f"{key} is only held, not confirmed")

    @abstractmethod
    def _resized(
        self, reservation: Reservation, earlier: Sequence[Slot], cores: int, until: Instant, now: Instant
    ) -> Slot | str:
        """Return a firm slot with another size, or why it cannot have that.

        Args:
            reservation: as it stands.
            earlier: the slot before each change of its place.
            cores: that it shall have from now on.
            until: its end from now on.
            now: the present.
        """


class CountedMachine(ResizableMachine, ABC):
    """A machine whose cores have no places: a reservation is a number of cores, and any of them may go."""

    def _resized(
        self, reservation: Reservation, earlier: Sequence[Slot], cores: int, until: Instant, now: Instant
    ) -> Slot | str:
        taken = self._more_taken(reservation, cores, until, now)
        return taken or replace(reservation.slot, cores=cores, end=until)

    def _more_taken(self, reservation: Reservation, cores: int, until: Instant, now: Instant) -> str:
        """Return why the addition to a reservation is not free; empty where it is free, or nothing is added."""
        slot = reservation.slot
        if cores > slot.cores:
            more = self._taken(replace(slot, cores=cores - slot.cores, end=min(until, slot.end)), now)
            if more:
                return more
        if until > slot.end:
            return self._taken(replace(slot, start=slot.end, end=until, cores=cores), now)
        return ""
