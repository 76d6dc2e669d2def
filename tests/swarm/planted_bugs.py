"""Bugs planted on purpose, to prove that the checkers see them.

Each stands in for a method or rule of the protocol, the ledger or the host while its context lasts.
"""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final
from unittest.mock import patch
from weakref import WeakKeyDictionary

from ramp.ledger import change_rules, order_rules
from ramp.ledger.entry import Action, DecidedChange, Entry, Order, Transfer
from ramp.ledger.interface import Ledger
from ramp.ledger.payment_rules import Problem
from ramp.ledger.records import Records
from ramp.ledger.refusals import RefusalCode as Refused
from ramp.model import shortcoming
from ramp.model.agreement import ContractChange
from ramp.model.contents import HoldGranted, OrderLine, OrderState, TransferKind
from ramp.model.instant import MINUTE, Duration, Instant
from ramp.model.offer import Offer, RefusalCode
from ramp.model.request import RequestUnit
from ramp.model.sizes import amended, moldable
from ramp.model.sizes.amended import Bought
from ramp.model.slot import Reservation, Slot
from ramp.protocol import effects as fx
from ramp.protocol import records as rc
from ramp.protocol.bank.party import BankParty
from ramp.protocol.effects import ResizeSlot
from ramp.protocol.events import MachineInDoubt
from ramp.protocol.resource import seller
from ramp.protocol.resource.participant import Participant
from ramp.protocol.resource.slots.kept_participants import KeptParticipants
from ramp.protocol.resource.slots.seller_change import SellerChange
from ramp.protocol.rules.auction_rule import UnitBids
from ramp.protocol.rules.shipped.second_price import SecondPrice
from ramp.protocol.timing import Retry, moved
from ramp.protocol.transition_tables import ParticipantState, SellerChangeState
from ramp.protocol.user.auction import Auction
from ramp.protocol.user.changing.history import History
from ramp.protocol.user.voting import Voting
from ramp.runtime.host import Host
from simulation.market.book import BookRecords

FAR: Instant = 2**62
"""Later than any instant of a run."""

Context = contextlib.AbstractContextManager[object]


@dataclass(frozen=True)
class PlantedBug:
    """A bug: the context in which it is there, the checker that sees it, and a seed of a market in which it does.

    Some show in markets only that draw rules, some only where slots change their size; the others were found earlier.
    """

    context: Callable[[], Context]
    checker: str
    seed: int
    ruled: bool = False
    resized: bool = False


PLANTED_BUGS: Final[dict[str, PlantedBug]] = {}


def replaces(owner: Any, method: str, checker: str, seed: int, **markets: bool) -> Callable[..., Callable[..., Any]]:
    """Makes a planted bug of a function that stands in for a method or rule of a class or module.

    The method or rule itself is the function's first argument.
    """

    def plant(broken: Callable[..., Any], name: str = "") -> Callable[..., Any]:
        def context() -> Context:
            original = getattr(owner, method)
            return patch.object(owner, method, lambda *given, **named: broken(original, *given, **named))

        PLANTED_BUGS[name or broken.__name__] = PlantedBug(context, checker, seed, **markets)
        return broken

    return plant


def planted(checker: str, seed: int, **markets: bool) -> Callable[..., Callable[[], Context]]:
    """Makes a planted bug of a context."""

    def plant(context: Callable[[], Context]) -> Callable[[], Context]:
        PLANTED_BUGS[context.__name__] = PlantedBug(context, checker, seed, **markets)
        return context

    return plant


def _not_persisted(kind: type) -> Callable[..., None]:
    """Records of a kind are not written."""

    def carry_out_one(original: Any, host: Host, effect: fx.Effect, now: Instant) -> None:
        if not (isinstance(effect, fx.Persist) and isinstance(effect.record, kind)):
            original(host, effect, now)

    return carry_out_one


for _name, _kind, _seed in (
    ("decision_not_persisted", rc.CommitDecided, 0),
    ("payment_not_persisted", rc.AgreementPaid, 0),
    ("intention_not_persisted", rc.HoldIntended, 0),
    ("accept_not_persisted", rc.AgreementReceived, 0),
    ("void_wish_not_persisted", rc.VoidAsked, 5),
):
    replaces(Host, "_carry_out_one", "written_before_said", _seed)(_not_persisted(_kind), _name)

_DELAYED: WeakKeyDictionary[Host, list[fx.Effect]] = WeakKeyDictionary()


@replaces(Host, "_carry_out", "written_before_said", 0)
def vote_before_persist(original: Any, host: Host, effects: list[fx.Effect], now: Instant) -> None:
    """The vote leaves before it is written."""
    written = (rc.HoldIntended, rc.HoldMade)
    votes = [e for e in effects if isinstance(e, fx.Send) and isinstance(e.message.content, HoldGranted)]
    late = [e for e in effects if isinstance(e, fx.Persist) and isinstance(e.record, written)]
    _DELAYED.setdefault(host, []).extend(late)
    early = [e for e in effects if e not in late]
    original(host, [*early, *_DELAYED.pop(host)] if votes else early, now)


@replaces(Retry, "begin", "conversations_end", 5)
def no_retransmission(original: Any, retry: Retry, now: Instant, limit: Instant | None = None) -> None:
    """Nothing is sent again."""
    original(retry, now, limit)
    retry.due = now + 10**15


@replaces(Participant, "on_timer", "hold_deadline", 12)
def hold_timer_ignored(original: Any, participant: Participant, now: Instant) -> Any:
    """A hold does not run out."""
    if participant.state is ParticipantState.HELD:
        participant.until = FAR
        return []
    return original(participant, now)


@replaces(Participant, "_firm", "paid_for_its_start", 9, ruled=True)
def paid_before_its_start(original: Any, participant: Participant, reservation: Reservation, now: Instant) -> Any:
    """A job counts as started, and is paid, as soon as it is in the queue."""
    return original(participant, replace(reservation, started_at=now), now)


@replaces(Ledger, "countersign", "paid_and_reserved", 0)
def double_debit(original: Any, ledger: Ledger, agreement_id: str, **terms: Any) -> Order:
    """Every order is paid twice."""
    order: Order = original(ledger, agreement_id, **terms)
    count = len(ledger.statement(order.user))
    again = tuple(replace(line, agreement_id=f"{line.agreement_id}-again-{count}") for line in order.lines)
    if agreement_id == order.lines[-1].agreement_id:
        at: Instant = terms["at"]
        ledger.reserve_order(f"{order.order_id}#{count}", order.user, again, order.valid_until, at=at)
        for line in again:
            original(ledger, line.agreement_id, at=at, starts_at=at)
    return order


@replaces(order_rules, "_void", "written_before_said", 9)
def void_not_persisted(original: Any, records: Records, order: Order, at: Instant, code: str, reason: str) -> Any:
    """The ledger says that an order was withdrawn and writes nothing."""
    if str(code) == "withdrawn":
        return replace(order, state=OrderState.VOIDED, settled_at=at, code=str(code), reason=reason)
    return original(records, order, at, code, reason)


@replaces(Voting, "_count", "decides_in_time", 33)
def late_vote_accepted(original: Any, voting: Voting, now: Instant) -> Any:
    """The user counts votes, and the bank's, as if no hold ran out."""
    for ballot in voting._ballots.values():
        if ballot.held is not None:
            ballot.held = replace(ballot.held, held_until=FAR)
    return original(voting, now)


@replaces(Ledger, "reserve_order", "bank_keeps_its_word", 38)
def refusal_forgotten(
    original: Any, ledger: Ledger, order_id: str, user: str, lines: Any, valid_until: Instant, **terms: Any
) -> Any:
    """An order that was refused or voided is said to be reserved when it comes again."""
    there = ledger.order(order_id)
    if there is None or there.state not in (OrderState.REFUSED, OrderState.VOIDED):
        return original(ledger, order_id, user, lines, valid_until, **terms)
    at: Instant = terms["at"]
    if there.total > ledger.balance(user).available or at >= valid_until:
        return there
    wanted = Order(order_id, user, tuple(lines), valid_until, at, OrderState.RESERVED)
    return replace(wanted, countersigned=there.countersigned)


@planted("orders_settle", 1)
@contextlib.contextmanager
def posts_after_deadline() -> Iterator[None]:
    """The bank gives every order a minute more than it says."""
    as_of, on_expiry = order_rules._as_of, BankParty._on_expiry

    def on_late_expiry(bank: BankParty, now: Instant) -> list[fx.Effect]:
        effects = on_expiry(bank, now - MINUTE)
        bank._expiry.deadline = moved(bank._expiry.deadline, MINUTE)
        return effects

    with (
        patch.object(order_rules, "_as_of", lambda records, order, at: as_of(records, order, at - MINUTE)),
        patch.object(BankParty, "_on_expiry", on_late_expiry),
    ):
        yield


@replaces(Auction, "on_proposal", "judged_once", 42)
def doubled_proposal_judged(original: Any, auction: Auction, *arguments: Any) -> Any:
    """A copy of a proposal is judged again."""
    auction._heard.clear()
    auction._named.clear()
    return original(auction, *arguments)


@replaces(BankParty, "_on_agreement", "both_signatures", 121)
def single_signature_accepted(
    original: Any, bank: BankParty, message: Any, signed: Any, agreement: Any, now: Instant
) -> Any:
    """The bank takes an agreement that its resource has not countersigned."""
    if signed.signers == (agreement.user,):
        signed = replace(signed, signers=(agreement.user, agreement.resource))
    return original(bank, message, signed, agreement, now)


@replaces(BankParty, "_on_expiry", "orders_settle", 1)
def reservation_never_voided(_: Any, bank: BankParty, __: Instant) -> list[fx.Effect]:
    """The bank does nothing when the time of an order is over."""
    bank._expiry.deadline = None
    return []


@replaces(order_rules, "_settlement", "all_or_none", 0)
def order_posted_in_part(original: Any, records: Records, order: Order) -> list[Any]:
    """The last line of an order is not paid."""
    entries: list[Any] = original(records, order)
    if order.state is OrderState.POSTED and len(order.lines) > 1:
        return entries[:-1]
    return entries


@replaces(Participant, "_late", "given_back", 143)
def late_hold_kept(*_: object) -> list[fx.Effect]:
    """What a machine has set aside for an offer that was let go is not given back."""
    return []


@replaces(Participant, "_late", "booked_before_said", 234)
def late_hold_undone(original: Any, participant: Participant, answer: Any) -> Any:
    """A hold's answer that comes after its look-up releases the slot, which has been promised meanwhile."""
    if isinstance(answer, Reservation) and participant.state is not ParticipantState.RELEASED:
        return [fx.ReleaseSlot(participant.offer.offer_id)]
    return original(participant, answer)


@replaces(Participant, "_in_doubt", "given_back", 21)
def doubtful_hold_refused(original: Any, participant: Participant, doubt: MachineInDoubt, now: Instant) -> Any:
    """A hold in doubt is refused, and nothing is released."""
    if participant.state is not ParticipantState.HOLDING:
        return original(participant, doubt, now)
    effects = participant._not_reserved(RefusalCode.PLUGIN_FAILED, doubt.reason, now)
    return [each for each in effects if not isinstance(each, fx.ReleaseSlot)]


@replaces(Participant, "_in_doubt", "booked_before_said", 53)
def doubt_taken_for_firm(original: Any, participant: Participant, doubt: MachineInDoubt, now: Instant) -> Any:
    """A confirmation in doubt passes for one that was done."""
    if participant.state is ParticipantState.CONFIRMING:
        slot = Slot(participant.offer.start, participant.offer.end, participant.offer.cores, 0.0)
        firm = Reservation(participant.offer.offer_id, participant.reservation_id, slot, True, None)
        return participant._firm(firm, now)
    return original(participant, doubt, now)


@replaces(KeptParticipants, "on_freed", "given_back", 53)
def release_not_repeated(original: Any, kept: KeptParticipants, key: str, now: Instant, *, in_doubt: bool) -> Any:
    """A release in doubt passes for one that was done."""
    return original(kept, key, now, in_doubt=False)


@replaces(SecondPrice, "price", "price_owed", 7, ruled=True)
def second_price_as_first(original: Any, rule: SecondPrice, bids: UnitBids, winner: Offer, remaining: Any) -> Any:
    """The winner by second price is paid what it has offered."""
    return replace(original(rule, bids, winner, remaining), cost=winner.cost)


@replaces(SecondPrice, "price", "price_owed", 17, ruled=True)
def dearest_sets_price(original: Any, rule: SecondPrice, bids: UnitBids, winner: Offer, remaining: Any) -> Any:
    """The dearest of the other offers sets the second price."""
    return original(rule, bids, winner, remaining[::-1])


def _beside_a_refund(more: Callable[[Transfer], Transfer]) -> Callable[..., DecidedChange]:
    """With the refund that ends an agreement another transfer is entered."""

    def post_change(original: Any, records: Records, change: ContractChange, *how: Any) -> DecidedChange:
        before = records.transfer(change.agreement_id, TransferKind.REFUND)
        decided: DecidedChange = original(records, change, *how)
        refund = records.transfer(change.agreement_id, TransferKind.REFUND)
        if before is None and refund is not None:
            records.append(Entry(Action.ENTERED, more(refund)))
        return decided

    return post_change


def _compensation(refund: Transfer) -> Transfer:
    """What a seller pays its buyer beside what it returns, out of what others have paid it."""
    name = f"compensation-{refund.agreement_id}"
    more = replace(refund, kind=TransferKind.DEPOSIT, amount=700, order_id="")
    return replace(more, transfer_id=f"deposit:{name}", agreement_id=name)


for _name, _more, _ruled in (
    ("refunded_twice", lambda refund: replace(refund, transfer_id=f"{refund.transfer_id}#2"), False),
    ("compensated", _compensation, True),
):
    replaces(change_rules, "post_change", "refunded_once", 3, ruled=_ruled)(_beside_a_refund(_more), _name)


@replaces(Participant, "on_cancellation", "handed_over_is_paid", 32, ruled=True)
def refund_after_the_start(original: Any, participant: Participant, signed: Any, now: Instant) -> Any:
    """A seller agrees to a refund of a slot that has begun."""
    return original(participant, signed, min(now, participant.offer.start - 1))


# -- what sizes of moldable units mean -------------------------------------------------------------------------------


@replaces(moldable, "run_time_with", "size_owed", 7, ruled=True)
def ideal_speed_up(_: Any, unit: RequestUnit, cores: int) -> Duration | None:
    """With twice the cores a run takes half the time, whatever its law."""
    if unit.moldable is None or unit.wall_time is None:
        return unit.wall_time
    return unit.wall_time * unit.cores.total // cores


@planted("price_owed", 5, ruled=True)
@contextlib.contextmanager
def limit_of_charged() -> Iterator[None]:
    """The buyer's price is compared with that of a core-hour charged, however many cores are charged."""
    with (
        patch.object(seller, "price_with", lambda unit, cores, length, price=None: price or unit.cpu_hour_cost),
        patch.object(shortcoming, "cost_cap", lambda unit, length: 10**9),
    ):
        yield


@replaces(shortcoming, "size_problem", "size_owed", 15, ruled=True)
def length_believed(*_: object) -> str:
    """A buyer takes a seller's word for how long its run takes at a size."""
    return ""


# -- where slots change their size -----------------------------------------------------------------------------------


def _machine_asked(change: SellerChange, cores: int, until: Instant) -> ResizeSlot:
    return ResizeSlot(change.body.offer_id, change._step(), cores, until)


@replaces(SellerChange, "_ask_machine", "amended_once", 0, resized=True)
def paid_back_untaken(original: Any, change: SellerChange) -> Any:
    """The machine is asked for the size that the slot has instead of the smaller one."""
    if change.body.grows:
        return original(change)
    return _machine_asked(change, change._state.cores, change._state.until)


@replaces(SellerChange, "_ask_machine", "amended_once", 263, resized=True)
def addition_kept(original: Any, change: SellerChange) -> Any:
    """The machine keeps what was to be added, though nobody has paid it."""
    if not change.body.grows:
        return original(change)
    return _machine_asked(change, change.body.cores, change.body.until)


@replaces(BookRecords, "add_change", "refunded_once", 6, resized=True)
def decisions_forgotten(*_: object) -> None:
    """The ledger does not note what it has decided of an amendment."""


@replaces(change_rules, "left_of", "refunded_once", 23, resized=True)
def rebates_refunded_again(_: Any, payment: Any, __: object) -> Any:
    """A refund gives back what amendments have given back already."""
    return payment.amount


@replaces(History, "replay", "amended_once", 15, resized=True)
def changes_forgotten(original: Any, history: History, records: Sequence[rc.Record]) -> Any:
    """A user that restarts knows nothing of what was posted before."""
    ended = [
        replace(each, outcome=replace(each.outcome, done=False)) if isinstance(each, rc.ChangeConcluded) else each
        for each in records
    ]
    return original(history, ended)


@planted("amended_once", 10, resized=True)
def handed_over_unpaid() -> Context:
    """What is added may be used as soon as the machine has set it aside."""
    original = vars(SellerChange)["is_binding"].fget

    def is_binding(change: SellerChange) -> bool:
        return change.state is not SellerChangeState.ENDED if change.body.grows else original(change)

    return patch.object(SellerChange, "is_binding", property(is_binding))


@replaces(change_rules, "addition_posted", "amended_once", 10, resized=True)
def additions_not_noted(*_: object) -> None:
    """The ledger posts what was added, and does not note the amendment."""


@replaces(amended, "_resized", "amended_once", 68, resized=True)
def first_bought_first_back(_: Any, bought: tuple[Bought, ...], cores: int) -> tuple[Bought, ...]:
    """A smaller slot keeps what was added last and gives back what was bought first."""
    kept: list[Bought] = []
    for each in reversed(bought):
        left = min(each.cores, cores)
        if left > 0:
            kept.append(Bought(left, each.price))
        cores -= left
    return tuple(reversed(kept))


@replaces(change_rules, "addition_problem", "amended_once", 149, resized=True)
def addition_to_any_state(original: Any, records: Records, user: str, line: OrderLine) -> Any:
    """An order's line may add to a state that its slot no longer has."""
    with patch.object(change_rules, "standing_digest", lambda _: ""):
        return original(records, user, line)


@replaces(change_rules, "addition_problem", "refunded_once", 19, resized=True)
def addition_outlives_refund(original: Any, records: Records, user: str, line: OrderLine) -> Problem | None:
    """An addition that is open when its slot is refunded is paid nevertheless."""
    problem: Problem | None = original(records, user, line)
    return None if problem is not None and problem[0] is Refused.REFUNDED else problem
