"""Changes of a running market by its owner: requests to the supervisor, which logs each change.

Amounts are integers of minor units, prices whole credits per core hour. A name is an agent's local name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

CERTIFICATE_DAYS: Final = 365
"""Default validity of a renewed certificate, in days."""


@dataclass(frozen=True, slots=True)
class AddUser:
    """Add a user: key, certificate, XMPP account, bank account, agent."""

    name: str
    deposit: int = 0
    credit_limit: int = 0


@dataclass(frozen=True, slots=True)
class RemoveParty:
    """Remove a user or a resource: its agent ends, its certificates are revoked.

    It is refused while something of the party is open, unless forced.
    """

    name: str
    role: Literal["user", "resource"]
    forced: bool = False


@dataclass(frozen=True, slots=True)
class AddResource:
    """Add a resource from TOML: one `[[resources]]`, with `[machines.NAME]` for a new machine."""

    definition: str


@dataclass(frozen=True, slots=True)
class DrainResource:
    """Stop new sales of a resource and keep its reservations; with `draining` false, sell again."""

    name: str
    draining: bool = True


@dataclass(frozen=True, slots=True)
class SetResource:
    """Set the prices of a resource; None for no change."""

    name: str
    start_price: int | None = None
    minimum_price: int | None = None
    rounds_expected: int | None = None
    pricing: str | None = None


@dataclass(frozen=True, slots=True)
class RenewKeys:
    """Issue a new certificate to an agent, by default for its present key; the agent signs with it at once."""

    name: str
    new_key: bool = False
    days: int = CERTIFICATE_DAYS


@dataclass(frozen=True, slots=True)
class RestartAgent:
    """Restart an agent, which continues from its journal."""

    name: str


@dataclass(frozen=True, slots=True)
class Reload:
    """Apply changes from the configuration file; `dry_run` only lists them."""

    dry_run: bool = False
    forced: bool = False


@dataclass(frozen=True, slots=True)
class ChangeLine:
    """One thing that is changed.

    Attributes:
        kind: `remove`, `add`, `update`, `rebuild`, `renew`, `restart`; `later` is not done now, and the text says when;
            `stands` is a change by a command that overrides the file; `warning` reports a problem.
        name: of the agent, or of the part of the configuration.
    """

    kind: str
    name: str
    text: str


@dataclass(frozen=True, slots=True)
class MarketChanged:
    """The changes made, or planned if `done` is false."""

    lines: tuple[ChangeLine, ...]
    done: bool = True


@dataclass(frozen=True, slots=True)
class ShowStatus:
    """Show the status of the market, answered by `ramp.control.status.SwarmStatus`."""


OwnerRequest = AddUser | RemoveParty | AddResource | DrainResource | SetResource | RenewKeys | RestartAgent | Reload
"""Changes that the market's owner asks of its supervisor."""
