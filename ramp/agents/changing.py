"""Carries out changes of a market that runs: each is checked first, then written down, then done, one at a time.

What is changed is on disk before anything is done: after a crash in between the next start does the rest.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from dataclasses import replace
from typing import Any, Final, Protocol, assert_never, get_args

from ramp.agents.control_channel import ControlSocket
from ramp.agents.group_calls import Act, GroupCall
from ramp.control.events import Event, MarketRefusalCode, market_refused
from ramp.control.market_changes import (
    AddResource,
    AddUser,
    ChangeLine,
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
from ramp.control.requests import Request
from ramp.control.status import AgentStatus
from ramp.control.unmapped_users import unmapped
from ramp.errors import ConfigurationError, TransportError
from ramp.model.instant import DAY, iso
from ramp.model.money import credits_text
from ramp.model.seal import Role
from ramp.options import nearest_name
from ramp.rfql.signing import certificates
from ramp.runtime.changes.audit_log import add_line
from ramp.runtime.changes.differences import Step, StepKind, steps_between, waiting_steps
from ramp.runtime.changes.overlay import Overlay, part_of_market, save_overlay, text_of
from ramp.runtime.clock import SystemClock
from ramp.runtime.config import SwarmConfig
from ramp.runtime.config_file import load_config
from ramp.runtime.joining.register import Register
from ramp.runtime.keys.store import KeyStore
from ramp.runtime.logs.events import record
from ramp.runtime.state_folder import StateFolder

_OWNED: Final = get_args(OwnerRequest)

UP_STATES: Final = ("ready", "degraded")
"""States in which an agent that was added has come up."""


class Agents(Protocol):
    """The agents of a market, as whoever changes it sees them (`ramp.agents.supervisor`)."""

    agents: dict[str, AgentStatus]

    async def call(self, asked: GroupCall) -> tuple[list[str], list[str]]:
        """Ask the process of an agent."""
        ...

    def kill(self, name: str) -> None:
        """Kill the process of an agent, which is then started again."""
        ...

    async def give_account(self, name: str) -> None:
        """Let the server have an agent's account."""
        ...

    def configure(self, config: SwarmConfig) -> None:
        """The market is another one from now on."""
        ...

    async def launch(self, name: str) -> AgentStatus:
        """Start an agent, and wait until it is up or says why it cannot be."""
        ...

    async def settled(self, name: str) -> AgentStatus:
        """An agent's status once it is up or cannot be."""
        ...

    async def end(self, name: str) -> None:
        """End an agent for good."""
        ...


class Changing:
    """Changes one market.

    Args:
        agents: its agents.
        config: what it is now.
        overlay: its file as it was taken, and what was changed since by verbs.
        state: its state folder.
        clock: the time.
    """

    def __init__(
        self, agents: Agents, config: SwarmConfig, overlay: Overlay, state: StateFolder, clock: SystemClock
    ) -> None:
        self._agents = agents
        self._config = config
        self._overlay = overlay
        self._state = state
        self._clock = clock
        self._keys = KeyStore(state.keys)
        self._one_at_a_time = asyncio.Lock()

    async def perform(self, request: OwnerRequest, who: str) -> MarketChanged:
        """Carry a change out.

        Args:
            request: the change.
            who: the system's user that asks for it.

        Raises:
            RampError: if it is refused, or cannot be done; nothing has been changed then, unless the text says so.
        """
        async with self._one_at_a_time:
            match request:
                case AddUser():
                    return await self._add_user(request, who)
                case AddResource(definition):
                    return await self._add_resource(definition, who)
                case RemoveUser(name, forced):
                    return await self._remove(name, Role.USER, who, forced=forced)
                case RemoveResource(name, forced):
                    return await self._remove(name, Role.RESOURCE, who, forced=forced)
                case DrainResource(name, draining):
                    return await self._drain(name, draining, who)
                case SetResource():
                    return await self._set(request, who)
                case RenewKeys():
                    return await self._renew(request, who)
                case RestartAgent(name):
                    return await self._restart(name, who)
                case Reload(dry_run, forced):
                    return await self._reload(who, dry_run=dry_run, forced=forced)
                case _:
                    assert_never(request)

    # -- coming --------------------------------------------------------------------------------------------------

    async def _add_user(self, asked: AddUser, who: str) -> MarketChanged:
        self._check_free(asked.name)
        if asked.deposit < 0 or asked.credit_limit < 0:
            raise ConfigurationError(f"deposit {asked.deposit}, credit limit {asked.credit_limit}: below 0")
        amounts = {"deposit": asked.deposit, "credit_limit": asked.credit_limit}
        table = {"name": asked.name, **{key: f"{value / 100:.2f}" for key, value in amounts.items() if value}}
        overlay = self._overlay.back(asked.name)
        then = replace(overlay, users={**overlay.users, asked.name: table})
        given = f"deposit {credits_text(asked.deposit)}, overdraft {credits_text(asked.credit_limit)} credits"
        changed = await self._come(asked.name, then, "user add", f"user {asked.name} is added: {given}", who)
        return replace(changed, lines=(*changed.lines, *unmapped(self._config, asked.name)))

    async def _add_resource(self, definition: str, who: str) -> MarketChanged:
        table, machines = part_of_market(definition, "the resource's definition")
        name = str(table.get("name", ""))
        self._check_free(name)
        known = self._overlay.tables(self._config.path).get("machines", {})
        again = sorted(machines.keys() & known.keys())
        if again:
            reason = f"the market has a machine {again[0]!r} already; right would be another name, or none of its own"
            raise ConfigurationError(reason, key=f"machines.{again[0]}")
        overlay = self._overlay.back(name)
        then = replace(
            overlay,
            resources={**overlay.resources, name: table},
            machines={**overlay.machines, **machines},
        )
        config = then.config(self._config.path)
        resource = config.resource(name)
        prices = f"start price {resource.prices.start_price}, minimum price {resource.prices.minimum_price}"
        what = f"resource {name} is added: {resource.terms.cores} cores, {prices} credits/core-hour"
        return await self._come(name, then, "resource add", what, who)

    def _check_free(self, name: str) -> None:
        taken = name in self._agents.agents or name in self._config.agents() or name in self._config.server.accounts
        if taken:
            role = self._config.agents().get(name)
            what = f"a {role} of the market" if role is not None else "an account of the server"
            raise market_refused(MarketRefusalCode.NAME_TAKEN, f"{name} is {what} already; right would be another name")
        address = self._config.address(name)
        if Register(self._state.invitations).is_promised(address, self._clock.now()):
            reason = f"{address} has been invited; right would be another name, or `ramp invite revoke {address}` first"
            raise market_refused(MarketRefusalCode.NAME_TAKEN, reason)

    async def _come(self, name: str, then: Overlay, verb: str, what: str, who: str) -> MarketChanged:
        before = self._overlay
        config = then.config(self._config.path)
        address = config.address(name)
        await self._agents.give_account(name)
        self._keys.issue(address, config.roles()[name], self._clock.now())
        self._take(then, config)
        await self.tell_bank()
        status = await self._agents.launch(name)
        if status.state not in UP_STATES:
            await self._agents.end(name)
            self._take(before, before.config(self._config.path))
            why = status.detail or status.state
            raise TransportError(f"{name} does not come up, so it is not added: {why} (see {self._state.logs})")
        return self._done(verb, name, what, who, "add")

    # -- going ---------------------------------------------------------------------------------------------------

    async def _remove(self, name: str, role: Role, who: str, *, forced: bool) -> MarketChanged:
        self._check_there(name, role)
        still_open, told = await self._standing(name)
        self._check_closed(name, still_open, forced=forced)
        then = self._overlay.without(name, self._config.path)
        config = then.config(self._config.path)  # a market without any user, or any resource, is none
        return await self._go(name, then, config, role, who, told=[*still_open, *told], forced=forced)

    async def _go(
        self,
        name: str,
        then: Overlay,
        config: SwarmConfig,
        role: Role,
        who: str,
        *,
        told: Sequence[str],
        forced: bool,
    ) -> MarketChanged:
        address = self._config.address(name)
        self._take(then, config)
        await self._agents.end(name)
        revoked = self._keys.revoke(address, self._clock.now(), f"removed by {who}")
        certificates_text = f"{len(revoked)} certificate{'' if len(revoked) == 1 else 's'} revoked"
        what = "; ".join((f"{role} {name} is removed{' by force' if forced else ''}, {certificates_text}", *told))
        return self._done(f"{role} remove", name, what, who, "remove")

    async def _standing(self, name: str) -> tuple[list[str], list[str]]:
        """What a party owes and holds that is open, by its own word and the bank's; and what else is to be told."""
        found: list[str] = []
        told: list[str] = []
        bank = [(self._active_bank, self._config.address(name))] if self._config.own_agents else []
        for asked, account in [(name, ""), *bank]:
            try:
                more, also = await self._agents.call(GroupCall(Act.STANDING, asked, account))
            except TransportError as error:
                found.append(f"not known: {error}")
            else:
                found += more
                told += also
        return found, told

    def _check_closed(self, name: str, still_open: Sequence[str], *, forced: bool) -> None:
        if still_open and not forced:
            role = self._config.roles()[name]
            hint = f"; `ramp resource drain {name}` sells nothing new meanwhile" if role is Role.RESOURCE else ""
            reason = f"{name} cannot be removed: {'; '.join(still_open)}{hint}; --force removes it all the same"
            raise market_refused(MarketRefusalCode.STILL_OPEN, reason)

    # -- what a resource asks ------------------------------------------------------------------------------------

    async def _drain(self, name: str, draining: bool, who: str) -> MarketChanged:
        self._check_there(name, Role.RESOURCE)
        then = self._overlay.drained(name, draining)
        self._take(then, then.config(self._config.path))
        late = await self._update(name)
        what = "drains: it sells nothing new and keeps what it has sold" if draining else "sells again"
        if draining:
            still_open, _ = await self._standing(name)
            what += f" ({'; '.join(still_open) or 'nothing is open'})"
        return self._done("resource drain" if draining else "resource resume", name, f"{name} {what}{late}", who)

    async def _set(self, asked: SetResource, who: str) -> MarketChanged:
        self._check_there(asked.name, Role.RESOURCE)
        values = {
            key: value
            for key in ("start_price", "minimum_price", "rounds_expected", "pricing")
            if (value := getattr(asked, key)) is not None
        }
        if not values:
            raise ConfigurationError(
                "nothing is set; right would be start_price=60, minimum_price=20, rounds_expected=4 or pricing=ramp"
            )
        then = self._overlay.with_settings(asked.name, values)
        config = then.config(self._config.path)
        steps = [step for step in steps_between(self._config, config) if step.name == asked.name]
        self._take(then, config)
        late = ""
        for step in steps:
            late += await (self._rebuild(step.name) if step.kind is StepKind.REBUILD else self._update(step.name))
        what = "; ".join(step.text for step in steps) or f"resource {asked.name}: nothing changed"
        return self._done("resource set", asked.name, f"{what}{late}", who)

    # -- keys and agents -----------------------------------------------------------------------------------------

    async def _renew(self, asked: RenewKeys, who: str) -> MarketChanged:
        self._check_there(asked.name)
        address = self._config.address(asked.name)
        now = self._clock.now()
        made = self._keys.renew(address, now, kind=asked.kind, new_key=asked.new_key, lifetime=asked.days * DAY)
        late = await self._update(asked.name)
        await self.tell_bank()
        until = iso(certificates.valid_until(made))
        what = f"{address} signs with certificate {certificates.serial_text(made)}, which holds until {until}{late}"
        return self._done("keys renew", asked.name, what, who, "renew")

    async def _restart(self, name: str, who: str) -> MarketChanged:
        self._check_there(name)
        what = f"{name} is restarted"
        try:
            await self._agents.call(GroupCall(Act.RESTART, name))
        except TransportError as error:
            self._agents.kill(name)
            what += f", with all agents of its process ({error})"
        status = await self._agents.settled(name)
        if status.state not in UP_STATES:
            what += f"; it is {status.state}: {status.detail}"
        return self._done("restart", name, what, who, "restart")

    # -- the file ------------------------------------------------------------------------------------------------

    async def _reload(self, who: str, *, dry_run: bool, forced: bool) -> MarketChanged:
        path = self._config.path
        load_config(path)  # the file alone must be right as well
        text = text_of(path)
        then = self._overlay.taken(text, path)
        config = then.config(path)
        steps = (*steps_between(self._config, config), *waiting_steps(then.frame, text, path))
        removed = [step.name for step in steps if step.kind is StepKind.REMOVE]
        standings = {name: await self._standing(name) for name in removed}
        lines = [_line(step, standings.get(step.name, ([], []))[0]) for step in steps]
        comers = [step.name for step in steps if step.kind is StepKind.ADD and config.roles()[step.name] is Role.USER]
        lines += [line for name in comers for line in unmapped(config, name)]
        lines += [ChangeLine("stands", "", f"{each}, whatever the file says") for each in then.standing]
        if dry_run:
            return MarketChanged(tuple(lines), done=False)
        for name, (still_open, _) in standings.items():
            self._check_closed(name, still_open, forced=forced)
        await self._follow(steps, then, config, who, standings, forced=forced)
        return MarketChanged(tuple(lines))

    async def _follow(
        self,
        steps: Sequence[Step],
        then: Overlay,
        config: SwarmConfig,
        who: str,
        standings: dict[str, tuple[list[str], list[str]]],
        *,
        forced: bool,
    ) -> None:
        roles = self._config.roles()
        done: dict[StepKind, Callable[[str], Coroutine[Any, Any, str]]] = {
            StepKind.UPDATE: self._update,
            StepKind.REBUILD: self._rebuild,
        }
        self._record("reload", "", f"the file {self._config.path} is taken", who)
        for step in steps:
            if step.kind is StepKind.REMOVE:
                told = [part for both in standings[step.name] for part in both]
                await self._go(step.name, then, config, roles[step.name], who, told=told, forced=forced)
        self._take(then, config)
        for step in steps:
            if step.kind is StepKind.ADD:
                await self._agents.give_account(step.name)
                self._keys.issue(config.address(step.name), config.roles()[step.name], self._clock.now())
        await self.tell_bank()
        for step in steps:
            if step.kind is StepKind.ADD:
                await self._agents.launch(step.name)
            elif step.kind in done:
                await done[step.kind](step.name)
            if step.kind not in (StepKind.REMOVE, StepKind.LATER):
                self._record("reload", step.name, step.text, who)

    # -- common --------------------------------------------------------------------------------------------------

    def _check_there(self, name: str, role: Role | None = None) -> None:
        roles = self._config.agents()
        if name in roles and role in (None, roles[name]):
            return
        known = [each for each, its in roles.items() if role in (None, its)]
        noun = role or "agent"
        raise market_refused(
            MarketRefusalCode.UNKNOWN_AGENT, f"no {noun} of the market is called {name!r}{nearest_name(name, known)}"
        )

    def _take(self, then: Overlay, config: SwarmConfig) -> None:
        """The market is another one: on disk first."""
        save_overlay(self._state, then)
        self._overlay, self._config = then, config
        self._agents.configure(config)

    async def _update(self, name: str) -> str:
        """Let an agent take up what is changed; returns what is to be said where it takes it up later."""
        try:
            await self._agents.call(GroupCall(Act.UPDATE, name))
        except TransportError as error:
            return f"; it takes that up when it is up again ({error})"
        return ""

    async def _rebuild(self, name: str) -> str:
        """Restart an agent from the configuration as it is now; see `_update`."""
        try:
            await self._agents.call(GroupCall(Act.RESTART, name))
        except TransportError as error:
            return f"; it takes that up when it is up again ({error})"
        status = await self._agents.settled(name)
        return "" if status.state in UP_STATES else f"; it is {status.state}: {status.detail}"

    async def tell_bank(self) -> None:
        """Let the bank open accounts and put certificates on file; one that is not up does it when it starts."""
        for name in self._config.bank_names if self._config.own_agents else ():  # a site's bank is elsewhere
            await self._update(name)

    @property
    def _active_bank(self) -> str:
        """The bank that speaks."""
        names = self._config.bank_names
        return next((name for name in names if self._agents.agents[name].is_up), names[0])

    def _record(self, verb: str, name: str, what: str, who: str) -> None:
        add_line(self._state, self._clock.now(), who, verb, name, what)
        record(name or "supervisor", "change", f"{what} (asked by {who})", verb=verb, who=who)

    def _done(self, verb: str, name: str, what: str, who: str, kind: str = "update") -> MarketChanged:
        self._record(verb, name, what, who)
        return MarketChanged((ChangeLine(kind, name, what),))


def _line(step: Step, still_open: Sequence[str]) -> ChangeLine:
    text = f"{step.text} ({'; '.join(still_open)}: refused unless forced)" if still_open else step.text
    return ChangeLine(step.kind.value, step.name, text)


class SupervisorControl(ControlSocket):
    """Serves the supervisor's control socket.

    Args:
        changing: carries changes out.
        domain: of the market.
        state: its state folder.
    """

    def __init__(self, changing: Changing, domain: str, state: StateFolder) -> None:
        super().__init__(f"the supervisor of {domain}", state.supervisor_socket)
        self._changing = changing

    async def answer(self, request: Request, reader: asyncio.StreamReader, who: str) -> AsyncIterator[Event]:
        """Every change of the table."""
        if isinstance(request, _OWNED):
            yield await self._changing.perform(request, who)
