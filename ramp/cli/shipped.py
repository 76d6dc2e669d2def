"""The configurations that come with the project, by name."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import ramp
from ramp.errors import ConfigurationError

DEFAULT_SWARM: Final = "quickstart"


def swarms_dir() -> Path:
    """Folder of the swarms' configurations: inside the installed package, or beside it in a checkout.

    Raises:
        FileNotFoundError: if neither place has them (a broken installation).
    """
    package = Path(ramp.__file__).resolve().parent
    for root in (package / "_data", package.parent):
        folder = root / "agents_config" / "swarms"
        if folder.is_dir():
            return folder
    raise FileNotFoundError(f"no agents_config beside {package}: the installation is incomplete")


def find_config(name: str) -> Path:
    """A configuration's file: the file of that path, or the shipped swarm of that name.

    Raises:
        ConfigurationError: if it is neither.
    """
    path = Path(name)
    if path.is_file():
        return path
    shipped = {entry.stem: entry for entry in sorted(swarms_dir().glob("*.toml"))}
    if name in shipped:
        return shipped[name]
    raise ConfigurationError(
        f"no such file, and no swarm of that name comes with RAMP; there are {', '.join(shipped)}", path=name
    )
