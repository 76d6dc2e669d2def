"""The ways into a market that is running: as one of its users, and as its owner, who may change it."""

from __future__ import annotations

import json
from pathlib import Path

from ramp.client import dialogues
from ramp.client.access import find_market, running
from ramp.client.asyncio_market import AsyncMarket
from ramp.client.line import SocketLine
from ramp.client.market import Market, converse
from ramp.control.market_changes import (
    CERTIFICATE_DAYS,
    AddResource,
    AddUser,
    DrainResource,
    MarketChanged,
    OwnerRequest,
    Reload,
    RemoveResource,
    RemoveUser,
    RenewKeys,
    RestartAgent,
    SetResource,
)
from ramp.errors import ConfigurationError
from ramp.model.contents import DepositMade
from ramp.model.money import parse_credits
from ramp.runtime.state_folder import StateFolder, state_folder


def connect(state_dir: Path | str | None = None, *, user: str | None = None) -> Market:
    """A market that is running, as one of its users.

    Args:
        state_dir: where it keeps its state (default: $RAMP_STATE, or ~/.local/state/ramp), as for `ramp --state-dir`.
        user: local name of the user (default: the first of the market).

    Raises:
        NoMarket: if none is running there.
        ConfigurationError: if it has no such user, or its folder is open to others.
    """
    return Market(find_market(state_folder(state_dir), user))


def connect_async(state_dir: Path | str | None = None, *, user: str | None = None) -> AsyncMarket:
    """The same for asyncio: `async with ramp.connect_async() as market: ...`."""
    return AsyncMarket(find_market(state_folder(state_dir), user))


class MarketOperator:
    """A market that runs, as its owner; `ramp.operate` makes one.

    Every method is done when it returns, and is one line in the market's audit log; what is refused raises a
    `ramp.MarketRefused` with a `code`. Names are local names of agents, amounts credits.

    Args:
        state: the market's state folder.
    """

    def __init__(self, state: StateFolder) -> None:
        self._state = state

    def add_user(self, name: str, *, deposit: int | str = 0, overdraft: int | str = 0) -> MarketChanged:
        """A new user with an account of its own."""
        return self.change(AddUser(name, _amount(deposit, "deposit"), _amount(overdraft, "overdraft")))

    def remove_user(self, name: str, *, force: bool = False) -> MarketChanged:
        """A user leaves, and its certificates are revoked; its account stays with what is on it.

        Raises:
            MarketRefused: `still_open` while a request goes on, or what it has bought is not over.
        """
        return self.change(RemoveUser(name, force))

    def add_resource(self, definition: str) -> MarketChanged:
        """A new resource, by a piece of TOML: one `[[resources]]`, with `[machines.NAME]` where it brings its own."""
        return self.change(AddResource(definition))

    def drain_resource(self, name: str) -> MarketChanged:
        """A resource sells nothing new, and keeps what it has sold, also after a restart."""
        return self.change(DrainResource(name))

    def resume_resource(self, name: str) -> MarketChanged:
        """A resource that drains sells again."""
        return self.change(DrainResource(name, draining=False))

    def remove_resource(self, name: str, *, force: bool = False) -> MarketChanged:
        """A resource leaves, and its certificates are revoked.

        Raises:
            MarketRefused: `still_open` while slots that it has sold or holds are not over.
        """
        return self.change(RemoveResource(name, force))

    def set_resource(
        self,
        name: str,
        *,
        start_price: int | None = None,
        minimum_price: int | None = None,
        rounds_expected: int | None = None,
        pricing: str | None = None,
    ) -> MarketChanged:
        """What a resource asks from the next call on; prices in whole credits per core-hour."""
        return self.change(SetResource(name, start_price, minimum_price, rounds_expected, pricing))

    def renew_keys(
        self, name: str, *, new_key: bool = False, kind: str = "p256", days: int = CERTIFICATE_DAYS
    ) -> MarketChanged:
        """A new certificate for an agent, which signs with it at once."""
        return self.change(RenewKeys(name, new_key, kind, days))

    def restart(self, name: str) -> MarketChanged:
        """End an agent and let it begin again."""
        return self.change(RestartAgent(name))

    def reload(self, *, dry_run: bool = False, force: bool = False) -> MarketChanged:
        """Make the market what its file says now; with `dry_run` only say what would be done."""
        return self.change(Reload(dry_run, force))

    def deposit(self, account: str, amount: int | str, *, memo: str = "", deposit_id: str = "") -> DepositMade:
        """Credit an account, as the market's keeper; the same id is credited once."""
        (keeper,) = running(self._state).names("keeper")
        asked = dialogues.deposit(account, _amount(amount, "amount"), memo, deposit_id)
        with SocketLine(self._state.socket(keeper)) as line:
            return converse(line, asked)

    def change(self, request: OwnerRequest) -> MarketChanged:
        """Ask the supervisor for a change.

        Raises:
            NoMarket: if no market runs there.
            MarketRefused: if it is refused.
        """
        running(self._state)
        with SocketLine(self._state.supervisor_socket) as line:
            return converse(line, dialogues.changed(request))


def operate(state_dir: Path | str | None = None) -> MarketOperator:
    """A market that is running, as its owner.

    Args:
        state_dir: where it keeps its state (default: $RAMP_STATE, or ~/.local/state/ramp).
    """
    return MarketOperator(state_folder(state_dir))


def resource_definition(name: str, machine: str, **values: int | str | None) -> str:
    """The piece of TOML that defines a resource on a machine that the market has.

    Args:
        name: of the resource.
        machine: of the market.
        **values: its further keys; those that are None are left out.
    """
    given = {"name": name, "machine": machine, **{key: value for key, value in values.items() if value is not None}}
    lines = [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in given.items()]  # TOML's basic strings
    return "\n".join(("[[resources]]", *lines, ""))


def _amount(credits_given: int | str, key: str) -> int:
    """Minor units of an amount of credits.

    Raises:
        ConfigurationError: if it is none.
    """
    try:
        return parse_credits(str(credits_given))
    except ValueError as error:
        raise ConfigurationError(str(error), key=key) from error
