"""An auction as it goes: a table that grows on a terminal, plain lines in a pipe."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import click

from ramp.cli.views.output import console, count_text, duration_text, new_table, price_text, say, silence_output
from ramp.cli.views.reports import ShortName, reasons_text
from ramp.control.auction_story import AuctionStory, Round, UnitRound
from ramp.control.events import Event, Refused, Submitted
from ramp.protocol.progress import RequestEnded, RoundClosed, RoundOpened, UnitAdvanced

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.live import Live

REFRESHES_PER_SECOND: Final = 10

NARROW: Final = 90
"""On a terminal of fewer columns the table draws together, and refusals are only counted: their reasons would be broken
in the middle of words."""


def _figures(row: UnitRound, short: ShortName, *, narrow: bool = False) -> tuple[str, str, str, str]:
    """Return offers, best offer, refusals and duration, as both views show them; empty while the round is open."""
    if row.round.record is None or row.offers is None or row.refusals is None:
        return "", "", "", ""
    refused = str(len(row.refusals)) if narrow else reasons_text(row.refusals)
    return str(len(row.offers)), row.best(short), refused, duration_text(row.round.record.duration)


def _stage_text(stage: str, resource: str, detail: str, short: ShortName) -> str:
    return f"{short(resource)}: {stage}" + (f" ({detail})" if detail else "")


def _note(event: Event, before: str) -> str:
    """Describe what is waited for after an event."""
    match event:
        case Submitted():
            return "asking the directory who sells"
        case RoundOpened():
            name = Round(event.round_number, event.best_offer, {}).name
            return f"round {name}: waiting for {count_text(event.resources, 'resource')}"
        case UnitAdvanced():
            return "buying"
        case RequestEnded() | Refused():
            return ""
        case _:
            return before


def _lines(event: Event, short: ShortName) -> Iterator[str]:
    """Yield the lines of an event in a pipe."""
    match event:
        case Submitted(request_id):
            yield f"request {request_id}"
        case RoundClosed(record=record):
            asked = dict(record.asked)
            closed = Round(record.round_number, record.best_offer, asked, record=record, best=dict(event.best))
            for unit, price in asked.items():
                offers, best, refused, took = _figures(UnitRound(closed, unit, price), short)
                yield (
                    f"round {closed.name}, unit {unit}: asked {price_text(price)}, {count_text(int(offers), 'offer')}, "
                    f"best {best or 'none'}, refused: {refused or 'none'}, {took}"
                )
        case UnitAdvanced():
            yield f"unit {event.unit}: {_stage_text(event.stage, event.resource, event.detail, short)}"


@contextmanager
def unless_closed() -> Iterator[None]:
    """Let the reader of the output go away: the rest is not shown, which is said once on standard error."""
    try:
        yield
    except BrokenPipeError:
        silence_output()
        say("ramp: the output was closed; the request continues, and the exit code gives its result")


class AuctionView:
    """Shows nothing of an auction."""

    def show(self, event: Event) -> None:
        """Take a progress event of the control channel."""

    def pause(self) -> None:
        """Hold still, because the owner is asked something or everything has been shown."""

    def close(self) -> None:
        self.pause()


class LineView(AuctionView):
    """Print a line for each event."""

    def __init__(self, short: ShortName) -> None:
        self._short = short

    def show(self, event: Event) -> None:
        with unless_closed():
            for line in _lines(event, self._short):
                click.echo(line)


class LiveView(AuctionView):
    """Draw a growing table, on standard error if standard output is for JSON."""

    def __init__(self, short: ShortName, *, error: bool = False) -> None:
        self._short = short
        self._story = AuctionStory("")
        self._note = ""
        self._console = console(error=error)
        self._live: Live | None = None

    def show(self, event: Event) -> None:
        if not isinstance(event, RequestEnded):  # its rounds have been shown
            self._story.take(event, 0)
        self._note = _note(event, self._note)
        if self._live is None:
            from rich.live import Live

            self._live = Live(console=self._console, refresh_per_second=REFRESHES_PER_SECOND)
            self._live.start()
        self._live.update(self._picture())

    def pause(self) -> None:
        if self._live is not None:
            self._note = ""
            self._live.update(self._picture())
            self._live.stop()
            self._live = None
            self._story = AuctionStory("")

    def _picture(self) -> RenderableType:
        from rich.console import Group
        from rich.spinner import Spinner

        parts: list[RenderableType] = []
        narrow = self._console.width < NARROW
        if self._story.rounds:
            table = new_table(
                "Round", "Unit", "Asked", "Offers", "Best", "Refused", "Time",
                right=("Unit", "Asked", "Offers", "Refused", "Time") if narrow else ("Unit", "Asked", "Offers", "Time"),
                wrap=() if narrow else ("Refused",),
                title="Bidding (prices in credits/core-hour asked)", narrow=narrow,
            )  # fmt: skip
            for bidding in self._story.rounds.values():
                name = bidding.name
                for unit, price in bidding.asked.items():
                    figures = _figures(UnitRound(bidding, unit, price), self._short, narrow=narrow)
                    table.add_row(name, str(unit), str(price), *figures)
                    name = ""
            parts.append(table)
        last = {each.unit: each for _, each in self._story.moments}
        for unit, each in sorted(last.items()):
            parts.append(f"unit {unit}: {_stage_text(each.stage, each.resource, each.detail, self._short)}")
        if self._note:
            parts.append(Spinner("dots", self._note))
        return Group(*parts)
