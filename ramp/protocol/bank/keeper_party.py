"""The market's keeper: the paper's administrator of the Banking Agent (section 6.3), who gives the bank orders."""

from __future__ import annotations

from dataclasses import replace

from ramp.errors import RemoteProtocolError
from ramp.model import contents as c
from ramp.model.acl import Message, Performative
from ramp.model.instant import Instant
from ramp.model.seal import Role
from ramp.protocol.effects import Effect
from ramp.protocol.events import Event, KeeperAsked
from ramp.protocol.party import Party
from ramp.protocol.questions import Questions
from ramp.protocol.timing import Pace, Timing


class KeeperParty(Party):
    """Everything the keeper's agent does."""

    def __init__(self, name: str, *, bank: str, timing: Timing) -> None:
        super().__init__(name)
        self._bank = bank
        self._questions = Questions(name, Pace(timing), self)

    def handle(self, event: Event, now: Instant) -> list[Effect]:
        """Take a command of the keeper or an answer of the bank.

        Raises:
            RemoteProtocolError: if a message is not for a keeper, or not sealed by the bank.
        """
        match event:
            case KeeperAsked(c.OverviewQuery(query_id) as query):
                pages = OverviewPages()
                page = lambda: replace(query, after=pages.after)  # noqa: E731
                return self._questions.ask(query_id, self._bank, page, now, role=Role.BANK, pages=pages)
            case KeeperAsked(c.DepositOrder(reference) | c.RefundOrder(reference) as order):
                role, performative = Role.BANK, Performative.REQUEST
                return self._questions.ask(
                    reference, self._bank, lambda: order, now, role=role, performative=performative
                )
            case Message():
                return self._on_message(event, now)
            case _:
                return []

    def _on_message(self, message: Message, now: Instant) -> list[Effect]:
        content = message.content
        match content:
            case (
                c.DepositMade(deposit_id=reference)
                | c.ChangePosted(agreement_id=reference)
                | c.RequestRefused(reference=reference)
                | c.MarketOverview(query_id=reference)
            ):
                return self._questions.answered(reference, message, content, now)
            case c.NotUnderstood():
                return self._questions.not_understood(message, content)
        raise RemoteProtocolError(f"{type(content).__name__} is not a message for a keeper")


class OverviewPages:
    """The pages of one overview, in order."""

    def __init__(self) -> None:
        self.after = 0
        self._accounts: list[c.AccountLine] = []
        self._trades: list[c.TradeLine] = []

    def add(self, page: c.MarketOverview) -> bool:
        """Take the next page; return False for a copy."""
        first = page.trades[0].transfer_id if page.trades else ""
        if any(trade.transfer_id == first for trade in self._trades) or (
            page.next_after and page.next_after <= self.after
        ):
            return False
        self._accounts += page.accounts
        self._trades += page.trades
        self.after = page.next_after
        return True

    @property
    def complete(self) -> bool:
        """Whether the page that was taken last is the last one."""
        return not self.after

    def whole(self, last: c.MarketOverview) -> c.MarketOverview:
        """Return the whole overview as one page."""
        return c.MarketOverview(last.query_id, last.bank_time, tuple(self._accounts), tuple(self._trades))
