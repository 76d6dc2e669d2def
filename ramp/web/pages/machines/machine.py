"""A machine: its load, its layout or cores over time, its queue, and reservations of the market."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final
from urllib.parse import quote

from nicegui import ui

from ramp.client.machine_state import MachineState
from ramp.errors import RampError
from ramp.model.instant import DAY
from ramp.model.seal import Role
from ramp.runtime.clock import SystemClock
from ramp.web.pages import frame
from ramp.web.pages.charts import (
    KINDS,
    Options,
    core_chart,
    draw_chart,
    load_chart,
    lowest_bars,
    price_chart,
    redraw,
    redraw_rows,
    row_chart,
    taken_in,
)
from ramp.web.pages.frame import Visit, whole
from ramp.web.pages.machines.torus import PlacesView
from ramp.web.pages.machines.torus_map import TorusMap, torus_map
from ramp.web.pages.row_tables import Column, Kind, RowTable

HORIZON: Final = timedelta(hours=24)
"""Period that is shown."""

LOOK_AGAIN_S: Final = 10.0
"""Seconds between two queries to the machine."""

STEP_H: Final = 0.5
"""Step of the slider in hours."""

SLOTS: Final = {kind: KINDS[kind] for kind in ("sold", "held")}
"""Colours of the market's slots."""

NOTE: Final = (
    "Drag to turn, scroll to zoom, click a box to show its cables. Framed boxes are sold (solid) or held (pale) by the"
    " market, now or later. Waiting jobs get their places when they start."
)


async def build(visit: Visit) -> None:
    """Fill the page."""
    name = visit.request.path_params["name"]
    frame.heading(f"Machine {name}")
    market = visit.looking_market()
    if name not in {each.name for each in await market.resources()}:
        ui.label(f"Unknown seller {name}.").props('role="alert"').classes("ramp-bad")
        return
    await visit.site.levels()
    MachinePage(visit, name).build(await market.machine(name, HORIZON))


class MachinePage:
    """The page of one machine."""

    def __init__(self, visit: Visit, name: str) -> None:
        self._visit = visit
        self._name = name

    def build(self, state: MachineState) -> None:
        self._state = state
        with frame.card():
            self._problem = ui.label().props('role="status"').classes("ramp-wait")
            self._facts = ui.element("dl").classes("ramp-facts ramp-number")
        with frame.card("Projected load over 24 hours, mean of each hour"):
            self._load = draw_chart(load_chart(state), "The projected load by hour")
        with frame.card("Prices paid here in 24 hours"):
            self._prices = draw_chart(self._price_chart(), "Prices paid and volume over 24 hours")
            if self._visit.session.role is Role.USER:
                ui.link("Ask here", f"/ask?at={quote(self._name)}")
        with frame.card():
            self._places: Places | None = None
            self._cores: ui.echart | None = None
            self._build_places()
        with frame.card("Running jobs"):
            self._running = self._job_table()
        with frame.card("Waiting jobs with planned times"):
            self._waiting = self._job_table()
        with frame.card("Reservations of the market"):
            self._sold = draw_chart({}, "Slots sold and held over time, as in the table below")
            self._slots = RowTable(
                (
                    Column("Reservation", lambda each: each.reservation_id),
                    Column("State", lambda each: "sold" if each.firm else "held"),
                    Column("Cores", lambda each: each.cores, Kind.NUMBER),
                    Column("Start", lambda each: each.start, Kind.TIME),
                    Column("End", lambda each: each.end, Kind.TIME),
                )
            )
        self.show(state)
        ui.timer(LOOK_AGAIN_S, self._look, immediate=False)

    def _build_places(self) -> None:
        if self._state.snapshot.get("map") is None:
            frame.subheading("Cores over 24 hours")
            self._cores = draw_chart(self._core_chart(), "Use of cores over time, as in the tables below")
            return
        frame.subheading("Layout")
        if (drawn := self._map()) is not None:
            self._places = Places(self._visit, drawn, self._state.time)

    def _map(self) -> TorusMap | None:
        try:
            return torus_map(self._state)
        except ValueError as error:
            self._complain(f"Cannot draw the layout: {error}.")
            return None

    def _complain(self, text: str) -> None:
        self._problem.set_text(text)
        self._problem.set_visibility(bool(text))

    def _price_chart(self) -> Options:
        site, now = self._visit.site, SystemClock().now()
        short = self._visit.looking_market().short
        sales = [each for each in site.sales.since(now - DAY) if short(each.resource) == self._name]
        return price_chart(sales, now - DAY, now)

    def _core_chart(self) -> Options:
        cores, begin, until = self._state.cores, self._state.time, self._state.time + HORIZON
        bars = lowest_bars(taken_in(self._state), cores, begin, until)
        return core_chart(bars, cores, begin, until)

    def _sold_chart(self) -> Options:
        taken = [each for each in taken_in(self._state) if each.kind in SLOTS]
        rows = {kind: [each for each in taken if each.kind == kind] for kind in sorted({each.kind for each in taken})}
        return row_chart(rows, self._state.time, HORIZON, SLOTS)

    async def _look(self) -> None:
        try:
            market = self._visit.looking_market()
            self.show(await market.machine(self._name, HORIZON))
        except RampError as error:
            self._complain(f"The machine does not answer: {error}")

    def show(self, state: MachineState) -> None:
        self._state = state
        self._complain("")
        frame.draw_facts(self._visit, self._facts, self._described(state))
        redraw(self._prices, self._price_chart())
        redraw(self._load, load_chart(state))
        if self._cores is not None:
            redraw(self._cores, self._core_chart())
        if (drawn := self._map()) is not None and self._places is not None:
            self._places.show(drawn, state.time)
        self._running.show(state.running)
        self._waiting.show(state.queued)
        redraw_rows(self._sold, self._sold_chart())
        self._sold.set_visibility(bool(state.reservations))
        self._slots.show(state.reservations)

    def _job_table(self) -> RowTable:
        return RowTable(
            (
                Column("Job", lambda each: str(each.job)),
                Column("Cores", lambda each: each.cores, Kind.NUMBER),
                Column("Submitted", lambda each: each.submitted, Kind.TIME),
                Column("Start", lambda each: each.start, Kind.TIME),
                Column("Expected end", lambda each: each.end, Kind.TIME),
            )
        )

    def _described(self, state: MachineState) -> list[tuple[str, str | datetime]]:
        busy = whole(state.cores_busy)
        price = "unknown" if state.start_price is None else f"{state.start_price} credits/core-hour"
        return [
            ("As of", state.time),
            ("Load", f"{100 * state.cores_busy // max(state.cores, 1)} % ({busy} of {whole(state.cores)} cores)"),
            ("Jobs", f"{state.running_total} running, {state.queued_total} waiting"),
            ("Start price", price),
            ("System", f"{state.operating_system or 'unknown'}, {state.architecture or 'unknown'}"),
            ("Queue data", state.source),
        ]


class Places:
    """The scene of a torus with a slider for the time."""

    def __init__(self, visit: Visit, drawn: TorusMap, now: datetime) -> None:
        self._visit = visit
        self._hours = 0.0
        with ui.element("div").classes("full-width").style("padding: 0 .8rem"):
            slider = ui.slider(min=0, max=HORIZON / timedelta(hours=1), step=STEP_H, value=0)
            slider.props('aria-label="Hours from now"').on_value_change(lambda told: self._move(told.value))
            self._when = ui.label().props('role="status"').classes("ramp-number")
        self._view = PlacesView(visit, drawn, visit.moment, NOTE)
        self.show(drawn, now)

    def show(self, drawn: TorusMap, now: datetime) -> None:
        self._drawn, self._now = drawn, now
        self._draw()

    def _draw(self) -> None:
        moment = self._now + timedelta(hours=self._hours)
        self._view.show(self._drawn, moment)
        per_cent = 100 * len(self._drawn.occupied(moment)) // max(self._drawn.units, 1)
        ahead = "now" if not self._hours else f"in {self._hours:g} h"
        wrong = self._drawn.left_out
        ignored = f"; {wrong} invalid entries of the machine's map ignored" if wrong else ""
        self._when.set_text(f"{ahead}, {self._visit.moment(moment)}: {per_cent} % of the units in use{ignored}")

    def _move(self, hours: float | None) -> None:
        self._hours = min(max(float(hours or 0), 0.0), HORIZON / timedelta(hours=1))
        self._draw()
