"""Resizes: the owner's command, the questions to machine and ledger, and their answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ramp.model.agreement import ContractChange
from ramp.model.instant import Instant
from ramp.model.offer import Refusal
from ramp.model.slot import Reservation

QUOTED: Final = "quoted"
"""Code of a resize that was only quoted."""


@dataclass(frozen=True, slots=True)
class AgreementResized:
    """The owner resizes a bought slot.

    Attributes:
        agreement_id: of the slot.
        cores: new number of cores; None keeps the present one.
        until: new end; None keeps the present one.
        quote_only: only report the refund or cost.
        price: maximum price of the addition, credits per core hour; None for the price asked at purchase.
        max_cost: maximum total cost of the addition, minor units; None without a limit besides the price.
        together: other agreements to resize alike by one order, all or none; only to add.
    """

    agreement_id: str
    cores: int | None = None
    until: Instant | None = None
    quote_only: bool = False
    price: int | None = None
    max_cost: int | None = None
    together: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AmendmentOutcome:
    """How a resize ended, or its quoted refund or cost.

    Attributes:
        number: of the amendment; 0 if none was proposed.
        done: whether the bank has posted it.
        cores: of the slot from `effective_at` on.
        until: its end from then on.
        effective_at: start of the new size; 0 if nothing was proposed.
        refund: minor units refunded or quoted.
        code: why it is not done, or `quoted`; empty if it is.
        detail: the same as a sentence.
        charge: minor units charged or quoted.
    """

    agreement_id: str
    number: int
    done: bool
    cores: int
    until: Instant
    effective_at: Instant = 0
    refund: int = 0
    code: str = ""
    detail: str = ""
    charge: int = 0


@dataclass(frozen=True, slots=True)
class ResizeSlot:
    """Ask the plug-in to resize a firm slot at once; answered by `SlotResized`.

    Attributes:
        key: of the slot.
        step: number of the request; one that arrives after a higher step is not done, as requests overtake each other.
        cores: new number of cores.
        until: new end.
    """

    key: str
    step: int
    cores: int
    until: Instant


@dataclass(frozen=True, slots=True)
class SlotResized:
    """The plug-in's answer to `ResizeSlot`.

    Attributes:
        key: of the slot.
        step: of the question.
        answer: the new reservation, or a refusal; None if the result is unknown.
        doubt: why it is unknown, as a sentence.
        able: whether the machine can resize slots at all.
    """

    key: str
    step: int
    answer: Reservation | Refusal | None
    doubt: str = ""
    able: bool = True


@dataclass(frozen=True, slots=True)
class PostChange:
    """Ask the ledger to post a change, or to void it for good; answered by `ChangeDecided`.

    Attributes:
        agreement_id: of the contract.
        change: as signed; None if the market's keeper ends the agreement.
        by_buyer: whether only the buyer has signed it, which suffices to end an agreement before its slot begins.
        evidence: the signed change, or the keeper's order.
    """

    call_id: str
    agreement_id: str
    change: ContractChange | None
    by_buyer: bool
    evidence: str


@dataclass(frozen=True, slots=True)
class VoidChange:
    """Ask the ledger to void an unposted change, known or not; answered by `ChangeDecided`."""

    call_id: str
    agreement_id: str
    number: int
    user: str
    evidence: str


@dataclass(frozen=True, slots=True)
class ChangeDecided:
    """The ledger's answer about a change; with a code if it is not posted.

    Attributes:
        amount: minor units that the buyer paid (above zero) or got back (below).
        user: who has paid for the agreement, if it has ended.
        resource: who was paid, if it has ended.
    """

    call_id: str
    agreement_id: str
    number: int
    transfer_id: str = ""
    amount: int = 0
    user: str = ""
    resource: str = ""
    code: str = ""
    detail: str = ""


AmendingAnswer = SlotResized | ChangeDecided
