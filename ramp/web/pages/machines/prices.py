"""Prices over time: start prices of resources, offers to the user, and their auction rounds."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from nicegui import ui
from nicegui.events import EChartPointClickEventArguments

from ramp.errors import RampError
from ramp.model.instant import to_datetime
from ramp.runtime.clock import SystemClock
from ramp.web.machines.price_history import PricePoint
from ramp.web.pages import frame
from ramp.web.pages.charts import redraw
from ramp.web.pages.machines.charts import price_chart, price_series
from ramp.web.pages.row_tables import Column, Kind, table
from ramp.web.pages.visit import Visit

LOOK_AGAIN_S: Final = 5.0
"""Seconds between two checks for new prices."""

LATEST_MAX: Final = 200
"""Latest prices in the table."""


async def build(visit: Visit) -> None:
    """Fill the page."""
    frame.heading("Prices over time")
    try:
        found = await visit.market().resources(machines=True)
    except RampError as error:
        frame.problem(error)  # the last known prices stay visible
    else:
        first = {
            each.name: each.machine.start_price
            for each in found
            if each.machine is not None and each.machine.start_price is not None
        }
        visit.site.prices.start_prices(first, SystemClock().now())
    visit.feed()  # its record fills gaps
    PricesPage(visit).build()


class PricesPage:
    """The page of prices."""

    def __init__(self, visit: Visit) -> None:
        self._visit = visit
        self._short = visit.market().short
        self._points: tuple[PricePoint, ...] = ()
        self._series: dict[str, list[PricePoint]] = {}

    def build(self) -> None:
        with frame.card():
            ui.label(
                "Dots: offers in your auctions. Dashed lines: start prices. Click a dot for its auction rounds."
            ).classes("ramp-quiet")
            self._chart = ui.echart(price_chart({}, self._visit.dark), on_point_click=self._clicked)
            self._chart.style("height: 24rem").props('role="img" aria-label="Prices over time, as in the table"')
        self._behind = frame.card()
        self._behind.set_visibility(False)
        with frame.card():
            frame.subheading(f"The latest {LATEST_MAX} prices")
            self._latest = table(self._columns(), empty="No prices yet.")
        self._look()
        ui.timer(LOOK_AGAIN_S, self._look)

    def _look(self) -> None:
        kept = self._visit.site.prices.points(self._visit.session.name)
        points = tuple(replace(each, resource=self._short(each.resource)) for each in kept)
        if points == self._points:
            return
        self._points = points
        self._series = price_series(points)
        redraw(self._chart, price_chart(self._series, self._visit.dark))
        self._latest.show(reversed(points[-LATEST_MAX:]))

    def _columns(self) -> tuple[Column, ...]:
        short_id = self._visit.short_id
        return (
            Column("Time", lambda point: to_datetime(point.at), Kind.TIME),
            Column("Resource", lambda point: point.resource),
            Column("Credits/core-hour", lambda point: point.price, Kind.NUMBER),
            Column("Round", lambda point: point.round_number or "start price", Kind.NUMBER),
            Column("Unit", lambda point: point.unit or "", Kind.NUMBER),
            Column("Request", lambda point: short_id(point.request_id) if point.request_id else ""),
        )

    def _clicked(self, event: EChartPointClickEventArguments) -> None:
        points = self._series.get(event.series_name, [])
        if 0 <= event.data_index < len(points) and points[event.data_index].request_id:
            self._show_rounds(points[event.data_index])

    def _show_rounds(self, point: PricePoint) -> None:
        behind = [each for each in self._points if each.request_id == point.request_id]
        behind.sort(key=lambda each: (each.round_number, each.unit, each.price, each.resource))
        self._behind.clear()
        self._behind.set_visibility(True)
        with self._behind:
            frame.subheading(f"Auction rounds of request {self._visit.short_id(point.request_id)}")
            ui.label(
                f"{point.resource} offered {point.price} credits/core-hour in round {point.round_number}"
                f" for unit {point.unit}, {self._visit.moment(to_datetime(point.at))}."
            )
            table(self._columns()[1:5], behind)
            ui.link("Full auction", f"/requests/{point.request_id}")
