"""Make a batch system agree with the book: every promise exists there, and nothing else of ours.

Exit codes are never trusted. Every order is read back by name: a reservation that exists as wanted counts as made even
after an error, and one that does not exist does not count even after success. (Slurm makes fewer nodes than asked with
exit code 0, and later creates reservations that it reported as failed.)
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import re
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from ramp.batch.book import Entry, HoldBook
from ramp.batch.node_lists import placement_of, token_of
from ramp.batch.system import NAME_PREFIX, BatchSystem, SystemReservation, WantedReservation
from ramp.errors import BatchSystemError, SystemRefused
from ramp.model.instant import SECOND, Instant, iso

NAME_MAX: Final = 64
RESTART_S: Final = 15.0
"""Seconds for which a system that lost a reservation may report its nodes as busy: Slurm's controller does so for idle
nodes just after its start.
"""

PAUSE_S: Final = 0.5
_RESOURCE_MAX: Final = 20
_PLAIN_KEY: Final = re.compile(r"[A-Za-z0-9_-]+")
_log: Final = logging.getLogger(__name__)


def own_prefix(resource: str) -> str:
    """Return the prefix of a resource's reservation names; no prefix begins with another resource's."""
    plain = re.sub(r"[^A-Za-z0-9-]", "-", resource)
    if plain == resource and len(plain) <= _RESOURCE_MAX:
        return f"{NAME_PREFIX}{plain}."
    digest = hashlib.sha256(resource.encode()).hexdigest()[:8]
    return f"{NAME_PREFIX}{plain[: _RESOURCE_MAX - 9]}-{digest}."


def reservation_name(resource: str, key: str) -> str:
    """Return a key's reservation name: the key itself if it can be part of a name, else its digest."""
    prefix = own_prefix(resource)
    if _PLAIN_KEY.fullmatch(key) and len(prefix) + len(key) <= NAME_MAX:
        return prefix + key
    return f"{prefix}x{hashlib.sha256(key.encode()).hexdigest()[:24]}"


def wanted_of(entry: Entry, now: Instant) -> WantedReservation:
    """Return the reservation for an entry: whole seconds that cover its slot, from now on."""
    start = max(entry.slot.start, now) // SECOND * SECOND
    end = -(-entry.slot.end // SECOND) * SECOND
    return WantedReservation(entry.name, start, end, entry.parts, entry.account)


def _same_cores(found: SystemReservation, entry: Entry, system: BatchSystem) -> bool:
    if system.chooses_parts:
        return sum(count for _, count in found.parts) == sum(count for _, count in entry.parts)
    return found.has_just(entry.parts)


def difference(found: SystemReservation | None, entry: Entry, system: BatchSystem, now: Instant) -> str:
    """Say what a system has otherwise than an entry promises; empty if it has the time, cores and account."""
    if found is None:
        return "does not have it"
    if not _same_cores(found, entry, system):
        cores = sum(count for _, count in entry.parts)
        has = sum(count for _, count in found.parts) if found.cores_in_all is None else found.cores_in_all
        return f"has {has} of its {cores} cores, or on other nodes"
    wanted = wanted_of(entry, now)
    latest = wanted.start + (system.begin_lag if wanted.start < now + system.begin_lag else 0)
    if found.start > latest:
        return f"begins it at {iso(found.start)}"
    if found.end is not None and found.end < wanted.end:
        return f"ends it at {iso(found.end)}"
    owner = entry.account or system.market_user
    if found.users != (owner,):
        return f"lets {', '.join(found.users) or 'no account'} use it, not {owner}"
    return ""


class Reconciler:
    """Keeps a system and a book in agreement."""

    def __init__(
        self,
        system: BatchSystem,
        book: HoldBook,
        resource: str,
        wait: Callable[[float], None] = time.sleep,
    ) -> None:
        self._wait = wait
        self._system = system
        self._book = book
        self.prefix = own_prefix(resource)

    def find(self, name: str) -> SystemReservation | None:
        """Read the system's reservation of a name, or return None without one."""
        return next((each for each in self._system.reservations() if each.name == name), None)

    def fits(self, found: SystemReservation | None, entry: Entry, now: Instant) -> bool:
        """Whether a reservation has the time, cores and account that an entry promises."""
        return not difference(found, entry, self._system, now)

    def make(self, entry: Entry, now: Instant, patience_s: float = RESTART_S) -> Entry:
        """Make the reservation that an entry promises and return the entry as then recorded.

        Args:
            entry: of the book.
            now: the present.
            patience_s: seconds for which a system that had the reservation before may be busy.

        Raises:
            SystemRefused: the system certainly does not have it, and nothing is left behind.
            BatchSystemError: the result is unknown.
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
        """Give the reservation of an entry's name exactly the entry's cores and end; see `make`.

        Args:
            entry: as it shall be recorded.
            now: the present.
            anew: whether a reservation without jobs may be made anew if the system cannot change it.

        Raises:
            SystemRefused: the change was refused; a reservation to be made anew may be gone.
            BatchSystemError: the result is unknown.
        """
        found = self.find(entry.name)
        if found is None:
            return self.make(entry, now)
        if not self._is_exactly(found, entry, now):
            found = self._changed(found, entry, now, anew=anew)
        return self.note_made(entry, found, now)

    def _is_exactly(self, found: SystemReservation, entry: Entry, now: Instant) -> bool:
        return _same_cores(found, entry, self._system) and found.end == wanted_of(entry, now).end

    def _changed(self, found: SystemReservation, entry: Entry, now: Instant, *, anew: bool) -> SystemReservation:
        """Change a reservation in place, else make it anew; return it as read back."""
        failure: BatchSystemError | None = None
        try:
            in_place = self._system.change(found, wanted_of(entry, now))
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

    def _changed_to_fit(self, found: SystemReservation, entry: Entry, now: Instant) -> SystemReservation | None:
        """Change a reservation in place, because jobs may be in it; if impossible, remove it and return None.

        An interrupted change of size leaves a reservation that does not fit.
        """
        after: SystemReservation | None = found
        with contextlib.suppress(SystemRefused):
            if not self._is_exactly(found, entry, now) and self._system.change(found, wanted_of(entry, now)):
                after = self.find(entry.name)
        if after is not None and not self.fits(after, entry, now):
            self._remove(after)
            after = None
        return after

    def make_anew(self, entry: Entry, now: Instant, patience_s: float) -> None:
        """Replace the system's reservation of an entry's name by a new one; see `make`.

        Raises:
            SystemRefused: the system certainly does not have it, and nothing is left behind.
            BatchSystemError: the result is unknown.
        """
        found = self.find(entry.name)
        if found is not None:
            self._remove(found)
        self.make(entry, now, patience_s)

    def note_made(self, entry: Entry, found: SystemReservation, now: Instant) -> Entry:
        """Record that the system has an entry's reservation, and where.

        A sold slot on other nodes, or in a reservation of another number, has moved.
        """
        changes: dict[str, Any] = {"made": True, "reservation_id": found.reservation_id}
        if entry.firm and entry.reservation_id not in ("", found.reservation_id):
            changes["moved_at"] = entry.moving(now)
        if self._system.chooses_parts and sorted(found.parts) != sorted(entry.parts):
            where = replace(entry.slot, placement=placement_of(found.parts), token=token_of(found.parts))
            changes |= {"parts": found.parts, "slot": where}
            if entry.firm:
                changes["moved_at"] = entry.moving(now)
        return self._book.change(entry.key, **changes)

    def _made(self, entry: Entry, now: Instant) -> SystemReservation:
        failure: BatchSystemError | None = None
        try:
            self._system.make(wanted_of(entry, now))
        except BatchSystemError as error:
            failure = error  # not believed either: it is looked for by name
        found = self.find(entry.name)
        if found is not None and self.fits(found, entry, now):
            return found
        if found is not None:
            self._remove(found)
            made, wanted = (
                f"{sum(count for _, count in parts)} cores on {placement_of(parts) or 'no node'}"
                for parts in (found.parts, entry.parts)
            )
            raise SystemRefused(f"{self._system.name} reserved {made} for {entry.name}, not {wanted}", busy=True)
        if failure is not None:
            raise failure
        raise BatchSystemError(f"{self._system.name} said that it made {entry.name}, and does not have it")

    def hand_over(self, entry: Entry, now: Instant) -> None:
        """Make an entry's account the only one that may run in its reservation.

        The caller repeats this call, so there is no wait for a busy system.

        Raises:
            SystemRefused: the account does not exist.
            BatchSystemError: the result is unknown.
        """
        found = self.find(entry.name)
        if found is None or not _same_cores(found, entry, self._system):
            self.make(entry, now, 0.0)
        elif found.users != (entry.account,):
            self._system.hand_over(found, entry.account)
            found = self.find(entry.name)
            if found is None or found.users != (entry.account,):
                raise BatchSystemError(f"{self._system.name} has not handed {entry.name} over to {entry.account}")

    def remove(self, entry: Entry) -> None:
        """Remove the reservations of an entry's name from the system, and record that.

        Raises:
            BatchSystemError: the system may still have one.
        """
        found = self.find(entry.name)
        if found is not None:
            self._remove(found)
        self._book.change(entry.key, removed=True)

    def _remove(self, reservation: SystemReservation) -> None:
        self._system.remove(reservation)
        if self.find(reservation.name) is not None:
            raise BatchSystemError(f"{self._system.name} still has {reservation.name} after it was removed")

    def sweep(self, now: Instant) -> None:
        """Remove reservations without a holder, also those with our prefix that are not in the book.

        Reservations that are missing in the book but used by jobs stay, because they were handed over. The next sweep
        retries failed removals; one failure does not stop the others.

        Raises:
            BatchSystemError: the system cannot be asked for its reservations.
        """
        over = {each.name: each for each in self._book.to_remove(now)}
        there = {each.name: each for each in self._system.reservations()}
        live = {each.name for each in self._book.live(now)}
        for name, reservation in there.items():
            if not name.startswith(self.prefix) or name in live:
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
        for entry in over.values():
            self._book.change(entry.key, removed=True)
