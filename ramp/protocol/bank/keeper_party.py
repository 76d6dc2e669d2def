"""The market's keeper: the paper's administrator of the Banking Agent (section 6.3), who gives the bank orders."""

from __future__ import annotations

from collections.abc import Sequence

from ramp.errors import RemoteProtocolError
from ramp.model.acl import Message, Performative
from ramp.model.contents import (
    AccountLine,
    ChangePosted,
    DepositMade,
    DepositOrder,
    KeeperRefused,
    MarketOverview,
    NotUnderstood,
    OverviewQuery,
    RefundOrder,
    TradeLine,
)
from ramp.model.instant import Duration, Instant
from ramp.model.seal import Role
from ramp.protocol.effects import Effect
from ramp.protocol.events import DepositOrdered, Event, MessageReceived, OverviewAsked, RefundOrdered
from ramp.protocol.questions import Questions
from ramp.protocol.records import Record
from ramp.protocol.timing import Pace, Timing


class KeeperParty:
    """Everything the keeper's agent does."""

    def __init__(self, name: str, *, bank: str, timing: Timing) -> None:
        self.name = name
        self.deadline: Instant | None = None
        self._bank = bank
        self._questions = Questions(name, Pace(timing))
        self._pages: dict[str, _Pages] = {}

    def start(self, now: Instant) -> list[Effect]:
        return []

    def recover(self, records: Sequence[Record], now: Instant) -> list[Effect]:
        """Start afresh: the keeper repeats unanswered commands."""
        return self.start(now)

    def tick(self, now: Instant) -> list[Effect]:
        effects = self._questions.tick(now)
        self._pages = {query_id: pages for query_id, pages in self._pages.items() if query_id in self._questions}
        return self._armed(effects)

    def handle(self, event: Event, now: Instant) -> list[Effect]:
        """Take a command of the keeper or an answer of the bank.

        Raises:
            RemoteProtocolError: if a message is not for a keeper, or not sealed by the bank.
        """
        match event:
            case DepositOrdered(deposit_id, account, amount, memo):
                order = DepositOrder(deposit_id, account, amount, memo)
                effects = self._questions.ask(
                    deposit_id, self._bank, lambda _: order, now, role=Role.BANK, performative=Performative.REQUEST
                )
            case RefundOrdered(agreement_id, reason):
                wish = RefundOrder(agreement_id, reason)
                effects = self._questions.ask(
                    agreement_id, self._bank, lambda _: wish, now, role=Role.BANK, performative=Performative.REQUEST
                )
            case OverviewAsked(query_id, since, until):
                pages = self._pages[query_id] = _Pages()
                effects = self._questions.ask(
                    query_id,
                    self._bank,
                    lambda _: OverviewQuery(query_id, since, until, pages.after),
                    now,
                    role=Role.BANK,
                )
            case MessageReceived(message):
                effects = self._on_message(message, now)
            case _:
                effects = []
        return self._armed(effects)

    def clock_set(self, by: Duration) -> None:
        self._questions.clock_set(by)
        self._armed([])

    def _on_message(self, message: Message, now: Instant) -> list[Effect]:
        content = message.content
        match content:
            case (
                DepositMade(deposit_id=reference)
                | ChangePosted(agreement_id=reference)
                | KeeperRefused(reference=reference)
            ):
                return self._questions.answered(reference, message, content, now)
            case MarketOverview(query_id=query_id):
                return self._on_overview(message, content, now) if query_id in self._questions else []
            case NotUnderstood():
                return self._questions.not_understood(message, content)
        raise RemoteProtocolError(f"{type(content).__name__} is not a message for a keeper")

    def _on_overview(self, message: Message, page: MarketOverview, now: Instant) -> list[Effect]:
        self._questions.check(page.query_id, message)
        pages = self._pages[page.query_id]
        if not pages.add(page):
            return []
        if page.next_after:
            return self._questions.again(page.query_id, now)
        del self._pages[page.query_id]
        whole = MarketOverview(page.query_id, page.bank_time, tuple(pages.accounts), tuple(pages.trades))
        return self._questions.answered(page.query_id, message, whole, now)

    def _armed(self, effects: list[Effect]) -> list[Effect]:
        self.deadline = self._questions.deadline
        return effects


class _Pages:
    """The pages of one overview, in order."""

    def __init__(self) -> None:
        self.after = 0
        self.accounts: list[AccountLine] = []
        self.trades: list[TradeLine] = []

    def add(self, page: MarketOverview) -> bool:
        """Take the next page; return False for a copy."""
        first = page.trades[0].transfer_id if page.trades else ""
        if any(trade.transfer_id == first for trade in self.trades) or (
            page.next_after and page.next_after <= self.after
        ):
            return False
        self.accounts += page.accounts
        self.trades += page.trades
        self.after = page.next_after
        return True
