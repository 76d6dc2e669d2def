"""The version of the ledger's tables, for readers that do not need the database driver."""

from __future__ import annotations

from typing import Final

SCHEMA_VERSION: Final = 1
"""Version of the tables; a ledger of another version is refused and not touched."""
