"""A job whose start is only probable is paid once it has started, in time; else its buyer keeps all of its money."""

from __future__ import annotations

from ramp.model.acl import Message
from ramp.model.agreement import Agreement, Signed
from ramp.model.contents import TransferKind
from simulation.market.actors import BANK
from simulation.market.market_view import Checker, MarketView, posted_transfers


class PaidForItsStart(Checker):
    """Remembers the agreements about such jobs that their honest sellers bring to the bank."""

    name = "paid_for_its_start"

    def __init__(self) -> None:
        self._agreements: dict[str, Agreement] = {}
        self._started: set[str] = set()

    def on_sent(self, message: Message, view: MarketView) -> None:
        """By its countersignature an honest seller says that the job has started: then it has."""
        content = message.content
        if not isinstance(content, Signed) or not isinstance(content.body, Agreement) or message.receiver != BANK:
            return
        body, seller = content.body, message.sender
        if body.offer.start_probability is None or seller != body.resource:
            return
        self._agreements[body.agreement_id] = body
        if seller in view.liars or body.agreement_id in self._started:
            return  # it says so again: a seller whose clock has gone ahead since has forgotten the job
        job = view.machines[seller].reservation(body.offer.offer_id, view.time_of(seller))
        if job is None or job.started_at is None:
            raise self._violated(f"{seller} wants to be paid for {body.agreement_id}, whose job has not started")
        self._started.add(body.agreement_id)

    def at_stop(self, view: MarketView) -> None:
        """No such job is paid but on its seller's word, and before the latest start that was promised."""
        for transfer in posted_transfers(view):
            agreement = self._agreements.get(transfer.agreement_id)
            if transfer.kind == TransferKind.PAYMENT and agreement is not None:
                if transfer.posted_at >= agreement.offer.start:
                    raise self._violated(f"{transfer.agreement_id} is paid after the latest start that was promised")
                if transfer.amount != agreement.cost:
                    raise self._violated(f"{transfer.agreement_id} is paid {transfer.amount}, not {agreement.cost}")
