"""Files that come with the project, and its own configurations by name."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final

from ramp.errors import ConfigurationError

DEFAULT_SWARM: Final = "quickstart"


@cache
def shipped_directory(name: str) -> Path:
    """A directory of such files: inside the installed package, or beside it in a checkout.

    Args:
        name: as in a checkout, such as `agents_config/swarms`.

    Raises:
        FileNotFoundError: if neither place has it (a broken installation).
    """
    package = Path(__file__).resolve().parent
    for root in (package / "_data", package.parent):
        if (root / name).is_dir():
            return root / name
    raise FileNotFoundError(f"no {name} beside {package}: the installation is incomplete")


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
