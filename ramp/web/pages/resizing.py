"""Changes of a reservation's size: a preview, the progress, and earlier changes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Final, NamedTuple

from nicegui import background_tasks, ui

from ramp.client.request import moment_given
from ramp.client.results import Reservation, Resized
from ramp.errors import ConfigurationError, RampError
from ramp.model.instant import SECOND, Instant, to_datetime
from ramp.protocol.outcome import ChangeOutcome
from ramp.runtime.clock import SystemClock
from ramp.web.pages import frame
from ramp.web.pages.numbers import credits_named, signed
from ramp.web.pages.refreshing import Refresher
from ramp.web.pages.row_tables import Column, Kind, table
from ramp.web.pages.visit import Visit

COUNTED_S: Final = 1.0
"""Seconds between two updates of the time until a change takes effect."""


class SizeCard:
    """The card for resizing a reservation.

    Args:
        visit: the open page.
        bought: the reservation.
        on_changed: called to reload the reservation when a change has ended.
    """

    def __init__(self, visit: Visit, bought: Reservation, on_changed: Callable[[], Awaitable[None]]) -> None:
        self._visit = visit
        self._bought = bought
        self._on_changed = on_changed
        self._ended: ChangeOutcome | None = visit.feed().changes.ended(bought.agreement_id)
        self._told = ""

    def build(self) -> None:
        frame.subheading("Size")
        self._form = ui.element("div").classes("column full-width").style("gap: .3rem")
        with self._form:
            with ui.element("div").classes("row items-end full-width").style("gap: .6rem"):
                self._cores = ui.number("Cores", min=1, format="%d")
                self._until = ui.input("New end (optional)", placeholder="+30min, 18:00")
                self._ask = ui.button("Preview the change", on_click=self._quote).props("outline no-caps")
            ui.label(
                "The price paid is refunded for released cores. The seller sets the price of added cores."
            ).classes("ramp-quiet text-caption")
        self._answer = ui.element("div").classes("column full-width q-my-sm").style("gap: .6rem")
        self._answer.props('aria-live="polite"')
        self._going = ui.label().props('role="status"').classes("ramp-wait text-weight-medium full-width")
        self._chain = table(
            (
                Column("Amendment", lambda size: size.number),
                Column("Cores", lambda size: size.cores, Kind.NUMBER),
                Column("Credits", lambda size: size.money, Kind.CREDITS, lambda size: signed(size.money)),
                Column("Until", lambda size: to_datetime(size.until), Kind.TIME),
                Column("Since", lambda size: size.since and to_datetime(size.since), Kind.TIME),
            ),
            empty="No changes of size.",
        )
        self.show(self._bought)
        refresher = Refresher(self._look)
        feed = self._visit.feed()
        self._visit.until_gone(feed.listen(lambda request_id: None if request_id else refresher.changed()))
        ui.timer(COUNTED_S, self._look)

    def show(self, bought: Reservation) -> None:
        self._bought = bought
        now = to_datetime(SystemClock().now())
        self._form.set_visibility(bought.state == "active" and now < bought.end)
        self._cores.set_value(bought.cores)
        self._until.set_value("")
        self._chain.show(_sizes(bought))

    # -- asking --------------------------------------------------------------------------------------------------

    def _wish(self) -> tuple[int | None, datetime | None]:
        """Return the new cores and end, None if unchanged.

        Raises:
            ConfigurationError: if they are invalid or nothing changes.
        """
        given, until = self._cores.value, str(self._until.value or "").strip()
        if given is None or given < 1 or given != int(given):
            raise ConfigurationError(f"expected a whole number of cores, got {given}")
        cores = None if int(given) == self._bought.cores else int(given)
        if cores is None and not until:
            raise ConfigurationError("no change: enter another number of cores or another end")
        end = moment_given(until, SystemClock().now(), "new end", self._visit.zone) if until else None
        return cores, None if end is None else to_datetime(end)

    async def _quote(self) -> None:
        self._answer.clear()
        try:
            cores, until = self._wish()
            self._ask.disable()
            told = await self._visit.market().resize(
                self._bought.agreement_id, cores=cores, until=until, quote_only=True
            )
        except RampError as error:
            self._say(self._visit.sentence(str(error)), "ramp-bad")
            return
        finally:
            self._ask.enable()
        if told.quoted:
            self._offer(told)
        else:
            self._say(f"Not possible: {self._visit.sentence(told.detail) or told.code}", "ramp-bad")

    def _offer(self, told: Resized) -> None:
        more = f"cost: {credits_named(told.charge)}" if told.charge else ""
        meaning = "Jobs on released cores end, and the seller may sell those cores at once."
        if more:
            meaning = "The change takes effect after the payment. Until then the reservation is unchanged."
        with self._answer:
            would = more or f"refund: {credits_named(told.refund)}"
            ui.label(f"{self._size(told)}, {would}").classes("text-weight-medium")
            ui.label(meaning).classes("ramp-quiet")
            with ui.element("div").classes("row").style("gap: .6rem"):
                ui.button("Apply the change", on_click=lambda: self._change(told)).props("no-caps")
                ui.button("Keep it", on_click=self._answer.clear).props("outline no-caps")

    def _size(self, told: Resized) -> str:
        return f"{told.cores} cores until {self._visit.moment(told.end)}"

    def _say(self, text: str, look: str) -> None:
        self._answer.clear()
        with self._answer:
            ui.label(text).classes(look)

    # -- changing ------------------------------------------------------------------------------------------------

    def _change(self, told: Resized) -> None:
        self._answer.clear()
        self._told = f"{self._size(told)}: asking {self._bought.resource}…"
        self._show_progress()
        background_tasks.create(self._do_change(told))

    async def _do_change(self, told: Resized) -> None:
        try:
            done = await self._visit.market().resize(
                self._bought.agreement_id, cores=told.cores, until=told.end, max_cost=told.charge or None
            )
        except RampError as error:
            done = None
            with self._answer:
                ui.label(f"Result unknown: {error}").classes("ramp-bad")
        self._told = ""
        with self._answer:
            if done is not None and done.done:
                moved = f"paid {credits_named(done.charge)}"
                if not done.charge:
                    moved = f"refunded {credits_named(done.refund)}"
                ui.label(f"Done: {self._size(done)}; {moved}.").classes("ramp-good")
            elif done is not None:
                ui.label(f"Not changed: {self._visit.sentence(done.detail) or done.code}").classes("ramp-bad")
        await self._on_changed()

    async def _look(self) -> None:
        self._show_progress()
        ended = self._visit.feed().changes.ended(self._bought.agreement_id)
        if ended is not self._ended:
            self._ended = ended
            await self._on_changed()

    def _show_progress(self) -> None:
        agreed = self._visit.feed().changes.agreed(self._bought.agreement_id)
        text = self._told
        if agreed is not None:
            left = agreed.effective_at - SystemClock().now()
            when = f"in {-(-left // SECOND)} s" if left > 0 else "now, waiting for the bank"
            size = f"{agreed.cores} cores until {self._visit.moment(to_datetime(agreed.until))}"
            text = f"{size}: {self._bought.resource} agreed; takes effect {when}"
        self._going.set_text(text)
        self._going.set_visibility(bool(text))
        self._ask.set_enabled(not text)


class _Size(NamedTuple):
    """A size of the slot; `since` is None for the original one."""

    number: str
    cores: int
    money: int
    until: Instant
    since: Instant | None = None


def _sizes(bought: Reservation) -> list[_Size]:
    """Return the sizes of the slot, the original first; empty without changes."""
    changes = [
        _Size(
            str(each.number),
            each.cores,
            each.refund - each.charge,
            each.until,
            each.effective_at,
        )
        for each in bought.standing.amendments
    ]
    agreement = bought.standing.agreement
    original = _Size("original", agreement.offer.cores, -agreement.cost, agreement.offer.end)
    return [original, *changes] if changes else []
