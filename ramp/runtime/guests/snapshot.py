"""A machine's snapshot as text that fits into one message."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

SNAPSHOT_BYTES_MAX: Final = 60_000
"""Size of a snapshot's text; escaped and wrapped it stays below the size limit of a document."""

LISTS: Final = ("queued", "running")
"""Lists that are cut where a snapshot is too large, in this order: the queue's end is what matters least."""


def snapshot_text(snapshot: Mapping[str, Any], limit: int = SNAPSHOT_BYTES_MAX) -> str:
    """Write a snapshot as JSON of at most `limit` bytes.

    The totals `running_total` and `queued_total` are added, so that a list that was cut says so: it then holds the
    first entries only.

    Args:
        snapshot: what the plug-in says; JSON types only.
        limit: bytes of text at most.
    """
    full = dict(snapshot)
    for name in LISTS:
        if isinstance(full.get(name), list):
            full[f"{name}_total"] = len(full[name])
    text = _write(full)
    for name in LISTS:
        if len(text.encode()) <= limit:
            break
        entries = full.get(name)
        if isinstance(entries, list) and entries:
            rest = len(_write({**full, name: []}).encode())
            each = max(1, (len(text.encode()) - rest) // len(entries))
            full[name] = entries[: max(0, (limit - rest) * 9 // 10 // each)]
            text = _write(full)
    return text


def _write(value: Mapping[str, Any]) -> str:
    return json.dumps(value, separators=(",", ":"))
