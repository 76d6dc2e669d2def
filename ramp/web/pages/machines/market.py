"""The first page, with the state of the market and its sellers; and prices paid over time, with spread and volume."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from typing import Final

from nicegui import ui

from ramp.model.instant import DAY, HOUR, SECOND, Instant, to_datetime
from ramp.runtime.clock import SystemClock
from ramp.web.levels import Seller, sellers_of
from ramp.web.live import Sale, mean_price
from ramp.web.pages import frame
from ramp.web.pages.charts import draw_chart, price_chart, redraw
from ramp.web.pages.frame import Refresher, Visit, credits_named, whole
from ramp.web.pages.row_tables import Column, Kind, RowTable

LOOK_AGAIN_S: Final = 10.0
"""Seconds between two queries to the machines; sales are shown at once."""

SALES_PAUSE_S: Final = 2.0
"""Minimum seconds between two drawings after sales."""

PERIOD: Final = DAY
"""Period of the sales that are shown."""

CURVE_POINTS: Final = 16
"""Points of the line of a seller's prices."""

ALL: Final = "all"
"""The choice of every architecture."""

ALL_MACHINES: Final = "all machines"

PERIODS: Final = {HOUR: "1 hour", DAY: "24 hours", 7 * DAY: "7 days", 30 * DAY: "30 days"}

LATEST_MAX: Final = 200
"""Latest sales in the table of prices."""


class MarketPage:
    """The open page."""

    def __init__(self, visit: Visit) -> None:
        self._visit = visit
        self._short = visit.market().short

    async def build(self) -> None:
        with ui.element("div").classes("row items-baseline full-width").style("gap: .3rem 1rem"):
            frame.heading("Market")
            self._as_of = ui.label("Loading the machines…").props('role="status"').classes("ramp-quiet ramp-number")
        if self._visit.site.notice:
            ui.label(self._visit.site.notice).classes("ramp-quiet")
        self._state = ui.element("section").classes("ramp-tiles").props('aria-label="State of the market"')
        with frame.card():
            with ui.element("div").classes("row items-end full-width").style("gap: .4rem 1.2rem"):
                frame.subheading("Sellers")
                ui.space()
                search = ui.input("Search").props("dense clearable").style("width: 12rem")
                self._choice = ui.select([ALL], value=ALL, label="Architecture", on_change=self._draw_sellers)
                self._choice.props("dense").style("width: 10rem")
            self._sellers = RowTable(
                (
                    Column(
                        "Seller",
                        lambda each: each.name,
                        text=lambda each: each.name + (" (draining)" if each.is_draining else ""),
                        link="/machines/",
                    ),
                    Column("Start price (credits/core-hour)", lambda each: each.start_price, Kind.NUMBER),
                    Column("Last sale (credits/core-hour)", self._last_price, Kind.CREDITS),
                    Column("Prices over 24 h", lambda each: curve_of(self._sales[each.name]), Kind.CURVE),
                    Column("Free cores", lambda each: each.machine and each.machine.cores_free, Kind.NUMBER),
                    Column("of", lambda each: each.machine and each.machine.cores, Kind.NUMBER),
                    Column("In use", lambda each: each.busy, Kind.SHARE),
                    Column("Waiting jobs", lambda each: each.machine and each.machine.queued_total, Kind.NUMBER),
                    Column("Architecture", lambda each: each.architecture or each.agent),
                    Column("New request", lambda each: "Ask here", link="/ask?at="),
                ),
                key=lambda each: each.name,
                empty="No sellers.",
                name="Sellers",
            )
            search.bind_value_to(self._sellers, "filter", forward=lambda text: text or None)
        self._sales: dict[str, list[Sale]] = defaultdict(list)
        self._found: list[Seller] = []
        Refresher(self._draw, self._visit.site.sale_watch.changed, pause=SALES_PAUSE_S, every=LOOK_AGAIN_S)
        await self._draw()

    async def _draw(self) -> None:
        levels = await self._visit.site.levels()
        now = SystemClock().now()
        sales = self._visit.site.sales.since(now - PERIOD)
        self._sales = defaultdict(list)
        for each in sales:
            self._sales[self._short(each.resource)].append(each)
        self._found = sellers_of(levels)
        self._as_of.set_text(f"as of {datetime.now(self._visit.zone):%H:%M:%S}")
        self._state.clear()
        with self._state:
            self._draw_state(sales, now)
        architectures = [ALL, *sorted({each.architecture for each in self._found} - {""})]
        if self._choice.options != architectures:
            self._choice.set_options(architectures, value=self._choice.value)
        self._draw_sellers()

    def _draw_state(self, sales: Sequence[Sale], now: Instant) -> None:
        hour = [each for each in sales if each.at >= now - HOUR]
        answered = [each.machine for each in self._found if each.machine is not None]
        free, cores = sum(each.cores_free for each in answered), sum(each.cores for each in answered)
        volume = round(sum(each.core_hours for each in sales))
        frame.tile("Price paid, last hour", price_text(hour), "credits/core-hour")
        lowest, highest = (f"{way(each.price for each in sales):.0f}" if sales else "" for way in (min, max))
        frame.tile(
            "Price paid, 24 h", price_text(sales), f"from {lowest} to {highest}" if sales else "credits/core-hour"
        )
        frame.tile("Sold, 24 h", whole(volume), f"core-hours for {credits_named(sum(each.cost for each in sales))}")
        frame.tile("Sales, 24 h", whole(len(sales)), f"{whole(len(hour))} in the last hour")
        frame.tile("Free cores now", whole(free), f"of {whole(cores)} on {len(answered)} machines")

    def _draw_sellers(self) -> None:
        wanted = self._choice.value
        self._sellers.show(each for each in self._found if wanted in (ALL, each.architecture))

    def _last_price(self, seller: Seller) -> int | None:
        sold = self._sales[seller.name]
        return round(100 * sold[-1].price) if sold else None


def price_text(sales: Sequence[Sale]) -> str:
    """Write the mean price of sales; a dash without any."""
    return f"{mean_price(sales):.2f}" if sales else "–"


def curve_of(sales: Sequence[Sale]) -> str:
    """Return the mean prices of equal numbers of sales as points of a line within 100 x 24; empty without sales."""
    if not sales:
        return ""
    number = min(max(len(sales), 2), CURVE_POINTS)  # of a single sale, both ends of a level line
    shares = [
        sales[place * len(sales) // number : (place + 1) * len(sales) // number] or sales for place in range(number)
    ]
    prices = [mean_price(share) for share in shares]
    low, high = min(prices), max(prices)
    step = 100 / (len(prices) - 1)
    heights = (22 - 20 * (each - low) / (high - low) if high > low else 12 for each in prices)
    return " ".join(f"{step * place:.1f},{height:.1f}" for place, height in enumerate(heights))


class PricesPage:
    """The open page of prices paid."""

    def __init__(self, visit: Visit) -> None:
        self._visit = visit
        self._short = visit.market().short

    async def build(self) -> None:
        frame.heading("Prices paid")
        with frame.card():
            with ui.element("div").classes("row items-end full-width").style("gap: .4rem 1.2rem"):
                self._choice = ui.select([ALL_MACHINES], value=ALL_MACHINES, label="Machines", on_change=self._draw)
                self._period = ui.select(PERIODS, value=DAY, label="Period", on_change=self._draw)
                for drawn in (self._choice, self._period):
                    drawn.props("dense").style("width: 14rem")
            empty = price_chart((), 0, 1)
            self._chart = draw_chart(empty, "Prices paid and volume over time, as in the table", 24)
            ui.label(
                "Line: mean price paid, weighted by core-hours. Band: lowest to highest price. Bars: core-hours sold."
            ).classes("ramp-quiet")
        with frame.card(f"The latest {LATEST_MAX} sales"):
            self._latest = RowTable(
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
        Refresher(self._draw, self._visit.site.sale_watch.changed, pause=SALES_PAUSE_S, every=60.0)
        found = sellers_of(await self._visit.site.levels())
        self._architecture = {each.name: each.architecture for each in found}
        classes = sorted({each.architecture for each in found} - {""})
        self._choice.set_options([ALL_MACHINES, *classes, *(each.name for each in found)], value=ALL_MACHINES)
        self._draw()

    def _draw(self) -> None:
        now = SystemClock().now()
        begin = now - int(self._period.value)
        chosen = str(self._choice.value)
        sales = [each for each in self._visit.site.sales.since(begin) if self._is_of(each, chosen)]
        redraw(self._chart, price_chart(sales, begin, now))
        self._latest.show(reversed(sales[-LATEST_MAX:]))

    def _is_of(self, sale: Sale, chosen: str) -> bool:
        name = self._short(sale.resource)
        return chosen in (ALL_MACHINES, name, self._architecture.get(name))
