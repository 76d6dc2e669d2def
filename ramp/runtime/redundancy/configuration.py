"""How many there are of what a market cannot do without, as the tables `[market]` and `[bank]` say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ramp.model.instant import SECOND, Duration

if TYPE_CHECKING:
    from ramp.runtime.configuration.reader import Reader

DIRECTORIES_MAX: Final = 9
"""More serve nobody: every resource sends each of them a heartbeat every few seconds."""

LEASE_MIN_S: Final = 2
"""A shorter lease would change hands whenever a busy computer lets a process wait."""

REDUNDANCY_KEYS: Final = frozenset({"directories"})
"""Keys of the table `[market]` that are read here."""


@dataclass(frozen=True, slots=True)
class BankConfig:
    """The Banking Agents.

    Attributes:
        standby: whether a second one stands by, and takes over where the first is silent; needs PostgreSQL.
        lease: so long after its last sign in the database a bank counts as lost.
    """

    standby: bool = False
    lease: Duration = 10 * SECOND


@dataclass(frozen=True, slots=True)
class RedundancyConfig:
    """What there is several of.

    Attributes:
        directories: directory agents; resources register with all, users ask any.
        banks: the Banking Agents.
    """

    directories: int = 1
    banks: BankConfig = BankConfig()


def read_redundancy(reader: Reader, data: Mapping[str, Any], market: Mapping[str, Any]) -> RedundancyConfig:
    """Read what there is several of.

    Args:
        reader: checks every value.
        data: all tables.
        market: the table `[market]`.
    """
    directories = reader.whole("market.", market, "directories", 1)
    if directories > DIRECTORIES_MAX:
        reader.wrong("market.directories", directories, f"a whole number from 1 to {DIRECTORIES_MAX}")
    return RedundancyConfig(directories, _read_bank(reader, reader.table(data, "bank"), market))


def _read_bank(reader: Reader, table: Mapping[str, Any], market: Mapping[str, Any]) -> BankConfig:
    reader.unknown("bank.", table, {"standby", "lease_s"})
    standby = reader.truth("bank.", table, "standby", False)
    if standby and not str(market.get("ledger", "")).startswith("postgres"):
        shared = 'false, or market.ledger = "postgresql://user@host/name", which two banks can share'
        reader.wrong("bank.standby", standby, shared)
    lease = reader.whole("bank.", table, "lease_s", BankConfig().lease // SECOND, least=LEASE_MIN_S)
    return BankConfig(standby, lease * SECOND)
