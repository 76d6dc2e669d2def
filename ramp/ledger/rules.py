"""The rules of the ledger: what each operation checks and enters. Written once, for every kind of storage.

A rule reads through `Records`, refuses by raising `LedgerRefusal`, and otherwise appends at most one entry; storage
applies that entry to balances. Every operation is idempotent: the same again gives the same answer and enters nothing,
the same key with other terms is refused. Checks run in a fixed order (values, what is already there, sticky refusal,
accounts, funds), so that every storage refuses with the same code.

Sources: paper sections 5.1.2 (debit and credit, refund on cancellation) and 6.3 (accounts, statement, keys on file).
"""

from __future__ import annotations

from dataclasses import replace

from ramp.ledger.account import AMOUNT_MAX, ISSUING_ACCOUNT, Account, Balance
from ramp.ledger.entry import (
    AccountClosed,
    AccountOpened,
    AgreementRefused,
    Refusal,
    TransferEntered,
    TransferSettled,
)
from ramp.ledger.records import Records
from ramp.ledger.refusals import (
    CERTIFICATE_LENGTH_MAX,
    RefusalCode,
    check_amount,
    check_identifier,
    check_instant,
    one_line,
    refuse,
)
from ramp.ledger.transfer import Transfer, TransferKind, TransferState, transfer_id_of
from ramp.model.instant import Instant
from ramp.model.money import credits_text


def open_account(records: Records, account: Account) -> Account:
    """Open an account; opening it again on the same terms gives the one that is there."""
    check_identifier("account id", account.account_id)
    check_instant("opening time", account.opened_at)
    limit = account.credit_limit
    if type(limit) is not int or not 0 <= limit <= AMOUNT_MAX:
        refuse(
            RefusalCode.MALFORMED_VALUE, f"credit limit {limit!r} is no integer of minor units from 0 to {AMOUNT_MAX}"
        )
    there = records.balances([account.account_id]).get(account.account_id)
    if there is None:
        records.append(AccountOpened(account))
        return account
    if there.account.closed_at is not None:
        refuse(
            RefusalCode.ACCOUNT_CLOSED, f"account {account.account_id} has been closed and its name is not given again"
        )
    if (there.account.kind, there.account.credit_limit) != (account.kind, account.credit_limit):
        refuse(
            RefusalCode.DUPLICATE_DIFFERS,
            f"account {account.account_id} is there as a {there.account.kind} account with credit limit "
            f"{credits_text(there.account.credit_limit)}, not {account.kind} with {credits_text(limit)}",
        )
    return there.account


def close_account(records: Records, account_id: str, at: Instant) -> Account:
    """Close an account with nothing on it and nothing pending from or to it; closing it again changes nothing."""
    check_instant("closing time", at)
    there = known_balance(records, account_id)
    if there.account.closed_at is not None:
        return there.account
    if account_id == ISSUING_ACCOUNT:
        refuse(RefusalCode.WRONG_ACCOUNT, f"{account_id} is the issuing account, which stays open")
    if there.posted != 0 or records.pending(account_id):
        refuse(
            RefusalCode.ACCOUNT_NOT_EMPTY,
            f"account {account_id} has {credits_text(there.posted)} on it or pending transfers; it must be empty",
        )
    closed = replace(there.account, closed_at=at)
    records.append(AccountClosed(closed))
    return closed


def deposit(records: Records, deposit_id: str, account_id: str, amount: int, at: Instant, memo: str) -> Transfer:
    """Credit an account out of the issuing account."""
    wanted = _draft(TransferKind.DEPOSIT, deposit_id, (ISSUING_ACCOUNT, account_id), amount, at, memo)
    there = _same_terms(records, wanted)
    return there if there is not None else _enter(records, replace(wanted, posted_at=at))


def set_pending(
    records: Records, agreement_id: str, parties: tuple[str, str], amount: int, at: Instant, memo: str
) -> Transfer:
    """Reserve a payment in escrow. Repeated after posting it gives the posted transfer; after voiding it is refused."""
    wanted = _draft(TransferKind.PAYMENT, agreement_id, parties, amount, at, memo)
    there = _same_terms(records, wanted)
    if there is None:
        _check_not_refused(records, agreement_id)
        return _enter(records, wanted)
    _check_not_voided(there)
    return there


def pay(records: Records, agreement_id: str, parties: tuple[str, str], amount: int, at: Instant, memo: str) -> Transfer:
    """Make a payment, posted at once."""
    wanted = _draft(TransferKind.PAYMENT, agreement_id, parties, amount, at, memo)
    there = _same_terms(records, wanted)
    if there is None:
        _check_not_refused(records, agreement_id)
        return _enter(records, replace(wanted, posted_at=at))
    _check_not_voided(there)
    if there.state is TransferState.PENDING:
        refuse(RefusalCode.ALREADY_PENDING, f"payment of {agreement_id} is in escrow already: post it instead")
    return there


def post(records: Records, agreement_id: str, at: Instant) -> Transfer:
    """Post the pending payment of an agreement: the reserved money moves."""
    check_instant("time", at)
    there = _known_payment(records, agreement_id)
    if there.state is TransferState.POSTED:
        return there
    _check_not_voided(there)
    return _settle(records, replace(there, posted_at=at))


def void(records: Records, agreement_id: str, at: Instant) -> Transfer:
    """Give up the pending payment of an agreement: the reserved money is free again."""
    check_instant("time", at)
    there = _known_payment(records, agreement_id)
    if there.state is TransferState.VOIDED:
        return there
    if there.state is TransferState.POSTED:
        refuse(RefusalCode.ALREADY_POSTED, f"payment of {agreement_id} is posted: refund it instead")
    return _settle(records, replace(there, voided_at=at))


def refund(records: Records, agreement_id: str, amount: int | None, at: Instant, memo: str) -> Transfer:
    """Give a posted payment back, once, in whole (amount None) or in part."""
    check_instant("time", at)
    charge = _known_payment(records, agreement_id)
    if charge.state is not TransferState.POSTED:
        refuse(
            RefusalCode.NOT_POSTED, f"payment of {agreement_id} is {charge.state}; only a posted one can be refunded"
        )
    amount = charge.amount if amount is None else amount
    wanted = replace(
        _draft(TransferKind.REFUND, agreement_id, (charge.credit_account, charge.debit_account), amount, at, memo),
        reverses=charge.transfer_id,
    )
    if amount > charge.amount:
        refuse(
            RefusalCode.REFUND_EXCEEDS_CHARGE,
            f"refund of {credits_text(amount)} for {agreement_id} is more than {credits_text(charge.amount)} charged",
        )
    there = records.transfer(agreement_id, TransferKind.REFUND)
    if there is None:
        return _enter(records, replace(wanted, posted_at=at))
    if there.amount != amount:
        refuse(
            RefusalCode.ALREADY_REFUNDED,
            f"{credits_text(there.amount)} of {agreement_id} were refunded already, not {credits_text(amount)}",
        )
    return there


def record_refusal(records: Records, agreement_id: str, code: str, reason: str, at: Instant) -> Refusal:
    """Refuse an agreement for good; the first refusal stays. One that is paid or in escrow cannot be refused."""
    check_identifier("agreement id", agreement_id)
    check_identifier("refusal code", code)
    check_instant("time", at)
    there = records.refusal(agreement_id)
    if there is not None:
        return there
    payment = records.transfer(agreement_id, TransferKind.PAYMENT)
    if payment is not None and payment.state is TransferState.POSTED:
        refuse(RefusalCode.ALREADY_POSTED, f"{agreement_id} has been paid, so it cannot be refused any more")
    if payment is not None and payment.state is TransferState.PENDING:
        refuse(RefusalCode.ALREADY_PENDING, f"payment of {agreement_id} is in escrow: void it before refusing")
    refusal = Refusal(agreement_id, str(code), one_line(reason), at)
    records.append(AgreementRefused(refusal))
    return refusal


def register_certificate(records: Records, account_id: str, pem: str) -> None:
    """Keep an account's public certificate on file; a new one replaces the old one."""
    known_balance(records, account_id)
    if (
        len(pem) > CERTIFICATE_LENGTH_MAX
        or not pem.lstrip().startswith("-----BEGIN CERTIFICATE-----")
        or not pem.isascii()
    ):
        refuse(RefusalCode.MALFORMED_VALUE, f"certificate for {account_id} is no X.509 certificate in PEM text")
    records.put_certificate(account_id, pem)


def use_nonce(records: Records, signer: str, nonce: str, expires_at: Instant, now: Instant) -> bool:
    """Use a signed request's nonce up: True the first time, False on a replay or after its expiry."""
    for name, value in (("signer", signer), ("nonce", nonce)):
        check_identifier(name, value)
    for name, instant in (("expiry", expires_at), ("time", now)):
        check_instant(name, instant)
    if expires_at <= now:
        return False
    records.forget_nonces(now)
    return records.add_nonce(signer, nonce, expires_at)


def known_balance(records: Records, account_id: str) -> Balance:
    """The balance of an account that must exist."""
    check_identifier("account id", account_id)
    there = records.balances([account_id]).get(account_id)
    if there is None:
        refuse(RefusalCode.UNKNOWN_ACCOUNT, f"there is no account {account_id}")
    return there


def _draft(
    kind: TransferKind, agreement_id: str, parties: tuple[str, str], amount: int, at: Instant, memo: str
) -> Transfer:
    """A pending transfer of well-formed values that is nowhere yet; `parties` are the debit and the credit account."""
    debit_account, credit_account = parties
    check_identifier("agreement id", agreement_id)
    check_identifier("debit account", debit_account)
    check_identifier("credit account", credit_account)
    check_amount("amount", amount)
    check_instant("time", at)
    if debit_account == credit_account:
        refuse(RefusalCode.SAME_ACCOUNT, f"{kind} {agreement_id} goes from {debit_account} to itself")
    if kind is TransferKind.PAYMENT and ISSUING_ACCOUNT in parties:
        refuse(RefusalCode.WRONG_ACCOUNT, f"payment {agreement_id}: the account {ISSUING_ACCOUNT} makes only deposits")
    return Transfer(
        transfer_id=transfer_id_of(agreement_id, kind),
        debit_account=debit_account,
        credit_account=credit_account,
        amount=amount,
        agreement_id=agreement_id,
        kind=kind,
        entered_at=at,
        memo=one_line(memo),
    )


def _same_terms(records: Records, wanted: Transfer) -> Transfer | None:
    """The transfer that is there under the wanted one's key, or None; refused if its terms differ (memos may)."""
    there = records.transfer(wanted.agreement_id, wanted.kind)
    if there is None:
        return None
    terms = (there.debit_account, there.credit_account, there.amount)
    if terms != (wanted.debit_account, wanted.credit_account, wanted.amount):
        refuse(
            RefusalCode.DUPLICATE_DIFFERS,
            f"{there.kind} {there.agreement_id} is there as {credits_text(there.amount)} from {there.debit_account} to "
            f"{there.credit_account}, not {credits_text(wanted.amount)} from {wanted.debit_account} to "
            f"{wanted.credit_account}",
        )
    return there


def _known_payment(records: Records, agreement_id: str) -> Transfer:
    check_identifier("agreement id", agreement_id)
    there = records.transfer(agreement_id, TransferKind.PAYMENT)
    if there is None:
        refuse(RefusalCode.UNKNOWN_TRANSFER, f"there is no payment for {agreement_id}")
    return there


def _check_not_voided(transfer: Transfer) -> None:
    if transfer.state is TransferState.VOIDED:
        refuse(RefusalCode.ALREADY_VOIDED, f"payment of {transfer.agreement_id} was voided, which is final")


def _check_not_refused(records: Records, agreement_id: str) -> None:
    refusal = records.refusal(agreement_id)
    if refusal is not None:
        refuse(RefusalCode.AGREEMENT_REFUSED, f"{agreement_id} was refused for good: {refusal.code}: {refusal.reason}")


def _enter(records: Records, transfer: Transfer) -> Transfer:
    """Enter a transfer if both accounts are open and the debited one can bear it."""
    balances = records.balances((transfer.debit_account, transfer.credit_account))
    for account_id in (transfer.debit_account, transfer.credit_account):
        if account_id not in balances:
            refuse(RefusalCode.UNKNOWN_ACCOUNT, f"there is no account {account_id}")
        if balances[account_id].account.closed_at is not None:
            refuse(RefusalCode.ACCOUNT_CLOSED, f"account {account_id} is closed")
    available = balances[transfer.debit_account].available
    if transfer.amount > available:
        refuse(
            RefusalCode.INSUFFICIENT_FUNDS,
            f"{transfer.debit_account} has {credits_text(available)} available, not {credits_text(transfer.amount)}",
        )
    records.append(TransferEntered(transfer))
    return transfer


def _settle(records: Records, transfer: Transfer) -> Transfer:
    """Settle a pending transfer; funds were secured when it was entered, so this cannot fail for lack of them."""
    records.balances((transfer.debit_account, transfer.credit_account))  # keeps both from changing meanwhile
    records.append(TransferSettled(transfer))
    return transfer
