"""What the owner of a market may change while it runs: asked of the supervisor, which writes each change down.

Amounts are integers of minor units, prices whole credits per core hour. A name is an agent's local name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

CERTIFICATE_DAYS: Final = 365
"""How long a renewed certificate holds where nothing else is said."""


@dataclass(frozen=True, slots=True)
class AddUser:
    """A new user: key, certificate, XMPP account, bank account, agent."""

    name: str
    deposit: int = 0
    credit_limit: int = 0


@dataclass(frozen=True, slots=True)
class RemoveUser:
    """A user leaves: its agent ends, its certificates are revoked; refused while something is open, unless forced."""

    name: str
    forced: bool = False


@dataclass(frozen=True, slots=True)
class AddResource:
    """A new resource, by a piece of TOML: one `[[resources]]`, with its `[machines.NAME]` if the market has none."""

    definition: str


@dataclass(frozen=True, slots=True)
class DrainResource:
    """A resource sells nothing new and keeps what it has sold; with `draining` false it sells again."""

    name: str
    draining: bool = True


@dataclass(frozen=True, slots=True)
class RemoveResource:
    """A resource leaves, as users do; refused while it has sold or holds slots that are not over, unless forced."""

    name: str
    forced: bool = False


@dataclass(frozen=True, slots=True)
class SetResource:
    """What a resource asks from now on; what is None stays."""

    name: str
    start_price: int | None = None
    minimum_price: int | None = None
    rounds_expected: int | None = None
    pricing: str | None = None


@dataclass(frozen=True, slots=True)
class RenewKeys:
    """A new certificate of an agent, by default for the key that it has; it signs with it at once."""

    name: str
    new_key: bool = False
    kind: str = "p256"
    days: int = CERTIFICATE_DAYS


@dataclass(frozen=True, slots=True)
class RestartAgent:
    """An agent ends and begins again where its journal ends."""

    name: str


@dataclass(frozen=True, slots=True)
class Reload:
    """The market becomes what its file says now; `dry_run` only says what would be done."""

    dry_run: bool = False
    forced: bool = False


@dataclass(frozen=True, slots=True)
class ChangeLine:
    """One thing that is changed.

    Attributes:
        kind: `remove`, `add`, `update`, `rebuild`, `renew`, `restart`; `later` is not done now, and the text says when;
            `stands` was changed by a verb and counts, whatever the file says; `warning` tells what does not work so.
        name: of the agent, or of the part of the configuration.
    """

    kind: str
    name: str
    text: str


@dataclass(frozen=True, slots=True)
class MarketChanged:
    """What was changed; with `done` false what would be."""

    lines: tuple[ChangeLine, ...]
    done: bool = True


OwnerRequest = (
    AddUser
    | RemoveUser
    | AddResource
    | DrainResource
    | RemoveResource
    | SetResource
    | RenewKeys
    | RestartAgent
    | Reload
)
"""What the market's owner may ask of its supervisor."""

OWNER_VERBS: Final[dict[str, type[OwnerRequest]]] = {
    "add_user": AddUser,
    "remove_user": RemoveUser,
    "add_resource": AddResource,
    "drain_resource": DrainResource,
    "remove_resource": RemoveResource,
    "set_resource": SetResource,
    "renew_keys": RenewKeys,
    "restart": RestartAgent,
    "reload": Reload,
}
"""Every such request by its name on the wire."""
