"""Link tables on disk, so that a wiring is searched once and not at every start.

A file is named after the digest of the wiring, so a changed wiring never meets an old table. A file that cannot be read
is made anew; a directory that cannot be written costs only the time of the next search.
"""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path

from ramp.errors import MachineError
from simulation.machines.bluegene.link_sets import LinkTable, build_link_table
from simulation.machines.bluegene.wiring import LineWiring


def cache_directory() -> Path:
    """Where tables are kept: `ramp/link-tables` in XDG_CACHE_HOME, by default `.cache` of the home directory."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "ramp" / "link-tables"


def cached_link_table(wiring: LineWiring, directory: Path | None = None) -> LinkTable:
    """Return the link table of a wiring, from the cache (by default `cache_directory()`) or made and saved there."""
    path = (directory if directory is not None else cache_directory()) / f"{wiring.digest}.json"
    try:
        return LinkTable.from_json(wiring, json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, MachineError):
        table = build_link_table(wiring)
        _save(table, path)
        return table


def _save(table: LinkTable, path: Path) -> None:
    """Write a table so that readers see all of it or nothing."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=path.parent, suffix=".tmp", delete=False, encoding="utf-8") as file:
            json.dump(table.to_json(), file)
        Path(file.name).replace(path)
    except OSError:
        return
