"""Changes of a reservation's size: a preview, the progress, and earlier changes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Final, NamedTuple

from nicegui import background_tasks, ui

from ramp.client.results import Reservation, Resized
from ramp.client.times import moment_of
from ramp.errors import RampError
from ramp.model.agreement import ContractChange
from ramp.model.instant import SECOND, Instant, to_datetime
from ramp.runtime.clock import SystemClock
from ramp.web.pages import frame
from ramp.web.pages.dialogs import Asked, answers, complain, complaining, confirmed, whole_number
from ramp.web.pages.frame import Refresher, Visit, credits_named, signed
from ramp.web.pages.row_tables import Column, Kind, RowTable

COUNTED_S: Final = 1.0
"""Seconds between two updates of the time until a change takes effect."""


class SizeCard:
    """The card for resizing a reservation; `on_changed` is called to reload it when a change has ended."""

    def __init__(self, visit: Visit, bought: Reservation, on_changed: Callable[[], Awaitable[None]]) -> None:
        self._visit = visit
        self._bought = bought
        self._on_changed = on_changed
        self._agreed: ContractChange | None = None
        self._told = ""

    def build(self) -> None:
        frame.subheading("Size")
        self._button = ui.button("Resize", on_click=self._ask).props("outline no-caps")
        self._answer = ui.label().props('aria-live="polite"')
        self._going = ui.label().props('role="status"').classes("ramp-wait text-weight-medium full-width")
        self._chain = RowTable(
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
        feed = self._visit.feed()
        feed.agreed.subscribe(self._take)
        Refresher(self._changed, feed.ended, about="")
        ui.timer(COUNTED_S, self._show_progress)

    def show(self, bought: Reservation) -> None:
        self._bought = bought
        now = to_datetime(SystemClock().now())
        self._button.set_visibility(bought.state == "active" and now < bought.end)
        self._chain.show(_sizes(bought))

    # -- asking --------------------------------------------------------------------------------------------------

    async def _ask(self) -> None:
        asked = (
            Asked("Cores", whole_number, str(self._bought.cores)),
            Asked("New end (optional)", self._end, hint="+30min, 18:00"),
        )
        found = await answers("New size", "Preview the change", *asked)
        if found is None:
            return
        cores, until = found
        if until is None and cores == self._bought.cores:
            complain(self._visit, "no change: enter another number of cores or another end")
            return
        with complaining(self._visit):
            (told,) = await self._visit.market().resize(
                self._bought.agreement_id,
                cores=None if cores == self._bought.cores else cores,
                until=until,
                quote_only=True,
            )
            if told.quoted:
                await self._offer(told)
            else:
                complain(self._visit, f"Not possible: {told.detail or told.code}")

    def _end(self, text: str) -> datetime | None:
        return to_datetime(moment_of(text, SystemClock().now(), self._visit.zone)) if text else None

    async def _offer(self, told: Resized) -> None:
        would = f"refund: {credits_named(told.refund)}"
        meaning = "Jobs on released cores end, and the seller may sell those cores at once."
        if told.charge:
            would = f"cost: {credits_named(told.charge)}"
            meaning = "The change takes effect after the payment. Until then the reservation is unchanged."
        if await confirmed(f"{self._size(told)}, {would}", meaning, "Apply the change", "Keep it"):
            self._say("", "")
            self._told = f"{self._size(told)}: asking {self._bought.resource}…"
            self._show_progress()
            background_tasks.create(self._change(told))  # also if the page is closed meanwhile

    def _size(self, told: Resized) -> str:
        return f"{told.cores} cores until {self._visit.moment(told.end)}"

    # -- changing ------------------------------------------------------------------------------------------------

    async def _change(self, told: Resized) -> None:
        try:
            (done,) = await self._visit.market().resize(
                self._bought.agreement_id, cores=told.cores, until=told.end, max_cost=told.charge or None
            )
        except RampError as error:
            self._say(f"Result unknown: {error}", "ramp-bad")
        else:
            moved = f"paid {credits_named(done.charge)}" if done.charge else f"refunded {credits_named(done.refund)}"
            if done.done:
                self._say(f"Done: {self._size(done)}; {moved}.", "ramp-good")
            else:
                self._say(f"Not changed: {done.detail or done.code}", "ramp-bad")
        self._told = ""
        await self._on_changed()

    def _say(self, text: str, look: str) -> None:
        self._answer.set_text(self._visit.sentence(text))
        self._answer.classes(replace=look)

    def _take(self, agreed: ContractChange) -> None:
        if agreed.agreement_id == self._bought.agreement_id:
            self._agreed = agreed

    async def _changed(self) -> None:
        self._agreed = None
        await self._on_changed()

    def _show_progress(self) -> None:
        agreed, text = self._agreed, self._told
        if agreed is not None:
            left = agreed.effective_at - SystemClock().now()
            when = f"in {-(-left // SECOND)} s" if left > 0 else "now, waiting for the bank"
            size = f"{agreed.cores} cores until {self._visit.moment(to_datetime(agreed.until))}"
            text = f"{size}: {self._bought.resource} agreed; takes effect {when}"
        self._going.set_text(text)
        self._going.set_visibility(bool(text))
        self._button.set_enabled(not text)


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
        _Size(str(each.number), each.cores, each.refund - each.charge, each.until, each.effective_at)
        for each in bought.standing.amendments
    ]
    agreement = bought.standing.agreement
    original = _Size("original", agreement.offer.cores, -agreement.cost, agreement.offer.end)
    return [original, *changes] if changes else []
