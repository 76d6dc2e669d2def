"""How many there are of what a market cannot do without, as the table `[market]` says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from ramp.runtime.config_file import Reader

DIRECTORIES_MAX: Final = 9
"""More serve nobody: every resource sends each of them a heartbeat every few seconds."""

REDUNDANCY_KEYS: Final = frozenset({"directories"})
"""Keys of the table `[market]` that are read here."""


@dataclass(frozen=True, slots=True)
class RedundancyConfig:
    """What there is several of.

    Attributes:
        directories: directory agents; resources register with all, users ask any.
    """

    directories: int = 1


def read_redundancy(reader: Reader, market: Mapping[str, Any]) -> RedundancyConfig:
    """Read what there is several of.

    Args:
        reader: checks every value.
        market: the table `[market]`.
    """
    directories = reader.whole("market.", market, "directories", 1)
    if directories > DIRECTORIES_MAX:
        reader.wrong("market.directories", directories, f"a whole number from 1 to {DIRECTORIES_MAX}")
    return RedundancyConfig(directories)
