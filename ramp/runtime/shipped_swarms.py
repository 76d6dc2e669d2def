"""RAMP's own configurations by name."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from ramp.errors import ConfigurationError
from ramp.shipped_files import shipped_directory

DEFAULT_SWARM: Final = "quickstart"


def swarms_dir() -> Path:
    """Return the folder of shipped configurations."""
    return shipped_directory("agents_config/swarms")


def find_config(name: str) -> Path:
    """Return the path of a configuration file or shipped swarm; `ConfigurationError` if the name is neither."""
    path = Path(name)
    if path.is_file():
        return path
    shipped = {entry.stem: entry for entry in sorted(swarms_dir().glob("*.toml"))}
    if name in shipped:
        return shipped[name]
    raise ConfigurationError(
        f"no such file or shipped swarm, expected a file or one of {', '.join(shipped)}", path=name
    )
