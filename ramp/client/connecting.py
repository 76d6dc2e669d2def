"""Connections to a running market, as one of its users or as its owner; and markets that a program launches.

A launched market runs in processes on XMPP, or is simulated in this one.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Annotated, Final, Literal, TypeVar

from ramp.client import dialogues
from ramp.client.access import Access, find_market, running, status
from ramp.client.asyncio_market import AsyncMarket
from ramp.client.dialogues import Dialogue
from ramp.client.market import Market, ask
from ramp.client.request import Count
from ramp.client.submission import Credits
from ramp.client.swarm import OnEvent, start_detached, stop
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
from ramp.entry_points import entry_points_by_name
from ramp.errors import ConfigurationError
from ramp.model.contents import ChangePosted, DepositMade
from ramp.model.money import credits_of
from ramp.model.seal import Role
from ramp.options import Bounds, checked, nearest_name, read_argument
from ramp.runtime.clock import SystemClock
from ramp.runtime.configuration.file import load_config
from ramp.runtime.configuration.sites import EMBEDDED, PROSODY
from ramp.runtime.configuration.values import SwarmConfig
from ramp.runtime.joining.authority import DAYS_DEFAULT, invite_party
from ramp.runtime.joining.invitations import Invitation
from ramp.runtime.state_folder import StateFolder, state_folder
from ramp.shipped_files import DEFAULT_SWARM, find_config
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


TRANSPORT_GROUP: Final = "ramp.transports"
"""Entry points that open a market without processes: callables (SwarmConfig, user or None, seed) -> Access."""

SERVERS: Final = (EMBEDDED, PROSODY, "external")
"""Transports that are XMPP servers, as configurations name them."""

REGISTRATION_LIMIT_S: Final = 15.0
"""How long resources may take to register once their agents are ready, in seconds; they repeat it every few."""

REGISTRATION_PAUSE_S: Final = 0.05
"""Pause between two looks, in seconds."""

OpenTransport = Callable[[SwarmConfig, "str | None", int], Access]


@checked
def launch(
    config: str | Path = DEFAULT_SWARM,
    *,
    transport: str | None = None,
    state_dir: Path | str | None = None,
    user: str | None = None,
    seed: int = 0,
) -> Market:
    """Launch a market; the end of the `with` block, `close`, or the end of this program stops it.

    Args:
        config: a TOML file, or the name of a market that comes with RAMP: `quickstart`, `table2`, `torus`.
        transport: `embedded`, `prosody` or `external` for agents in processes on a real XMPP server, where the
            configuration must say the same (default: as it says); `simulated` for the same parties in this process and
            in virtual time, which begins in January 2027 and passes only during calls.
        state_dir: where to keep keys, journals and the ledger (default: a temporary folder, removed at the end).
            A simulated market keeps nothing.
        user: local name of the user (default: the first).
        seed: seed of a simulated market.

    Raises:
        ConfigurationError: if the configuration or the transport is wrong.
        TransportError: if the market does not start; its output is part of the message.
    """
    loaded = load_config(find_config(str(config)))
    if transport is None or transport in SERVERS:
        if transport not in (None, loaded.server.kind):
            raise ConfigurationError(
                f"the transport {transport!r} differs from the configuration's server {loaded.server.kind!r}; "
                "change [server] kind in the configuration",
                path=loaded.path,
                key="server.kind",
            )
        return _launch_processes(loaded, state_dir, user)
    if state_dir is not None:
        raise ConfigurationError(f"the transport {transport!r} keeps no state; leave out state_dir")
    return Market(_transport(transport)(loaded, user, seed))


def _transport(name: str) -> OpenTransport:
    entries = entry_points_by_name(TRANSPORT_GROUP)
    if name not in entries:
        near = nearest_name(name, [*SERVERS, *sorted(entries)])
        raise ConfigurationError(f"unknown transport {name!r}{near}", key="transport")
    opened: OpenTransport = entries[name].load()
    return opened


def _launch_processes(config: SwarmConfig, state_dir: Path | str | None, user: str | None) -> Market:
    with contextlib.ExitStack() as stack:
        path = state_dir or stack.enter_context(tempfile.TemporaryDirectory(prefix="ramp-"))
        state = StateFolder(Path(path).absolute())
        start_detached(config.path.absolute(), state, parent=os.getpid())
        stack.callback(stop, state)
        wait_registered(config, state)
        access = find_market(state, user)
        return Market(access, stack.pop_all().close)


@checked
@contextlib.asynccontextmanager
async def launch_async(
    config: str | Path = DEFAULT_SWARM,
    *,
    transport: str | None = None,
    state_dir: Path | str | None = None,
    user: str | None = None,
    seed: int = 0,
) -> AsyncIterator[AsyncMarket]:
    """Launch a market for asyncio: `async with ramp.launch_async("table2") as market: ...`; the block stops it.

    The arguments and errors are those of `ramp.launch`. Launching and ending run in a thread of their own. A simulated
    market answers several tasks one after the other.
    """
    launching = asyncio.ensure_future(
        asyncio.to_thread(launch, config, transport=transport, state_dir=state_dir, user=user, seed=seed)
    )
    try:
        market = await asyncio.shield(launching)
    except asyncio.CancelledError:
        # the thread continues; stop the market that it launches
        await asyncio.to_thread((await launching).close)
        raise
    try:
        yield AsyncMarket(market.access)
    finally:
        await asyncio.to_thread(market.close)


def launch_detached(
    config: SwarmConfig, state: StateFolder, on_event: OnEvent | None = None, *, parent: int | None = None
) -> list[str]:
    """Launch a market that ends with process `parent`, if any; return the resources that do not register."""
    start_detached(config.path.absolute(), state, on_event, parent=parent)
    return wait_registered(config, state)


def wait_registered(config: SwarmConfig, state: StateFolder) -> list[str]:
    """Wait until every running resource of a configuration is registered; return the names of those missing."""
    found = status(state)
    ready = [agent for agent in found.agents if agent.is_up] if found is not None else []
    asking = next((agent.name for agent in ready if agent.role == "user"), None)
    if asking is None:
        return []
    market = Market(find_market(state, asking))
    wanted = {config.address(agent.name) for agent in ready if agent.role == "resource"}
    end = time.monotonic() + REGISTRATION_LIMIT_S
    while True:
        listed = market.ask(dialogues.resources(market.access.domain))
        missing = wanted.difference(each.address for each in listed)
        if not missing or time.monotonic() > end:
            return sorted(missing)
        time.sleep(REGISTRATION_PAUSE_S)
