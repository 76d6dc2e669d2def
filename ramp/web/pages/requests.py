"""All requests of a user; and one, with rounds, refusals and best offers, then votes, signatures and payment."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from functools import partial
from typing import Final

from nicegui import ui
from nicegui.elements.mixins.text_element import TextElement

from ramp.client import dialogues
from ramp.control.auction_story import MOMENTS_MAX, STAGES, AuctionStory, UnitRound
from ramp.control.events import RequestStanding
from ramp.model.instant import SECOND, Instant, to_datetime
from ramp.model.money import price_number
from ramp.protocol.outcome import BoughtUnit, RequestOutcome, RequestStatus
from ramp.protocol.progress import UnitAdvanced
from ramp.runtime.clock import SystemClock
from ramp.web.pages import charts, frame
from ramp.web.pages.dialogs import complaining, confirmed
from ramp.web.pages.frame import Refresher, Visit, amount, credits_named
from ramp.web.pages.row_tables import Column, Kind, RowTable

ASKED_AGAIN_S: Final = 1.0
"""Minimum seconds between two queries to the agent."""

CHARTS_MAX: Final = 8
"""Maximum number of charts; the table has all units."""

MOMENT_COLOURS: Final = {"settled": "ramp-good", "failed": "ramp-bad", "voided": "ramp-bad", "refused": "ramp-wait"}
"""Styles of stages of a unit."""


async def build_all(visit: Visit) -> None:
    """Fill the page of all requests."""
    frame.heading("Your requests")
    feed = visit.feed()
    with frame.card():
        search = ui.input("Search").props("dense clearable").style("width: 14rem")
        drawn = RowTable(
            (
                Column("Request", lambda each: visit.short_id(each.request_id), link="/requests/"),
                Column("Name", lambda each: each.name),
                Column("Submitted", lambda each: to_datetime(each.started_at), Kind.TIME),
                Column("Units", lambda each: each.units, Kind.NUMBER),
                Column("Status", lambda each: visit.sentence(_stage_text(each, feed.story(each.request_id)))),
                Column("Paid (credits)", _paid, Kind.CREDITS, _cost_text),
            ),
            key=lambda each: each.request_id,
            empty="No requests yet.",
        )
        search.bind_value_to(drawn, "filter", forward=lambda text: text or None)

    async def look() -> None:
        drawn.show(reversed(await visit.market().requests()))

    Refresher(look, feed.changed, pause=ASKED_AGAIN_S)
    await look()


def _stage_text(standing: RequestStanding, story: AuctionStory | None) -> str:
    outcome = standing.outcome
    if outcome is None:
        return standing.stage if story is None else story.stage
    stage = outcome.status.replace("_", " ")
    return f"{stage}: {outcome.reason}" if outcome.reason else stage


def _paid(standing: RequestStanding) -> int | None:
    return standing.cost if standing.outcome is not None and standing.charged else None


def _cost_text(standing: RequestStanding) -> str:
    """Return the cost of a request after refunds, which are named; empty if nothing was paid."""
    if _paid(standing) is None:
        return ""
    back = f" ({amount(standing.returned)} returned)" if standing.returned else ""
    return amount(standing.cost) + back


def _number_of(found: Sequence[object] | None) -> int | None:
    return None if found is None else len(found)


class AuctionPage:
    """The open page of a request; only changes are drawn, since an auction may send a hundred events a second.

    Attributes:
        returned: refunds for what the request bought, in minor units, when the page was opened.
    """

    def __init__(self, visit: Visit, story: AuctionStory) -> None:
        self.returned = 0
        self._visit = visit
        self._story = story
        self._short = visit.market().short
        self._charts: dict[int, ui.echart] = {}
        self._rounds_drawn = -1
        self._moments: deque[TextElement] = deque()
        self._moments_drawn = 0
        self._approval_drawn: object = story  # neither an approval nor an outcome, so that the first call draws both
        self._end_drawn: object = story

    def build(self) -> None:
        with ui.element("div").classes("row items-center full-width").style("gap: .8rem"):
            frame.heading(f"Request {self._visit.short_id(self._story.request_id)}")
            self._stage = ui.label().props('role="status"').classes("ramp-quiet")
            ui.space()
            self._withdraw = ui.button("Withdraw", on_click=self._withdraw_it).props("outline no-caps")
        self._asked = ui.element("section").classes("ramp-card").props('aria-label="Your approval"')
        self._ended = ui.element("section").classes("ramp-card").props('aria-label="Outcome"')
        with frame.card("Bidding"):
            self._grid = ui.element("div").classes("full-width ramp-charts")
            self._rounds = RowTable(
                (
                    Column("Round", lambda row: row.round.name),
                    Column("Unit", lambda row: row.unit, Kind.NUMBER),
                    Column("Asking price (credits/core-hour)", lambda row: row.asked, Kind.NUMBER),
                    Column("Offers", lambda row: _number_of(row.offers), Kind.NUMBER),
                    Column("Best offer", self._best_text),
                    Column("Refused", lambda row: _number_of(row.refusals), Kind.NUMBER),
                    Column("Duration (ms)", lambda row: row.took_ms, Kind.NUMBER),
                ),
                empty="No rounds yet.",
            )
        with frame.card("Refusals of the last round"):
            rounded_up = partial(self._visit.sentence, up=True)
            self._refusals = RowTable(
                (
                    Column("Unit", lambda each: each.unit, Kind.NUMBER),
                    Column("Reason", lambda each: each.code.replace("_", " ")),
                    Column("Resources", lambda each: len(each.entries), Kind.NUMBER),
                    Column("Nearest acceptable value", lambda each: each.passing(self._short, rounded_up)),
                )
            )
        with frame.card("Purchase"):
            self._nothing = ui.label().classes("ramp-quiet")
            self._timeline = ui.element("ol").style("list-style: none; padding: 0; margin: 0")
        self.draw()

    def draw(self) -> None:
        story = self._story
        self._stage.set_text(story.stage)
        self._withdraw.set_visibility(story.outcome is None)
        if story.rounds_heard != self._rounds_drawn:
            self._rounds_drawn = story.rounds_heard
            self._draw_rounds()
        self._draw_moments()
        self._draw_approval()
        self._draw_end()

    def _draw_rounds(self) -> None:
        self._draw_charts()
        self._rounds.show(
            UnitRound(each, unit, asked)
            for _, each in sorted(self._story.rounds.items())
            for unit, asked in sorted(each.asked.items())
        )
        self._refusals.show(self._story.reasons())

    def _best_text(self, row: UnitRound) -> str:
        if row.round.record is None:
            return f"waiting for {row.round.resources} resources"
        return row.best(self._short) or "none"

    def _draw_charts(self) -> None:
        for unit in self._story.units[:CHARTS_MAX]:
            options = charts.auction_chart(self._story, unit)
            drawn = self._charts.get(unit)
            if drawn is None:
                with self._grid, ui.element("div"):
                    ui.label(f"Unit {unit}").classes("text-weight-medium")
                    label = f"Prices of unit {unit} by round, as in the table below"
                    self._charts[unit] = charts.draw_chart(options, label, 15)
            else:
                charts.redraw(drawn, options)

    def _draw_moments(self) -> None:
        ended = self._story.outcome
        nothing = "The purchase starts after the bidding." if ended is None else "No purchase."
        if ended is not None and ended.status is RequestStatus.COMMITTED:
            nothing = "These pages were not connected then. Each reservation has its agreement and payment proof."
        self._nothing.set_text(nothing)
        self._nothing.set_visibility(not self._story.moments)
        new = min(self._story.moments_heard - self._moments_drawn, MOMENTS_MAX)
        self._moments_drawn = self._story.moments_heard
        if not new:
            return
        with self._timeline:
            for at, each in list(self._story.moments)[-new:]:
                line = TextElement(tag="li", text=self._moment_text(at, each)).style("padding: .25rem 0")
                self._moments.append(line.classes("ramp-number " + MOMENT_COLOURS.get(each.stage, "")))
        while len(self._moments) > MOMENTS_MAX:
            self._timeline.remove(self._moments.popleft())

    def _moment_text(self, when: Instant, moment: UnitAdvanced) -> str:
        at = to_datetime(when).astimezone(self._visit.zone)
        detail = f" ({self._visit.sentence(moment.detail)})" if moment.detail else ""
        return (
            f"{at:%H:%M:%S}.{at.microsecond // 1000:03d}  unit {moment.unit}, {self._short(moment.resource)}: "
            f"{STAGES.get(moment.stage, moment.stage)}{detail}"
        )

    def _draw_approval(self) -> None:
        asked = self._story.approval
        if asked is self._approval_drawn:
            return
        self._approval_drawn = asked
        self._asked.set_visibility(asked is not None)
        self._asked.clear()
        if asked is None:
            return
        with self._asked:
            frame.subheading("Your approval is required")
            units = [
                BoughtUnit(offer.unit, offer, offer.cores, meets_request=meets, paid=cost)
                for offer, meets, cost in zip(asked.offers, asked.meets, asked.costs, strict=True)
            ]
            self._draw_units(units, asked=True)
            until = self._visit.moment(to_datetime(asked.until))
            ui.label(f"Total: {credits_named(sum(asked.costs))}. Answer until {until}.").classes("q-my-sm")
            with ui.element("div").classes("row").style("gap: .6rem"):
                ui.button("Approve and buy", on_click=lambda: self._answer(approved=True)).props("no-caps")
                ui.button("Decline", on_click=lambda: self._answer(approved=False)).props("outline no-caps")

    async def _answer(self, *, approved: bool) -> None:
        with complaining(self._visit):
            await self._visit.feed().answer(self._story.request_id, approved)

    def _draw_end(self) -> None:
        outcome = self._story.outcome
        if outcome == self._end_drawn:
            return
        self._end_drawn = outcome
        self._ended.set_visibility(outcome is not None)
        self._ended.clear()
        if outcome is None:
            return
        with self._ended:
            titles = {RequestStatus.COMMITTED: "Bought", RequestStatus.QUOTED: "Quote"}
            frame.subheading(titles.get(outcome.status, f"Not bought: {outcome.status.replace('_', ' ')}"))
            if outcome.reason:
                ui.label(self._visit.sentence(outcome.reason))
            if outcome.until > SystemClock().now():
                QuoteOffers(self._visit, outcome).build()
            elif outcome.units:
                self._draw_units(outcome.units, bought=bool(outcome.cost))
                total = credits_named(sum(each.cost for each in outcome.units))
                ui.label(f"Total: {total}").classes("text-weight-medium")
                if self.returned:
                    left = credits_named(outcome.cost - self.returned)
                    ui.label(f"Returned since: {credits_named(self.returned)}; cost: {left}")
            if outcome.status is RequestStatus.QUOTED:
                ui.link("Back to the form", "/ask")

    def _draw_units(self, units: Sequence[BoughtUnit], *, bought: bool = False, asked: bool = False) -> None:
        """Draw units that are bought, only offered, or shown for the user's approval."""

        def cores(unit: BoughtUnit) -> object:
            all_cores = unit.offer.cores
            return f"{all_cores} ({unit.cores_asked} requested)" if unit.charges_more else all_cores

        def resource(unit: BoughtUnit) -> str:
            remark = "" if unit.meets_request or not asked else " (does not meet the request)"
            return self._short(unit.offer.resource) + remark

        columns = (
            Column("Unit", lambda unit: unit.unit, Kind.NUMBER),
            Column("Resource", resource),
            Column("Start", lambda unit: to_datetime(unit.offer.start), Kind.TIME),
            Column("End", lambda unit: to_datetime(unit.offer.end), Kind.TIME),
            Column("Cores", cores, Kind.NUMBER),
            Column(
                "Price (credits/core-hour)",
                lambda unit: unit.offer.cpu_hour_cost if asked else price_number(unit.price_paid),
                Kind.NUMBER,
            ),
            Column("Cost (credits)", lambda unit: unit.cost, Kind.CREDITS),
            Column("Reservation", lambda unit: unit.reservation_id, link="/reservations/"),
        )
        RowTable(columns if bought else columns[:-1], units, key=lambda unit: unit.agreement_id or unit.unit)

    async def _withdraw_it(self) -> None:
        with complaining(self._visit):
            await self._visit.market().ask(dialogues.withdraw(self._story.request_id))
            ui.notify("Withdrawn, unless it was already decided.")


class QuoteOffers:
    """The offers of a quote, ranked, which can be bought while they stand."""

    def __init__(self, visit: Visit, outcome: RequestOutcome) -> None:
        self._visit = visit
        self._outcome = outcome
        self._chosen = {unit.unit: unit for unit in outcome.units}
        self._offers = {
            f"{unit.unit}-{number}": (number, each)
            for unit in outcome.units
            for number, each in enumerate(outcome.ranked(unit.unit), 1)
        }

    def build(self) -> None:
        single = len(self._chosen) == 1
        self._left = ui.label().props('role="timer"').classes("ramp-number")
        short = self._visit.market().short
        RowTable(
            (
                Column("Unit", lambda row: row[1].unit, Kind.NUMBER),
                Column("Rank", lambda row: row[0], Kind.NUMBER),
                Column("Seller", lambda row: short(row[1].offer.resource)),
                Column("Start", lambda row: to_datetime(row[1].offer.start), Kind.TIME),
                Column("End", lambda row: to_datetime(row[1].offer.end), Kind.TIME),
                Column("Cores charged", lambda row: row[1].offer.cores, Kind.NUMBER),
                Column("Price (credits/core-hour)", lambda row: row[1].offer.cpu_hour_cost, Kind.NUMBER),
                Column("Total (credits)", lambda row: row[1].cost, Kind.CREDITS),
                Column("Buy", lambda _: "Buy this" if single else "Choose", picks=True),
            ),
            self._offers.values(),
            key=lambda row: f"{row[1].unit}-{row[0]}",
            name="Offers",
            on_pick=self._pick,
        )
        self._sum = ui.label().props('role="status"').classes("text-weight-medium q-mt-sm")
        if not single:
            ui.button("Buy the chosen offers", on_click=self._buy).props("no-caps")
            self._show_sum()
        self._count()
        ui.timer(1.0, self._count)

    def _count(self) -> None:
        left = (self._outcome.until - SystemClock().now()) // SECOND
        text = (
            f"These offers stand for {left // 60}:{left % 60:02d} min." if left > 0 else "These offers stand no more."
        )
        self._left.set_text(f"Nothing is reserved or bought. {text}")

    async def _pick(self, key: str) -> None:
        if key in self._offers:
            _, chosen = self._offers[key]
            self._chosen[chosen.unit] = chosen
            if len(self._chosen) == 1:
                await self._buy()
            else:
                self._show_sum()

    def _show_sum(self) -> None:
        short = self._visit.market().short
        named = ", ".join(f"unit {number} of {short(each.offer.resource)}" for number, each in self._chosen.items())
        self._sum.set_text(f"Chosen: {named}; {credits_named(sum(each.cost for each in self._chosen.values()))}")

    async def _buy(self) -> None:
        total = credits_named(sum(each.cost for each in self._chosen.values()))
        short = self._visit.market().short
        sellers = ", ".join(short(each.offer.resource) for each in self._chosen.values())
        if not await confirmed(f"Buy for {total}?", f"Exactly these offers of {sellers}, all or none.", "Buy"):
            return
        chosen = [(number, each.offer.resource) for number, each in self._chosen.items()]
        with complaining(self._visit):
            await self._visit.feed().answer(self._outcome.request_id, True, chosen)


async def build_one(visit: Visit) -> None:
    """Fill the page of one request."""
    feed = visit.feed()
    story = await feed.find(visit.request.path_params["request_id"])
    page = AuctionPage(visit, story)
    if story.outcome is not None and story.outcome.cost:
        bought = await visit.market().reservations(everything=True)
        page.returned = sum(each.returned for each in bought if each.request_id == story.request_id)
    page.build()
    Refresher(page.draw, feed.changed, about=story.request_id)
