"""From the name of a log to its replay: the log where there is a copy, else a synthetic workload in its place.

The index of a log is kept in `$XDG_CACHE_HOME/ramp/replay`, keyed by the log's content (or what it is generated from),
the machine's size and the code that made it, so that a machine starts in milliseconds from the second time on.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

import numpy as np

from ramp.errors import WorkloadError
from ramp.file_versions import Version, version_of
from ramp.runtime.atomic_writes import write_whole
from simulation.workload import replay, swf
from simulation.workload.generators import easy_starts, lublin
from simulation.workload.generators.lublin import DEFAULT_LOAD, synthetic_log
from simulation.workload.logs import cache_dir, find_log, known_logs
from simulation.workload.replay import IntervalIndex, ReplayLog
from simulation.workload.swf import SwfLog, read_swf

SYNTHETIC: Final = "synthetic"
"""Name of no log: asks for a synthetic workload."""

_SYNTHETIC_MONTHS: Final = 12
"""Length of a synthetic workload that stands in for no particular log."""
_ARRAYS: Final = ("job_number", "user_id", "submitted", "started", "ended", "cores", "requested")
_INDEX_ARRAYS: Final = ("order", "starts", "ends", "open_intervals", "open_offsets")


@dataclass(frozen=True, slots=True)
class ReplaySource:
    """A replay and what it was made from.

    Attributes:
        replay: the replay.
        source: `log` or `synthetic`.
        path: the log's file, None if synthetic.
    """

    replay: ReplayLog
    source: str
    path: Path | None


def open_replay(name: str, capacity: int, *, seed: int = 0, load: float = DEFAULT_LOAD) -> ReplaySource:
    """Open the replay of a log for a machine.

    Args:
        name: name or path of a log (`simulation.workload.logs.find_log`), or `synthetic`.
        capacity: cores of the machine.
        seed: of the synthetic workload, should one be needed; the same name, size and seed give the same one.
        load: offered load of the synthetic workload.

    Raises:
        WorkloadError: there is neither a copy nor a known log of that name, or the file is no log.
    """
    path = None if name == SYNTHETIC else find_log(name)
    if path is not None:
        return ReplaySource(_replay_of_file(path, capacity, log_digest(path)), "log", path)
    if name != SYNTHETIC and name not in known_logs():
        raise WorkloadError(
            f"no copy of the log {name!r}; a synthetic workload can replace only "
            f"{', '.join((*known_logs(), SYNTHETIC))}"
        )
    return ReplaySource(_synthetic_replay(name, capacity, seed, load), "synthetic", None)


@lru_cache(maxsize=32)
def _synthetic_replay(name: str, capacity: int, seed: int, load: float) -> ReplayLog:
    months = known_logs()[name].months if name in known_logs() else _SYNTHETIC_MONTHS
    # The name belongs to the seed: machines that replay the same log at several base times share one workload.
    mixed = int.from_bytes(hashlib.sha256(f"{seed}:{name}".encode()).digest()[:8], "big")
    span = months * 30 * lublin.DAY_S
    return _kept(
        f"{capacity} {span} {mixed} {load!r}", capacity, lambda: synthetic_log(capacity, span, mixed, load=load)
    )


def log_digest(path: Path) -> str:
    """Return the SHA-256 digest of a log's content; an unchanged file is read once.

    Args:
        path: the log's file.

    Raises:
        WorkloadError: it cannot be read.
    """
    return _digest(path, version_of(path))


@lru_cache(maxsize=256)
def _digest(path: Path, _version: Version | None) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise WorkloadError(f"cannot be read: {error}", path=path) from error


@lru_cache(maxsize=32)
def _replay_of_file(path: Path, capacity: int, log_digest: str) -> ReplayLog:
    return _kept(log_digest, capacity, lambda: read_swf(path))


def _kept(name: str, capacity: int, log: Callable[[], SwfLog]) -> ReplayLog:
    """Return the replay of a log from the cache; `name` is the log's content, or all that it is generated from."""
    key = hashlib.sha256(f"{np.__version__} {name}".encode())
    for module in (swf, replay, lublin, easy_starts):
        key.update(Path(str(module.__file__)).read_bytes())
    cached = cache_dir() / "replay" / f"{key.hexdigest()[:32]}-{capacity}.npz"
    indexed = _load(cached, capacity)
    if indexed is None:
        indexed = ReplayLog.build(log(), capacity)
        _save(cached, indexed)
    return indexed


def _load(cached: Path, capacity: int) -> ReplayLog | None:
    try:
        with np.load(cached, allow_pickle=False) as arrays:
            running_index, queued_index = (
                IntervalIndex(**{name: arrays[f"{part}_{name}"] for name in _INDEX_ARRAYS})
                for part in ("running_index", "queued_index")
            )
            return ReplayLog(
                capacity=capacity,
                left_out=int(arrays["left_out"]),
                running_index=running_index,
                queued_index=queued_index,
                **{name: arrays[name] for name in _ARRAYS},
            )
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        return None


def _save(cached: Path, indexed: ReplayLog) -> None:
    """Keep a replay; a cache that cannot be written is no error, the next start is slower."""
    arrays = {name: getattr(indexed, name) for name in _ARRAYS}
    for part in ("running_index", "queued_index"):
        arrays |= {f"{part}_{name}": getattr(getattr(indexed, part), name) for name in _INDEX_ARRAYS}
    data = io.BytesIO()
    np.savez(data, left_out=np.int64(indexed.left_out), **arrays)
    with contextlib.suppress(OSError):
        write_whole(cached, data.getvalue(), private=False)
