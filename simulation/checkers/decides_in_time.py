"""A user decides only while every hold, and the money, is promised for the margin longer (two-phase commit)."""

from __future__ import annotations

from ramp.model.acl import Message
from ramp.model.contents import FundsReserved, HoldGranted
from ramp.model.instant import SECOND, Duration, Instant
from ramp.protocol.records import CommitDecided, FundsAsked, Record
from simulation.market.actors import BANK
from simulation.market.market_view import Checker, MarketView

CLOCKS: Duration = SECOND // 10
"""By so much two clocks may count a hold differently."""


class DecidesInTime(Checker):
    """Remembers until when, in true time, holds and money were promised, and looks at every decision."""

    name = "decides_in_time"

    def __init__(self) -> None:
        self._said: dict[tuple[str, str, Duration], Instant] = {}
        self._promised: dict[tuple[str, str], Instant] = {}
        self._rests_on: dict[str, tuple[tuple[str, str], ...]] = {}

    def on_sent(self, message: Message, view: MarketView) -> None:
        """A promise: it counts from here, so counting from the question is on the safe side."""
        content = message.content
        if isinstance(content, HoldGranted) and message.sender not in view.liars:
            said = message.sender, content.offer_id, content.hold_for
            self._said.setdefault(said, view.now + content.hold_for)
        elif isinstance(content, FundsReserved) and message.sender == BANK:
            self._promised[BANK, content.order_id] = view.now + content.valid_for

    def on_delivered(self, message: Message, view: MarketView) -> None:
        """A promise is heard; one that is heard again, and lasts less by now, may have been on its way for long."""
        content = message.content
        if isinstance(content, HoldGranted) and message.sender not in view.liars:
            promise = message.sender, content.offer_id
            first = self._said[(*promise, content.hold_for)]
            known = self._promised.get(promise)
            self._promised[promise] = first if known is None else min(known, view.now + content.hold_for)

    def on_written(self, name: str, record: Record, view: MarketView) -> None:
        """A decision: all that it rests on must last longer."""
        if isinstance(record, FundsAsked):
            offers = ((each.resource, each.offer.offer_id) for each in record.agreements)
            self._rests_on[record.order_id] = ((BANK, record.order_id), *offers)
        elif isinstance(record, CommitDecided) and name not in view.liars:
            for promise in self._rests_on[record.order_id]:
                until = self._promised.get(promise)
                margin = view.timing.decision_margin - CLOCKS
                if until is not None and until < view.now + margin:
                    raise self._violated(
                        f"{name} decides {record.order_id} {until - view.now} us before "
                        f"{promise[1]} of {promise[0]} runs out"
                    )
