"""`ramp watch`: events of the running market, drawn at a terminal, otherwise one line an event, text or object."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import sys
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import click

from ramp.cli.options import RealNumber, example, state_options
from ramp.cli.views.output import amount_text, console, count_text, duration_text, moment_text, price_text, wants_json
from ramp.client.access import find_market, running, status
from ramp.client.asyncio_market import AsyncMarket, EveryUser
from ramp.client.machine_state import MachineState
from ramp.control.auction_story import AuctionStory
from ramp.control.events import Event, Submitted, request_of
from ramp.control.status import AgentStatus, SwarmStatus, state_text
from ramp.errors import RampError
from ramp.model.instant import SECOND, Instant, iso, with_local_times
from ramp.model.money import credits_decimal
from ramp.protocol import progress as pr
from ramp.protocol.outcome import QUOTED, RequestOutcome
from ramp.protocol.progress import RequestEnded
from ramp.runtime.clock import SystemClock
from ramp.runtime.logs import LOOK_S, MarketEvent, follow_events
from ramp.runtime.state_folder import StateFolder

AGENTS_S: Final = 1.0
"""Pause between two looks at the agents, in seconds."""

MACHINES_S: Final = 5.0
"""Pause between two questions to the machines, in seconds."""


AUCTIONS, AGENTS, MACHINES, LOG = KINDS = ("auctions", "agents", "machines", "log")
"""Kinds of events for `--only`."""

AUCTIONS_MAX: Final = 50
"""Requests that a picture keeps; those that have ended go first."""

EVENTS_MAX: Final = 200
"""Lines of the log that a picture keeps."""

REASONS_SHOWN: Final = 3
"""Reasons of refusals that a line of a round names."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line: `text` is for people, `fields` for programs; `who` is an agent, or empty for the market."""

    at: Instant
    kind: str
    who: str
    event: str
    text: str
    fields: Mapping[str, Any] = field(default_factory=dict)

    @property
    def plain(self) -> dict[str, Any]:
        """Convert to JSON types: times ISO 8601, amounts in credits, durations in seconds."""
        told = {"time": iso(self.at), "kind": self.kind, "who": self.who, "event": self.event, "text": self.text}
        return {**told, **self.fields}

    @property
    def sentence(self) -> str:
        told = moment_text(self.at), self.who, self.event, with_local_times(self.text)
        return "  ".join(each for each in told if each)


def line_of(event: MarketEvent) -> Line:
    """Return the line of an event of the log."""
    return Line(event.at, LOG, event.agent, event.event, event.text, {"fields": dict(event.fields)})


class Lines:
    """Make lines of events; of agents and machines only of changes, of auctions only what watchers need."""

    def __init__(self, tell: Callable[[Line], None]) -> None:
        self._tell = tell
        self._agents: dict[str, AgentStatus] = {}
        self._runs: bool | None = None
        self._machines: dict[str, tuple[int, ...]] = {}

    def auction(self, at: Instant, user: str, event: Event) -> None:
        told = _auction(event)
        if told is not None:
            self._tell(Line(at, AUCTIONS, user, *told))

    def logged(self, event: MarketEvent) -> None:
        self._tell(line_of(event))

    def agents(self, at: Instant, found: SwarmStatus | None) -> None:
        runs = found is not None
        if runs != self._runs:
            word = "up" if runs else "down"
            self._tell(Line(at, AGENTS, "", word, "the market runs" if runs else "no market runs"))
        self._runs = runs
        agents = {each.name: each for each in found.agents} if found is not None else {}
        for name, agent in agents.items():
            before = self._agents.get(name)
            if before is None or _standing(agent) != _standing(before):
                fields = {"role": agent.role, "up": agent.is_up, "restarts": agent.restarts}
                text = f"{agent.role}, {count_text(agent.restarts, 'restart')}"
                self._tell(Line(at, AGENTS, name, state_text(agent), text, fields))
        for name in self._agents:
            if runs and name not in agents:
                self._tell(Line(at, AGENTS, name, "removed", ""))
        self._agents = agents

    def machines(self, at: Instant, found: Mapping[str, MachineState]) -> None:
        for name, machine in found.items():
            figures = machine_figures(machine)
            standing = tuple(figures.values())
            if self._machines.get(name) != standing:
                self._machines[name] = standing
                text = (
                    f"{machine.cores_busy} of {count_text(machine.cores, 'core')} taken, {figures['running']} running, "
                    f"{figures['queued']} waiting, {figures['held']} held, {figures['sold']} sold"
                )
                text += "" if machine.start_price is None else f", start price {price_text(machine.start_price)}"
                self._tell(Line(at, MACHINES, name, "machine", text, {**figures, "start_price": machine.start_price}))


@dataclass(slots=True)
class Board:
    """The last events of a market, for a picture.

    Attributes:
        auctions: by user and request, the latest change at the end.
        answered: machines by the resource's local name.
        log: the latest event at the end.
    """

    status: SwarmStatus | None = None
    auctions: OrderedDict[tuple[str, str], AuctionStory] = field(default_factory=OrderedDict)
    answered: Mapping[str, MachineState] = field(default_factory=dict)
    log: deque[Line] = field(default_factory=lambda: deque(maxlen=EVENTS_MAX))

    def auction(self, at: Instant, user: str, event: Event) -> None:
        request_id = request_of(event)
        if not request_id:
            return
        key = (user, request_id)
        self.auctions.setdefault(key, AuctionStory(request_id)).take(event, at)
        self.auctions.move_to_end(key)
        while len(self.auctions) > AUCTIONS_MAX:
            ended = (each for each, story in self.auctions.items() if story.outcome is not None)
            del self.auctions[next(ended, next(iter(self.auctions)))]

    def agents(self, _at: Instant, found: SwarmStatus | None) -> None:
        self.status = found

    def machines(self, _at: Instant, found: Mapping[str, MachineState]) -> None:
        self.answered = found

    def logged(self, event: MarketEvent) -> None:
        self.log.append(line_of(event))


async def watch_market(state: StateFolder, watcher: Lines | Board) -> None:
    """Report all events of a market until cancelled; the market may stop and start meanwhile."""
    now = SystemClock().now

    class Users(EveryUser):
        def take(self, user: str, event: Event) -> None:
            watcher.auction(now(), user, event)

    users = Users(state)

    async def agents() -> None:
        while True:
            try:
                found = await asyncio.to_thread(status, state)
            except RampError:
                found = None
            watcher.agents(now(), found)
            users.keep(found.names("user") if found is not None else ())
            await asyncio.sleep(AGENTS_S)

    async def machines() -> None:
        while True:
            try:
                market = AsyncMarket(await asyncio.to_thread(find_market, state, None))
                found = await market.resources(machines=True)
                watcher.machines(now(), {each.name: each.machine for each in found if each.machine})
            except RampError:  # the agents' line shows the problem
                pass
            await asyncio.sleep(MACHINES_S)

    async def events() -> None:
        for event in follow_events(state.events, wait=lambda _: None):
            if event is None:
                await asyncio.sleep(LOOK_S)
            else:
                watcher.logged(event)

    try:
        await asyncio.gather(agents(), machines(), events())
    finally:
        await users.end()


def machine_figures(machine: MachineState) -> dict[str, int]:
    """Return the displayed figures of a machine."""
    return {
        "cores": machine.cores,
        "cores_busy": machine.cores_busy,
        "running": machine.running_total,
        "queued": machine.queued_total,
        "held": sum(not slot.firm for slot in machine.reservations),
        "sold": sum(slot.firm for slot in machine.reservations),
    }


def _standing(agent: AgentStatus) -> tuple[object, ...]:
    return agent.state, agent.detail, agent.restarts, agent.draining, agent.is_up


def _auction(event: Event) -> tuple[str, str, dict[str, Any]] | None:
    match event:
        case Submitted(request_id=request_id):
            return "submitted", request_id, {"request_id": request_id}
        case pr.RoundOpened():
            asked = dict(event.asked)
            fields: dict[str, Any] = {
                "request_id": event.request_id,
                "round": event.round_number,
                "asked": _units(asked),
            }
            fields |= {"resources": event.resources, "best_offer": event.best_offer}
            called = count_text(event.resources, "resource")
            text = f"{event.request_id} round {event.round_number}: {_prices(asked)} to {called}"
            return "round_opened", text, fields
        case pr.RoundClosed():
            return "round_closed", *_round(event)
        case pr.ApprovalAsked():
            costs = sum(event.costs)
            text = f"{event.request_id} waits for its owner's approval of {amount_text(costs)}"
            return "approval_asked", text, {"request_id": event.request_id, "cost": credits_decimal(costs)}
        case pr.UnitAdvanced():
            fields = {"request_id": event.request_id, "unit": event.unit, "resource": event.resource}
            fields |= {"stage": event.stage, "detail": event.detail}
            detail = f": {event.detail}" if event.detail else ""
            return "unit", f"{event.request_id} unit {event.unit} at {event.resource} {event.stage}{detail}", fields
        case pr.UnitMoved():
            fields = {"request_id": event.request_id, "agreement_id": event.agreement_id, "resource": event.resource}
            fields |= {"placement": event.placement, "moved_at": iso(event.moved_at)}
            return "moved", f"{event.agreement_id} was moved by {event.resource} to {event.placement}", fields
        case RequestEnded(outcome=outcome):
            return "ended", *_outcome(outcome)
        case pr.ChangeEnded(outcome=changed) if changed.code != QUOTED:
            fields = {"agreement_id": changed.agreement_id, "done": changed.done, "code": changed.code}
            fields["refund"] = credits_decimal(changed.refund)
            if not changed.ends:
                fields |= {"amendment": changed.number, "cores": changed.cores}
                fields["charge"] = credits_decimal(changed.charge)
            return changed.kind, changed.sentence, fields
        case _:
            return None


def _round(event: pr.RoundClosed) -> tuple[str, dict[str, Any]]:
    record = event.record
    reasons = Counter(each.refusal.code.value for each in record.refusals)
    leaders: dict[str, dict[str, Any]] = {
        str(unit): {"resource": bid.resource, "price": bid.cpu_hour_cost} for unit, bid in sorted(event.best)
    }
    named = ", ".join(f"{number} {code}" for code, number in reasons.most_common(REASONS_SHOWN))
    parts = [
        count_text(len(record.offers), "offer"),
        count_text(len(record.refusals), "refusal") + (f" ({named})" if named else ""),
    ]
    parts += [
        f"unit {unit}: {each['resource']} leads with {price_text(each['price'])}" for unit, each in leaders.items()
    ]
    fields = {
        "request_id": event.request_id,
        "round": record.round_number,
        "asked": _units(dict(record.asked)),
        "offers": len(record.offers),
        "refusals": dict(reasons),
        "leaders": leaders,
        "seconds": record.duration / SECOND,
        "best_offer": record.best_offer,
    }
    text = f"{event.request_id} round {record.round_number} after {duration_text(record.duration)}: {'; '.join(parts)}"
    return text, fields


def _outcome(outcome: RequestOutcome) -> tuple[str, dict[str, Any]]:
    sellers = [each.offer.resource for each in outcome.units]
    fields = {
        "request_id": outcome.request_id,
        "status": outcome.status.value,
        "reason": outcome.reason,
        "cost": credits_decimal(outcome.cost),
        "sellers": sellers,
        "rounds": len(outcome.rounds),
        "seconds": outcome.duration / SECOND,
    }
    how = f"{outcome.status.value} after {count_text(len(outcome.rounds), 'round')}, {duration_text(outcome.duration)}"
    told = [f"{outcome.request_id} {how}", f"from {', '.join(sellers)}" if sellers else "", outcome.reason]
    told += [amount_text(outcome.cost)] if outcome.cost else []
    return ", ".join(each for each in told if each), fields


def _units(prices: Mapping[int, int]) -> dict[str, int]:
    return {str(unit): price for unit, price in sorted(prices.items())}


def _prices(prices: Mapping[int, int]) -> str:
    shown: Sequence[str] = [f"unit {unit} for {price_text(price)}" for unit, price in sorted(prices.items())]
    return ", ".join(shown)


FRAMES_A_SECOND: Final = 4
"""How often the screen is drawn anew."""


@click.command(
    epilog=example(
        "ramp watch",
        "ramp watch --only auctions --only machines --for 60",
        "ramp watch --json --only auctions > auctions.jsonl",
        exits="0 ended by Ctrl-C or --for; 1 no market is running; 2 bad input",
    )
)
@click.option("--only", type=click.Choice(KINDS), multiple=True, help="Kind of event to show; repeatable.")
@click.option("--for", "seconds", type=RealNumber(min=0, min_open=True), metavar="SECONDS", help="End after this time.")
@state_options
def watch(only: tuple[str, ...], seconds: float | None, state: StateFolder) -> None:
    """Watch the market: auctions with rounds and leaders, machines, agents, and the log of its events.

    Shows the requests of all users, as the market's owner may. A terminal shows a live picture until Ctrl-C; elsewhere
    each event is a line, with --json an object. For earlier auctions and events see `ramp status` and `ramp events`.
    Lines of machines and agents show changes.
    """
    running(state)
    kinds = only or KINDS
    work = _draw(state, kinds) if sys.stdout.isatty() and not wants_json() else _print(state, kinds)
    asyncio.run(_until_ended(work, seconds))


async def _print(state: StateFolder, kinds: Collection[str]) -> None:
    lines: asyncio.Queue[Line] = asyncio.Queue()  # so that an output that is closed ends the watch

    async def write() -> None:
        while True:
            line = await lines.get()
            if line.kind in kinds:
                click.echo(json.dumps(line.plain, ensure_ascii=False) if wants_json() else line.sentence)

    await asyncio.gather(watch_market(state, Lines(lines.put_nowait)), write())


async def _draw(state: StateFolder, kinds: Collection[str]) -> None:
    from rich.live import Live

    from ramp.cli.watching.screen import Screen

    board = Board()

    async def draw() -> None:
        while True:
            live.refresh()
            await asyncio.sleep(1 / FRAMES_A_SECOND)

    with Live(Screen(board, kinds), console=console(), screen=True, auto_refresh=False) as live:
        await asyncio.gather(watch_market(state, board), draw())


async def _until_ended(work: Coroutine[None, None, None], seconds: float | None) -> None:
    task = asyncio.ensure_future(work)
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    with contextlib.suppress(asyncio.CancelledError, TimeoutError):
        async with asyncio.timeout(seconds):
            await task
