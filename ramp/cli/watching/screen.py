"""The events of a market, and their picture at a terminal: it fits the width and height, the newest kept first."""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from ramp.cli.views.output import bar_text, moment_text
from ramp.cli.watching.stream import (
    AGENTS,
    AUCTIONS,
    KINDS,
    LOG,
    MACHINES,
    AgentsSeen,
    AuctionHeard,
    EventLogged,
    Line,
    MachinesSeen,
    Seen,
    lines_of,
    machine_figures,
)
from ramp.client.machine_state import MachineState
from ramp.control.auction_story import AuctionStory
from ramp.control.events import request_of
from ramp.control.status import AgentStatus, Health, SwarmStatus, headline, state_text
from ramp.model.instant import Instant
from ramp.model.money import credits_text
from ramp.protocol.outcome import RequestStatus
from ramp.runtime.clock import SystemClock

WIDE: Final = 110
"""Minimum columns of a terminal for agents and machines side by side."""

LEAST_ROWS: Final = 2
"""Rows that each part has at least, however low the terminal is."""

ID_SHOWN: Final = 13
"""Characters of a request's id; as the beginning of one every verb takes it."""

HEADINGS: Final = 2
"""Lines that a part has besides its rows: title and headings of columns."""

GOOD, BAD, QUIET = "green", "red", "dim"
STYLES: Final = {RequestStatus.COMMITTED: GOOD, RequestStatus.QUOTED: GOOD, RequestStatus.FAILED: BAD}

AUCTIONS_MAX: Final = 50
"""Requests that are kept; those that have ended go first."""

EVENTS_MAX: Final = 200
"""Lines of the log that are kept."""


@dataclass(slots=True)
class Board:
    """The last events of a market.

    Attributes:
        auctions: by user and request, the latest change at the end.
        machines: by the resource's local name.
        log: the latest event at the end.
    """

    status: SwarmStatus | None = None
    auctions: OrderedDict[tuple[str, str], AuctionStory] = field(default_factory=OrderedDict)
    machines: Mapping[str, MachineState] = field(default_factory=dict)
    log: deque[Line] = field(default_factory=lambda: deque(maxlen=EVENTS_MAX))

    def take(self, seen: Seen) -> None:
        match seen:
            case AuctionHeard():
                self._hear(seen)
            case AgentsSeen(status=status):
                self.status = status
            case MachinesSeen(machines=machines):
                self.machines = machines
            case EventLogged():
                self.log.extend(lines_of(seen))

    def _hear(self, heard: AuctionHeard) -> None:
        request_id = request_of(heard.event)
        if not request_id:
            return
        key = (heard.user, request_id)
        story = self.auctions.setdefault(key, AuctionStory(request_id))
        story.take(heard.event, heard.at)
        self.auctions.move_to_end(key)
        while len(self.auctions) > AUCTIONS_MAX:
            ended = (each for each, story in self.auctions.items() if story.outcome is not None)
            del self.auctions[next(ended, next(iter(self.auctions)))]


class Screen:
    """A board as it is at the moment of drawing."""

    def __init__(self, board: Board, only: Collection[str] = KINDS, now: Instant | None = None) -> None:
        self._board = board
        self._only = [kind for kind in KINDS if kind in only]
        self._now = now

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        height = options.height or options.max_height or 24
        wide = options.max_width >= WIDE and AGENTS in self._only and MACHINES in self._only
        parts: list[RenderableType] = [self._head()]
        stacked = len(self._only) - (1 if wide else 0)
        room = max(height - 1 - stacked * HEADINGS, stacked * LEAST_ROWS)
        rows = self._shares(room, wide=wide)
        drawn = {
            kind: self._part(kind, rows[kind], options.max_width // 2 if wide else options.max_width)
            for kind in self._only
        }
        if wide:
            beside = Table.grid(expand=True, padding=(0, 2, 0, 0))
            beside.add_column(ratio=1)
            beside.add_column(ratio=1)
            beside.add_row(drawn[MACHINES], drawn[AGENTS])
        for kind in self._only:
            if not wide or kind not in (AGENTS, MACHINES):
                parts.append(drawn[kind])
            elif kind == AGENTS:
                parts.append(beside)
        yield Group(*parts)

    def _shares(self, room: int, *, wide: bool) -> dict[str, int]:
        """Share the rows of the screen: each part gets what it needs, or an equal share."""
        needs = {
            AUCTIONS: sum(max(len(story.units), 1) for story in self._board.auctions.values()),
            AGENTS: len(self._agent_rows()),
            MACHINES: len(self._board.machines),
            LOG: len(self._board.log),
        }
        if wide:
            needs[AGENTS] = needs[MACHINES] = max(needs[AGENTS], needs[MACHINES])
        shares = dict.fromkeys(self._only, LEAST_ROWS)
        counted = [kind for kind in self._only if not (wide and kind == MACHINES)]
        left = room - LEAST_ROWS * len(counted)
        while left > 0 and (wanting := [kind for kind in counted if shares[kind] < needs[kind]]):
            for kind in wanting[:left]:
                shares[kind] += 1
            left -= len(wanting)
        if wide:
            shares[MACHINES] = shares[AGENTS]
        return shares

    def _head(self) -> Text:
        text = Text(no_wrap=True, overflow="ellipsis")
        text.append("RAMP market", style="bold")
        text.append(f"  {moment_text(SystemClock().now() if self._now is None else self._now)}  ")
        status = self._board.status
        if status is None:
            text.append("no market runs", style=BAD)
            return text
        found = headline(status)
        text.append(str(found.health), style=GOOD if found.health is Health.UP else BAD)
        text.append(f": {found.why}" if found.why else f"  {status.server.text}")
        return text

    def _part(self, kind: str, rows: int, width: int) -> RenderableType:
        match kind:
            case "auctions":
                return self._auctions(rows)
            case "agents":
                return self._agents(rows)
            case "machines":
                return self._machines(rows, bars=width >= 60)
            case _:
                return self._log(rows)

    def _auctions(self, rows: int) -> RenderableType:
        table = _table(
            "Auctions (prices: credits/core-hour)",
            ("Request", "User", "Unit", "Asked", "Offers", "Leader", "Best", "Stage"),
            right=("Unit", "Asked", "Offers", "Best"),
            prose="Stage",
        )
        found = [
            row
            for (user, request_id), story in reversed(self._board.auctions.items())
            for row in _auction_rows(user, request_id, story)
        ]
        return _filled(table, found, rows, "no auction yet")

    def _agent_rows(self) -> list[Sequence[str | Text]]:
        agents = self._board.status.agents if self._board.status is not None else ()
        told: list[Sequence[str | Text]] = []
        well: dict[str, list[AgentStatus]] = {}
        for agent in agents:
            well.setdefault(agent.role, []).append(agent)
            if not agent.is_up or agent.restarts:
                style = QUIET if agent.is_up else BAD
                told.append((agent.name, agent.role, Text(state_text(agent), style=style), str(agent.restarts)))
        sums: list[Sequence[str | Text]] = []
        for role, each in well.items():
            states = Counter(agent.state for agent in each)
            text = ", ".join(f"{number} {state}" for state, number in states.most_common())
            style = GOOD if all(agent.is_up for agent in each) else BAD
            sums.append((f"all {len(each)}", role, Text(text, style=style), str(sum(a.restarts for a in each))))
        return [*sums, *told]

    def _agents(self, rows: int) -> RenderableType:
        table = _table("Agents", ("Agent", "Role", "State", "Restarts"), right=("Restarts",), prose="State")
        return _filled(table, self._agent_rows(), rows, "none")

    def _machines(self, rows: int, *, bars: bool) -> RenderableType:
        columns = ["Machine", "Cores", "Taken", "Jobs", "Waiting", "Held", "Sold", "Start price"]
        columns += ["Next hour"] if bars else []
        table = _table("Machines (prices in credits/core-hour)", columns, right=columns[1:8], prose="Machine")
        found: list[Sequence[str | Text]] = []
        for name, machine in sorted(self._board.machines.items()):
            figures = machine_figures(machine)
            row = [name, str(machine.cores), f"{machine.load * 100:.0f} %"]
            row += [str(figures[key]) for key in ("running", "queued", "held", "sold")]
            row.append("" if machine.start_price is None else str(machine.start_price))
            row += [bar_text([each.load for each in machine.projected_load][:12])] if bars else []
            found.append(row)
        return _filled(table, found, rows, "no answer yet")

    def _log(self, rows: int) -> RenderableType:
        table = _table("Log", ("When (UTC)", "Who", "Event", "What"), prose="What")
        return _filled(table, [_log_row(line) for line in reversed(self._board.log)], rows, "nothing yet")


def _log_row(line: Line) -> Sequence[str]:
    return moment_text(line.at)[11:19], line.who, line.event, line.text


def _auction_rows(user: str, request_id: str, story: AuctionStory) -> list[Sequence[str | Text]]:
    outcome = story.outcome
    style = STYLES.get(outcome.status, "") if outcome is not None else "yellow"
    stage = story.stage
    if outcome is not None and outcome.cost:
        stage += f" {credits_text(outcome.cost)} credits"
    last = story.rounds[max(story.rounds)] if story.rounds else None
    rows: list[Sequence[str | Text]] = []
    for unit in story.units or (0,):
        leader = story.leader(unit)
        asked = "" if last is None or unit not in last.asked else str(last.asked[unit])
        offers = "" if last is None or last.record is None else str(sum(o.unit == unit for o in last.record.offers))
        first = not rows
        rows.append(
            (
                request_id[:ID_SHOWN] if first else "",
                user if first else "",
                str(unit or ""),
                asked,
                offers,
                "" if leader is None else leader.resource.partition("@")[0],
                "" if leader is None else str(leader.cpu_hour_cost),
                Text(stage, style=style) if first else "",
            )
        )
    return rows


def _table(title: str, columns: Sequence[str], *, right: Sequence[str] = (), prose: str) -> Table:
    table = Table(
        box=None,
        pad_edge=False,
        padding=(0, 1, 0, 0),
        expand=True,
        title=title,
        title_justify="left",
        title_style="bold cyan",
    )
    for column in columns:
        table.add_column(
            column,
            justify="right" if column in right else "left",
            no_wrap=True,
            overflow="ellipsis",
            header_style=QUIET,
            min_width=len(column),
            ratio=1 if column == prose else None,  # it has the width that the others leave
        )
    return table


def _filled(table: Table, rows: Sequence[Sequence[str | Text]], room: int, empty: str) -> RenderableType:
    """Fill a table with the rows that fit; the last row counts the others."""
    if not rows:
        return Group(Text(str(table.title), style="bold cyan"), Text(empty, style=QUIET))
    shown = rows if len(rows) <= room else rows[: max(room - 1, 1)]
    for row in shown:
        table.add_row(*row)
    if len(rows) > len(shown) and room > 1:
        table.add_row(Text(f"and {len(rows) - len(shown)} more", style=QUIET))
    return table
