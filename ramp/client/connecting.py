"""Connections to a running market: as one of its users, and as its owner, who may change it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Literal, TypeVar

from ramp.client import dialogues
from ramp.client.access import find_market, running
from ramp.client.asyncio_market import AsyncMarket
from ramp.client.dialogues import Dialogue
from ramp.client.market import Market, ask
from ramp.client.request import Count
from ramp.client.submission import Credits
from ramp.control.events import MarketChanged
from ramp.control.requests import (
    CERTIFICATE_DAYS,
    AddResource,
    AddUser,
    DrainResource,
    OwnerRequest,
    Reload,
    RemoveParty,
    RenewKeys,
    RestartAgent,
    SetResource,
)
from ramp.errors import ConfigurationError
from ramp.model.contents import ChangePosted, DepositMade
from ramp.model.money import credits_of
from ramp.model.seal import Role
from ramp.options import Bounds, checked, read_argument
from ramp.runtime.clock import SystemClock
from ramp.runtime.joining.authority import DAYS_DEFAULT, invite_party
from ramp.runtime.joining.invitations import Invitation
from ramp.runtime.state_folder import StateFolder, state_folder
from ramp.xmpp.address import account_problem

T = TypeVar("T")
Days = Annotated[int, Bounds(1, 3650)]
InvitationDays = Annotated[int, Bounds(1, 365)]


@checked
def connect(state_dir: Path | str | None = None, *, user: str | None = None) -> Market:
    """Connect to a running market as one of its users.

    Args:
        state_dir: its state folder (default: $RAMP_STATE, or ~/.local/state/ramp).
        user: local name of the user (default: the first of the market).

    Raises:
        NoMarket: if none is running there.
        ConfigurationError: if it has no such user, or its folder is open to others.
    """
    return Market(find_market(state_folder(state_dir), user))


@checked
def connect_async(state_dir: Path | str | None = None, *, user: str | None = None) -> AsyncMarket:
    """Connect as `connect` does, for asyncio: `async with ramp.connect_async() as market: ...`."""
    return AsyncMarket(find_market(state_folder(state_dir), user))


@checked
class MarketOperator:
    """A running market as its owner sees it; `ramp.operate` makes one.

    Every method returns when the change is done, and adds a line to the market's audit log. A refused change raises
    `ramp.MarketRefused` with a `code`. Names are local names of agents, amounts credits.
    """

    def __init__(self, state: StateFolder) -> None:
        self._state = state

    def add_user(self, name: str, *, deposit: Credits = 0, overdraft: Credits = 0) -> MarketChanged:
        """Add a user with an account of its own."""
        return self.change(
            AddUser(
                name,
                read_argument("deposit", credits_of, deposit, zero=True),
                read_argument("overdraft", credits_of, overdraft, zero=True),
            )
        )

    def remove_user(self, name: str, *, force: bool = False) -> MarketChanged:
        """Remove a user and revoke its certificates; its bank account stays.

        Raises:
            MarketRefused: `still_open` while a request runs or a reservation is not over.
        """
        return self.change(RemoveParty(name, "user", force))

    def add_resource(self, definition: str) -> MarketChanged:
        """Add a resource from TOML: one `[[resources]]`, with `[machines.NAME]` for a new machine."""
        return self.change(AddResource(definition))

    def drain_resource(self, name: str) -> MarketChanged:
        """Stop new sales of a resource, also after a restart; existing reservations stay."""
        return self.change(DrainResource(name))

    def resume_resource(self, name: str) -> MarketChanged:
        """Let a drained resource sell again."""
        return self.change(DrainResource(name, draining=False))

    def remove_resource(self, name: str, *, force: bool = False) -> MarketChanged:
        """Remove a resource and revoke its certificates.

        Raises:
            MarketRefused: `still_open` while slots that it sold or holds are not over.
        """
        return self.change(RemoveParty(name, "resource", force))

    def set_resource(
        self,
        name: str,
        *,
        start_price: Count | None = None,
        minimum_price: Count | None = None,
        rounds_expected: Count | None = None,
        pricing: str | None = None,
    ) -> MarketChanged:
        """Set the prices of a resource for new requests, in whole credits per core-hour."""
        return self.change(SetResource(name, start_price, minimum_price, rounds_expected, pricing))

    def invite(
        self,
        name: str,
        role: Literal["user", "resource"],
        *,
        days: InvitationDays = DAYS_DEFAULT,
        deposit: Credits = 0,
        overdraft: Credits = 0,
        server: bool | None = None,
    ) -> Invitation:
        """Invite a party of another site: `text()` of the result is its file, `token()` the same in one line.

        Args:
            name: full name of the party, `agent@site.example`.
            role: of the party.
            days: validity.
            deposit: opening credit of a user's account.
            overdraft: how far below 0 a user's balance may go.
            server: whether the site's XMPP server is certified too; by default for the first party of a domain.

        Raises:
            ConfigurationError: if the name is invalid or taken, or this market cannot invite the party.
        """
        local, _, domain = name.rpartition("@")
        problem = account_problem(local, domain) if local and domain else "it has no domain"
        if problem:
            raise ConfigurationError(f"invalid address {name!r}: {problem}, expected agent@site.example")
        found = running(self._state)
        return invite_party(
            self._state,
            Path(found.config),
            f"{found.server.host}:{found.server.port}",
            SystemClock().now(),
            name,
            Role(role),
            days=days,
            deposit=read_argument("deposit", credits_of, deposit, zero=True),
            overdraft=read_argument("overdraft", credits_of, overdraft, zero=True),
            server=server,
        )

    def renew_keys(self, name: str, *, new_key: bool = False, days: Days = CERTIFICATE_DAYS) -> MarketChanged:
        """Issue a new certificate to an agent, which signs with it at once."""
        return self.change(RenewKeys(name, new_key, days))

    def restart(self, name: str) -> MarketChanged:
        """Restart an agent."""
        return self.change(RestartAgent(name))

    def reload(self, *, dry_run: bool = False, force: bool = False) -> MarketChanged:
        """Apply changes from the configuration file; with `dry_run` only list them."""
        return self.change(Reload(dry_run, force))

    def deposit(self, account: str, amount: Credits, *, memo: str = "", deposit_id: str = "") -> DepositMade:
        """Credit an account, as the market's keeper; the same id is credited once."""
        asked = dialogues.deposit(account, read_argument("amount", credits_of, amount), memo, deposit_id)
        return ask_keeper(self._state, asked)

    def refund(self, agreement_id: str, reason: str) -> ChangePosted:
        """Refund what is left of an agreement's payments, as the market's keeper; again, it changes nothing."""
        return ask_keeper(self._state, dialogues.refund(agreement_id, reason))

    def change(self, request: OwnerRequest) -> MarketChanged:
        """Ask the supervisor for a change."""
        running(self._state)
        return ask(self._state.supervisor_socket, dialogues.changed(request))


def ask_keeper(state: StateFolder, dialogue: Dialogue[T]) -> T:
    """Hold a dialogue with the agent of the running market's keeper."""
    (keeper,) = running(state).names("keeper")
    return ask(state.socket(keeper), dialogue)


@checked
def operate(state_dir: Path | str | None = None) -> MarketOperator:
    """Connect to a running market as its owner; `state_dir` as for `connect`."""
    return MarketOperator(state_folder(state_dir))


def resource_definition(name: str, machine: str, **values: int | str | None) -> str:
    """Return the TOML of a resource on a machine of the market; values of None are left out."""
    given = {"name": name, "machine": machine, **{key: value for key, value in values.items() if value is not None}}
    lines = [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in given.items()]  # TOML's basic strings
    return "\n".join(("[[resources]]", *lines, ""))
