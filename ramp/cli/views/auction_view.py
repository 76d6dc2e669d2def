"""An auction as it goes: a table that grows on a terminal, plain lines in a pipe."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Final, Protocol, Self

import click

from ramp.cli.views.outcome_report import ShortName, reasons_text
from ramp.cli.views.output import count_text, duration_text, new_table, price_text
from ramp.cli.views.visible import console
from ramp.control.events import Event, Refused, RequestEnded, Submitted
from ramp.model.contents import Bid
from ramp.protocol.outcome import RoundRecord
from ramp.protocol.progress import RoundClosed, RoundOpened, UnitAdvanced

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.live import Live

REFRESHES_PER_SECOND: Final = 10

NARROW: Final = 90
"""On a terminal of fewer columns the table draws together, and refusals are only counted: their reasons would be broken
in the middle of words."""


class AuctionView(Protocol):
    """Shows an auction's progress; a context manager."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def show(self, event: Event) -> None:
        """Take a progress event of the control channel."""
        ...

    def pause(self) -> None:
        """Hold still, because the owner is asked something."""
        ...


@dataclass(slots=True)
class UnitRow:
    """One unit in one round, as both views show it."""

    round_name: str
    unit: int
    asked: int
    offers: str = ""
    best: str = ""
    refusals: str = ""
    refused_by: str = ""
    took: str = ""

    def refused(self, narrow: bool) -> str:
        """The refusals by reason, or only their number where there is no room for words."""
        return self.refused_by if narrow else self.refusals


@dataclass(slots=True)
class AuctionStory:
    """The events of an auction: a row for each round and unit, and the last stage of each unit."""

    short: ShortName
    rows: list[UnitRow] = field(default_factory=list)
    stages: dict[int, str] = field(default_factory=dict)
    note: str = ""

    def take(self, event: Event) -> list[str]:
        """Take an event; return its lines for a pipe."""
        match event:
            case Submitted(request_id):
                self.note = "asking the directory who sells"
                return [f"request {request_id}"]
            case RoundOpened():
                return self._opened(event)
            case RoundClosed():
                return self._closed(event.record, dict(event.best))
            case UnitAdvanced():
                text = f"{self.short(event.resource)}: {event.stage}"
                text += f" ({event.detail})" if event.detail else ""
                self.stages[event.unit] = text
                self.note = "buying"
                return [f"unit {event.unit}: {text}"]
            case RequestEnded() | Refused():
                self.note = ""
        return []

    def _opened(self, event: RoundOpened) -> list[str]:
        name = _round_name(event.round_number, event.best_offer)
        self.note = f"round {name}: waiting for {count_text(event.resources, 'resource')}"
        self.rows += [UnitRow(name, unit, price) for unit, price in event.asked]
        return []

    def _closed(self, record: RoundRecord, best: Mapping[int, Bid]) -> list[str]:
        name = _round_name(record.round_number, record.best_offer)
        mine = {row.unit: row for row in self.rows if row.round_name == name}
        lines = []
        for unit, price in record.asked:
            row = mine.get(unit)
            if row is None:
                row = UnitRow(name, unit, price)
                self.rows.append(row)
            offers = [bid for bid in record.bids if bid.unit == unit]
            row.offers = str(len(offers))
            codes = [each.refusal.code for each in record.refusals if each.refusal.unit == unit]
            row.refusals, row.refused_by = reasons_text(codes), str(len(codes))
            row.took = duration_text(record.duration)
            if record.best_offer and offers:
                cheapest = min(offers, key=lambda bid: bid.cpu_hour_cost)
                row.best = f"{cheapest.cpu_hour_cost} by {self.short(cheapest.resource)}, not as asked"
            elif unit in best:
                row.best = f"{best[unit].cpu_hour_cost} by {self.short(best[unit].resource)}"
            lines.append(
                f"round {name}, unit {unit}: asked {price_text(price)}, {count_text(len(offers), 'offer')}, "
                f"best {row.best or 'none'}, refused: {row.refusals or 'none'}, {row.took}"
            )
        return lines


def _round_name(number: int, best_offer: bool) -> str:
    return f"{number} (best offers)" if best_offer else str(number)


class QuietView:
    """Shows nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def show(self, event: Event) -> None:
        """Show nothing."""

    def pause(self) -> None:
        """Do nothing."""


class LineView(QuietView):
    """Print a line for each event."""

    def __init__(self, short: ShortName) -> None:
        self._story = AuctionStory(short)

    def show(self, event: Event) -> None:
        for line in self._story.take(event):
            click.echo(line)


class LiveView(QuietView):
    """Draw a growing table, on standard error if standard output is for JSON."""

    def __init__(self, short: ShortName, *, error: bool = False) -> None:
        self._story = AuctionStory(short)
        self._console = console(error=error)
        self._live: Live | None = None

    def __enter__(self) -> Self:
        self._resume()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.pause()

    def show(self, event: Event) -> None:
        self._story.take(event)
        if self._live is None:
            self._resume()
        if self._live is not None:
            self._live.update(self._picture())

    def pause(self) -> None:
        if self._live is not None:
            self._story.note = ""
            self._live.update(self._picture())
            self._live.stop()
            self._live = None
            self._story.rows.clear()
            self._story.stages.clear()

    def _resume(self) -> None:
        from rich.live import Live

        self._live = Live(console=self._console, refresh_per_second=REFRESHES_PER_SECOND)
        self._live.start()

    def _picture(self) -> RenderableType:
        from rich.console import Group
        from rich.spinner import Spinner

        parts: list[RenderableType] = []
        narrow = self._console.width < NARROW
        if self._story.rows:
            table = new_table(
                "Round", "Unit", "Asked", "Offers", "Best", "Refused", "Time",
                right=("Unit", "Asked", "Offers", "Refused", "Time") if narrow else ("Unit", "Asked", "Offers", "Time"),
                wrap=() if narrow else ("Refused",),
                title="Bidding (prices in credits/core-hour asked)", narrow=narrow,
            )  # fmt: skip
            shown = ""
            for row in self._story.rows:
                name = row.round_name if row.round_name != shown else ""
                shown = row.round_name
                table.add_row(name, str(row.unit), str(row.asked), row.offers, row.best, row.refused(narrow), row.took)
            parts.append(table)
        parts += [f"unit {unit}: {stage}" for unit, stage in sorted(self._story.stages.items())]
        if self._story.note:
            parts.append(Spinner("dots", self._story.note))
        return Group(*parts)
