"""Where the files are that come with the project."""

from __future__ import annotations

from functools import cache
from pathlib import Path


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
