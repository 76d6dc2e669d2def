"""The reservations of one simulated machine, durable and shared by all processes that front it.

A journal of one JSON object a line, appended to: a hold, its confirmation, its release. A record is on disk before the
call that made it returns. A writer locks the file and first reads the records of others; a reader looks for new records
first. A last line without an end is a write that a crash cut short: its call never returned, so it is
dropped.

Keys that nobody asks for again are forgotten. Once most lines are about such keys, a journal without them takes the
file's place, whole; those who have the old one open see that it is another file and read it from its beginning. Where
a reader has to live through all changes again (`on_change`), the lines stay.

Holds run out by themselves: whether one still stands is its deadline against the caller's `now`, which must not go
back.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from io import FileIO
from operator import attrgetter
from pathlib import Path
from typing import Any, Final

from ramp.errors import PluginError, StorageFailed, check_version
from ramp.model.instant import Instant
from ramp.model.slot import Reservation, Slot
from ramp.runtime.atomic_writes import write_whole
from ramp.runtime.storage_errors import storing

FORMAT: Final = "ramp-reservations"
VERSION: Final = 1
"""Of the format."""

LINES_MIN: Final = 2_000
"""Shorter journals are not written anew: they are read within some hundredths of a second."""

LINES_PER_KEY: Final = 8
"""A key that is known has two lines or three; a journal with this many a key is mostly about others."""


class Standing(Enum):
    """What became of a key."""

    UNKNOWN = "unknown"
    HELD = "held"
    FIRM = "firm"
    EXPIRED = "expired"
    RELEASED = "released"


@dataclass(frozen=True, slots=True)
class Entry:
    """What the book knows of one key.

    Attributes:
        reservation: the hold or reservation; None for a key that was released before it was ever held.
        unit: number of the request's unit it was made for; 0 without a unit.
        released: whether it was given back.
        step: of its last change of size, 0 where there was none.
        earlier: the slot before each change that has given it another place, the first one first.
    """

    reservation: Reservation | None
    unit: int
    released: bool = False
    step: int = 0
    earlier: tuple[Slot, ...] = ()

    @property
    def limit(self) -> Instant:
        """From when on it takes no cores: its slot's end or, if it comes first, that of a hold; 0 without either."""
        if self.released or self.reservation is None:
            return 0
        held_until, end = self.reservation.held_until, self.reservation.slot.end
        return end if self.reservation.firm else min(end, held_until or 0)

    def standing(self, now: Instant) -> Standing:
        """Return the state of the key at an instant."""
        if self.released or self.reservation is None:
            return Standing.RELEASED
        if self.reservation.firm:
            return Standing.FIRM
        held_until = self.reservation.held_until
        return Standing.HELD if held_until is not None and now < held_until else Standing.EXPIRED


@dataclass(frozen=True, slots=True)
class Change:
    """One record of the book.

    Attributes:
        at: when it was made.
        key: the caller's key.
        reservation: what is held or firm from now on, None where it was given back.
    """

    at: Instant
    key: str
    reservation: Reservation | None


def book_path(state_dir: Path, resource: str) -> Path:
    """Return the journal of a machine in the folder of the reservations."""
    return state_dir / f"{resource}.reservations.jsonl"


class ReservationBook:
    """Holds and reservations by the caller's keys."""

    def __init__(
        self,
        plugin: str,
        resource: str,
        state_dir: Path | None,
        on_change: Callable[[Change], None] | None = None,
    ) -> None:
        """Open a book.

        Args:
            plugin: name of the plug-in, for error messages.
            resource: the machine's name; reservation ids are `<resource>-<number>`.
            state_dir: folder of the journal, made if missing; None keeps the book in memory.
            on_change: told of every record once, in order: first those that the journal holds already.

        Raises:
            PluginError: the journal cannot be read.
        """
        self._plugin = plugin
        self._resource = resource
        self._on_change = on_change
        self._path = None if state_dir is None else book_path(state_dir, resource)
        self._descriptor: int | None = None
        """Of the locked journal, while it is written."""
        self._read: FileIO | None = None
        """The file that has been read; as long as it is open, no other has its inode."""
        self._read_bytes = 0
        self._lines = 0
        self._entries: dict[str, Entry] = {}
        self._limits: dict[str, Instant] = {}
        """`Entry.limit` of each key that may still be live; keys found to be over are removed."""
        self._held_ever = 0
        self._live: tuple[Reservation, ...] = ()
        self._live_until: Instant | None = -1
        self._read_new()

    def entry(self, key: str) -> Entry | None:
        """Return the entry of a key, or None."""
        self._read_new()
        return self._entries.get(key)

    def standing(self, key: str, now: Instant) -> Standing:
        """Return the state of a key at an instant."""
        entry = self.entry(key)
        return Standing.UNKNOWN if entry is None else entry.standing(now)

    def live(self, now: Instant) -> tuple[Reservation, ...]:
        """Return holds and reservations that take cores now or later, by start; the same object until one changes."""
        if self._path is not None:
            self._read_new()
        if self._live_until is not None and now >= self._live_until:
            self._limits = {key: limit for key, limit in self._limits.items() if limit > now}
            entries = (self._entries[key].reservation for key in self._limits)
            found = [each for each in entries if each is not None]
            self._live = tuple(sorted(found, key=attrgetter("slot.start", "slot.end", "key")))
            self._live_until = min(self._limits.values(), default=None)
        return self._live

    @contextlib.contextmanager
    def writing(self) -> Iterator[ReservationBook]:
        """Write under the journal's lock: checks and changes within are one step.

        Raises:
            StorageFailed: the journal cannot be written; may succeed later.
        """
        if self._path is None:
            yield self
            return
        with storing(self._path):
            descriptor = self._open_locked(self._path)
        try:
            self._read_new()
            self._descriptor = descriptor
            if self._lines == 0:
                self._append(self._header())
                _sync_folder(self._path.parent)  # makes the file's name durable too
            yield self
            if self._on_change is None and self._lines > max(LINES_MIN, LINES_PER_KEY * len(self._entries)):
                with contextlib.suppress(StorageFailed):  # what was to be written is; this would only be tidier
                    self._write_anew(self._path)
        finally:
            self._descriptor = None
            os.close(descriptor)

    def hold(self, key: str, unit: int, slot: Slot, until: Instant, at: Instant) -> None:
        """Record a hold with a new reservation id, made at an instant; as all changes, within `writing`."""
        fields = ("start", "end", "cores", "load", "placement", "token", "fragmentation", "links_taken")
        record = {
            "op": "hold",
            "at": at,
            "key": key,
            "reservation_id": self.next_reservation_id(key),
            "unit": unit,
            "slot": {name: getattr(slot, name) for name in fields},
            "held_until": until,
        }
        self._write(record)

    def confirm(self, key: str, at: Instant) -> None:
        """Record that a hold is firm, confirmed at an instant."""
        self._write({"op": "confirm", "at": at, "key": key})

    def resize(self, key: str, step: int, before: Slot, after: Slot, at: Instant) -> None:
        """Record that a firm slot has another size from an instant on, and perhaps another place."""
        record = {"op": "resize", "at": at, "key": key, "step": step, "cores": after.cores, "end": after.end}
        if after.token != before.token:
            record |= {"placement": after.placement, "token": after.token}
        self._write(record)

    def release(self, key: str, at: Instant) -> None:
        """Record that a key is given back for good, at an instant."""
        self._write({"op": "release", "at": at, "key": key})

    def forget(self, keys: Sequence[str], now: Instant) -> None:
        """Forget keys that are over and not asked for again; live ones stay."""
        live = {each.key for each in self.live(now)}
        gone = [key for key in keys if key in self._entries and key not in live]
        if gone:
            self._write({"op": "forget", "keys": gone})

    def next_reservation_id(self, key: str) -> str:
        """Return the machine's name for the next reservation.

        The key, a random id, keeps the name new even if the file was restored from a backup and counts again.
        """
        return f"{self._resource}-{hashlib.sha256(key.encode()).hexdigest()[:6]}-{self._held_ever + 1}"

    def _write(self, record: dict[str, Any]) -> None:
        if self._path is not None:
            self._append(record)
        self._apply(record)

    def _append(self, record: dict[str, Any]) -> None:
        data = _line(record)
        descriptor = self._descriptor
        assert self._path is not None
        assert descriptor is not None, "changes are made within `writing`"
        with storing(self._path):
            os.ftruncate(descriptor, self._read_bytes)  # drops a line that a crash cut short
            try:
                _write_whole(descriptor, data, self._read_bytes)
            except OSError:
                with contextlib.suppress(OSError):  # a line that may not last is not to be read either
                    os.ftruncate(descriptor, self._read_bytes)
                raise
        self._read_bytes += len(data)
        self._lines += 1

    def _header(self) -> dict[str, Any]:
        return {"format": FORMAT, "version": VERSION, "resource": self._resource, "held_ever": self._held_ever}

    def _open_locked(self, path: Path) -> int:
        path.parent.mkdir(parents=True, exist_ok=True)
        while True:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                if os.fstat(descriptor).st_ino == path.stat().st_ino:
                    return descriptor
            except BaseException:
                os.close(descriptor)
                raise
            os.close(descriptor)  # it was written anew while this process waited for it

    def _write_anew(self, path: Path) -> None:
        """Replace the journal by one of the known entries alone; within `writing`, so under its lock."""
        with storing(path):
            with path.open("rb") as journal:
                lines = journal.read(self._read_bytes).splitlines(keepends=True)[1:]
            records = [(line, json.loads(line)) for line in lines]
            kept = [(line, record) for line, record in records if record.get("key") in self._entries]
            holds = sum(record["op"] == "hold" for _, record in kept)
            header = {**self._header(), "held_ever": self._held_ever - holds}
            data = b"".join([_line(header), *(line for line, _ in kept)])
            write_whole(path, data, private=True)
            _sync_folder(path.parent)
        self._begin_reading()
        self._read_new()

    def _begin_reading(self) -> None:
        if self._read is not None:
            self._read.close()
        self._read = None
        self._read_bytes = self._lines = self._held_ever = 0
        self._entries.clear()
        self._limits.clear()
        self._live_until = -1

    def _read_new(self) -> None:
        """Apply what this or another process has appended since the last look."""
        if self._path is None:
            return
        try:
            status = self._path.stat()
            if self._read is not None and status.st_ino != os.fstat(self._read.fileno()).st_ino:
                self._begin_reading()  # another process has written it anew
            size = status.st_size
            if size == self._read_bytes:
                return
            if size < self._read_bytes:
                raise PluginError(self._plugin, f"{self._path}: shrank from {self._read_bytes} to {size} bytes")
            self._read = self._read or self._path.open("rb", buffering=0)
            self._read.seek(self._read_bytes)
            data = self._read.read()
        except FileNotFoundError as error:
            if self._read_bytes:
                raise PluginError(self._plugin, f"{self._path}: the file was removed") from error
            return
        except OSError as error:
            raise PluginError(self._plugin, f"{self._path}: cannot be read: {error}", transient=True) from error
        for line in data[: data.rfind(b"\n") + 1].splitlines(keepends=True):
            self._lines += 1
            try:
                record = json.loads(line)
                if self._lines == 1:
                    self._check_header(record)
                else:
                    self._apply(record)
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                raise PluginError(
                    self._plugin, f"{self._path}:{self._lines}: invalid reservation record: {error}"
                ) from error
            self._read_bytes += len(line)

    def _check_header(self, record: dict[str, Any]) -> None:
        if record.get("format") == FORMAT:
            check_version(self._path or "", "book of reservations", record.get("version"), VERSION)
        expected = {"format": FORMAT, "version": VERSION, "resource": self._resource}
        if {key: record[key] for key in expected} != expected:
            raise ValueError(f"expected a header of {FORMAT} version {VERSION} for {self._resource}")
        self._held_ever = int(record["held_ever"])

    def _forgotten(self, key: str) -> None:
        self._entries.pop(key, None)
        self._limits.pop(key, None)

    def _apply(self, record: dict[str, Any]) -> None:
        if record["op"] == "forget":
            for each in record["keys"]:
                self._forgotten(each)
            return
        key = record["key"]
        entry = self._entries.get(key)
        if record["op"] == "hold":
            slot = Slot(**record["slot"])
            reservation = Reservation(key, record["reservation_id"], slot, firm=False, held_until=record["held_until"])
            self._entries[key] = Entry(reservation, record["unit"])
            self._held_ever += 1
        elif record["op"] == "confirm" and entry is not None and entry.reservation is not None:
            firm = replace(entry.reservation, firm=True, held_until=None)
            self._entries[key] = replace(entry, reservation=firm)
        elif record["op"] == "resize" and entry is not None and entry.reservation is not None:
            before = entry.reservation.slot
            place = {name: record[name] for name in ("placement", "token") if name in record}
            changed = replace(
                entry.reservation, slot=replace(before, cores=record["cores"], end=record["end"], **place)
            )
            earlier = (*entry.earlier, before) if place else entry.earlier
            self._entries[key] = replace(entry, reservation=changed, step=record["step"], earlier=earlier)
        elif record["op"] == "release":
            self._entries[key] = Entry(None, 0, released=True) if entry is None else replace(entry, released=True)
        else:
            raise ValueError(f"unknown operation {record['op']!r} for key {key!r}")
        self._limits[key] = self._entries[key].limit
        self._live_until = -1
        if self._on_change is not None:
            now = self._entries[key]
            self._on_change(Change(record["at"], key, None if now.released else now.reservation))


def _sync_folder(folder: Path) -> None:
    """Make the names of the files in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _line(record: dict[str, Any]) -> bytes:
    return json.dumps(record, separators=(",", ":")).encode() + b"\n"


def _write_whole(descriptor: int, data: bytes, offset: int) -> None:
    """Write at an offset and sync; a disk may take the first part of a line and be full then."""
    if os.pwrite(descriptor, data, offset) < len(data):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    os.fsync(descriptor)
