"""The form of a request, its summary, quotes and submission."""

from __future__ import annotations

import re
from typing import Final

from nicegui import events, ui

from ramp.client import submission
from ramp.client.access import running
from ramp.control.answering import NAME_MAX
from ramp.errors import ConfigurationError, DocumentError, RampError
from ramp.model.instant import DAY, HOUR, to_datetime
from ramp.model.request import RequestForQuotation, RequestUnit
from ramp.protocol.events import Approval, Preference
from ramp.rfql.request_for_quotation import parse_request
from ramp.rfql.xml import schema
from ramp.runtime.clock import SystemClock
from ramp.web.draft import FIELDS, FIRST, GROUPS, MAIN, PRESETS, UNITS_MAX, Draft, Field, UnitDraft, greatest_cost
from ramp.web.live import mean_price
from ramp.web.pages import frame
from ramp.web.pages.account import warning_text
from ramp.web.pages.dialogs import complaining, mark
from ramp.web.pages.frame import Visit, credits_named, whole

DOCUMENT_MAX: Final = 1 << 20
"""Maximum size of an uploaded document in bytes; one of 256 units has a tenth."""

ROUNDS_MAX: Final = 50

SELLER: Final = re.compile(r"[a-z0-9._-]{1,64}(@[a-z0-9.-]{1,64})?")
"""Name of a seller in an address of this page."""

LOOKS: Final = ("ramp-bad", "", "text-weight-medium", "ramp-quiet", "ramp-wait")
"""Styles of what the summary says: faults, the units, their cost, an estimate, and warnings."""

NO_LIMIT: Final = "Best offers may cost more than the prices of the units: enter a maximum total cost."


class AskPage:
    """The open form."""

    def __init__(self, visit: Visit) -> None:
        self._visit = visit
        self._draft = visit.site.draft_of(visit.session.key)
        self._clock = SystemClock()
        self._fields: dict[str, ui.select | ui.input] = {}

    async def build(self) -> None:
        frame.heading("New request")
        try:
            available = (await self._visit.market().balance()).available
        except RampError:
            available = None  # the form is of use while the bank does not answer
        with ui.element("div").classes("ramp-columns"):
            with ui.element("div").classes("column").style("gap: 1rem; min-width: 0"):
                self._units = ui.element("div").classes("column full-width").style("gap: 1rem")
                with ui.element("div").classes("row").style("gap: .6rem"):
                    ui.button("Add a unit", on_click=self._add).props("outline no-caps icon=add")
                    upload = ui.upload(
                        auto_upload=True,
                        max_file_size=DOCUMENT_MAX,
                        on_upload=self._upload,
                        on_rejected=lambda: ui.notify("The document is larger than 1 MB.", type="negative"),
                    )
                    upload.props('accept=".xml,.rfql" aria-hidden="true"').style("display: none")
                    ui.button("Upload RFQL").props("outline no-caps icon=upload_file").on(
                        "click", js_handler=f"() => runMethod({upload.id}, 'pickFiles', [])"
                    )
            with frame.card():
                self._build_summary()
                if available is not None:
                    ui.label(f"Available: {credits_named(available)}").classes("ramp-quiet ramp-number q-mt-md")
                    ui.label(warning_text(self._visit, available)).classes("ramp-wait")
        self._draw_units()
        ui.timer(5.0, self._check)  # `+5min` moves on

    def _build_summary(self) -> None:
        frame.subheading("The request")
        with ui.element("div").classes("column").style("gap: .3rem").props('aria-live="polite"'):
            self._said = [ui.label().classes(look).style("white-space: pre-line") for look in LOOKS]
        self._limit_field = ui.input(
            "Maximum total cost (credits)",
            value=self._draft.max_cost,
            placeholder="no limit",
            on_change=self._check,
        ).bind_value_to(self._draft, "max_cost", forward=lambda text: text or "")
        self._limit_field.props("clearable").classes("full-width")
        draft = self._draft
        name = ui.input("Your name for it", value=draft.name, placeholder="optional").props(f"maxlength={NAME_MAX}")
        rounds = ui.number("Bidding rounds", value=draft.rounds, min=1, max=ROUNDS_MAX, format="%d")
        prefer = ui.select({each.value: each.value for each in Preference}, label="Rank offers by", value=draft.prefer)
        approval = ui.select(
            {
                Approval.AUTO.value: "buy offers that meet the request",
                Approval.ASK.value: "ask me before buying",
                Approval.BEST_OFFER.value: "buy the best offers, even if they do not meet it",
            },
            label="Before buying",
            value=draft.approval,
        )
        name.bind_value_to(draft, "name", forward=lambda text: text or "")
        rounds.bind_value_to(draft, "rounds")
        prefer.bind_value_to(draft, "prefer", forward=Preference)
        approval.bind_value_to(draft, "approval", forward=Approval)
        for drawn in (name, rounds, prefer, approval):
            drawn.classes("full-width").on_value_change(self._check)
        with ui.element("div").classes("row q-mt-md").style("gap: .6rem"):
            self._quote = ui.button("Quote", on_click=lambda: self._submit(quote_only=True)).props("outline no-caps")
            self._buy = ui.button("Auction and buy", on_click=lambda: self._submit(quote_only=False)).props("no-caps")
            ui.button("Download", on_click=self._download).props("flat no-caps")
        ui.label("A quote runs the auction without reserving or buying anything.").classes("ramp-quiet text-caption")

    # -- the units -----------------------------------------------------------------------------------------------

    def _draw_units(self) -> None:
        self._units.clear()
        self._fields = {}
        with self._units:
            for number, unit in enumerate(self._draft.units, 1):
                self._build_unit(number, unit)
        self._check()

    def _build_unit(self, number: int, unit: UnitDraft) -> None:
        with frame.card().props(f'aria-label="Unit {number}"'):
            with ui.element("div").classes("row items-center full-width"):
                frame.subheading(f"Unit {number}")
                ui.space()
                if len(self._draft.units) > 1:
                    ui.button(icon="close", on_click=lambda: self._remove(unit)).props(
                        f'flat round dense aria-label="Remove unit {number}"'
                    )
            with ui.element("div").classes("row").style("gap: .5rem").props('role="group" aria-label="Sizes"'):
                for name in PRESETS:
                    ui.button(name, on_click=lambda name=name: self._preset(unit, name)).props("outline no-caps dense")
            with ui.element("div").classes("ramp-fields"):
                for each in MAIN:
                    self._build_field(number, unit, each)
            opened = any(unit.text(name) for names in GROUPS.values() for name in names.split())
            with ui.expansion("Expert terms", value=opened).classes("full-width"):
                for title, names in GROUPS.items():
                    ui.label(title).classes("text-weight-medium q-mt-sm")
                    with ui.element("div").classes("ramp-fields ramp-wide"):
                        for name in names.split():
                            self._build_field(number, unit, FIELDS[name])
                        if title == "Torus":
                            turned = ui.checkbox("Allow rotation", value=unit.rotate, on_change=self._check)
                            turned.bind_value_to(unit, "rotate")

    def _preset(self, unit: UnitDraft, name: str) -> None:
        unit.preset(name)
        self._draw_units()

    def _build_field(self, number: int, unit: UnitDraft, each: Field) -> None:
        value = unit.texts.get(each.name, "")
        if each.choices:
            choices = schema.choices_of(each.choices) if isinstance(each.choices, str) else each.choices
            drawn: ui.select | ui.input = ui.select(
                ["", *choices], label=each.label, value=value if value in choices else "", with_input=len(choices) > 8
            )
        else:
            drawn = ui.input(each.label, value=value, placeholder=each.hint)
        drawn.bind_value_to(unit.texts, each.name, forward=lambda text: text or "")
        drawn.classes("full-width").on_value_change(self._check)
        self._fields[f"unit {number}: {each.label}: "] = drawn

    def _add(self) -> None:
        if len(self._draft.units) >= UNITS_MAX:
            ui.notify(f"The form is limited to {UNITS_MAX} units; use `ramp submit` for more.", type="warning")
            return
        self._draft.units.append(UnitDraft(dict(FIRST)))
        self._draw_units()

    def _remove(self, unit: UnitDraft) -> None:
        self._draft.units.remove(unit)
        self._draw_units()

    async def _upload(self, event: events.UploadEventArguments) -> None:
        with complaining(self._visit):
            found = Draft.of(parse_request(await event.file.read(), event.file.name))
            self._draft.units = found.units
            self._limit_field.set_value(found.max_cost)
            self._draw_units()

    # -- what it makes -------------------------------------------------------------------------------------------

    def _document(self) -> RequestForQuotation | None:
        """Build the document; if it is invalid, show why and return None."""
        try:
            return self._draft.document(self._clock.now(), self._visit.zone)
        except DocumentError as error:
            self._complain("\n".join(error.violations) or error.reason)
        except ConfigurationError as error:
            self._complain(error.reason)
        return None

    def _mark(self, text: str) -> None:
        """Show a fault at the field that it names; an empty text clears all fields."""
        for label, drawn in self._fields.items():
            mark(drawn, text.removeprefix(label) if text.startswith(label) else "")

    def _complain(self, text: str) -> None:
        self._mark(text)
        self._say(text)

    def _say(self, faults: str, units: str = "", cost: str = "", estimate: str = "", warnings: str = "") -> None:
        """Show texts, in the order of `LOOKS`; a screen reader reads those aloud that change."""
        for label, text in zip(self._said, (faults, units, cost, estimate, warnings), strict=True):
            label.set_text(text)
            label.set_visibility(bool(text))

    def _check(self) -> None:
        """Show the request or its faults."""
        document = self._document()
        approval = self._draft.approval
        most = None if document is None else greatest_cost(document, approval, self._clock.now())
        self._quote.set_enabled(document is not None)
        self._buy.set_enabled(most is not None)
        if document is None:
            return
        self._mark("")
        cost = NO_LIMIT if most is None else f"Maximum total cost: {credits_named(most)}."
        if approval is Approval.ASK and document.max_cost is None:
            cost += " You may also approve a dearer offer."
        units = [self._unit_text(unit) for unit in document.units]
        if len(units) > 1:
            both = "Both" if len(units) == 2 else f"All {len(units)}"
            units.append(f"{both} are bought together or not at all.")
        self._say("", "\n".join(units), cost, self._estimate(document), "\n".join(document.warnings))

    def _estimate(self, document: RequestForQuotation) -> str:
        """Say what was paid for the same in the last 24 hours; empty without sales."""
        now = self._clock.now()
        sales = self._visit.site.sales.since(now - DAY)
        if not sales:
            return ""
        hours = sum(unit.cores.total * max(unit.length_from(now), 0) for unit in document.units) / HOUR
        mean, prices = mean_price(sales), [each.price for each in sales]
        return (
            f"Estimate: {whole(round(mean * hours))} credits at the mean price of the last 24 h, {mean:.2f}"
            f" credits/core-hour (from {min(prices):.0f} to {max(prices):.0f})."
        )

    def _unit_text(self, unit: RequestUnit) -> str:
        start = "as soon as possible"
        if unit.not_before is not None:
            start = f"not before {self._visit.moment(to_datetime(unit.not_before))}"
        end = self._visit.moment(to_datetime(unit.deadline))
        return f"Unit {unit.number}: {unit.cores.total} cores, {start}, complete by {end}"

    def _download(self) -> None:
        with complaining(self._visit):
            text = self._draft.text(self._clock.now(), self._visit.zone)
            ui.download.content(text, "request.xml", "application/xml")

    async def _submit(self, *, quote_only: bool) -> None:
        document = self._document()
        if document is None:
            return
        market = self._visit.market()
        most = greatest_cost(document, self._draft.approval, self._clock.now())
        options = self._draft.options(document.max_cost if quote_only else most, quote_only=quote_only)
        access = market.access
        with complaining(self._visit):
            asked = submission.submission([document], options, access.now(), access.new_id("request"))
            ui.navigate.to(f"/requests/{await self._visit.feed().submit(asked)}")


async def build(visit: Visit) -> None:
    """Fill the page; `?at=NAME` asks a single seller."""
    if (seller := visit.request.query_params.get("at", "")) and SELLER.fullmatch(seller):
        address = seller if "@" in seller else f"{seller}@{running(visit.site.state).domain}"
        draft = visit.site.draft_of(visit.session.key)
        draft.units, draft.max_cost = [UnitDraft({**FIRST, "sites": address})], ""
    await AskPage(visit).build()
