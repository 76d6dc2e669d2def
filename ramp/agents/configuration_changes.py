"""Changes a running market: checks, saves and then applies each change, one at a time.

A change is on disk before it is applied. After a crash in between, the next start completes it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final, assert_never, get_args

from ramp.agents.control_channel import ControlSocket
from ramp.agents.group_calls import Act, GroupCall
from ramp.control.events import ChangeLine, Event, MarketChanged, MarketRefusalCode, market_refused
from ramp.control.requests import (
    AddResource,
    AddUser,
    DrainResource,
    OwnerRequest,
    Reload,
    RemoveParty,
    RenewKeys,
    Request,
    RestartAgent,
    SetResource,
    ShowStatus,
)
from ramp.control.status import AgentStatus, SwarmStatus
from ramp.errors import ConfigurationError, TransportError
from ramp.model.instant import DAY, iso
from ramp.model.money import credits_text, exact_credits
from ramp.model.seal import Role
from ramp.options import nearest_name
from ramp.rfql.signing import certificates
from ramp.runtime.clock import SystemClock
from ramp.runtime.configuration.file import text_of
from ramp.runtime.configuration.values import SwarmConfig
from ramp.runtime.configuration_changes.audit_log import add_line
from ramp.runtime.configuration_changes.overlay import (
    Overlay,
    Step,
    StepKind,
    part_of_market,
    save_overlay,
    steps_between,
    waiting_steps,
)
from ramp.runtime.joining.invitations import Register
from ramp.runtime.keys.store import KeyStore
from ramp.runtime.logs import record
from ramp.runtime.state_folder import StateFolder

if TYPE_CHECKING:
    from ramp.agents.supervisor import Supervisor

_OWNED: Final = get_args(OwnerRequest)

REFUSING_NAMED: Final = 3
"""Maximum number of resources named in a warning."""

ACTS: Final[dict[StepKind, Act]] = {StepKind.UPDATE: "update", StepKind.REBUILD: "restart"}
"""How an agent applies a step."""

UP_STATES: Final = ("ready", "degraded")
"""States of an added agent that has started."""


class Changing:
    """Changes the market of a supervisor; `overlay` is its file as loaded, with later changes by commands."""

    def __init__(self, agents: Supervisor, overlay: Overlay, state: StateFolder, clock: SystemClock) -> None:
        self._agents = agents
        self._overlay = overlay
        self._state = state
        self._clock = clock
        self._keys = KeyStore(state.keys)
        self._one_at_a_time = asyncio.Lock()

    async def perform(self, request: OwnerRequest, who: str) -> MarketChanged:
        """Apply a change requested by a user of the operating system (`who`).

        Raises:
            RampError: the change is refused or fails; nothing was changed, unless the text says so.
        """
        async with self._one_at_a_time:
            match request:
                case AddUser():
                    return await self._add_user(request, who)
                case AddResource(definition):
                    return await self._add_resource(definition, who)
                case RemoveParty(name, role, forced):
                    return await self._remove(name, Role(role), who, forced=forced)
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

    # -- additions -----------------------------------------------------------------------------------------------

    async def _add_user(self, asked: AddUser, who: str) -> MarketChanged:
        self._check_free(asked.name)
        amounts = {"deposit": asked.deposit, "overdraft": asked.credit_limit}
        table = {"name": asked.name, **{key: str(exact_credits(value)) for key, value in amounts.items() if value}}
        then = self._overlay.with_user(asked.name, table)
        given = f"deposit {credits_text(asked.deposit)}, overdraft {credits_text(asked.credit_limit)} credits"
        changed = await self._come(asked.name, then, "user add", f"added user {asked.name}: {given}", who)
        return replace(changed, lines=(*changed.lines, *_unmapped(self._config, asked.name)))

    async def _add_resource(self, definition: str, who: str) -> MarketChanged:
        table, machines = part_of_market(definition, "the resource's definition")
        name = str(table.get("name", ""))
        self._check_free(name)
        again = sorted(machines.keys() & self._overlay.machines.keys())
        if again:
            reason = f"the market already has a machine {again[0]}; choose another name, or refer to that machine"
            raise ConfigurationError(reason, key=f"machines.{again[0]}")
        then = self._overlay.with_resource(name, table, machines)
        config = then.config(self._config.path)
        resource = config.resource(name)
        prices = f"start price {resource.prices.start_price}, minimum price {resource.prices.minimum_price}"
        what = f"added resource {name}: {resource.terms.cores} cores, {prices} credits/core-hour"
        return await self._come(name, then, "resource add", what, who)

    def _check_free(self, name: str) -> None:
        taken = name in self._agents.agents or name in self._config.agents() or name in self._config.server.accounts
        if taken:
            role = self._config.agents().get(name)
            what = f"a {role} of the market" if role is not None else "an account of the server"
            raise market_refused(
                MarketRefusalCode.NAME_TAKEN, f"the name {name} is taken by {what}; choose another name"
            )
        address = self._config.address(name)
        if any(each.name == address for each in Register(self._state.invitations).promised(self._clock.now())):
            reason = f"{address} has an invitation; choose another name, or run `ramp invite revoke {address}` first"
            raise market_refused(MarketRefusalCode.NAME_TAKEN, reason)

    async def _come(self, name: str, then: Overlay, verb: str, what: str, who: str) -> MarketChanged:
        before = self._overlay
        config = then.config(self._config.path)
        await self._admit(name, config)
        self._take(then, config)
        await self.tell_bank()
        status = await self._agents.launch(name)
        if status.state not in UP_STATES:
            await self._agents.end(name)
            self._take(before, before.config(self._config.path))
            why = status.detail or status.state
            raise TransportError(
                f"{name} does not start, so it was not added: {why}; see the logs in {self._state.logs}"
            )
        return self._done(verb, name, what, who, "add")

    async def _admit(self, name: str, config: SwarmConfig) -> None:
        self._keys.issue(config.address(name), config.roles()[name], self._clock.now())
        await self._agents.give_account(name)

    # -- removals ------------------------------------------------------------------------------------------------

    async def _remove(self, name: str, role: Role, who: str, *, forced: bool) -> MarketChanged:
        self._check_there(name, role)
        still_open, told = await self._standing(name)
        self._check_closed(name, still_open, forced=forced)
        then = self._overlay.without(name)
        self._take(then, then.config(self._config.path))  # refuses a market without users or resources
        return await self._end(name, role, who, [*still_open, *told], forced=forced)

    async def _end(self, name: str, role: Role, who: str, told: Sequence[str], *, forced: bool) -> MarketChanged:
        """End an agent that is no longer in the configuration, and revoke its certificates."""
        await self._agents.end(name)
        revoked = self._keys.revoke(self._config.address(name), self._clock.now(), f"removed by {who}")
        certificates_text = f"{len(revoked)} certificate{'' if len(revoked) == 1 else 's'} revoked"
        what = "; ".join((f"removed {role} {name}{' by force' if forced else ''}, {certificates_text}", *told))
        return self._done(f"{role} remove", name, what, who, "remove")

    async def _standing(self, name: str) -> tuple[list[str], list[str]]:
        """Return a party's open obligations according to itself and the bank, and further information."""
        found: list[str] = []
        told: list[str] = []
        whom = [(name, "")]
        if self._config.own_agents:
            banks = self._config.bank_names
            active = next((bank for bank in banks if self._agents.agents[bank].is_up), banks[0])
            whom.append((active, self._config.address(name)))
        for asked, account in whom:
            try:
                more, also = await self._agents.call(GroupCall("standing", asked, account))
            except TransportError as error:
                found.append(f"unknown: {error}")
            else:
                found += more
                told += also
        return found, told

    def _check_closed(self, name: str, still_open: Sequence[str], *, forced: bool) -> None:
        if still_open and not forced:
            role = self._config.roles()[name]
            hint = f"; `ramp resource drain {name}` stops new sales" if role is Role.RESOURCE else ""
            reason = f"cannot remove {name}: {'; '.join(still_open)}{hint}; --force removes it anyway"
            raise market_refused(MarketRefusalCode.STILL_OPEN, reason)

    # -- settings of a resource ----------------------------------------------------------------------------------

    async def _drain(self, name: str, draining: bool, who: str) -> MarketChanged:
        self._check_there(name, Role.RESOURCE)
        then = self._overlay.drained(name, draining)
        self._take(then, then.config(self._config.path))
        late = await self._apply(name, "update")
        what = "makes no new sales and keeps existing reservations" if draining else "sells again"
        if draining:
            still_open, _ = await self._standing(name)
            what += f" ({'; '.join(still_open) or 'no open obligations'})"
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
                "no setting given: expected start_price, minimum_price, rounds_expected or pricing"
            )
        then = self._overlay.with_settings(asked.name, values)
        config = then.config(self._config.path)
        steps = [step for step in steps_between(self._config, config) if step.name == asked.name]
        self._take(then, config)
        late = ""
        for step in steps:
            late += await self._apply(step.name, ACTS[step.kind])
        what = "; ".join(step.text for step in steps) or f"resource {asked.name}: nothing changed"
        return self._done("resource set", asked.name, f"{what}{late}", who)

    # -- keys and agents -----------------------------------------------------------------------------------------

    async def _renew(self, asked: RenewKeys, who: str) -> MarketChanged:
        self._check_there(asked.name)
        address = self._config.address(asked.name)
        now = self._clock.now()
        made = self._keys.renew(address, now, new_key=asked.new_key, lifetime=asked.days * DAY)
        late = await self._apply(asked.name, "update")
        await self.tell_bank()
        until = iso(certificates.valid_until(made))
        what = f"{address} signs with certificate {certificates.serial_text(made)}, valid until {until}{late}"
        return self._done("keys renew", asked.name, what, who, "renew")

    async def _restart(self, name: str, who: str) -> MarketChanged:
        self._check_there(name)
        what = f"restarted {name}"
        try:
            await self._agents.call(GroupCall("restart", name))
        except TransportError as error:
            self._agents.kill(name)
            what += f", with all agents of its process ({error})"
        what += _unless_up(await self._agents.settled(name))
        return self._done("restart", name, what, who, "restart")

    # -- the file ------------------------------------------------------------------------------------------------

    async def _reload(self, who: str, *, dry_run: bool, forced: bool) -> MarketChanged:
        path = self._config.path
        text = text_of(path)
        then = self._overlay.taken(text, path)
        config = then.config(path)
        steps = (*steps_between(self._config, config), *waiting_steps(then.frame, text, path))
        removed = [step.name for step in steps if step.kind is StepKind.REMOVE]
        standings = {name: await self._standing(name) for name in removed}
        lines = [_line(step, standings.get(step.name, ([], []))[0]) for step in steps]
        comers = [step.name for step in steps if step.kind is StepKind.ADD]
        lines += [line for name in comers if config.roles()[name] is Role.USER for line in _unmapped(config, name)]
        lines += [ChangeLine("stands", "", f"{each}, regardless of the file") for each in then.standing]
        if dry_run:
            return MarketChanged(tuple(lines), done=False)
        for name, (still_open, _) in standings.items():
            self._check_closed(name, still_open, forced=forced)
        roles = self._config.roles()
        self._record("reload", "", f"loaded the file {path}", who)
        self._take(then, config)
        for name, (still_open, told) in standings.items():
            await self._end(name, roles[name], who, [*still_open, *told], forced=forced)
        for name in comers:
            with contextlib.suppress(TransportError):  # the server gets the account at its next start
                await self._admit(name, config)
        await self.tell_bank()
        for step in steps:
            if step.kind in (StepKind.REMOVE, StepKind.LATER):
                continue
            if step.kind is StepKind.ADD:
                late = _unless_up(await self._agents.launch(step.name))
            else:
                late = await self._apply(step.name, ACTS[step.kind])
            self._record("reload", step.name, f"{step.text}{late}", who)
            if late:
                lines.append(ChangeLine("warning", step.name, f"warning: {step.text}{late}"))
        return MarketChanged(tuple(lines))

    # -- common --------------------------------------------------------------------------------------------------

    def _check_there(self, name: str, role: Role | None = None) -> None:
        roles = self._config.agents()
        if name in roles and role in (None, roles[name]):
            return
        known = [each for each, its in roles.items() if role in (None, its)]
        noun = role or "agent"
        raise market_refused(
            MarketRefusalCode.UNKNOWN_AGENT, f"the market has no {noun} {name}{nearest_name(name, known)}"
        )

    @property
    def _config(self) -> SwarmConfig:
        return self._agents.config

    def _take(self, then: Overlay, config: SwarmConfig) -> None:
        save_overlay(self._state, then)
        self._overlay = then
        self._agents.config = config

    async def _apply(self, name: str, act: Act) -> str:
        """Let an agent apply the current configuration; return a note if that happens later, or a restart fails."""
        try:
            await self._agents.call(GroupCall(act, name))
        except TransportError as error:
            return f"; it applies this after its next start ({error})"
        if act == "update":
            return ""
        return _unless_up(await self._agents.settled(name))

    async def tell_bank(self) -> None:
        """Let the banks open accounts and store certificates; a bank that is down does it at its start."""
        for name in self._config.bank_names if self._config.own_agents else ():  # a site's bank is elsewhere
            await self._apply(name, "update")

    def _record(self, verb: str, name: str, what: str, who: str) -> None:
        add_line(self._state, self._clock.now(), who, verb, name, what)
        record(name or "supervisor", "change", f"{what} (asked by {who})", verb=verb, who=who)

    def _done(self, verb: str, name: str, what: str, who: str, kind: str = "update") -> MarketChanged:
        self._record(verb, name, what, who)
        return MarketChanged((ChangeLine(kind, name, what),))


def _unless_up(status: AgentStatus) -> str:
    """Return a note on the state of an agent that has not started, else an empty text."""
    return "" if status.state in UP_STATES else f"; it is {status.state}: {status.detail or 'no answer yet'}"


def _line(step: Step, still_open: Sequence[str]) -> ChangeLine:
    text = f"{step.text} ({'; '.join(still_open)}: needs --force)" if still_open else step.text
    return ChangeLine(step.kind.value, step.name, text)


def _unmapped(config: SwarmConfig, name: str) -> list[ChangeLine]:
    """Warn of resources that will refuse a user because it has no local account there."""
    refusing = config.refusing(name)
    if not refusing:
        return []
    more = f" and {len(refusing) - REFUSING_NAMED} more" if len(refusing) > REFUSING_NAMED else ""
    what = f"warning: {', '.join(refusing[:REFUSING_NAMED])}{more} will refuse {name} (no_account)"
    text = f"{what}: [accounts] has no local account for {name}; add one and run `ramp up` again"
    return [ChangeLine("warning", name, text)]


class SupervisorControl(ControlSocket):
    """Serves the supervisor's control socket; `changing` applies the changes, `status` describes the market."""

    def __init__(self, changing: Changing, domain: str, state: StateFolder, status: Callable[[], SwarmStatus]) -> None:
        super().__init__(f"the supervisor of {domain}", state.supervisor_socket)
        self._changing = changing
        self._status = status

    async def answer(self, request: Request, reader: asyncio.StreamReader, who: str) -> AsyncIterator[Event]:
        if isinstance(request, ShowStatus):
            yield self._status()
        elif isinstance(request, _OWNED):
            yield await self._changing.perform(request, who)
