"""Requests of an owner to its agent or to the supervisor, by their class names on the wire.

Commands of the protocol are requests as they are; the classes here are what only the control channel has. The agent
numbers a question itself, so its `query_id` is left empty. Instants and durations are integers of microseconds, amounts
integers of minor units, as everywhere in the model.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Final, Literal, get_args

from ramp.protocol import events as ev

CERTIFICATE_DAYS: Final = 365
"""Default validity of a renewed certificate, in days."""


@dataclass(frozen=True, slots=True)
class Hello:
    """The first line of every connection: which version of the table the client speaks."""

    version: int


@dataclass(frozen=True, slots=True)
class Submit:
    """Auction a request, and buy the best offers unless the options say otherwise.

    Attributes:
        document: the request for quotation, RFQL as text.
        request_id: the client's own id, by which it may ask again; empty for a new one.
        options: how it is auctioned.
    """

    document: str
    request_id: str = ""
    options: ev.AuctionOptions = field(default_factory=ev.AuctionOptions)


@dataclass(frozen=True, slots=True)
class Watch:
    """Follow a request until it ends; without an id all requests, until the connection closes."""

    request_id: str = ""


EVERYTHING: Final = Watch()
"""Events of all requests of this user; only a refusal ends the answer."""


@dataclass(frozen=True, slots=True)
class ListRequests:
    """List all requests of this user with their states."""


@dataclass(frozen=True, slots=True)
class ListAgreements:
    """List all agreements with their states."""


@dataclass(frozen=True, slots=True)
class ListJobs:
    """List all jobs with their last known states."""


Question = ev.AccountAsked | ev.MachineAsked | ev.ResourcesAsked | ev.JobSubmitted | ev.JobAsked
"""Questions of a user to a party of the market, answered in one message."""

UserCommand = ev.OffersApproved | ev.RequestWithdrawn | ev.AgreementCancelled | ev.AgreementResized | Question

UserRequest = Submit | Watch | ListRequests | ListAgreements | ListJobs | UserCommand
"""Requests of a user to its User Agent."""


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
class ShowStatus:
    """Show the status of the market, answered by `ramp.control.status.SwarmStatus`."""


OwnerRequest = AddUser | RemoveParty | AddResource | DrainResource | SetResource | RenewKeys | RestartAgent | Reload
"""Changes that the market's owner asks of its supervisor."""

Request = Hello | UserRequest | ev.KeeperAsked | OwnerRequest | ShowStatus


def wire_name(kind: type) -> str:
    """Return the name of a class on the wire: `list_requests` of `ListRequests`."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", kind.__name__).lower()


def by_wire_name(union: Any) -> dict[str, Any]:
    """Return the classes of a union by their names on the wire."""
    return {wire_name(kind): kind for kind in get_args(union)}


VERBS: Final[dict[str, type[Request]]] = by_wire_name(Request)
"""Every request by its name on the wire."""
