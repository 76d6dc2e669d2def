"""One unit in the second phase of the two-phase commit."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from ramp.errors import RemoteProtocolError
from ramp.model.acl import Message, Performative
from ramp.model.agreement import Agreement, ContractChange, Signed, end_of
from ramp.model.contents import Commitment, FundsReserved, Settled
from ramp.model.seal import Role, Seal
from ramp.model.sizes.moldable import as_offered
from ramp.protocol.effects import Report, Send
from ramp.protocol.outcome import BoughtUnit
from ramp.protocol.progress import UnitAdvanced
from ramp.protocol.timing import Retry


class UnitStage(StrEnum):
    """Stage of one unit's confirmation."""

    RESERVING = "reserving"
    CONFIRMING = "confirming"
    CONFIRMED = "confirmed"
    SETTLED = "settled"
    FAILED = "failed"
    VOIDED = "voided"


@dataclass(slots=True)
class ConfirmedUnit:
    """One unit.

    Attributes:
        agreement: the agreement.
        retry: of the CONFIRM.
        failed: the failure that the resource has signed.
        refunded: whether the bank has already refunded it, because the resource reported its failure.
    """

    agreement: Agreement
    retry: Retry
    stage: UnitStage = UnitStage.RESERVING
    transfer_id: str = ""
    failed: Signed | None = None
    refunded: bool = False

    @property
    def resource(self) -> str:
        return self.agreement.resource

    @property
    def complaint(self) -> str:
        """Return why a paid unit is not available, or the empty string."""
        paid = f"{self.resource} was paid for unit {self.agreement.request.number}"
        if self.failed is not None:
            return f"{paid} and reports a failure; a refund is requested"
        return f"{paid} and refunded the money" if self.refunded else ""

    def confirm(self, vote: FundsReserved, seal: Seal) -> Send:
        """Return the CONFIRM: the agreement, which the host signs, and the bank's vote."""
        agreement = self.agreement
        return Send(
            Message(
                Performative.CONFIRM,
                agreement.user,
                agreement.resource,
                agreement.request_id,
                Commitment(Signed(agreement), vote, seal),
                reply_with=agreement.agreement_id,
            )
        )

    def advanced(self, detail: str = "") -> Report:
        agreement = self.agreement
        number = agreement.request.number
        return Report(UnitAdvanced(agreement.request_id, number, agreement.resource, self.stage.value, detail))

    def check_proof(self, settled: Settled) -> None:
        """Check both signatures of a settlement, and the bank's payment message to the resource.

        Raises:
            RemoteProtocolError: if one is missing or about another agreement.
        """
        agreement = self.agreement
        if settled.agreement.body != agreement or settled.agreement.signers != (agreement.user, agreement.resource):
            raise RemoteProtocolError("the proof belongs to another agreement or lacks a signature")
        payment, seal = settled.payment, settled.payment_seal
        told = (seal.signer, seal.role, seal.receiver) == (agreement.bank, Role.BANK, agreement.resource)
        if not told or (payment.agreement_id, payment.amount) != (agreement.agreement_id, agreement.cost):
            raise RemoteProtocolError("the proof lacks the bank's statement of payment")

    def bought(self) -> BoughtUnit:
        agreement = self.agreement
        return BoughtUnit(
            agreement.request.number,
            agreement.offer,
            as_offered(agreement.request, agreement.offer).cores.total,
            agreement.agreement_id,
            agreement.reservation_id,
            self.transfer_id,
            not agreement.best_offer,
            None if agreement.price is None else agreement.cost,
        )


def checked_failure(signed: Signed, agreement: Agreement) -> ContractChange:
    """Return the failure that a seller has signed.

    The bank refunds nothing for another document, so no claim can rest on one.

    Raises:
        RemoteProtocolError: if the seller has not signed that it fails to deliver this agreement.
    """
    body = signed.body
    if not isinstance(body, ContractChange) or not body.is_failure or signed.signers != (agreement.resource,):
        raise RemoteProtocolError(f"{agreement.resource} has not signed that it fails {agreement.agreement_id}")
    if body != end_of(agreement, body.reason, body.issued_at, body.code):
        raise RemoteProtocolError(f"wrong parties or offer in the failure of {agreement.agreement_id}")
    return body
