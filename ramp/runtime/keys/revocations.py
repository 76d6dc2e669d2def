"""The revocation list of a market's keys as a file: serial number, party, time and reason."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ramp.errors import ConfigurationError
from ramp.file_versions import Version, version_of
from ramp.model import instant
from ramp.model.instant import Instant
from ramp.runtime.atomic_writes import write_whole


@dataclass(frozen=True, slots=True)
class Revocation:
    """A revoked certificate: serial number in hexadecimal, party, time and reason."""

    serial: str
    name: str
    revoked_at: Instant
    reason: str


class RevocationList:
    """The list as a file, which other processes may change; a missing file is an empty list."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._serials: tuple[Version, frozenset[str]] | None = None

    def lines(self) -> tuple[Revocation, ...]:
        """Return all revocations in order.

        Raises:
            ConfigurationError: the file is damaged; it must not count as an empty list.
        """
        try:
            rows: list[dict[str, Any]] = json.loads(self._path.read_text("utf-8"))
            return tuple(
                Revocation(row["serial"], row["name"], instant.from_iso(row["revoked_at"]), row["reason"])
                for row in rows
            )
        except FileNotFoundError:
            return ()
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ConfigurationError(f"revocation list cannot be read: {error}", path=self._path) from error

    def add(self, added: tuple[Revocation, ...]) -> None:
        """Append lines; `ConfigurationError` if the file is damaged."""
        rows = [
            {
                "serial": line.serial,
                "name": line.name,
                "revoked_at": instant.iso(line.revoked_at),
                "reason": line.reason,
            }
            for line in (*self.lines(), *added)
        ]
        write_whole(self._path, (json.dumps(rows, indent=1) + "\n").encode(), private=False)

    def holds(self, serial: str) -> bool:
        """Return whether a serial number is on the list; errors as in `lines`. The file is read only after a change."""
        version = version_of(self._path)
        if version is None:
            return False
        if self._serials is None or self._serials[0] != version:
            self._serials = (version, frozenset(line.serial for line in self.lines()))
        return serial in self._serials[1]
