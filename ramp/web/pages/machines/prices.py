"""Prices paid over time, with their spread and the volume sold."""

from __future__ import annotations

from typing import Final

from nicegui import ui

from ramp.model.instant import DAY, HOUR, SECOND, to_datetime
from ramp.runtime.clock import SystemClock
from ramp.web.levels import sellers_of
from ramp.web.pages import charts, frame
from ramp.web.pages.charts import price_chart
from ramp.web.pages.refreshing import Refresher
from ramp.web.pages.row_tables import Column, Kind, table
from ramp.web.pages.visit import Visit
from ramp.web.sale_history import Sale

PERIODS: Final = {HOUR: "1 hour", DAY: "24 hours", 7 * DAY: "7 days", 30 * DAY: "30 days"}

PAUSE_S: Final = 2.0
"""Minimum seconds between two drawings."""

LATEST_MAX: Final = 200
"""Latest sales in the table."""

ALL: Final = "all machines"


class PricesPage:
    """The open page."""

    def __init__(self, visit: Visit) -> None:
        self._visit = visit
        self._short = visit.market().short

    async def build(self) -> None:
        frame.heading("Prices paid")
        with frame.card():
            with ui.element("div").classes("row items-end full-width").style("gap: .4rem 1.2rem"):
                self._choice = ui.select([ALL], value=ALL, label="Machines", on_change=self._draw)
                self._period = ui.select(PERIODS, value=DAY, label="Period", on_change=self._draw)
                for drawn in (self._choice, self._period):
                    drawn.props("dense").style("width: 14rem")
            empty = price_chart((), 0, 1, self._visit.dark)
            self._chart = charts.draw_chart(empty, "Prices paid and volume over time, as in the table", 24)
            ui.label(
                "Line: mean price paid, weighted by core-hours. Band: lowest to highest price. Bars: core-hours sold."
            ).classes("ramp-quiet")
        with frame.card(f"The latest {LATEST_MAX} sales"):
            self._latest = table(
                (
                    Column("Time", lambda sale: to_datetime(sale.at), Kind.TIME),
                    Column("Seller", lambda sale: self._short(sale.resource)),
                    Column("Cores", lambda sale: sale.cores, Kind.NUMBER),
                    Column("Duration (min)", lambda sale: round(sale.duration / SECOND / 60), Kind.NUMBER),
                    Column("Price (credits/core-hour)", lambda sale: round(100 * sale.price), Kind.CREDITS),
                    Column("Cost (credits)", lambda sale: sale.cost, Kind.CREDITS),
                ),
                empty="No sales in this period.",
                name="Latest sales",
            )
        Refresher(self._draw, self._visit.site.sale_watch.changed, pause=PAUSE_S, every=60.0)
        await self._look_at_machines()
        self._draw()

    async def _look_at_machines(self) -> None:
        found = sellers_of(await self._visit.site.levels())
        self._architecture = {each.name: each.architecture for each in found}
        classes = sorted({each.architecture for each in found} - {""})
        self._choice.set_options([ALL, *classes, *(each.name for each in found)], value=ALL)

    def _draw(self) -> None:
        now = SystemClock().now()
        begin = now - int(self._period.value)
        chosen = str(self._choice.value)
        sales = [each for each in self._visit.site.sales.since(begin) if self._is_of(each, chosen)]
        charts.redraw(self._chart, price_chart(sales, begin, now, self._visit.dark))
        self._latest.show(reversed(sales[-LATEST_MAX:]))

    def _is_of(self, sale: Sale, chosen: str) -> bool:
        name = self._short(sale.resource)
        return chosen in (ALL, name, self._architecture.get(name))
