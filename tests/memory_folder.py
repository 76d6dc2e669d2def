"""Prints the folder for temporary files of `make test`: one in memory, or nothing where the usual one has to do."""

from __future__ import annotations

import os
from pathlib import Path

SHARED_MEMORY = Path("/dev/shm")
ENOUGH = 1 << 30
"""Bytes; a hundred megabytes were seen in use in the middle of a run, and only what fails leaves anything behind."""


def memory_folder(environment: dict[str, str], folder: Path = SHARED_MEMORY) -> Path | None:
    """The folder in memory for temporary files.

    Args:
        environment: a folder that is named there is the one to use.
        folder: where there is memory, if there is any.

    Returns:
        None where somebody has named another, where there is none, where it is small, as in containers, or where
        nothing may be written there or run from there: some tests write programs.
    """
    if "TMPDIR" in environment or not os.access(folder, os.W_OK | os.X_OK):
        return None
    space = os.statvfs(folder)
    if space.f_flag & os.ST_NOEXEC or space.f_bavail * space.f_frsize < ENOUGH:
        return None
    return folder


if __name__ == "__main__":
    print(memory_folder(dict(os.environ)) or "")
