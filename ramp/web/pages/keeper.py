"""The keeper's page: health, trading, machines, accounts and agents, with the keeper's actions."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable
from datetime import datetime
from functools import partial
from typing import Final

from nicegui import run, ui

from ramp.client import dialogues
from ramp.client.access import RunningMarket, running
from ramp.client.asyncio_market import AsyncMarket
from ramp.client.connecting import MarketOperator
from ramp.control.status import headline, state_text
from ramp.errors import NoMarket
from ramp.model.contents import AccountLine, MarketOverview
from ramp.model.contents.accounts import TransferKind
from ramp.model.instant import HOUR, to_datetime
from ramp.model.money import credits_of, exact_credits
from ramp.runtime.clock import SystemClock
from ramp.runtime.joining.authority import DAYS_DEFAULT
from ramp.web.levels import Levels, Seller, sellers_of
from ramp.web.pages import frame
from ramp.web.pages.charts import draw_chart, price_chart, redraw
from ramp.web.pages.dialogs import Asked, answers, complaining, confirmed, whole_number
from ramp.web.pages.frame import Refresher, Visit, amount, credits_named, whole
from ramp.web.pages.machines.market import price_text
from ramp.web.pages.row_tables import Column, Kind, RowTable

PERIOD: Final = 24 * HOUR
"""Period of the trading that is shown; `ramp bank overview` has all."""

INVITED: Final = ("user", "resource")
SELLING: Final = "sells"
DRAINED: Final = "sells nothing new"

LOOK_AGAIN_S: Final = 10.0
"""Seconds between two queries to the machines and the bank."""


class KeeperPage:
    """The open page."""

    def __init__(self, visit: Visit) -> None:
        self._visit = visit
        name, found = visit.session.name, running(visit.site.state)
        if name not in found.names("keeper"):
            raise NoMarket(f"the market that runs has no keeper {name}")
        self._market = AsyncMarket(RunningMarket(visit.site.state, name, found.domain))
        self._operator = MarketOperator(visit.site.state)
        self._short = self._market.short

    async def build(self) -> None:
        with ui.element("div").classes("row items-baseline full-width").style("gap: .3rem 1rem"):
            frame.heading("Market administration")
            self._as_of = ui.label("Loading the market…").props('role="status"').classes("ramp-quiet ramp-number")
        self._state = ui.element("section").classes("ramp-tiles").props('aria-label="State of the market"')
        with frame.card("Prices paid and volume over 24 hours"):
            empty = price_chart((), 0, 1)
            self._chart = draw_chart(empty, "Prices paid and core-hours sold over 24 hours", 20)
        with frame.card():
            with ui.tabs().props("no-caps align=left") as tabs:
                titles = ("Machines", "Accounts", "Transactions", "Refusals", "Agents")
                headings = [ui.tab(title) for title in titles]
            with ui.tab_panels(tabs, value=headings[0]).classes("full-width").style("background: transparent"):
                builders = (self._machines, self._accounts, self._transactions, self._refusals, self._agents)
                for tab, build in zip(headings, builders, strict=True):
                    with ui.tab_panel(tab).classes("q-pa-none q-pt-md"):
                        build()
        Refresher(self._look, self._visit.site.sale_watch.changed, pause=2.0, every=LOOK_AGAIN_S)
        await self._look()

    # -- what there is -------------------------------------------------------------------------------------------

    def _machines(self) -> None:
        self._sellers = RowTable(
            (
                Column("Machine", lambda each: each.name, link="/machines/"),
                Column("Cores", lambda each: each.machine and each.machine.cores, Kind.NUMBER),
                Column("In use", lambda each: each.busy, Kind.SHARE),
                Column("Running jobs", lambda each: each.machine and each.machine.running_total, Kind.NUMBER),
                Column("Waiting jobs", lambda each: each.machine and each.machine.queued_total, Kind.NUMBER),
                Column("Sold", lambda each: _slots(each, firm=True), Kind.NUMBER),
                Column("Held", lambda each: _slots(each, firm=False), Kind.NUMBER),
                Column("Start price (credits/core-hour)", lambda each: each.start_price, Kind.NUMBER),
                Column("Agent", lambda each: each.agent),
                Column("Queue data", lambda each: each.machine.source if each.machine else "(no answer)"),
                Column("Change", lambda each: "" if each.agent == "at another site" else "Change", picks=True),
            ),
            key=lambda each: each.name,
            empty="No sellers.",
            name="Machines",
            on_pick=self._change_seller,
        )

    def _accounts(self) -> None:
        with ui.element("div").classes("row").style("gap: .6rem"):
            ui.button("Deposit", on_click=self._deposit).props("outline no-caps")
            ui.button("Add a user", on_click=self._add_user).props("outline no-caps")
            ui.button("Invite", on_click=self._invite).props("outline no-caps")
        self._listed = RowTable(
            (
                Column("Account", lambda each: self._short(each.account)),
                Column("Type", lambda each: each.kind),
                Column("Balance (credits)", lambda each: each.balance, Kind.CREDITS),
                Column("Reserved (credits)", lambda each: each.reserved, Kind.CREDITS),
                Column("Overdraft (credits)", lambda each: each.credit_limit, Kind.CREDITS, _overdraft_text),
            ),
            name="Accounts",
        )

    def _transactions(self) -> None:
        self._trades = RowTable(
            (
                Column("Time", lambda each: to_datetime(each.posted_at), Kind.TIME),
                Column("Type", lambda each: each.kind),
                Column("From", lambda each: self._short(each.debit_account)),
                Column("To", lambda each: self._short(each.credit_account)),
                Column("Amount (credits)", lambda each: each.amount, Kind.CREDITS),
            ),
            empty="No transactions in 24 hours.",
            name="Transactions of the last 24 hours",
        )

    def _refusals(self) -> None:
        self._since = ui.label().classes("ramp-quiet")
        self._refused = RowTable(
            (
                Column("Reason", lambda each: each[0].replace("_", " ")),
                Column("Refusals", lambda each: each[1], Kind.NUMBER),
            ),
            empty="No refusals.",
            name="Refusals by reason",
        )

    def _agents(self) -> None:
        self._running = RowTable(
            (
                Column("Agent", lambda each: each.name),
                Column("Role", lambda each: each.role),
                Column("State", state_text),
                Column("Restarts", lambda each: each.restarts, Kind.NUMBER),
                Column("Since", lambda each: datetime.fromisoformat(each.since) if each.since else None, Kind.TIME),
            ),
            name="Agents",
        )

    async def _look(self) -> None:
        site, now = self._visit.site, SystemClock().now()
        levels = await site.levels()
        if levels.status is not None:
            self._running.show(levels.status.agents)
        found = await self._market.ask(dialogues.overview(now - PERIOD, None))
        sellers = sellers_of(levels)
        answered = f"{len(levels.machines)} of {len(sellers)} machines answered"
        self._as_of.set_text(f"as of {datetime.now(self._visit.zone):%H:%M:%S}, {answered}")
        self._state.clear()
        with self._state:
            self._draw_state(levels, found)
        redraw(self._chart, price_chart(site.sales.since(now - PERIOD), now - PERIOD, now))
        self._sellers.show(sellers)
        accounts: list[AccountLine] = sorted(
            found.accounts, key=lambda each: (not (each.balance or each.reserved), each.account)
        )
        self._listed.show(accounts)
        self._trades.show(reversed(found.trades))
        self._refused.show(site.sale_watch.refusals.most_common())
        self._since.set_text(f"In the last rounds of all requests since {self._visit.moment(site.sale_watch.since)}.")

    def _draw_state(self, levels: Levels, found: MarketOverview) -> None:
        sales = self._visit.site.sales.since(SystemClock().now() - PERIOD)
        if levels.status is not None:
            told = headline(levels.status)
            up = sum(each.is_up for each in levels.status.agents)
            frame.tile("Health", told.health.value, told.why or f"{up} of {len(levels.status.agents)} agents up")
        paid, back = (
            sum(each.amount for each in found.trades if each.kind == kind)
            for kind in (TransferKind.PAYMENT, TransferKind.REFUND)
        )
        volume = round(sum(each.core_hours for each in sales))
        frame.tile("Paid, 24 h", amount(paid), f"credits, {amount(back)} refunded")
        frame.tile("Clearing price, 24 h", price_text(sales), "credits/core-hour, mean by volume")
        frame.tile("Sold, 24 h", whole(volume), f"core-hours in {whole(len(sales))} sales")
        users = [each for each in found.accounts if each.kind == "user"]
        money = whole(round(exact_credits(sum(each.balance for each in users))))
        frame.tile("Money of users", money, f"credits of {len(users)} users")

    # -- what the keeper does ------------------------------------------------------------------------------------

    async def _act(self, done: str, act: Callable[[], Awaitable[object]]) -> None:
        with complaining(self._visit):
            await act()
            ui.notify(done, type="positive")
            await self._look()

    async def _deposit(self) -> None:
        asked = (Asked("Account", _named, hint="alice"), Asked("Amount (credits)", credits_of, hint="5000"))
        found = await answers("Deposit", "Continue", *asked)
        if found is None:
            return
        account, given = found
        deposit_id = f"deposit-{secrets.token_hex(8)}"  # so that a repeated click credits once
        text = f"The market issues {credits_named(given)} to {account}. A deposit cannot be taken back."
        if await confirmed(f"Deposit to {account}?", text, "Deposit"):
            done = f"{credits_named(given)} credited to {account}."
            values = {"amount": exact_credits(given), "deposit_id": deposit_id}
            await self._operate(done, self._operator.deposit, account, **values)

    async def _add_user(self) -> None:
        found = await answers("Add a user", "Continue", Asked("Name", _named, hint="carol"), _OPENING)
        if found is None:
            return
        name, given = found
        text = f"{name} gets an agent, keys and an account with {credits_named(given)}."
        if await confirmed(f"Add the user {name}?", text, "Add the user"):
            done = f"{name} was added. `ramp web --link --user {name}` prints a login link."
            await self._operate(done, self._operator.add_user, name, deposit=exact_credits(given))

    async def _invite(self) -> None:
        found = await answers(
            "Invite a party of another site",
            "Continue",
            Asked("Full name", _named, hint="ann@north.example"),
            Asked("Role", choices=INVITED, value=INVITED[0]),
            _OPENING,
        )
        if found is None:
            return
        name, role, given = found
        money = f" Its account opens with {credits_named(given)}." if given else ""
        text = f"The invitation is valid for {DAYS_DEFAULT} days; the first to use it joins as {name}.{money}"
        if await confirmed(f"Invite {name} as {role}?", text, "Invite"):

            async def act() -> None:
                made = await run.io_bound(self._operator.invite, name, role, deposit=exact_credits(given))
                if made is not None:  # None if the server stops
                    ui.download.content(made.text(), f"{name}.invitation", "text/plain")

            await self._act(f"{name} is invited. Hand over the downloaded file like a password.", act)

    async def _change_seller(self, name: str) -> None:
        seller = next((each for each in sellers_of(await self._visit.site.levels()) if each.name == name), None)
        if seller is None:
            return
        sales = DRAINED if seller.is_draining else SELLING
        found = await answers(
            f"Change {name}",
            "Continue",
            Asked("Start price (credits/core-hour)", _price, str(seller.start_price or "")),
            Asked("Sales", choices=(SELLING, DRAINED), value=sales),
        )
        if found is None:
            return
        price, wanted = found
        if price and price != seller.start_price:
            text = f"New offers start at {whole(price)} credits/core-hour. Existing offers keep their price."
            if await confirmed(f"Set the price of {name}?", text, "Set the price"):
                await self._operate("The price is set.", self._operator.set_resource, name, start_price=price)
        if wanted == SELLING != sales:
            await self._operate(f"{name} sells again.", self._operator.resume_resource, name)
        elif wanted != sales:
            text = "It sells nothing new, also after a restart. Existing reservations stay."
            if await confirmed(f"Drain {name}?", text, "Drain"):
                await self._operate(f"{name} is draining.", self._operator.drain_resource, name)

    async def _operate(self, done: str, change: Callable[..., object], name: str, **values: object) -> None:
        await self._act(done, lambda: run.io_bound(change, name, **values))


def _named(text: str) -> str:
    if not text:
        raise ValueError("missing name")
    return text


def _price(text: str) -> int | None:
    return whole_number(text) if text else None


_OPENING: Final = Asked("Deposit (credits)", partial(credits_of, zero=True), "0")


def _overdraft_text(account: AccountLine) -> str:
    return amount(account.credit_limit) if account.is_limited else "no limit"


def _slots(seller: Seller, *, firm: bool) -> int | None:
    return None if seller.machine is None else sum(each.firm == firm for each in seller.machine.reservations)
