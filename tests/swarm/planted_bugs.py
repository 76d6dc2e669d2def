"""Bugs planted on purpose, to prove that the checkers see them.

Each replaces a method or rule of the protocol, the ledger or the host by a broken one while its context lasts.
`PLANTED_BUGS` says of each what it breaks, and which checker has to see it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any
from unittest.mock import patch
from weakref import WeakKeyDictionary

from ramp.ledger import change_rules
from ramp.ledger.contract_change import ChangeTerms, DecidedChange
from ramp.ledger.entry import Action, Entry
from ramp.ledger.interface import Ledger
from ramp.ledger.orders import order_rules
from ramp.ledger.orders.order import Order
from ramp.ledger.records import Records
from ramp.ledger.transfer import Transfer
from ramp.model.contents import HoldGranted, OrderState, TransferKind
from ramp.model.instant import MINUTE, Instant
from ramp.model.offer import Offer, RefusalCode
from ramp.model.slot import Reservation, Slot
from ramp.protocol import effects as fx
from ramp.protocol import records as rc
from ramp.protocol.bank import party as bank_party
from ramp.protocol.bank.party import BankParty
from ramp.protocol.events import MachineInDoubt
from ramp.protocol.resource.participant import Participant
from ramp.protocol.resource.releases import Releases
from ramp.protocol.rules.auction_rule import Price, UnitBids
from ramp.protocol.rules.shipped.second_price import SecondPrice
from ramp.protocol.timing import Retry
from ramp.protocol.transition_tables import ParticipantState
from ramp.protocol.user.auction import Auction
from ramp.protocol.user.voting import Voting
from ramp.runtime.host import Host
from tests.swarm.planted_change_bugs import OF_AMENDMENTS
from tests.swarm.planted_size_bugs import ideal_speed_up, length_believed, limit_of_charged

FAR: Instant = 2**62
"""Later than any instant of a run."""

Context = contextlib.AbstractContextManager[object]


@contextlib.contextmanager
def _replaced(owner: Any, method: str, make: Callable[[Any], Any]) -> Iterator[None]:
    with patch.object(owner, method, make(getattr(owner, method))):
        yield


def _not_persisted(*kinds: type) -> Callable[[], Context]:
    """A bug by which records of some kinds are not written."""

    def make(original: Any) -> Any:
        def carry_out_one(host: Host, effect: fx.Effect, now: Instant) -> None:
            if not (isinstance(effect, fx.Persist) and isinstance(effect.record, kinds)):
                original(host, effect, now)

        return carry_out_one

    return lambda: _replaced(Host, "_carry_out_one", make)


def _vote_before_persist() -> Context:
    delayed: WeakKeyDictionary[Host, list[fx.Effect]] = WeakKeyDictionary()

    def make(original: Any) -> Any:
        def carry_out(host: Host, effects: list[fx.Effect], now: Instant) -> None:
            written = (rc.HoldIntended, rc.HoldMade)
            votes = [e for e in effects if isinstance(e, fx.Send) and isinstance(e.message.content, HoldGranted)]
            late = [e for e in effects if isinstance(e, fx.Persist) and isinstance(e.record, written)]
            delayed.setdefault(host, []).extend(late)
            early = [e for e in effects if e not in late]
            original(host, [*early, *delayed.pop(host)] if votes else early, now)

        return carry_out

    return _replaced(Host, "_carry_out", make)


def _no_retransmission() -> Context:
    def make(original: Any) -> Any:
        def begin(retry: Retry, now: Instant) -> None:
            original(retry, now)
            retry.due = now + 10**15

        return begin

    return _replaced(Retry, "begin", make)


def _hold_timer_ignored() -> Context:
    def make(original: Any) -> Any:
        def on_timer(participant: Participant, now: Instant) -> Any:
            if participant.state is ParticipantState.HELD:
                participant.deadline = None
                return []
            return original(participant, now)

        return on_timer

    return _replaced(Participant, "on_timer", make)


def _paid_before_its_start() -> Context:
    """A job counts as started as soon as it is in the queue."""

    def make(original: Any) -> Any:
        def firm(participant: Participant, reservation: Reservation, now: Instant) -> Any:
            return original(participant, replace(reservation, started_at=now), now)

        return firm

    return _replaced(Participant, "_firm", make)


def _double_debit() -> Context:
    def make(original: Any) -> Any:
        def countersign(ledger: Ledger, agreement_id: str, **terms: Any) -> Order:
            order: Order = original(ledger, agreement_id, **terms)
            count = len(ledger.statement(order.user))
            again = tuple(replace(line, agreement_id=f"{line.agreement_id}-again-{count}") for line in order.lines)
            if agreement_id == order.lines[-1].agreement_id:
                at: Instant = terms["at"]
                ledger.reserve_order(f"{order.order_id}#{count}", order.user, again, order.valid_until, at=at)
                for line in again:
                    original(ledger, line.agreement_id, at=at, starts_at=at)
            return order

        return countersign

    return _replaced(Ledger, "countersign", make)


def _void_not_persisted() -> Context:
    """The bank says that an order is void and writes nothing."""

    def make(original: Any) -> Any:
        def void(records: Records, order: Order, at: Instant, code: str, reason: str) -> Order:
            if str(code) == "withdrawn":
                return replace(order, state=OrderState.VOIDED, settled_at=at, code=str(code), reason=reason)
            voided: Order = original(records, order, at, code, reason)
            return voided

        return void

    return _replaced(order_rules, "_void", make)


def _late_vote_accepted() -> Context:
    """The user counts votes, and the bank's, as if no hold ran out."""

    def make(original: Any) -> Any:
        def count(voting: Voting, now: Instant) -> Any:
            for ballot in voting._ballots.values():
                if ballot.held is not None:
                    ballot.held = replace(ballot.held, held_until=FAR)
            return original(voting, now)

        return count

    return _replaced(Voting, "_count", make)


def _refusal_forgotten() -> Context:
    """An order that was refused or voided is said to be reserved when it comes again."""

    def make(original: Any) -> Any:
        def reserve_order(records: Records, wanted: Order, evidence: str) -> Order:
            there = records.order(wanted.order_id)
            if there is None or there.state not in (OrderState.REFUSED, OrderState.VOIDED):
                reserved: Order = original(records, wanted, evidence)
                return reserved
            problem = order_rules._funds_problem(wanted, records.balances([wanted.user])[wanted.user].available)
            if problem is not None or wanted.entered_at >= wanted.valid_until:
                return there
            return replace(wanted, countersigned=there.countersigned)

        return reserve_order

    return _replaced(order_rules, "reserve_order", make)


@contextlib.contextmanager
def _posts_after_deadline() -> Iterator[None]:
    """The bank gives every order a minute more than it says."""

    def as_of(original: Any) -> Any:
        return lambda records, order, at: original(records, order, at - MINUTE)

    def woken(original: Any) -> Any:
        return lambda deadline: original(deadline + MINUTE)

    with _replaced(order_rules, "_as_of", as_of), _replaced(bank_party, "OrderEnd", woken):
        yield


def _doubled_proposal_judged() -> Context:
    def make(original: Any) -> Any:
        def on_proposal(auction: Auction, *arguments: Any) -> Any:
            auction._heard.clear()
            auction._named.clear()
            return original(auction, *arguments)

        return on_proposal

    return _replaced(Auction, "_on_proposal", make)


def _single_signature_accepted() -> Context:
    """The bank takes an agreement that its resource has not countersigned."""

    def make(original: Any) -> Any:
        def on_agreement(bank: BankParty, message: Any, signed: Any, agreement: Any, now: Instant) -> Any:
            if signed.signers == (agreement.user,):
                signed = replace(signed, signers=(agreement.user, agreement.resource))
            return original(bank, message, signed, agreement, now)

        return on_agreement

    return _replaced(BankParty, "_on_agreement", make)


def _reservation_never_voided() -> Context:
    """The bank does not wake up when the time of an order is over."""
    return _replaced(bank_party, "OrderEnd", lambda original: lambda _: original(None))


def _order_posted_in_part() -> Context:
    """With the first agreement that has come, its line is paid."""

    def make(original: Any) -> Any:
        def settlement(records: Records, order: Order) -> list[Any]:
            entries: list[Any] = original(records, order)
            if order.state is OrderState.POSTED and len(order.lines) > 1:
                return entries[:-1]  # the last line stays behind
            return entries

        return settlement

    return _replaced(order_rules, "_settlement", make)


def _late_hold_kept() -> Context:
    """What a machine has set aside for an offer that was let go is not given back."""
    return _replaced(Participant, "_late", lambda _: lambda participant, answer: [])


def _late_hold_undone() -> Context:
    """A hold's answer that comes after its look-up releases the slot, which has been promised meanwhile."""

    def make(original: Any) -> Any:
        def late(participant: Participant, answer: Any) -> Any:
            if isinstance(answer, Reservation) and participant.state is not ParticipantState.RELEASED:
                return [fx.ReleaseSlot(participant.offer.offer_id)]
            return original(participant, answer)

        return late

    return _replaced(Participant, "_late", make)


def _doubtful_hold_refused() -> Context:
    """A hold in doubt is refused, and nothing is released."""

    def make(original: Any) -> Any:
        def on_held(participant: Participant, answer: Any, now: Instant) -> Any:
            if participant.state is not ParticipantState.HOLDING or not isinstance(answer, MachineInDoubt):
                return original(participant, answer, now)
            effects = participant._not_held(RefusalCode.PLUGIN_FAILED, answer.reason, now)
            return [each for each in effects if not isinstance(each, fx.ReleaseSlot)]

        return on_held

    return _replaced(Participant, "on_held", make)


def _doubt_taken_for_firm() -> Context:
    """A confirmation in doubt passes for one that was done."""

    def make(original: Any) -> Any:
        def on_confirmed(participant: Participant, answer: Any, now: Instant) -> Any:
            if participant.state is ParticipantState.CONFIRMING and isinstance(answer, MachineInDoubt):
                slot = Slot(participant.offer.start, participant.offer.end, participant.offer.cores, 0.0)
                firm = Reservation(participant.offer.offer_id, participant.reservation_id, slot, True, None)
                return participant._firm(firm, now)
            return original(participant, answer, now)

        return on_confirmed

    return _replaced(Participant, "on_confirmed", make)


def _release_not_repeated() -> Context:
    """A release in doubt passes for one that was done."""

    def make(original: Any) -> Any:
        def answered(releases: Releases, key: str, now: Instant, *, in_doubt: bool) -> Any:
            return original(releases, key, now, in_doubt=False)

        return answered

    return _replaced(Releases, "answered", make)


def _second_price_as_first() -> Context:
    def make(original: Any) -> Any:
        def price(rule: SecondPrice, bids: UnitBids, winner: Offer, remaining: Sequence[Offer]) -> Price:
            owed: Price = original(rule, bids, winner, remaining)
            return replace(owed, cost=winner.cost)

        return price

    return _replaced(SecondPrice, "price", make)


def _dearest_sets_price() -> Context:
    def make(original: Any) -> Any:
        def price(rule: SecondPrice, bids: UnitBids, winner: Offer, remaining: Sequence[Offer]) -> Price:
            owed: Price = original(rule, bids, winner, remaining[::-1])
            return owed

        return price

    return _replaced(SecondPrice, "price", make)


@dataclass(frozen=True, slots=True)
class PlantedBug:
    """One bug.

    Attributes:
        plant: the context in which it is there.
        what: what it breaks.
        checker: which has to see it.
    """

    plant: Callable[[], Context]
    what: str
    checker: str


_DROPPED = "written_before_said"


def _beside_a_refund(more: Callable[[Transfer], Transfer]) -> Context:
    """With the refund that ends an agreement another transfer is entered."""

    def make(original: Any) -> Any:
        def post_change(records: Records, terms: ChangeTerms, at: Instant, evidence: str) -> DecidedChange:
            before = records.transfer(terms.agreement_id, TransferKind.REFUND)
            decided: DecidedChange = original(records, terms, at, evidence)
            refund = records.transfer(terms.agreement_id, TransferKind.REFUND)
            if before is None and refund is not None:
                records.append(Entry(Action.ENTERED, more(refund)))
            return decided

        return post_change

    return _replaced(change_rules, "post_change", make)


def _refunded_twice() -> Context:
    return _beside_a_refund(lambda refund: replace(refund, transfer_id=f"{refund.transfer_id}#2"))


def _compensated() -> Context:
    """With what it returns a seller pays its buyer a compensation, out of what others have paid it."""

    def compensation(refund: Transfer) -> Transfer:
        name = f"compensation-{refund.agreement_id}"
        more = replace(refund, kind=TransferKind.DEPOSIT, amount=700, order_id="")
        return replace(more, transfer_id=f"deposit:{name}", agreement_id=name)

    return _beside_a_refund(compensation)


def _refund_after_the_start() -> Context:
    """A seller agrees to a refund of a slot that has begun."""

    def make(original: Any) -> Any:
        def on_cancellation(participant: Participant, signed: Any, now: Instant) -> Any:
            return original(participant, signed, min(now, participant.offer.start - 1))

        return on_cancellation

    return _replaced(Participant, "on_cancellation", make)


PLANTED_BUGS: dict[str, PlantedBug] = {
    "decision_not_persisted": PlantedBug(
        _not_persisted(rc.CommitDecided), "the user does not write its decision", _DROPPED
    ),
    "vote_before_persist": PlantedBug(_vote_before_persist, "the vote leaves before it is written", _DROPPED),
    "no_retransmission": PlantedBug(_no_retransmission, "nothing is sent again", "conversations_end"),
    "hold_timer_ignored": PlantedBug(_hold_timer_ignored, "a hold does not run out", "hold_deadline"),
    "double_debit": PlantedBug(_double_debit, "every order is paid twice", "paid_and_reserved"),
    "payment_not_persisted": PlantedBug(
        _not_persisted(rc.AgreementPaid), "the resource does not write that it was paid", _DROPPED
    ),
    "intention_not_persisted": PlantedBug(
        _not_persisted(rc.HoldIntended), "the resource does not write whose slot it holds", _DROPPED
    ),
    "accept_not_persisted": PlantedBug(
        _not_persisted(rc.AgreementReceived), "the resource does not write the agreement that it accepts", _DROPPED
    ),
    "void_not_persisted": PlantedBug(
        _void_not_persisted, "the ledger does not write that an order was withdrawn", _DROPPED
    ),
    "void_wish_not_persisted": PlantedBug(
        _not_persisted(rc.VoidAsked), "the user does not write that it wants an order void", _DROPPED
    ),
    "late_vote_accepted": PlantedBug(_late_vote_accepted, "the user decides on holds that run out", "decides_in_time"),
    "refusal_forgotten": PlantedBug(
        _refusal_forgotten, "a refused or voided order can be reserved again", "bank_keeps_its_word"
    ),
    "posts_after_deadline": PlantedBug(
        _posts_after_deadline, "an order is posted up to a minute after its deadline", "orders_settle"
    ),
    "doubled_proposal_judged": PlantedBug(
        _doubled_proposal_judged, "a copy of a proposal is judged again", "judged_once"
    ),
    "single_signature_accepted": PlantedBug(
        _single_signature_accepted, "the bank pays without the resource's signature", "both_signatures"
    ),
    "reservation_never_voided": PlantedBug(
        _reservation_never_voided, "money set aside does not run out", "orders_settle"
    ),
    "order_posted_in_part": PlantedBug(_order_posted_in_part, "the last line of an order is not paid", "all_or_none"),
    "late_hold_kept": PlantedBug(
        _late_hold_kept, "what a machine sets aside late for an offer that was let go is kept", "given_back"
    ),
    "late_hold_undone": PlantedBug(
        _late_hold_undone, "a hold's late answer releases a slot that is promised", "paid_and_reserved"
    ),
    "doubtful_hold_refused": PlantedBug(
        _doubtful_hold_refused, "a hold in doubt is refused without a release", "given_back"
    ),
    "doubt_taken_for_firm": PlantedBug(
        _doubt_taken_for_firm, "a confirmation in doubt is taken for done", "booked_before_said"
    ),
    "release_not_repeated": PlantedBug(_release_not_repeated, "a release in doubt is taken for done", "given_back"),
    "refunded_twice": PlantedBug(
        _refunded_twice, "what was given back or has failed is refunded twice", "refunded_once"
    ),
    "compensated": PlantedBug(
        _compensated, "a refund is compensated out of what others have paid the seller", "refunded_once"
    ),
    "refund_after_the_start": PlantedBug(
        _refund_after_the_start, "a seller agrees to a refund of a slot that has begun", "handed_over_is_paid"
    ),
    "paid_before_its_start": PlantedBug(
        _paid_before_its_start, "a job that waits in a queue is paid before it has started", "paid_for_its_start"
    ),
    "second_price_as_first": PlantedBug(
        _second_price_as_first, "the winner by second price is paid what it has offered", "price_owed"
    ),
    "ideal_speed_up": PlantedBug(
        ideal_speed_up, "a run is taken to get shorter as its cores get more, whatever its law", "size_owed"
    ),
    "limit_of_charged": PlantedBug(
        limit_of_charged, "a buyer's limit is taken for the price of a core-hour that is charged", "price_owed"
    ),
    "length_believed": PlantedBug(
        length_believed, "a buyer takes a seller's word for how long its run takes at a size", "size_owed"
    ),
    "dearest_sets_price": PlantedBug(
        _dearest_sets_price, "the dearest of the other offers sets the second price", "price_owed"
    ),
    **{name: PlantedBug(*bug) for name, bug in OF_AMENDMENTS.items()},
}
"""Every planted bug by its name."""
