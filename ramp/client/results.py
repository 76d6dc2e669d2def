"""Answers of a market for programs: aware datetimes, whole amounts, names without the market's domain.

Amounts are integers of minor units, hundredths of a credit, so that sums are exact; `ramp.credits_text` writes them for
people. Prices are whole credits per core-hour. Every result keeps the model's own value that it was made from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from pathlib import Path

from ramp.client.machine_state import MachineState
from ramp.control.events import AgreementStanding
from ramp.errors import ConfigurationError
from ramp.model.contents import AccountStatement, StatementLine
from ramp.model.instant import to_datetime
from ramp.model.offer import Offer
from ramp.model.shortcoming import site_of
from ramp.protocol.outcome import QUOTED, BoughtUnit, ChangeOutcome, RequestOutcome, RequestStatus, RoundRecord


@dataclass(frozen=True, slots=True)
class Unit:
    """One unit that was bought or quoted.

    Attributes:
        number: the unit's number in the request, from 1.
        resource: who sells it.
        start: start of the slot.
        end: end of the slot.
        cores: cores charged for.
        cores_asked: cores asked for; fewer than `cores` on machines that sell only whole parts of themselves.
        price_offered: credits per core-hour charged.
        price_paid: the same as paid; it differs from the offer under an auction rule with a price of its own.
        cost: minor units, at the price paid.
        agreement_id: of the signed agreement, empty for a quotation.
        reservation_id: the resource's name for the slot, empty for a quotation.
        meets_request: False for an approved best offer.
        bought: the model's value.
    """

    number: int
    resource: str
    start: datetime
    end: datetime
    cores: int
    cores_asked: int
    price_offered: int
    price_paid: Decimal
    cost: int
    agreement_id: str
    reservation_id: str
    meets_request: bool
    bought: BoughtUnit = field(repr=False)


@dataclass(frozen=True, slots=True)
class Purchase:
    """How a request ended.

    Attributes:
        request_id: id of the request.
        status: see `ramp.RequestStatus`.
        reason: one sentence for people; empty where everything was bought.
        units: bought or quoted units.
        cost: payment in minor units; 0 unless committed.
        files: path of every signed agreement by its id; absent where the market keeps no files.
        outcome: the model's value, with every round of bidding.
    """

    request_id: str
    status: RequestStatus
    reason: str
    units: tuple[Unit, ...]
    cost: int
    files: Mapping[str, Path]
    outcome: RequestOutcome = field(repr=False)

    @property
    def committed(self) -> bool:
        """Whether everything was bought and paid."""
        return self.status is RequestStatus.COMMITTED

    @property
    def rounds(self) -> tuple[RoundRecord, ...]:
        """The rounds of bidding, with every offer and every refusal."""
        return self.outcome.rounds


def sellers_of(quote: RequestOutcome, numbers: Sequence[int]) -> list[tuple[int, str]]:
    """Return the sellers of a quote's offers, given their rank from 1 for each unit in turn.

    Raises:
        ConfigurationError: if there are not as many numbers as units, or a unit has no such offer.
    """
    if len(numbers) != len(quote.units):
        raise ConfigurationError(f"expected one number for each of the {len(quote.units)} units, got {len(numbers)}")
    found = []
    for unit, number in zip(quote.units, numbers, strict=True):
        ranked = quote.ranked(unit.unit)
        if not 1 <= number <= len(ranked):
            raise ConfigurationError(f"unit {unit.unit} has offers 1 to {len(ranked)}, got {number}")
        found.append((unit.unit, ranked[number - 1].offer.resource))
    return found


@dataclass(frozen=True, slots=True)
class Reservation:
    """A bought slot with its present state.

    Attributes:
        agreement_id: of the signed agreement.
        reservation_id: the resource's name for the slot; launchers take it.
        request_id: the request that it was bought by.
        state: `settling`, `active`, `cancelling`, `cancelled`, `lost` or `void`; `standing.cause` says why it is lost.
        resource: who sells it.
        start: start of the slot.
        end: end of the slot.
        cores: cores charged for.
        cost: minor units, less everything that was returned.
        returned: minor units of refunds.
        file: the signed agreement, None where the market keeps no files.
        standing: the model's value, with the whole agreement.
    """

    agreement_id: str
    reservation_id: str
    request_id: str
    state: str
    resource: str
    start: datetime
    end: datetime
    cores: int
    cost: int
    returned: int
    file: Path | None
    standing: AgreementStanding = field(repr=False)


@dataclass(frozen=True, slots=True)
class Posting:
    """One line of a statement.

    Attributes:
        at: when it was posted, by the bank's clock.
        kind: `payment`, `refund` or `deposit`.
        counterparty: the other account.
        amount: minor units, negative for payments.
        balance: minor units, after it.
        agreement_id: the agreement; empty for a deposit.
        deposit_id: a deposit's own id; empty for all others.
        line: the model's value.
    """

    at: datetime
    kind: str
    counterparty: str
    amount: int
    balance: int
    agreement_id: str
    deposit_id: str
    line: StatementLine = field(repr=False)


@dataclass(frozen=True, slots=True)
class Account:
    """An account as the bank states it; amounts in minor units.

    Attributes:
        name: name of the account.
        balance: balance.
        reserved: money set aside for purchases that are not settled yet.
        overdraft: how far below 0 the balance may go.
        at: the bank's clock.
        postings: postings of the requested period; empty for a query of the balance alone.
        statement: the model's value.
    """

    name: str
    balance: int
    reserved: int
    overdraft: int
    at: datetime
    postings: tuple[Posting, ...]
    statement: AccountStatement = field(repr=False)

    @property
    def available(self) -> int:
        """Money to spend: balance and overdraft less the reserved amount."""
        return self.balance + self.overdraft - self.reserved


@dataclass(frozen=True, slots=True)
class Cancelled:
    """The result of a cancellation.

    Attributes:
        agreement_id: the cancelled agreement, or empty where a running request was withdrawn.
        request_id: the request it belongs to.
        done: whether the agreement was cancelled.
        withdrawn: whether a running request was withdrawn.
        refund: minor units refunded now; 0 if it was cancelled before.
        code: why it was not done, `already_cancelled` if it was done before, or empty.
        detail: the same as a sentence.
    """

    agreement_id: str
    request_id: str
    done: bool
    withdrawn: bool = False
    refund: int = 0
    code: str = ""
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Resized:
    """The result of a resize, or its preview.

    Attributes:
        agreement_id: of the slot.
        done: whether the bank has posted it.
        quoted: whether it is only a preview.
        number: number of the signed amendment; 0 without one.
        cores: of the slot from `effective_at` on.
        end: end of the slot from then on.
        effective_at: start of the new size; None where nothing changes.
        refund: refund in minor units.
        code: why it was not done, or empty.
        detail: the same as a sentence.
        charge: cost of the addition in minor units.
    """

    agreement_id: str
    done: bool
    quoted: bool
    number: int
    cores: int
    end: datetime
    effective_at: datetime | None
    refund: int
    code: str = ""
    detail: str = ""
    charge: int = 0


@dataclass(frozen=True, slots=True)
class Resource:
    """A resource that sells.

    Attributes:
        name: without the market's domain.
        address: the full name.
        machine: state of the machine, if it was asked and has answered.
        draining: whether it sells nothing new.
        problem: why the machine failed to answer, or empty.
    """

    name: str
    address: str
    machine: MachineState | None = None
    draining: bool = False
    problem: str = ""

    @property
    def site(self) -> str:
        """Its site: the domain of its full name, in lower case."""
        return site_of(self.address)

    @property
    def not_selling(self) -> str:
        """Why it sells nothing at present, as its machine says or fails to say; empty if it sells."""
        told = None if self.machine is None else self.machine.snapshot.get("not_selling")
        return str(told) if told else self.problem


def short_name(address: str, domain: str) -> str:
    """Return an agent's name without the market's own domain; names of other domains stay whole."""
    return address.removesuffix(f"@{domain}") if domain else address


def unit_of(bought: BoughtUnit, domain: str) -> Unit:
    """Convert a bought unit for programs."""
    offer: Offer = bought.offer
    return Unit(
        number=bought.unit,
        resource=short_name(offer.resource, domain),
        start=to_datetime(offer.start),
        end=to_datetime(offer.end),
        cores=offer.cores,
        cores_asked=bought.cores_asked,
        price_offered=offer.cpu_hour_cost,
        price_paid=bought.price_paid,
        cost=bought.cost,
        agreement_id=bought.agreement_id,
        reservation_id=bought.reservation_id,
        meets_request=bought.meets_request,
        bought=bought,
    )


def purchase_of(outcome: RequestOutcome, files: Mapping[str, str | None], domain: str) -> Purchase:
    """Convert the result of a request for programs."""
    return Purchase(
        request_id=outcome.request_id,
        status=outcome.status,
        reason=outcome.reason,
        units=tuple(unit_of(unit, domain) for unit in outcome.units),
        cost=outcome.cost,
        files={agreement_id: Path(path) for agreement_id, path in files.items() if path is not None},
        outcome=outcome,
    )


def reservation_of(standing: AgreementStanding, domain: str) -> Reservation:
    """Convert an agreement for programs."""
    agreement = standing.agreement
    return Reservation(
        agreement_id=agreement.agreement_id,
        reservation_id=standing.reservation_id,
        request_id=agreement.request_id,
        state=standing.state,
        resource=short_name(agreement.resource, domain),
        start=to_datetime(agreement.offer.start),
        end=to_datetime(standing.end),
        cores=standing.cores,
        cost=standing.cost,
        returned=standing.returned,
        file=None if standing.file is None else Path(standing.file),
        standing=standing,
    )


def account_of(statement: AccountStatement) -> Account:
    """Convert the bank's answer for programs."""
    return Account(
        name=statement.account,
        balance=statement.balance,
        reserved=statement.reserved,
        overdraft=statement.credit_limit,
        at=to_datetime(statement.bank_time),
        postings=tuple(
            Posting(
                at=to_datetime(line.posted_at),
                kind=line.kind,
                counterparty=line.counterparty,
                amount=line.amount,
                balance=line.balance,
                agreement_id="" if line.deposit_id else line.agreement_id,
                deposit_id=line.deposit_id,
                line=line,
            )
            for line in statement.lines
        ),
        statement=statement,
    )


def resized_of(outcome: ChangeOutcome) -> Resized:
    """Convert the result of a resize for programs."""
    quoted = outcome.code == QUOTED
    return Resized(
        agreement_id=outcome.agreement_id,
        done=outcome.done,
        quoted=quoted,
        number=outcome.number,
        cores=outcome.cores,
        end=to_datetime(outcome.until),
        effective_at=to_datetime(outcome.effective_at) if outcome.effective_at else None,
        refund=outcome.refund,
        code="" if quoted else outcome.code,
        detail="" if quoted else outcome.detail,
        charge=outcome.charge,
    )
