"""The plug-in for Grid Engine: the common one, which also asks Grid Engine about every quote."""

from __future__ import annotations

from typing import Any

from ramp.batch.gridengine.system import GridEngine
from ramp.batch.machine import BatchMachine
from ramp.batch.node_lists import parts_of
from ramp.batch.reconciling import own_prefix
from ramp.batch.system import WantedReservation
from ramp.errors import BatchSystemError, PluginError
from ramp.model.instant import SECOND, Duration, Instant, iso
from ramp.model.offer import Refusal, RefusalCode
from ramp.model.request import RequestUnit
from ramp.model.slot import Slot

_VERIFIED_MAX = 200
"""Number of verified slots to remember, more than a few seconds bring."""


class GridEngineMachine(BatchMachine):
    """A cluster queue behind a Resource Agent.

    Free cores are computed from a picture of the queue, as for any system. Grid Engine then verifies the reservation,
    because it also knows limits of hosts, quotas of resources and calendars. Both must agree, because it grants
    reservations on disabled queues. Its answers are kept as long as the picture.

    Args:
        system: the live system.
        others: as of `BatchMachine`.
    """

    system: GridEngine

    def __init__(self, system: GridEngine, *others: Any, **named: Any) -> None:
        super().__init__(system, *others, **named)
        self._answers: dict[tuple[object, ...], int] = {}

    def begin(self, now: Instant) -> None:
        """Sweep reservations (see `BatchMachine.begin`), and usersets that a crash has left without a reservation.

        Raises:
            PluginError: the system cannot be asked now.
        """
        super().begin(now)
        kept = {each.name for each in self.book.live(now)} | {each.name for each in self.book.to_remove(now)}
        try:
            there = {each.name for each in self.system.reservations()}
            self.system.sweep_usersets(own_prefix(self.resource), kept | there)
        except BatchSystemError as error:
            raise PluginError(self.system.name, error.reason, transient=error.transient) from error

    def _quoted(
        self, unit: RequestUnit, duration: Duration, earliest: Instant, latest: Instant, now: Instant
    ) -> Slot | Refusal:
        slot = super()._quoted(unit, duration, earliest, latest, now)
        if not isinstance(slot, Slot):
            return slot
        found = self._grantable(slot, now)
        if found < slot.cores and self.book.to_remove(now):  # expired reservations still take slots
            self.reconciler.sweep(now)
            self._answers.clear()
            found = self._grantable(slot, now)
        if found >= slot.cores:
            return slot
        detail = f"Grid Engine itself would grant {found} of {slot.cores} slots from {iso(slot.start)} on"
        return Refusal(unit.number, RefusalCode.CORES_TAKEN, detail=detail)

    def _grantable(self, slot: Slot, now: Instant) -> int:
        picture = self.picture(now)
        asked = (picture.taken_at, slot.start, slot.end, slot.token)
        if asked not in self._answers:
            if len(self._answers) >= _VERIFIED_MAX:
                self._answers.clear()
            start, end = slot.start // SECOND * SECOND, -(-slot.end // SECOND) * SECOND
            self._answers[asked] = self.system.verify(WantedReservation("", start, end, parts_of(slot.token)))
        return self._answers[asked]
