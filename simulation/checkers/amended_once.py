"""A bought slot has the size that its posted amendments say; each gave back or cost what its part was worth, once.

What goes back is counted core by core, apart from RAMP's rules: a price for every core of every interval between two
instants at which anything changes. The chain of what the bank has posted is followed in
every slot, liars' too.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

from ramp.ledger.entry import DecidedChange
from ramp.model.acl import Message
from ramp.model.agreement import Agreement, ContractChange, Signed
from ramp.model.contents import TransferKind
from ramp.model.instant import Instant
from ramp.model.sizes.amended import after, change_problem, first_state, state_digest
from ramp.protocol.transition_tables import ParticipantState
from simulation.market.market_view import Checker, MarketView, posted_transfers

Interval = tuple[Instant, Instant]
"""From when to when."""


def given_back(agreement: Agreement, changes: Sequence[ContractChange], last: ContractChange) -> tuple[Fraction, int]:
    """What the last of a slot's changes gives back, and how much of the slot.

    Args:
        agreement: what was bought.
        changes: those posted before it, in their order.
        last: which leaves less than there was.

    Returns:
        Minor units as an exact fraction, and core microseconds.
    """
    offer = agreement.offer
    instants = {offer.start, offer.end}
    for change in (*changes, last):
        instants |= {max(change.effective_at, offer.start), max(change.until, offer.start)}
    prices: dict[Interval, list[Fraction]] = {
        interval: [Fraction(agreement.cost, offer.cores * (offer.end - offer.start))] * offer.cores
        if interval[1] <= offer.end
        else []
        for interval in pairwise(sorted(instants))
    }
    counts_from = offer.start
    for change in changes:
        counts_from = max(counts_from, change.effective_at)
        _change(prices, change, counts_from)
    counts_from = max(counts_from, last.effective_at)
    worth, core_time = Fraction(0), 0
    for (begin, end), cores in prices.items():
        gone = cores if begin >= last.until else cores[last.cores :]
        if begin >= counts_from:
            worth += sum(gone, Fraction(0)) * (end - begin)
            core_time += len(gone) * (end - begin)
    return worth, core_time


def _change(prices: dict[Interval, list[Fraction]], change: ContractChange, counts_from: Instant) -> None:
    """Take what goes from the end of each interval's cores, and put what comes behind them at its own price."""
    added = sum(
        (change.cores - len(cores)) * (end - begin)
        for (begin, end), cores in prices.items()
        if counts_from <= begin < change.until
    )
    price = Fraction(change.charge, added) if change.charge else Fraction(0)
    for (begin, _), cores in prices.items():
        left = change.cores if begin < change.until else 0
        cores[left:] = [price] * (left - len(cores))


class AmendedOnce(Checker):
    """Compares users, resources, machines and the ledger."""

    name = "amended_once"

    def __init__(self) -> None:
        self._sizes: dict[str, tuple[int, Instant]] = {}
        self._before: dict[str, str] = {}

    def on_sent(self, message: Message, view: MarketView) -> None:
        """Remember what every amendment that is signed would make of its slot."""
        content = message.content
        if isinstance(content, Signed) and isinstance(content.body, ContractChange):
            digest = state_digest(content.body)
            self._sizes[digest] = content.body.cores, content.body.until
            self._before[digest] = content.body.previous

    def on_step(self, view: MarketView) -> None:
        """While a slot is being changed no more of it may be used than is paid."""
        for name, party in view.honest_resources.items():
            for offer_id in party.sizes.open:
                participant = party.participants[offer_id]
                agreed = participant.agreed
                posted = sizes_posted(view, agreed.agreement_id)
                paid = self._sizes[posted[-1].digest] if posted else (agreed.offer.cores, agreed.offer.end)
                used = participant.size
                if used[0] > paid[0] or used[1] > paid[1]:
                    raise self._violated(f"{name} has handed {used} over for {offer_id}; {paid} is paid")

    def at_end(self, view: MarketView) -> None:
        """Users know every amendment that is posted; machines have what the last one says."""
        self.at_stop(view)
        for user in view.honest_users.values():
            for agreement_id in user.agreements:
                posted = {each.number for each in sizes_posted(view, agreement_id)}
                known = {each.number for each in user.changes.history.posted(agreement_id)}
                if posted != known:
                    raise self._violated(f"{user.name} knows {known} of {agreement_id}, and {posted} are posted")
        for name, party in view.honest_resources.items():
            now = view.time_of(name)
            firm = {each.key: each.slot for each in view.machines[name].reservations(now) if each.firm}
            for offer_id, participant in party.participants.items():
                if participant.state is not ParticipantState.SOLD or offer_id not in firm:
                    continue
                expected = self._state_of(view, participant.agreed)
                slot = firm[offer_id]
                if expected is not None and (slot.cores, slot.end) != expected:
                    raise self._violated(f"{name} has {slot} for {offer_id}; its amendments say {expected}")

    def _state_of(self, view: MarketView, agreement: Agreement) -> tuple[int, int] | None:
        """Return cores and end by the amendments that its user knows; None where the user is not honest."""
        user = view.honest_users.get(agreement.user)
        if user is None or agreement.agreement_id not in user.agreements:
            return None
        posted = user.changes.history.posted(agreement.agreement_id)
        return (posted[-1].cores, posted[-1].until) if posted else (agreement.offer.cores, agreement.offer.end)

    def at_stop(self, view: MarketView) -> None:
        """What a user has had posted is one chain, and the ledger has moved the same amount for each of it, once."""
        for payment in posted_transfers(view):
            posted = sizes_posted(view, payment.agreement_id)
            for before, each in pairwise(posted):
                if self._before.get(each.digest, before.digest) != before.digest:
                    raise self._violated(f"amendment {each.number} of {each.agreement_id} changes an outdated state")
        for user in view.honest_users.values():
            for agreement_id, agreement in user.agreements.items():
                self._follow(view, agreement, user.changes.history.posted(agreement_id))

    def _follow(self, view: MarketView, agreement: Agreement, posted: tuple[ContractChange, ...]) -> None:
        state = first_state(agreement)
        for number, amendment in enumerate(posted):
            problem = change_problem(agreement, state, amendment)
            if problem is not None:
                raise self._violated(f"amendment {amendment.number} of {agreement.agreement_id}: {problem[1]}")
            if not amendment.grows:
                worth, _ = given_back(agreement, posted[:number], amendment)
                if amendment.refund != int(worth):
                    raise self._violated(f"amendment {amendment.number} gives {amendment.refund} back of {worth}")
            kind = TransferKind.PAYMENT if amendment.grows else TransferKind.REFUND
            moved = view.ledger.transfer(amendment.key, kind)
            if moved is None or moved.posted_at is None or moved.amount != abs(amendment.amount):
                raise self._violated(f"amendment {amendment.number} of {agreement.agreement_id} has moved {moved}")
            state = after(state, amendment)


def sizes_posted(view: MarketView, agreement_id: str) -> list[DecidedChange]:
    """Return the changes of an agreement's size that the bank has posted, in order."""
    return [each for each in view.ledger.changes(agreement_id) if each.is_posted and not each.is_terminal]
