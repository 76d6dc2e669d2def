"""The rules of orders: money reserved for several agreements at once, and posted or voided at once.

An order is decided once: reserved or refused (or voided) on arrival, posted or voided later. After its deadline, by the
time of the question, it counts as voided, whether or not `expire_orders` has run. A rule checks everything before it
writes, so a refused operation leaves nothing behind.

Sources: paper sections 5.1.1 and 5.1.2 (all units of a request or none, payment, the bank as a party of the commit).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Final

from ramp.ledger import change_rules
from ramp.ledger.entry import (
    ORDER_LINES_MAX,
    Account,
    AccountKind,
    Action,
    Countersignature,
    DecidedChange,
    Entry,
    EvidenceKind,
    Grounds,
    Order,
    Transfer,
    transfer_id_of,
)
from ramp.ledger.payment_rules import Problem, store_evidence
from ramp.ledger.records import Records
from ramp.ledger.refusals import (
    TEXT_LENGTH_MAX,
    RefusalCode,
    check_amount,
    check_evidence,
    check_identifier,
    check_instant,
    refuse,
)
from ramp.model.agreement import CHANGE_MARK, TERMINAL, ContractChange
from ramp.model.contents import OrderLine, OrderState, TransferKind
from ramp.model.instant import Instant, iso
from ramp.model.money import credits_text
from ramp.text import one_line

RESOURCE_FAILED: Final = "resource_failed"
"""Code of an order that was voided because a resource of it said that it failed."""


def reserve_order(
    records: Records,
    order_id: str,
    user: str,
    lines: Sequence[OrderLine],
    valid_until: Instant,
    *,
    at: Instant,
    evidence: str = "",
) -> Order:
    """Reserve the money of several agreements in escrow, all or nothing.

    An order that cannot be reserved is entered as refused for good, with a code, and returned: `insufficient_funds`,
    `unknown_account`, `wrong_account`, `agreement_in_use`, `no_lines`, `expired`, `malformed_value` (an agreement id
    with the mark of amendments), and for an addition to a slot `unknown_transfer`, `not_posted`, `no_agreement`,
    `refunded`, `out_of_order` or `other_state`. A refused order does not use its agreement ids up. An order whose void
    came first is entered as voided. A repeated call returns the order in its present state.

    Args:
        records: the ledger.
        order_id: the idempotency key.
        user: the account that will pay, of kind user.
        lines: at most `ORDER_LINES_MAX`; resources are accounts of kind resource.
        valid_until: first instant at which an unposted order is void.
        at: now.
        evidence: the user's signed order.

    Raises:
        LedgerRefusal: `duplicate_differs` (other user, lines or deadline), `malformed_value`, `amount_not_positive`,
            `amount_too_large`.
    """
    wanted = Order(order_id, user, tuple(lines), valid_until, at, OrderState.RESERVED)
    _check_order(wanted)
    check_evidence(evidence)
    there = records.order(wanted.order_id)
    if there is not None:
        if (there.user, there.lines, there.valid_until) != (wanted.user, wanted.lines, wanted.valid_until):
            refuse(
                RefusalCode.DUPLICATE_DIFFERS,
                f"order {wanted.order_id} exists with another user, other lines or another deadline",
            )
        return _as_of(records, there, at)
    # an expired order reserves nothing, whether or not the orders were swept
    _void_due(records, records.open_orders(wanted.user, due=at), at, _accounts(wanted))
    voided = records.order(_early(wanted))
    if voided is not None:
        entered = replace(wanted, state=OrderState.VOIDED, settled_at=at, code=voided.code, reason=voided.reason)
    else:
        problem = _problem(records, wanted)
        entered = wanted
        if problem is not None:
            code, reason = problem
            entered = replace(
                wanted,
                state=OrderState.REFUSED,
                settled_at=at,
                code=str(code),
                reason=one_line(reason, TEXT_LENGTH_MAX),
            )
    reserved = _transfers(entered) if entered.state is OrderState.RESERVED else ()
    records.append(Entry(Action.ENTERED, entered), *(Entry(Action.ENTERED, transfer) for transfer in reserved))
    store_evidence(records, EvidenceKind.ORDER, entered.order_id, evidence, at)
    return entered


def countersign(records: Records, agreement_id: str, *, at: Instant, starts_at: Instant, evidence: str = "") -> Order:
    """Record a countersigned agreement or amendment; the last one of an order posts all its lines.

    At or after the order's deadline it is voided instead (`expired`), as it is if one of its additions is no longer
    possible. A settled or refused order stays unchanged. `starts_at` is the start of the agreement's slot.

    Raises:
        LedgerRefusal: `unknown_transfer` if no order has the agreement.
    """
    check_instant("start of the slot", starts_at)
    check_evidence(evidence)
    order = _as_of(records, _order_of(records, agreement_id), at)
    if order.state is not OrderState.RESERVED or agreement_id in order.countersigned:
        return order
    there = {*order.countersigned, agreement_id}
    # locks the accounts, so that the payments of these agreements cannot change meanwhile
    records.balances(_accounts(order))
    for line in order.lines:
        problem = change_rules.addition_problem(records, order.user, line) if line.agreement_id in there else None
        if problem is not None:
            order = _void(records, order, at, *problem)
            store_evidence(records, EvidenceKind.VOID, order.order_id, evidence, at)
            return order
    order = replace(order, countersigned=tuple(line.agreement_id for line in order.lines if line.agreement_id in there))
    entries = [Entry(Action.COUNTERSIGNED, Countersignature(agreement_id, at, starts_at))]
    if len(order.countersigned) == len(order.lines):
        order = replace(order, state=OrderState.POSTED, settled_at=at)
        entries.extend(_settlement(records, order))
    records.append(*entries)
    if order.state is OrderState.POSTED:
        for line in order.lines:
            change_rules.addition_posted(records, line, at)
    named = order.line(agreement_id).amended
    kind = EvidenceKind.AGREEMENT if named is None else EvidenceKind.CHANGE
    store_evidence(records, kind, agreement_id if named is None else named[0], evidence, at)
    return order


def void_order(
    records: Records,
    order_id: str,
    user: str,
    valid_until: Instant,
    *,
    at: Instant,
    code: str,
    reason: str,
    evidence: str = "",
) -> Order:
    """Void an order with all its lines; a posted, voided or refused order stays unchanged.

    The void of an unknown order is kept, and voids the order on arrival, if it could still come: if `user` has an
    account and the deadline is ahead.

    Args:
        records: the ledger.
        order_id: which.
        user: of the order.
        valid_until: the order's deadline.
        at: now.
        code: machine-readable reason.
        reason: the sentence for people.
        evidence: the user's signed void.

    Returns:
        The order in its new state; for an unknown order, a voided one without lines.

    Raises:
        LedgerRefusal: `unknown_order` if the order is another user's.
    """
    void = Order(order_id, user, (), valid_until, at, OrderState.VOIDED, at, code, one_line(reason, TEXT_LENGTH_MAX))
    _check_order(void)
    check_identifier("code", code)
    check_evidence(evidence)
    order = records.order(order_id)
    if order is None:
        if (there := records.order(_early(void))) is not None:
            return replace(there, order_id=order_id)
        owner = records.balances([user]).get(user)
        if owner is None or owner.account.kind is not AccountKind.USER or at >= valid_until:
            return void
        order = void
        records.append(Entry(Action.ENTERED, replace(void, order_id=_early(void))))
    else:
        if order.user != user:
            refuse(RefusalCode.UNKNOWN_ORDER, f"{user} has no order {order_id}")
        order = _as_of(records, order, at)
        if order.state is not OrderState.RESERVED:
            return order
        order = _void(records, order, at, code, reason)
    store_evidence(records, EvidenceKind.VOID, order_id, evidence, at)
    return order


def post_change(
    records: Records, change: ContractChange, grounds: Grounds, *, at: Instant, evidence: str = ""
) -> DecidedChange:
    """Return money for a change of an agreement, once (section 5.1.2); an earlier decision stays.

    A reduction returns its amount, or is void for good with a code `expired`, `refunded`, `out_of_order`, `other_state`
    or `more_than_paid`, or that of an earlier void. A terminal change returns all that is left of the agreement's
    payments, and whatever is not posted by then never will be. The buyer alone ends an agreement only before its slot
    begins. A seller's failure before the payment voids the order; the answer then has the order's code
    (`resource_failed`, or that of an earlier end).

    Args:
        records: the ledger.
        change: what is wanted; the end that the market's keeper orders names no parties.
        grounds: who has justified it.
        at: now.
        evidence: the change with its signatures, or the sealed message.

    Raises:
        LedgerRefusal: `no_agreement` for an addition, `unknown_transfer` (no payment, or between other parties),
            `not_posted`, `started`, `duplicate_differs`, `malformed_value`, `amount_not_positive`, `amount_too_large`;
            nothing is decided then.
    """
    if grounds is not Grounds.SELLER:
        return change_rules.post_change(records, change, grounds, at, evidence)
    agreement_id = change.agreement_id
    check_identifier("resource", change.resource)
    check_evidence(evidence)
    if problem := change_rules.addition_named(records, agreement_id):
        refuse(*problem)
    order = _order_of(records, agreement_id)
    line = order.line(agreement_id)
    if (order.user, line.resource, line.offer_id) != (change.user, change.resource, change.offer_id):
        refuse(RefusalCode.UNKNOWN_TRANSFER, f"no order of theirs names {agreement_id} for {change.offer_id}")
    order = _as_of(records, order, at)
    if order.state is OrderState.POSTED:
        return change_rules.post_change(records, change, grounds, at, evidence)
    if order.state is OrderState.RESERVED:
        order = _void(records, order, at, RESOURCE_FAILED, change_rules.reason_of(change))
        store_evidence(records, EvidenceKind.CHANGE, agreement_id, evidence, at)
    return DecidedChange(agreement_id, TERMINAL, grounds, "", 0, at, order.code, order.reason)


def expire_orders(records: Records, at: Instant) -> tuple[Order, ...]:
    """Void every reserved order after its deadline."""
    check_instant("time", at)
    return _void_due(records, records.open_orders(due=at), at)


def _void_due(records: Records, due: Sequence[Order], at: Instant, more: Collection[str] = ()) -> tuple[Order, ...]:
    if due:
        # All accounts at once, with those needed later, so that a database locks them in one order.
        records.balances({*more, *(account for order in due for account in _accounts(order))})
    return tuple(_as_of(records, order, at) for order in due)


def _check_order(order: Order) -> None:
    check_identifier("order id", order.order_id)
    check_identifier("user", order.user)
    check_instant("deadline", order.valid_until)
    check_instant("time", order.entered_at)
    if len(order.lines) > ORDER_LINES_MAX:
        refuse(
            RefusalCode.MALFORMED_VALUE,
            f"order {order.order_id} has {len(order.lines)} lines, expected at most {ORDER_LINES_MAX}",
        )
    for line in order.lines:
        check_identifier("agreement id", line.agreement_id)
        check_identifier("resource", line.resource)
        check_amount(f"cost of {line.agreement_id}", line.cost)


def _problem(records: Records, order: Order) -> Problem | None:
    """Return code and reason why a new order cannot be reserved, or None."""
    if not order.lines:
        return RefusalCode.NO_LINES, f"order {order.order_id} has no lines, expected at least one agreement"
    if order.entered_at >= order.valid_until:
        return RefusalCode.EXPIRED, f"order {order.order_id} was valid until {iso(order.valid_until)}"
    balances = records.balances({order.user, *(line.resource for line in order.lines)})
    accounts = {name: balance.account for name, balance in balances.items()}
    problem = _account_problem(accounts, order.user, AccountKind.USER)
    for line in order.lines:
        problem = problem or _account_problem(accounts, line.resource, AccountKind.RESOURCE)
    problem = problem or _agreement_problem(records, order.lines)
    for line in order.lines:
        problem = problem or change_rules.addition_problem(records, order.user, line)
    if problem is None and order.total > (available := balances[order.user].available):
        reason = f"{order.user} has {credits_text(available)} available, needs {credits_text(order.total)}"
        return RefusalCode.INSUFFICIENT_FUNDS, reason
    return problem


def _account_problem(accounts: dict[str, Account], account_id: str, kind: AccountKind) -> Problem | None:
    account = accounts.get(account_id)
    if account is None:
        return RefusalCode.UNKNOWN_ACCOUNT, f"no account {account_id}"
    if account.kind is not kind:
        return RefusalCode.WRONG_ACCOUNT, f"account {account_id} is a {account.kind} account, expected {kind}"
    return None


def _agreement_problem(records: Records, lines: tuple[OrderLine, ...]) -> Problem | None:
    slots = [line.agreement_id if line.amended is None else line.amended[0] for line in lines]  # bought or enlarged
    for named in (Counter(line.agreement_id for line in lines), Counter(slots)):
        for agreement_id, count in named.items():
            if count > 1:
                return (
                    RefusalCode.AGREEMENT_IN_USE,
                    f"the order names agreement {agreement_id} {count} times, expected once",
                )
    for line in lines:
        if line.amended is None and CHANGE_MARK in line.agreement_id:
            reason = f"agreement id {line.agreement_id} must not contain {CHANGE_MARK}, which marks amendments"
            return RefusalCode.MALFORMED_VALUE, reason
    for agreement_id in (line.agreement_id for line in lines):
        if records.transfer(agreement_id, TransferKind.PAYMENT) is not None:
            return RefusalCode.AGREEMENT_IN_USE, f"agreement {agreement_id} already has a payment"
    return None


def _order_of(records: Records, agreement_id: str) -> Order:
    check_identifier("agreement id", agreement_id)
    order = records.order_of(agreement_id)
    if order is None:
        refuse(RefusalCode.UNKNOWN_TRANSFER, f"no order contains agreement {agreement_id}")
    return order


def _as_of(records: Records, order: Order, at: Instant) -> Order:
    """Return the order at an instant: voided if it is still reserved and its deadline has passed."""
    check_instant("time", at)
    if order.state is not OrderState.RESERVED or at < order.valid_until:
        return order
    return _void(records, order, at, RefusalCode.EXPIRED, f"the order was valid until {iso(order.valid_until)}")


def _void(records: Records, order: Order, at: Instant, code: str, reason: str) -> Order:
    voided = replace(
        order, state=OrderState.VOIDED, settled_at=at, code=str(code), reason=one_line(reason, TEXT_LENGTH_MAX)
    )
    records.append(*_settlement(records, voided))
    return voided


def _early(order: Order) -> str:
    """Return the id of a void that comes before its order; with the user, so that nobody voids another's order."""
    return f"{order.order_id} {order.user}"


def _settlement(records: Records, order: Order) -> list[Entry]:
    """Return the entries that settle a reserved order and its transfers."""
    records.balances(_accounts(order))  # keeps them from changing meanwhile
    entries = [Entry(Action.SETTLED, order)]
    for transfer in _transfers(order):
        if order.state is OrderState.POSTED:
            entries.append(Entry(Action.SETTLED, replace(transfer, posted_at=order.settled_at)))
        else:
            entries.append(Entry(Action.SETTLED, replace(transfer, voided_at=order.settled_at)))
    return entries


def _accounts(order: Order) -> set[str]:
    return {order.user, *(line.resource for line in order.lines)}


def _transfers(order: Order) -> tuple[Transfer, ...]:
    return tuple(
        Transfer(
            transfer_id=transfer_id_of(line.agreement_id, TransferKind.PAYMENT),
            debit_account=order.user,
            credit_account=line.resource,
            amount=line.cost,
            agreement_id=line.agreement_id,
            kind=TransferKind.PAYMENT,
            entered_at=order.entered_at,
            order_id=order.order_id,
        )
        for line in order.lines
    )
