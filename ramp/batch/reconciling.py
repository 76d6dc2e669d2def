"""Bringing a batch system to agree with the book: what is promised exists there, and nothing else of ours does.

An exit code is believed in neither direction. Whatever was told to the system is read back by name; what exists as it
should counts as made, whoever said that it was not, and what does not exist does not count, whoever said that it was
(Slurm makes fewer nodes than asked with exit code 0, and creates later what it said it did not).
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

from ramp.batch.book import Entry, HoldBook
from ramp.batch.sold_nodes import placement_of, token_of
from ramp.batch.system import NAME_PREFIX, BatchSystem, SystemReservation, WantedReservation
from ramp.errors import BatchSystemError, SystemRefused
from ramp.model.instant import SECOND, Duration, Instant, iso

NAME_MAX: Final = 64
"""Characters of a reservation's name."""

RESTART_S: Final = 15.0
"""Seconds for which a system that had a reservation and has lost it may say that its nodes are busy: for its first
seconds Slurm's controller says so of nodes that are idle."""

PAUSE_S: Final = 0.5
"""Seconds between two tries."""

_RESOURCE_MAX: Final = 20
_PLAIN_KEY: Final = re.compile(r"[A-Za-z0-9_-]+")
_log: Final = logging.getLogger(__name__)


def own_prefix(resource: str) -> str:
    """How the names of a resource's reservations begin: no two resources' prefixes begin with one another."""
    plain = re.sub(r"[^A-Za-z0-9-]", "-", resource)
    if plain == resource and len(plain) <= _RESOURCE_MAX:
        return f"{NAME_PREFIX}{plain}."
    digest = hashlib.sha256(resource.encode()).hexdigest()[:8]
    return f"{NAME_PREFIX}{plain[: _RESOURCE_MAX - 9]}-{digest}."


def reservation_name(resource: str, key: str) -> str:
    """The name on the system of a key's reservation: the key itself where it can be part of a name, else its digest."""
    prefix = own_prefix(resource)
    if _PLAIN_KEY.fullmatch(key) and len(prefix) + len(key) <= NAME_MAX:
        return prefix + key
    return f"{prefix}x{hashlib.sha256(key.encode()).hexdigest()[:24]}"


class Reconciler:
    """Keeps a system and a book in agreement.

    Args:
        system: the system.
        book: what was promised.
        resource: the resource's name.
        wait: seconds to wait.
        chooses_parts: whether the system itself chooses how many cores it takes of which of the nodes that it is told
            (Grid Engine); what it has chosen then goes into the book.
        begin_lag: so much later than asked a reservation may begin that was to begin at once; for systems that make
            none with a begin in the past.
    """

    def __init__(
        self,
        system: BatchSystem,
        book: HoldBook,
        resource: str,
        wait: Callable[[float], None] = time.sleep,
        *,
        chooses_parts: bool = False,
        begin_lag: Duration = 0,
    ) -> None:
        self._wait = wait
        self._system = system
        self._book = book
        self._prefix = own_prefix(resource)
        self._chooses_parts = chooses_parts
        self._begin_lag = begin_lag

    def wanted(self, entry: Entry, now: Instant) -> WantedReservation:
        """What the system is to have for an entry: whole seconds that cover its slot, from now on."""
        assert entry.slot is not None
        start = max(entry.slot.start, now) // SECOND * SECOND
        end = -(-entry.slot.end // SECOND) * SECOND
        return WantedReservation(entry.name, start, end, entry.parts, entry.account)

    def find(self, name: str) -> SystemReservation | None:
        """The reservation of that name, read now."""
        return next((each for each in self._system.reservations() if each.name == name), None)

    def fits(self, found: SystemReservation | None, entry: Entry, now: Instant) -> bool:
        """Whether a reservation is what an entry promises: its time, its cores, and whose it is."""
        if found is None or not self._same_cores(found, entry):
            return False
        wanted = self.wanted(entry, now)
        latest = wanted.start + (self._begin_lag if wanted.start < now + self._begin_lag else 0)
        covers = found.start <= latest and (found.end is None or found.end >= wanted.end)
        return covers and found.users == ((entry.account or self._system.market_user),)

    def _same_cores(self, found: SystemReservation, entry: Entry) -> bool:
        if self._chooses_parts:
            return sum(count for _, count in found.parts) == sum(count for _, count in entry.parts)
        return found.has_just(entry.parts)

    def make(self, entry: Entry, now: Instant, patience_s: float = RESTART_S) -> Entry:
        """Make sure that the system has what an entry promises; the entry as it then stands in the book.

        Args:
            entry: of the book.
            now: the present.
            patience_s: for so long the system may say that it is busy, where it had the reservation before.

        Raises:
            SystemRefused: the system surely has it not, and nothing is left behind.
            BatchSystemError: nobody knows.
        """
        found = self.find(entry.name)
        if found is not None and not self.fits(found, entry, now):
            found = self._changed_to_fit(found, entry, now)
        patience = patience_s if entry.made else 0.0
        while found is None:
            try:
                found = self._made(entry, now)
            except SystemRefused as refused:
                if not refused.busy or patience <= 0:
                    _log.warning("%s cannot be made: %s", entry.name, refused)
                    raise
                self._wait(PAUSE_S)
                patience -= PAUSE_S
        return self.note_made(entry, found, now)

    def change(self, entry: Entry, now: Instant, *, anew: bool) -> Entry:
        """Give what the system has under an entry's name the entry's cores and end, and no more; see `make`.

        Args:
            entry: of the book, as it shall be.
            now: the present.
            anew: whether it may be made anew, without a job in it, where the system changes none of its form.

        Raises:
            SystemRefused: the system surely does not; what it had may be gone where it was to be made anew.
            BatchSystemError: nobody knows.
        """
        found = self.find(entry.name)
        if found is None:
            return self.make(entry, now)
        if not self._is_exactly(found, entry, now):
            found = self._changed(found, entry, now, anew=anew)
        return self.note_made(entry, found, now)

    def _is_exactly(self, found: SystemReservation, entry: Entry, now: Instant) -> bool:
        return self._same_cores(found, entry) and found.end == self.wanted(entry, now).end

    def _changed(self, found: SystemReservation, entry: Entry, now: Instant, *, anew: bool) -> SystemReservation:
        """Change a reservation in place, else make it anew; what is there after that, as wanted."""
        failure: BatchSystemError | None = None
        try:
            in_place = self._in_place(found, entry, now)
        except SystemRefused:
            raise
        except BatchSystemError as error:
            failure, in_place = error, True  # not believed: it is looked at
        if not in_place:
            jobs = self._system.running_in(found)
            if jobs or not anew:
                why = f"jobs {', '.join(jobs)} are in it" if jobs else "waiting jobs would take its cores"
                raise SystemRefused(f"{self._system.name} can give {entry.name} that size only anew, and {why}")
            self._remove(found)
            self._made(entry, now)
        after = self.find(entry.name)
        if after is not None and self._is_exactly(after, entry, now):
            return after
        raise failure or BatchSystemError(f"{self._system.name} said that it changed {entry.name}, and has not")

    def _in_place(self, found: SystemReservation, entry: Entry, now: Instant) -> bool:
        """Order a change, of a system that changes any; see `ramp.batch.system.ChangingSystem.change`."""
        change: Callable[[SystemReservation, WantedReservation], bool] | None = getattr(self._system, "change", None)
        return change is not None and change(found, self.wanted(entry, now))

    def _changed_to_fit(self, found: SystemReservation, entry: Entry, now: Instant) -> SystemReservation | None:
        """What does not fit is changed in place where that can be, for jobs may be in it; else it is removed, and None.

        A change of size that was cut short leaves such a reservation.
        """
        after: SystemReservation | None = found
        with contextlib.suppress(SystemRefused):
            if not self._is_exactly(found, entry, now) and self._in_place(found, entry, now):
                after = self.find(entry.name)
        if after is not None and not self.fits(after, entry, now):
            self._remove(after)
            after = None
        return after

    def make_anew(self, entry: Entry, now: Instant, patience_s: float = RESTART_S) -> Entry:
        """Make what an entry promises now, in place of whatever the system has under its name; see `make`.

        Raises:
            SystemRefused: the system surely has it not, and nothing is left behind.
            BatchSystemError: nobody knows.
        """
        found = self.find(entry.name)
        if found is not None:
            self._remove(found)
        return self.make(entry, now, patience_s)

    def note_made(self, entry: Entry, found: SystemReservation, now: Instant) -> Entry:
        """Write down that the system has what an entry promises, and where; what was sold elsewhere has moved."""
        changes: dict[str, Any] = {"made": True, "reservation_id": found.reservation_id}
        if self._chooses_parts and sorted(found.parts) != sorted(entry.parts):
            assert entry.slot is not None
            where = replace(entry.slot, placement=placement_of(found.parts), token=token_of(found.parts))
            changes |= {"parts": found.parts, "slot": where}
            if entry.firm:
                changes["moved_at"] = entry.moving(now)
        return self._book.change(entry.key, **changes)

    def _made(self, entry: Entry, now: Instant) -> SystemReservation:
        failure: BatchSystemError | None = None
        try:
            self._system.make(self.wanted(entry, now))
        except BatchSystemError as error:
            failure = error  # not believed either: it is looked for by name
        found = self.find(entry.name)
        if found is not None and self.fits(found, entry, now):
            return found
        if found is not None:
            self._remove(found)
            raise SystemRefused(f"{self._system.name} made something else of {entry.name}: {found}", busy=True)
        if failure is not None:
            raise failure
        raise BatchSystemError(f"{self._system.name} said that it made {entry.name}, and does not have it")

    def hand_over(self, entry: Entry, now: Instant) -> Entry:
        """Make the account of an entry the only one that may run in its reservation.

        Who calls this calls it again, so a system that is busy is not waited for.

        Raises:
            SystemRefused: there is no such account.
            BatchSystemError: nobody knows.
        """
        found = self.find(entry.name)
        if found is None or not self._same_cores(found, entry):
            return self.make(entry, now, 0.0)
        if found.users != (entry.account,):
            self._system.hand_over(found, entry.account)
            found = self.find(entry.name)
            if found is None or found.users != (entry.account,):
                raise BatchSystemError(f"{self._system.name} has not handed {entry.name} over to {entry.account}")
        return entry

    def remove(self, entry: Entry) -> None:
        """Make sure that the system has nothing under an entry's name, and note that.

        Raises:
            BatchSystemError: it may still have.
        """
        found = self.find(entry.name)
        if found is not None:
            self._remove(found)
        self._book.change(entry.key, removed=True)

    def _remove(self, reservation: SystemReservation) -> None:
        self._system.remove(reservation)
        if self.find(reservation.name) is not None:
            raise BatchSystemError(f"{self._system.name} still has {reservation.name} after it was removed")

    def sweep(self, now: Instant, found: Sequence[SystemReservation] | None = None) -> tuple[str, ...]:
        """Remove what nobody holds any more, and what is ours by its name and not in the book; the names.

        What is not in the book but used by jobs stays: somebody was given it. What cannot be removed now is tried again
        at the next sweep; one failure stops no other.

        Raises:
            BatchSystemError: the system cannot be asked what it has.
        """
        over = {each.name: each for each in self._book.to_remove(now)}
        there = {each.name: each for each in (self._system.reservations() if found is None else found)}
        live = {each.name for each in self._book.live(now)}
        swept: list[str] = []
        for name, reservation in there.items():
            if not name.startswith(self._prefix) or name in live:
                continue
            try:
                if name not in over and self._system.running_in(reservation):
                    _log.warning("keeping %s: it is in no book of RAMP, but jobs use it", name)
                    continue
                self._remove(reservation)
            except BatchSystemError as error:
                _log.warning("%s cannot be removed now: %s", name, error)
                over.pop(name, None)
                continue
            _log.info("%s was removed: it is not held at %s", name, iso(now))
            swept.append(name)
        for entry in over.values():
            self._book.change(entry.key, removed=True)
        return tuple(swept)
