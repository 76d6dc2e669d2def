"""The picture of a market at a terminal: it fits the width and height, the newest kept first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from rich.console import Console, ConsoleOptions, RenderResult
from rich.layout import Layout
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ramp.cli.views.output import bar_text, moment_text
from ramp.cli.watching.stream import AGENTS, AUCTIONS, KINDS, LOG, MACHINES, Board, machine_figures
from ramp.control.auction_story import AuctionStory
from ramp.control.status import AgentStatus, Health, headline, state_text
from ramp.model.instant import Instant, with_local_times
from ramp.model.money import credits_text
from ramp.protocol.outcome import RequestStatus
from ramp.runtime.clock import SystemClock

WIDE: Final = 110
"""Minimum columns of a terminal for agents and machines side by side."""

ID_SHOWN: Final = 13
"""Characters of a request's id; as the beginning of one every verb takes it."""

HEADINGS: Final = 2
"""Lines that a part has besides its rows: title and headings of columns."""

GOOD, BAD, QUIET = "green", "red", "dim"
STYLES: Final = {RequestStatus.COMMITTED: GOOD, RequestStatus.QUOTED: GOOD, RequestStatus.FAILED: BAD}


@dataclass(frozen=True, slots=True)
class Part:
    """A table of the picture: the rows that fit, of which the last counts the others.

    Attributes:
        title: above it.
        columns: the headings.
        rows: the newest first.
        prose: the column that has the width that the others leave.
        right: columns of numbers.
        empty: stands in its place without rows.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str | Text]]
    prose: str
    right: Sequence[str] = ()
    empty: str = "none"

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        title = Text(self.title, style="bold cyan")
        if not self.rows:
            yield from (title, Text(self.empty, style=QUIET))
            return
        table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), expand=True, title=title, title_justify="left")
        for column in self.columns:
            table.add_column(
                column,
                justify="right" if column in self.right else "left",
                no_wrap=True,
                overflow="ellipsis",
                header_style=QUIET,
                min_width=len(column),
                ratio=1 if column == self.prose else None,
            )
        room = (options.height or options.max_height) - HEADINGS
        shown = self.rows if len(self.rows) <= room else self.rows[: max(room - 1, 1)]
        for row in shown:
            table.add_row(*row)
        if len(self.rows) > len(shown) and room > 1:
            table.add_row(Text(f"and {len(self.rows) - len(shown)} more", style=QUIET))
        yield table


class Screen:
    """A board as it is at the moment of drawing."""

    def __init__(self, board: Board, only: Collection[str] = KINDS, now: Instant | None = None) -> None:
        self._board = board
        self._only = [kind for kind in KINDS if kind in only]
        self._now = now

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        wide = options.max_width >= WIDE and AGENTS in self._only and MACHINES in self._only
        groups = [[kind] for kind in self._only]
        if wide:
            groups = [[MACHINES, AGENTS] if kind == [AGENTS] else kind for kind in groups if kind != [MACHINES]]
        make = {AUCTIONS: self._auctions, AGENTS: self._agents, MACHINES: self._machines, LOG: self._log}
        parts = [[make[kind]() for kind in group] for group in groups]
        needs = [HEADINGS + max(max(len(part.rows), 1) for part in group) for group in parts]
        room = (options.height or options.max_height) - 1
        regions = [Layout(self._head(), size=1)]
        for group, need in zip(parts, needs, strict=True):
            fits = need < room // len(parts) or sum(needs) <= room
            regions.append(Layout(size=need if fits else None))  # those that do not share what is left
            regions[-1].split_row(*(Layout(Padding(part, (0, 2 if wide else 0, 0, 0))) for part in group))
        picture = Layout()
        picture.split_column(*regions)
        yield picture

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

    def _auctions(self) -> Part:
        rows = [
            row
            for (user, request_id), story in reversed(self._board.auctions.items())
            for row in _auction_rows(user, request_id, story)
        ]
        columns = ("Request", "User", "Unit", "Asked", "Offers", "Leader", "Best", "Stage")
        right = ("Unit", "Asked", "Offers", "Best")
        return Part("Auctions (prices: credits/core-hour)", columns, rows, "Stage", right, "no auction yet")

    def _agents(self) -> Part:
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
        return Part("Agents", ("Agent", "Role", "State", "Restarts"), [*sums, *told], "State", ("Restarts",))

    def _machines(self) -> Part:
        columns = ("Machine", "Cores", "Taken", "Jobs", "Waiting", "Held", "Sold", "Start price", "Next hour")
        rows: list[Sequence[str | Text]] = []
        for name, machine in sorted(self._board.answered.items()):
            figures = machine_figures(machine)
            row = [name, str(machine.cores), f"{machine.load * 100:.0f} %"]
            row += [str(figures[key]) for key in ("running", "queued", "held", "sold")]
            row.append("" if machine.start_price is None else str(machine.start_price))
            rows.append([*row, bar_text([each.load for each in machine.projected_load][:12])])
        title = "Machines (prices in credits/core-hour)"
        return Part(title, columns, rows, "Machine", columns[1:8], "no answer yet")

    def _log(self) -> Part:
        lines = reversed(self._board.log)
        rows = [(moment_text(each.at)[11:19], each.who, each.event, with_local_times(each.text)) for each in lines]
        return Part("Log", ("When", "Who", "Event", "What"), rows, "What", empty="nothing yet")


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
