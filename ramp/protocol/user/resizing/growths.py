"""All slots that one user enlarges: first the sellers' prices, then one order for all slots of a command.

Price inquiries bind no party, and a restart forgets them. Proposals are recorded before they are sent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from ramp.model.acl import Message, Performative
from ramp.model.agreement import Agreement, ContractChange, amendment_key
from ramp.model.contents import ChangeCall, ChangePriced, ChangeRefused
from ramp.model.instant import Duration, Instant
from ramp.model.money import credits_text
from ramp.model.ports import IdSource
from ramp.model.seal import Role
from ramp.model.sizes.amended import SlotState, amendment_problem, charge_owed
from ramp.protocol.amending.asking import QUOTED, AmendmentOutcome
from ramp.protocol.amending.memory import AmendmentConcluded, AmendmentProposed
from ramp.protocol.belief import said_by
from ramp.protocol.effects import Effect, Persist, Report, Send
from ramp.protocol.faults import guarded
from ramp.protocol.progress import AmendmentEnded
from ramp.protocol.timing import Pace, Retry, earliest, moved
from ramp.protocol.user.resizing.growth import Growth, OrderWord, SellerWord

NOT_ACTIVE = "not_active"
"""Code of a resize of an agreement that is not active."""

AGENT_FAILED = "agent_failed"
"""Code of a resize that a bug of the user agent ended before it was recorded."""

OTHER_STATE = "other_state"
"""Code of a resize for which seller and user have different states of the slot."""

TOO_EXPENSIVE = "too_expensive"
"""Code of a resize above the owner's maximum cost."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """The wanted size of one slot.

    Attributes:
        agreement: of the slot.
        state: present state of the slot.
        number: of the amendment.
        cores: new number of cores.
        until: new end.
        asking: maximum price of the addition, credits per core hour.
    """

    agreement: Agreement
    state: SlotState
    number: int
    cores: int
    until: Instant
    asking: int

    @property
    def agreement_id(self) -> str:
        return self.agreement.agreement_id


@dataclass(slots=True)
class _Inquiry:
    """An open price inquiry.

    Attributes:
        wanted: one a slot.
        max_cost: maximum total cost in minor units, or None.
        quote_only: whether it ends with the prices.
        limit: when to give up.
        prices: received so far, credits per core hour by agreement.
    """

    wanted: tuple[Wanted, ...]
    max_cost: int | None
    quote_only: bool
    retry: Retry
    limit: Instant
    prices: dict[str, int] = field(default_factory=dict)

    @property
    def deadline(self) -> Instant | None:
        return earliest(self.retry.due, self.limit)

    def of(self, agreement_id: str) -> Wanted:
        return next(each for each in self.wanted if each.agreement_id == agreement_id)


class Growths:
    """The enlargements of one user.

    Args:
        standing: returns an agreement's state (`UserParty.agreement_state`).
        pace: of the user.
        ids: source of order ids.
        proposed: called with every amendment that is recorded.
        posted: called with every posted amendment.
        not_done: reports why nothing was proposed for an agreement, by code and sentence.
    """

    def __init__(
        self,
        *,
        standing: Callable[[str], str],
        pace: Pace,
        ids: IdSource,
        proposed: Callable[[ContractChange], None],
        posted: Callable[[ContractChange], None],
        not_done: Callable[[str, str, str], Report],
    ) -> None:
        self._standing = standing
        self._pace = pace
        self._ids = ids
        self._proposed = proposed
        self._posted = posted
        self._not_done = not_done
        self._inquiries: dict[str, _Inquiry] = {}
        self._open: dict[str, Growth] = {}

    def __contains__(self, agreement_id: str) -> bool:
        return agreement_id in self._inquiries or agreement_id in self._open

    @property
    def open(self) -> tuple[str, ...]:
        return (*self._inquiries, *self._open)

    def pays(self, order_id: str) -> bool:
        return any(each.order_id == order_id for each in self._open.values())

    @property
    def doubts(self) -> dict[str, str]:
        return {agreement_id: growth.doubt for agreement_id, growth in self._open.items()}

    @property
    def deadline(self) -> Instant | None:
        inquiries = (each.deadline for each in self._inquiries.values())
        return earliest(*inquiries, *(each.deadline for each in self._open.values()))

    # -- entries -------------------------------------------------------------------------------------------------

    def ask(self, wanted: Sequence[Wanted], max_cost: int | None, now: Instant, *, quote_only: bool) -> list[Effect]:
        """Ask the sellers for their prices, then propose the amendments unless `quote_only`."""
        retry = Retry(self._pace)
        retry.begin(now)
        limit = now + self._pace.patience(self._pace.timing.query_limit)
        inquiry = _Inquiry(tuple(wanted), max_cost, quote_only, retry, limit)
        self._inquiries.update((each.agreement_id, inquiry) for each in wanted)
        return self._calls(inquiry)

    def begin(self, lines: Sequence[tuple[ContractChange, Agreement]], whole: bool, now: Instant) -> list[Effect]:
        """Start an order that is on record.

        Args:
            lines: amendments of one order that are not concluded.
            whole: whether the order has no other lines; else it has ended, and only the bank is asked.
            now: the present.
        """
        growth = Growth(lines, self._pace)
        self._open.update((body.agreement_id, growth) for body, _ in lines)
        return growth.start(now) if whole else growth.conclude(now)

    def resume(self, agreement_id: str, on_record: bool, now: Instant) -> list[Effect] | None:
        """Resume after a bug.

        Args:
            agreement_id: where it was raised.
            on_record: whether an open amendment of the agreement is on record.
            now: the present.

        Returns:
            None if that slot was not being enlarged.
        """
        inquiry = self._inquiries.get(agreement_id)
        if inquiry is not None:
            return self._failed(inquiry, AGENT_FAILED, "the user agent failed before it was proposed")
        growth = self._open.get(agreement_id)
        if growth is None:
            return None
        self.rest(agreement_id)
        if growth.outcomes:
            return []
        if on_record:
            return self.begin(growth.lines, True, now)
        detail = "the user agent failed before it was proposed"
        return [self._not_done(body.agreement_id, AGENT_FAILED, detail) for body in growth.amendments]

    def rest(self, agreement_id: str) -> None:
        """Suspend the order or inquiry of an agreement until the next start."""
        inquiry, growth = self._inquiries.get(agreement_id), self._open.get(agreement_id)
        self._inquiries = {key: each for key, each in self._inquiries.items() if each is not inquiry}
        self._open = {key: each for key, each in self._open.items() if each is not growth}

    # -- messages and time ---------------------------------------------------------------------------------------

    def on_priced(self, message: Message, content: ChangePriced, now: Instant) -> list[Effect]:
        """Take a seller's price.

        Raises:
            RemoteProtocolError: if the seller did not seal it.
        """
        inquiry = self._inquiries.get(content.agreement_id)
        if inquiry is None or inquiry.of(content.agreement_id).number != content.number:
            return []
        wanted = inquiry.of(content.agreement_id)
        said_by(message, wanted.agreement.resource, Role.RESOURCE)
        if (content.cores, content.until) != (wanted.cores, wanted.until):
            return []  # a late answer to an earlier call, of the same number since that came to no proposal
        if content.state != wanted.state.digest:
            detail = f"{wanted.agreement.resource} names a price for another state of the slot"
            return self._guarded(inquiry, lambda: self._failed(inquiry, OTHER_STATE, detail))
        return self._guarded(inquiry, partial(self._take_price, inquiry, content, now))

    def on_seller(
        self, message: Message, agreement_id: str, number: int, content: SellerWord, now: Instant
    ) -> list[Effect] | None:
        """Take a seller's answer; return None if it belongs to no inquiry or order here.

        Raises:
            RemoteProtocolError: if the seller did not seal it, or the proof is invalid.
        """
        inquiry = self._inquiries.get(agreement_id)
        if inquiry is not None and inquiry.of(agreement_id).number == number:
            said_by(message, inquiry.of(agreement_id).agreement.resource, Role.RESOURCE)
            if not isinstance(content, ChangeRefused):
                return []
            return self._failed(inquiry, content.code, content.detail)
        growth = self._open.get(agreement_id)
        if growth is None or not any(
            (each.agreement_id, each.number) == (agreement_id, number) for each in growth.amendments
        ):
            return None
        return self._acts(growth, partial(growth.on_seller, message, agreement_id, content, now), now)

    def on_bank(self, message: Message, content: OrderWord, now: Instant) -> list[Effect]:
        """Take the bank's answer about an open order.

        Raises:
            RemoteProtocolError: if the bank did not seal it.
        """
        growth = next(each for each in self._open.values() if each.order_id == content.order_id)
        return self._acts(growth, partial(growth.on_bank, message, content, now), now)

    def on_not_understood(self, agreement_id: str, number: int, sender: str, now: Instant) -> list[Effect]:
        inquiry, growth = self._inquiries.get(agreement_id), self._open.get(agreement_id)
        if inquiry is not None and inquiry.of(agreement_id).number == number:
            return self._failed(inquiry, "not_understood", f"{sender} does not understand the price inquiry")
        if growth is None or not any(each.number == number for each in growth.amendments):
            return []
        return self._acts(growth, partial(growth.on_not_understood, sender, now), now)

    def tick(self, now: Instant) -> list[Effect]:
        effects: list[Effect] = []
        for inquiry in {id(each): each for each in self._inquiries.values()}.values():
            if inquiry.deadline is not None and now >= inquiry.deadline:
                effects += self._guarded(inquiry, partial(self._asked_again, inquiry, now))
        for growth in {id(each): each for each in self._open.values()}.values():
            if growth.deadline is not None and now >= growth.deadline:
                effects += self._acts(growth, partial(growth.tick, now), now)
        return effects

    def clock_set(self, by: Duration) -> None:
        for inquiry in {id(each): each for each in self._inquiries.values()}.values():
            inquiry.retry.clock_set(by)
            inquiry.limit = moved(inquiry.limit, by) or inquiry.limit
        for growth in {id(each): each for each in self._open.values()}.values():
            growth.clock_set(by)

    # -- prices --------------------------------------------------------------------------------------------------

    def _calls(self, inquiry: _Inquiry) -> list[Effect]:
        effects: list[Effect] = []
        for each in inquiry.wanted:
            if each.agreement_id not in inquiry.prices:
                agreement = each.agreement
                call = ChangeCall(each.agreement_id, each.number, each.cores, each.until, each.asking)
                about, key = agreement.request_id, amendment_key(each.agreement_id, each.number)
                receiver, sender = agreement.resource, agreement.user
                effects.append(Send(Message(Performative.CFP, sender, receiver, about, call, reply_with=key)))
        return effects

    def _asked_again(self, inquiry: _Inquiry, now: Instant) -> list[Effect]:
        if now >= inquiry.limit:
            silent = [each.agreement.resource for each in inquiry.wanted if each.agreement_id not in inquiry.prices]
            return self._failed(inquiry, "no_answer", f"{', '.join(sorted(set(silent)))} did not name a price in time")
        inquiry.retry.again(now)
        return self._calls(inquiry)

    def _take_price(self, inquiry: _Inquiry, priced: ChangePriced, now: Instant) -> list[Effect]:
        wanted = inquiry.of(priced.agreement_id)
        if priced.cpu_hour_cost > wanted.asking:
            told = f"{priced.cpu_hour_cost} credits/core-hour asked, expected at most {wanted.asking}"
            return self._failed(inquiry, "price", told)
        inquiry.prices[priced.agreement_id] = priced.cpu_hour_cost
        if len(inquiry.prices) < len(inquiry.wanted):
            return []
        inquiry.retry.answered(now)
        gone = [each for each in inquiry.wanted if self._standing(each.agreement_id) != "active"]
        if gone:
            what = f"{gone[0].agreement_id} is {self._standing(gone[0].agreement_id)} now"
            return self._failed(inquiry, NOT_ACTIVE, what)
        bodies = self._drawn_up(inquiry, now)
        for each, body in zip(inquiry.wanted, bodies, strict=True):
            problem = amendment_problem(each.agreement, each.state, body)
            if problem is not None:
                return self._failed(inquiry, *problem)
        total = sum(body.charge for body in bodies)
        if inquiry.max_cost is not None and total > inquiry.max_cost:
            told = f"total cost is {credits_text(total)} credits, expected at most {credits_text(inquiry.max_cost)}"
            return self._failed(inquiry, TOO_EXPENSIVE, told)
        self.rest(priced.agreement_id)
        if inquiry.quote_only:
            return [Report(AmendmentEnded(_quoted(body))) for body in bodies]
        return self._propose(inquiry, bodies, now)

    def _propose(self, inquiry: _Inquiry, bodies: Sequence[ContractChange], now: Instant) -> list[Effect]:
        together = tuple(body.agreement_id for body in bodies)
        for body in bodies:
            self._proposed(body)
        effects: list[Effect] = [Persist(AmendmentProposed(body, now, together)) for body in bodies]
        lines = [(body, each.agreement) for body, each in zip(bodies, inquiry.wanted, strict=True)]
        return effects + self.begin(lines, True, now)

    def _drawn_up(self, inquiry: _Inquiry, now: Instant) -> list[ContractChange]:
        """Return the amendments at the named prices, effective as soon as the notice allows."""
        timing = self._pace.timing
        effective_at = now + timing.amendment_notice
        ends = min(each.state.until for each in inquiry.wanted)
        order_id = QUOTED if inquiry.quote_only else self._ids.new("order")
        times = now, effective_at, min(effective_at + timing.amendment_window, ends)
        return [_drawn_up(each, inquiry.prices[each.agreement_id], order_id, times) for each in inquiry.wanted]

    def _failed(self, inquiry: _Inquiry, code: str, detail: str) -> list[Effect]:
        self.rest(inquiry.wanted[0].agreement_id)
        effects: list[Effect] = []
        for each in inquiry.wanted:
            state = each.state
            outcome = AmendmentOutcome(each.agreement_id, 0, False, state.cores, state.until, code=code, detail=detail)
            effects.append(Report(AmendmentEnded(outcome)))
        return effects

    # -- common --------------------------------------------------------------------------------------------------

    def _guarded(self, inquiry: _Inquiry, act: Callable[[], list[Effect]]) -> list[Effect]:
        return guarded(inquiry.wanted[0].agreement_id, act)

    def _acts(self, growth: Growth, act: Callable[[], list[Effect]], now: Instant) -> list[Effect]:
        reference = growth.amendments[0].agreement_id
        return guarded(reference, lambda: act() + self._ended(growth, now))

    def _ended(self, growth: Growth, now: Instant) -> list[Effect]:
        if not growth.outcomes:
            return []
        self.rest(growth.amendments[0].agreement_id)
        effects: list[Effect] = []
        for body, (outcome, seal) in zip(growth.amendments, growth.outcomes, strict=True):
            if outcome.done:
                self._posted(body)
            effects += [Persist(AmendmentConcluded(outcome, seal, now)), Report(AmendmentEnded(outcome))]
        return effects


def _drawn_up(wanted: Wanted, price: int, order_id: str, times: tuple[Instant, Instant, Instant]) -> ContractChange:
    """Return an amendment at a price; times are those of issue, effect and end of validity."""
    agreement, (issued_at, effective_at, valid_until) = wanted.agreement, times
    draft = ContractChange(
        agreement_id=agreement.agreement_id,
        number=wanted.number,
        previous=wanted.state.digest,
        offer_id=agreement.offer.offer_id,
        user=agreement.user,
        resource=agreement.resource,
        bank=agreement.bank,
        cores=wanted.cores,
        until=wanted.until,
        effective_at=effective_at,
        issued_at=issued_at,
        valid_until=valid_until,
        cpu_hour_cost=price,
        order_id=order_id,
    )
    return replace(draft, amount=charge_owed(wanted.state, draft))


def _quoted(body: ContractChange) -> AmendmentOutcome:
    return AmendmentOutcome(
        body.agreement_id,
        0,
        False,
        body.cores,
        body.until,
        body.effective_at,
        0,
        QUOTED,
        "nothing is proposed",
        body.charge,
    )
