"""Link tables on disk, so that a wiring is searched once and not at every start.

A file is named after the digest of the wiring, so a changed wiring never meets an old table. A file that cannot be read
is made anew; a directory that cannot be written costs only the time of the next search.
"""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

from ramp.errors import MachineError
from ramp.runtime.atomic_writes import write_whole
from simulation.machines.bluegene.link_sets import LinkTable, build_link_table
from simulation.machines.bluegene.wiring import LineWiring
from simulation.workload.logs import cache_dir


def cached_link_table(wiring: LineWiring, directory: Path | None = None) -> LinkTable:
    """Return the link table of a wiring, from the cache or made and saved there.

    Args:
        wiring: of a line.
        directory: of the cache; by default `link-tables` in the project's cache folder.
    """
    path = (cache_dir() / "link-tables" if directory is None else directory) / f"{wiring.digest}.json"
    try:
        return LinkTable.from_json(wiring, json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, MachineError):
        table = build_link_table(wiring)
        with contextlib.suppress(OSError):
            write_whole(path, json.dumps(table.to_json()).encode(), private=False)
        return table
