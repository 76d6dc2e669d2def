"""Entries, the ledger's history, which is only appended to and determines everything else; and what they are about.

- `Account`: of a party of the market's bank, with its balance (paper sections 6.3 and 6.3.1).
- `Transfer`: one amount from one account to another. It is posted at once, or first pending (its amount is reserved in
  escrow) and then posted or voided. These are TigerBeetle's words; the two-phase commit of the auction uses others, to
  keep the two apart.
- `Order`: payments of a user for the agreements of one request (paper section 5.1.2). Their money is reserved together,
  with one pending transfer a line, and posted or voided together.
- `DecidedChange`: moves one signed amount between the two parties of an agreement's payment: above zero the buyer pays
  more (an addition, which a line of an order pays), below zero the seller returns something. A terminal change ends the
  agreement and returns all that is left of its payments: a cancellation, a seller's failure, or an order of the
  market's keeper.
- `Evidence`: a signed message that justifies a change.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from ramp.model.agreement import CHANGE_MARK, TERMINAL, change_key
from ramp.model.contents import OrderLine, OrderState, TransferKind
from ramp.model.instant import Instant


class AccountKind(StrEnum):
    """The kind of an account's owner."""

    USER = "user"
    RESOURCE = "resource"
    MARKET = "market"


@dataclass(frozen=True, slots=True)
class Account:
    """One party's account.

    Attributes:
        account_id: the party's name in the market, without white space or double quotes.
        credit_limit: overdraft in minor units, not negative: how far the balance less reservations may go below zero.
    """

    account_id: str
    kind: AccountKind
    credit_limit: int
    opened_at: Instant


@dataclass(frozen=True, slots=True)
class Balance:
    """Balance of an account, in minor units.

    Attributes:
        posted: credits less debits of posted transfers; negative when overdrawn.
        reserved: total of the pending transfers that will debit the account (money in escrow).
    """

    account: Account
    posted: int
    reserved: int

    @property
    def credit_limit(self) -> int:
        """Overdraft in minor units."""
        return self.account.credit_limit

    @property
    def available(self) -> int:
        """Amount that can still be spent, including the overdraft, in minor units."""
        return self.posted - self.reserved + self.account.credit_limit


ISSUE_LIMIT: Final = 10**18
"""Overdraft of the issuing account in minor units: all money that can ever exist."""

ISSUING_ACCOUNT: Final = "market"
"""The account debited by deposits: its balance is minus all money in circulation, so all balances sum to zero."""

ISSUER: Final = Account(ISSUING_ACCOUNT, AccountKind.MARKET, ISSUE_LIMIT, 0)
"""The issuing account as every ledger opens it first."""


class TransferState(StrEnum):
    """State of a transfer; only a pending transfer changes again."""

    PENDING = "pending"
    POSTED = "posted"
    VOIDED = "voided"


@dataclass(frozen=True, slots=True)
class Transfer:
    """One transfer in its present state.

    Attributes:
        transfer_id: `transfer_id_of(agreement_id, kind)`.
        debit_account: the payer.
        credit_account: the payee.
        amount: minor units, above zero.
        agreement_id: its agreement; a deposit's reference; or `change_key` for the payment or refund of a change of
            size. With `kind` it is the idempotency key.
        posted_at: when the money moved, or None.
        voided_at: when it was voided, or None.
        memo: one line for people.
        order_id: the order of a payment and its refunds; empty for a deposit.
    """

    transfer_id: str
    debit_account: str
    credit_account: str
    amount: int
    agreement_id: str
    kind: TransferKind
    entered_at: Instant
    posted_at: Instant | None = None
    voided_at: Instant | None = None
    memo: str = ""
    order_id: str = ""

    @property
    def state(self) -> TransferState:
        if self.posted_at is not None:
            return TransferState.POSTED
        return TransferState.PENDING if self.voided_at is None else TransferState.VOIDED


def transfer_id_of(agreement_id: str, kind: TransferKind) -> str:
    """Return the id of an agreement's transfer of a kind.

    It is derived, so that a repeat after a crash names the same transfer, and each kind exists once.
    """
    return f"{kind}:{agreement_id}"


def agreement_of(transfer: Transfer) -> str:
    """Return the agreement of a refund, the key of a payment, or a deposit's reference."""
    if transfer.kind is TransferKind.REFUND:
        return transfer.agreement_id.partition(CHANGE_MARK)[0]
    return transfer.agreement_id


ORDER_LINES_MAX: Final = 1000
"""Maximum agreements in one order."""


@dataclass(frozen=True, slots=True)
class Order:
    """One order in its present state.

    Attributes:
        order_id: the idempotency key.
        user: the account that is debited.
        lines: the payments; empty for a void that came before its order.
        valid_until: first instant at which it can no longer be posted.
        settled_at: when it was posted, voided or refused; None while it is reserved.
        code: machine-readable reason of a void or refusal, else empty.
        reason: the sentence for people, one line, else empty.
        countersigned: agreements that have arrived countersigned, in the order of the lines.
    """

    order_id: str
    user: str
    lines: tuple[OrderLine, ...]
    valid_until: Instant
    entered_at: Instant
    state: OrderState
    settled_at: Instant | None = None
    code: str = ""
    reason: str = ""
    countersigned: tuple[str, ...] = ()

    @property
    def total(self) -> int:
        """Sum of the lines in minor units."""
        return sum(line.cost for line in self.lines)

    def line(self, agreement_id: str) -> OrderLine:
        """Return the line of an agreement of the order."""
        return next(line for line in self.lines if line.agreement_id == agreement_id)


class Grounds(StrEnum):
    """Who has justified a change."""

    BOTH = "both"
    """Both parties have signed it."""
    BUYER = "buyer"
    """The buyer alone has signed it, which suffices to end an agreement before its slot begins."""
    SELLER = "seller"
    """The seller has failed, on its own word."""
    KEEPER = "keeper"
    """The keeper of the market has ordered it."""


@dataclass(frozen=True, slots=True)
class DecidedChange:
    """A change after its final decision.

    Attributes:
        number: of the proposal, or `TERMINAL`.
        grounds: who has justified it.
        digest: of the new state; empty if it is void or terminal.
        amount: minor units that the buyer paid (above zero) or got back (below); 0 if it is void.
        code: why it is void; empty if it is posted.
        reason: the same as a sentence, one line.
    """

    agreement_id: str
    number: int
    grounds: Grounds
    digest: str
    amount: int
    decided_at: Instant
    code: str = ""
    reason: str = ""

    @property
    def is_posted(self) -> bool:
        return not self.code

    @property
    def is_terminal(self) -> bool:
        return self.number == TERMINAL

    @property
    def transfer_id(self) -> str:
        """The transfer of a posted change."""
        kind = TransferKind.PAYMENT if self.amount > 0 else TransferKind.REFUND
        return transfer_id_of(change_key(self.agreement_id, self.number), kind)


def ended(decided: Iterable[DecidedChange]) -> DecidedChange | None:
    """Return the change that has ended an agreement, or None."""
    return next((each for each in decided if each.is_terminal), None)


def standing_digest(decided: Sequence[DecidedChange]) -> str:
    """Return the digest of the last posted state, or the empty string.

    Args:
        decided: an agreement's changes, by number.
    """
    return next((each.digest for each in reversed(decided) if each.digest), "")


class Action(StrEnum):
    """What an entry did with its subject."""

    OPENED = "opened"
    """An account was opened."""
    ENTERED = "entered"
    """A transfer was entered, pending or (a deposit or refund) posted at once; or an order, in any state but posted.

    If the order is reserved, entries of its pending transfers follow at once, one a line.
    """
    SETTLED = "settled"
    """A pending transfer or a reserved order was posted or voided; entries of all transfers of the order follow."""
    COUNTERSIGNED = "countersigned"
    """The countersigned agreement of a reserved order's line arrived."""


@dataclass(frozen=True, slots=True)
class Countersignature:
    """The arrival of a countersigned agreement.

    Attributes:
        agreement_id: of the line.
        at: when it arrived.
        starts_at: start of the slot.
    """

    agreement_id: str
    at: Instant
    starts_at: Instant


@dataclass(frozen=True, slots=True)
class Entry:
    """One step of the history; its subject is in its state then."""

    action: Action
    subject: Account | Transfer | Order | Countersignature


@dataclass(frozen=True, slots=True)
class BalanceChange:
    """The change of one account's balance by an entry, in minor units."""

    account_id: str
    posted: int
    reserved: int


def balance_changes(entry: Entry) -> tuple[BalanceChange, ...]:
    """Return the balance changes of an entry; those of `posted` sum to zero, as double entry demands."""
    transfer = entry.subject
    if not isinstance(transfer, Transfer):
        return ()
    released = transfer.amount if entry.action is Action.SETTLED else 0
    match transfer.state:
        case TransferState.PENDING:
            return (BalanceChange(transfer.debit_account, 0, transfer.amount),)
        case TransferState.VOIDED:
            return (BalanceChange(transfer.debit_account, 0, -released),)
        case TransferState.POSTED:
            return (
                BalanceChange(transfer.debit_account, -transfer.amount, -released),
                BalanceChange(transfer.credit_account, transfer.amount, 0),
            )


EVIDENCE_LENGTH_MAX: Final = 4_194_304
"""Longest evidence in characters: an order of the most lines, with signature and certificate, is far shorter."""


class EvidenceKind(StrEnum):
    """The kind of change that a signed message justifies."""

    ORDER = "order"
    AGREEMENT = "agreement"
    VOID = "void"
    CHANGE = "change"
    DEPOSIT = "deposit"


@dataclass(frozen=True, slots=True)
class Evidence:
    """One signed message.

    Attributes:
        reference: the order, agreement or deposit.
        text: as signed.
        at: when the change was entered.
    """

    reference: str
    kind: EvidenceKind
    text: str
    at: Instant
