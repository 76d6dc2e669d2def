"""Checks the format versions of a state folder before the launch of its market."""

from __future__ import annotations

import contextlib
import sqlite3
from contextlib import closing
from typing import Final

from ramp.errors import StateDamaged, StorageFailed, check_version
from ramp.runtime.journal import JOURNAL_VERSION
from ramp.runtime.sqlite_file import reading
from ramp.runtime.state_folder import StateFolder

SCHEMA_VERSION: Final = 1
"""Version of the tables; a ledger of another version is refused and not touched."""


def check_versions(state: StateFolder) -> None:
    """Refuse a state folder of another version before any agent has written to it.

    Unreadable files are skipped: their agents report them.

    Raises:
        WrongVersion: names the file and its version.
    """
    for path in sorted(state.journals.glob("*.sqlite")):
        with contextlib.suppress(StorageFailed, StateDamaged), reading(path, "journal", JOURNAL_VERSION):
            pass
    if state.ledger.exists():
        with (
            contextlib.suppress(sqlite3.Error),
            closing(sqlite3.connect(f"{state.ledger.absolute().as_uri()}?mode=ro", uri=True)) as ledger,
        ):
            (version,) = ledger.execute("SELECT version FROM ledger_version").fetchone()
            check_version(state.ledger, "ledger", version, SCHEMA_VERSION)
