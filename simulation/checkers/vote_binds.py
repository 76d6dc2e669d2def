"""A vote binds: who has agreed may not fail before the hold's deadline unless told to (two-phase commit)."""

from __future__ import annotations

from ramp.model.acl import Message
from ramp.model.agreement import ContractChange, Signed
from ramp.model.contents import ChangePosted, HoldCancelled, HoldGranted, HoldRefused, PaymentRefused
from ramp.model.instant import Instant
from ramp.model.offer import RefusalCode
from ramp.protocol.records import AgreementReceived, Record, SlotReleased
from simulation.market.actors import BANK
from simulation.market.market_view import Checker, MarketView

FORGETFUL = (RefusalCode.UNKNOWN_OFFER, RefusalCode.HOLD_EXPIRED, RefusalCode.SLOT_TAKEN, RefusalCode.CANCELLED)


class VoteBinds(Checker):
    """Remembers every AGREE and every cancellation that reached its resource."""

    name = "vote_binds"

    def __init__(self) -> None:
        self._promised: dict[tuple[str, str], tuple[Instant, Instant]] = {}
        self._sold_as: dict[str, tuple[str, str]] = {}
        self._freed: set[tuple[str, str]] = set()

    def on_written(self, name: str, record: Record, view: MarketView) -> None:
        """The resource knows the promised slot as an agreement's from now on, or lets it go when its clock says so.

        That clock may be set back before it has to say that it has.
        """
        if isinstance(record, AgreementReceived):
            self._sold_as[record.agreement.body.agreement_id] = (name, record.offer_id)
        elif isinstance(record, SlotReleased):
            promise = (name, record.offer_id)
            if promise in self._promised and view.time_of(name) >= self._promised[promise][0]:
                self._freed.add(promise)

    def on_delivered(self, message: Message, view: MarketView) -> None:
        """A cancellation frees the resource from its promise, and so does the bank's word that it is not paid."""
        content, resource = message.content, message.receiver
        if isinstance(content, HoldCancelled):
            self._freed.add((resource, content.offer_id))
        elif isinstance(content, Signed) and isinstance(content.body, ContractChange) and content.body.is_terminal:
            self._freed.add((resource, content.body.offer_id))
        elif isinstance(content, PaymentRefused | ChangePosted) and message.sender == BANK:
            if isinstance(content, ChangePosted) and not content.is_terminal:
                return
            promise = self._sold_as.get(content.agreement_id)
            if promise is not None:
                self._freed.add(promise)

    def on_sent(self, message: Message, view: MarketView) -> None:
        """A promise is given, or broken.

        It is kept when as much time has passed as was promised, though the resource's clock was set back meanwhile; and
        when that clock says so, by which a resource goes that was down.
        """
        content = message.content.body if isinstance(message.content, Signed) else message.content
        if message.sender in view.liars or not isinstance(content, HoldGranted | ContractChange | HoldRefused):
            return
        promise, now = (message.sender, content.offer_id), view.time_of(message.sender)
        if isinstance(content, HoldGranted):
            self._promised.setdefault(promise, (now + content.hold_for, view.now + content.hold_for))
        elif content.code is not None and content.code in FORGETFUL and promise not in self._freed:
            until, in_true_time = self._promised.get(promise, (now, view.now))
            if now < until and view.now < in_true_time:
                raise self._violated(
                    f"{message.sender} agreed to {content.offer_id} until {until}, "
                    f"but says {content.code.value} at {now}"
                )
