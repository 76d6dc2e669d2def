"""The known workload logs and where copies of them lie on this computer.

A log is looked for in the folders of the environment variable `RAMP_LOGS` (several are separated as in PATH), then in
the cache that `ramp logs --fetch` fills: `$XDG_CACHE_HOME/ramp/logs`, by default `~/.cache/ramp/logs`.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import tomllib
import zlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from ramp.errors import ConfigurationError, WorkloadError
from ramp.shipped_files import shipped_directory

LOGS_VARIABLE = "RAMP_LOGS"


@dataclass(frozen=True, slots=True)
class KnownLog:
    """A log of the Parallel Workloads Archive, as described in `agents_config/logs.toml`.

    Attributes:
        name: for example `CEA-Curie-2011-2.1-cln`.
        machine: the machine it was recorded on.
        cores: cores of that machine.
        jobs: jobs in the log.
        start: month of its first record, `2011-02`.
        months: length in months, rounded up.
        address: where the archive keeps it.
        sha256: of the compressed file, or None where it is not known.
        git_blob: git's id (SHA-1) of the unpacked file.
    """

    name: str
    machine: str
    cores: int
    jobs: int
    start: str
    months: int
    address: str
    sha256: str | None
    git_blob: str

    @property
    def file_name(self) -> str:
        """Name of the compressed file."""
        return f"{self.name}.swf.gz"

    def verify(self, path: Path) -> str | None:
        """Check that a compressed file is this log.

        Args:
            path: the file.

        Returns:
            None if it is, else what is wrong with it.
        """
        data = path.read_bytes()
        digest = hashlib.sha256(data).hexdigest()
        if digest == self.sha256:
            return None
        # The same log packed anew has another SHA-256, so the unpacked content decides.
        try:
            content = gzip.decompress(data)
        except (OSError, EOFError, zlib.error):
            return f"incomplete or damaged gzip file (SHA-256 {digest})"
        blob = hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()
        if blob == self.git_blob:
            return None
        return f"git blob id of the unpacked file: got {blob}, expected {self.git_blob} (SHA-256 {digest})"


@cache
def known_logs() -> dict[str, KnownLog]:
    """Return all known logs by name, in the order of `agents_config/logs.toml`.

    Raises:
        ConfigurationError: the file is missing or misses a key.
    """
    path = shipped_directory("agents_config") / "logs.toml"
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise ConfigurationError(f"cannot be read: {error}", path=path) from error
    archive = str(table.get("archive", "")).rstrip("/")
    logs = (_known_log(entry, archive, path) for entry in table.get("log", []))
    return {log.name: log for log in logs}


def _known_log(entry: dict[str, Any], archive: str, path: Path) -> KnownLog:
    try:
        return KnownLog(
            name=entry["name"],
            machine=entry["machine"],
            cores=entry["cores"],
            jobs=entry["jobs"],
            start=entry["start"],
            months=entry["months"],
            address=f"{archive}/{entry['folder']}/{entry['name']}.swf.gz",
            sha256=entry.get("sha256"),
            git_blob=entry["git_blob"],
        )
    except KeyError as error:
        raise ConfigurationError(
            f"is missing in the entry {entry.get('name', '?')!r}", path=path, key=f"log.{error.args[0]}"
        ) from error


def known_log(name: str) -> KnownLog:
    """Return the known log of that name.

    Raises:
        WorkloadError: the log is unknown; names the known ones.
    """
    try:
        return known_logs()[name]
    except KeyError:
        raise WorkloadError(f"unknown log {name!r}; expected one of {', '.join(known_logs())}") from None


def cache_dir() -> Path:
    """Return the project's cache folder: `$XDG_CACHE_HOME/ramp`, by default `~/.cache/ramp`; need not exist."""
    configured = os.environ.get("XDG_CACHE_HOME", "")
    # The XDG specification has relative paths ignored.
    root = Path(configured) if Path(configured).is_absolute() else Path.home() / ".cache"
    return root / "ramp"


def logs_cache_dir() -> Path:
    """Return the folder for logs that `ramp logs --fetch` downloads."""
    return cache_dir() / "logs"


def log_dirs() -> tuple[Path, ...]:
    """Return folders in which logs are looked for, first match first."""
    configured = os.environ.get(LOGS_VARIABLE, "")
    return (*(Path(part) for part in configured.split(os.pathsep) if part), logs_cache_dir())


def find_log(name: str) -> Path | None:
    """Return the file of a log on this computer.

    Args:
        name: name of a log, known or not: `<name>.swf.gz` or `<name>.swf` is looked for in `log_dirs`; or the path of
            a file, told by a separator in it or by its ending `.swf` or `.swf.gz`.

    Returns:
        The file, or None where there is no copy.
    """
    if os.sep in name or name.endswith((".swf", ".swf.gz")):
        path = Path(name).expanduser()
        return path if path.is_file() else None
    for folder in log_dirs():
        for suffix in (".swf.gz", ".swf"):
            path = folder / f"{name}{suffix}"
            if path.is_file():
                return path
    return None
