"""One unit in the second phase of the two-phase commit: its agreement, how far it has come, and what is said of it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from ramp.errors import RemoteProtocolError
from ramp.model.acl import Message, Performative
from ramp.model.agreement import Agreement, Signed
from ramp.model.contents import Commitment, Failed, FundsReserved, Settled
from ramp.model.seal import Role, Seal
from ramp.model.sizes.moldable import as_offered
from ramp.protocol.effects import Report, Send
from ramp.protocol.outcome import BoughtUnit
from ramp.protocol.progress import UnitAdvanced
from ramp.protocol.timing import Retry


class UnitStage(StrEnum):
    """How far the confirmation of one unit has come."""

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
        agreement: what is to be bought.
        retry: of the CONFIRM.
        stage: how far it has come.
        transfer_id: of its payment.
        failed: what its resource has said of its failure, with the seal.
        refunded: whether the bank has given its money back, unasked: its resource has told the bank that it failed.
    """

    agreement: Agreement
    retry: Retry
    stage: UnitStage = UnitStage.RESERVING
    transfer_id: str = ""
    failed: tuple[Failed, Seal] | None = None
    refunded: bool = False

    @property
    def resource(self) -> str:
        """Who sells it."""
        return self.agreement.resource

    @property
    def complaint(self) -> str:
        """Why it cannot be had although it was paid, or the empty string."""
        paid = f"{self.resource} was paid for unit {self.agreement.request.number}"
        if self.failed is not None:
            return f"{paid} and says that it failed; the money is claimed back"
        return f"{paid} and gave the money back" if self.refunded else ""

    def confirm(self, vote: FundsReserved, seal: Seal) -> Send:
        """The CONFIRM: the agreement, to be signed by the host, and the bank's vote."""
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
        """Tell whoever watches where the unit is."""
        agreement = self.agreement
        number = agreement.request.number
        return Report(UnitAdvanced(agreement.request_id, number, agreement.resource, self.stage.value, detail))

    def check_proof(self, settled: Settled) -> None:
        """Check that a settlement proves that this unit is paid: both signatures, and the bank's word to the resource.

        Raises:
            RemoteProtocolError: if it does not.
        """
        agreement = self.agreement
        if settled.agreement.body != agreement or settled.agreement.signers != (agreement.user, agreement.resource):
            raise RemoteProtocolError("the proof is of another agreement or lacks a signature")
        payment, seal = settled.payment, settled.payment_seal
        told = (seal.signer, seal.role, seal.receiver) == (agreement.bank, Role.BANK, agreement.resource)
        if not told or (payment.agreement_id, payment.amount) != (agreement.agreement_id, agreement.cost):
            raise RemoteProtocolError("the proof lacks the bank's word that this was paid")

    def bought(self) -> BoughtUnit:
        """The unit as the outcome has it."""
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


def check_failure(failed: Failed, agreement: Agreement) -> None:
    """Check that a seller says of the unit itself, and not of another offer under its id, that it failed.

    The bank gives no money back for a word that contradicts itself, so no claim can rest on one.

    Raises:
        RemoteProtocolError: if it does not.
    """
    sold = agreement.offer.offer_id
    if failed.offer_id != sold:
        raise RemoteProtocolError(
            f"{agreement.agreement_id} is of {sold}, and {failed.offer_id} is said to have failed"
        )
