"""The owner's wishes for other sizes of slots: checked, drawn up, and asked for their prices.

A smaller size is proposed at once. For a larger one the sellers are asked for their prices first, and all slots of a
command are then paid by one order. A price inquiry binds no party, and a restart forgets it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from ramp.model.acl import Message, Performative
from ramp.model.agreement import Agreement, ContractChange, change_key
from ramp.model.contents import ChangeCall, ChangePriced, ChangeRefused, Content
from ramp.model.instant import Duration, Instant
from ramp.model.money import credits_text
from ramp.model.ports import IdSource
from ramp.model.seal import Role
from ramp.model.sizes import amended
from ramp.model.sizes.moldable import price_with
from ramp.protocol.belief import said_by
from ramp.protocol.effects import Effect, Report, Send
from ramp.protocol.events import AgreementResized
from ramp.protocol.outcome import QUOTED, ChangeOutcome
from ramp.protocol.progress import ChangeEnded
from ramp.protocol.timing import Pace, Retry
from ramp.protocol.user.changing.history import History

NOT_ACTIVE = "not_active"
"""Code of a change of an agreement that is not active."""

NOT_TOGETHER = "not_together"
"""Code of resizes that one order cannot pay."""

ANOTHER_OPEN = "another_open"
"""Code of a resize while another is open."""


TOO_EXPENSIVE = "too_expensive"
"""Code of a resize above the owner's maximum cost."""

OTHER_STATE = "other_state"
"""Code of a resize for which seller and user have different states of the slot."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """The wanted size of one slot.

    Attributes:
        agreement: of the slot.
        state: present state of the slot.
        number: of the change.
        cores: new number of cores.
        until: new end.
        asking: maximum price of the addition, credits per core hour.
    """

    agreement: Agreement
    state: amended.SlotState
    number: int
    cores: int
    until: Instant
    asking: int

    @property
    def agreement_id(self) -> str:
        return self.agreement.agreement_id


class PriceInquiry:
    """The open inquiry for one command.

    Args:
        wanted: one a slot.
        max_cost: maximum total cost in minor units, or None.
        quote_only: whether it ends with the prices.
        pace: of the user.

    Attributes:
        failure: code and sentence, once nothing comes of it; None before.
    """

    is_terminal: Final = False
    order_id: Final = ""
    outcomes: Final = ()

    def __init__(self, wanted: Sequence[Wanted], max_cost: int | None, pace: Pace, *, quote_only: bool) -> None:
        self.wanted = tuple(wanted)
        self.quote_only = quote_only
        self.failure: tuple[str, str] | None = None
        self._max_cost = max_cost
        self._prices: dict[str, int] = {}
        self._pace = pace
        self._retry = Retry(pace)

    @property
    def deadline(self) -> Instant | None:
        return self._retry.deadline

    @property
    def is_answered(self) -> bool:
        """Whether every seller has named a price."""
        return len(self._prices) == len(self.wanted)

    @property
    def is_over(self) -> bool:
        return self.is_answered or self.failure is not None

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys of the changes, once they are proposed."""
        return tuple(change_key(each.agreement_id, each.number) for each in self.wanted)

    @property
    def agreement_ids(self) -> tuple[str, ...]:
        return tuple(each.agreement_id for each in self.wanted)

    def start(self, now: Instant) -> list[Effect]:
        """Ask the sellers for their prices."""
        self._retry.begin(now, now + self._pace.patience(self._pace.timing.query_limit))
        return self._calls()

    def on_timer(self, now: Instant) -> list[Effect]:
        """Ask again, or give up."""
        if self._retry.is_over(now):
            silent = {each.agreement.resource for each in self.wanted if each.agreement_id not in self._prices}
            self.failure = "no_answer", f"{', '.join(sorted(silent))} did not name a price in time"
            return []
        self._retry.again(now)
        return self._calls()

    def clock_set(self, by: Duration) -> None:
        self._retry.clock_set(by)

    def on_message(self, message: Message, agreement_id: str, content: Content, now: Instant) -> list[Effect]:
        """Take a seller's price, or its refusal to name one; `RemoteProtocolError` if the seller did not seal it."""
        wanted = next(each for each in self.wanted if each.agreement_id == agreement_id)
        said_by(message, wanted.agreement.resource, Role.RESOURCE)
        if isinstance(content, ChangePriced):
            self._take(wanted, content, now)
        elif isinstance(content, ChangeRefused):
            self.failure = content.code, content.detail
        return []

    def on_not_understood(self, sender: str, now: Instant) -> list[Effect]:
        self.failure = "not_understood", f"{sender} does not understand the price inquiry"
        return []

    def _take(self, wanted: Wanted, priced: ChangePriced, now: Instant) -> None:
        """Take a price; one for another size is a late answer to an earlier call of the same number."""
        if (priced.cores, priced.until) != (wanted.cores, wanted.until):
            return
        if priced.state != wanted.state.digest:
            self.failure = OTHER_STATE, f"{wanted.agreement.resource} names a price for another state of the slot"
        elif priced.cpu_hour_cost > wanted.asking:
            asked = f"{priced.cpu_hour_cost} credits/core-hour asked, expected at most {wanted.asking}"
            self.failure = "price", asked
        else:
            self._prices[priced.agreement_id] = priced.cpu_hour_cost
            if self.is_answered:
                self._retry.answered(now)

    def drawn_up(self, order_id: str, now: Instant) -> list[ContractChange]:
        """Return the changes at the named prices, effective as soon as the notice allows; may set `failure`."""
        timing = self._pace.timing
        effective_at = now + timing.amendment_notice
        valid_until = min(effective_at + timing.amendment_window, *(each.state.until for each in self.wanted))
        bodies = [self._drawn_up(each, order_id, (now, effective_at, valid_until)) for each in self.wanted]
        problems = (
            amended.change_problem(each.agreement, each.state, body)
            for each, body in zip(self.wanted, bodies, strict=True)
        )
        self.failure = next((problem for problem in problems if problem is not None), None)
        total = sum(body.amount for body in bodies)
        if self.failure is None and self._max_cost is not None and total > self._max_cost:
            most = credits_text(self._max_cost)
            self.failure = TOO_EXPENSIVE, f"total cost is {credits_text(total)} credits, expected at most {most}"
        return bodies

    def _drawn_up(self, wanted: Wanted, order_id: str, times: tuple[Instant, Instant, Instant]) -> ContractChange:
        issued_at, effective_at, valid_until = times
        draft = proposal(wanted, issued_at, effective_at, valid_until)
        price = self._prices[wanted.agreement_id]
        paid = replace(draft, cpu_hour_cost=price, order_id=order_id or QUOTED)
        return replace(paid, amount=amended.charge_owed(wanted.state, paid))

    def _calls(self) -> list[Effect]:
        effects: list[Effect] = []
        for each in self.wanted:
            if each.agreement_id not in self._prices:
                agreement = each.agreement
                call = ChangeCall(each.agreement_id, each.number, each.cores, each.until, each.asking)
                about, key = agreement.request_id, change_key(each.agreement_id, each.number)
                receiver, sender = agreement.resource, agreement.user
                effects.append(Send(Message(Performative.CFP, sender, receiver, about, call, reply_with=key)))
        return effects


def proposal(wanted: Wanted, issued_at: Instant, effective_at: Instant, valid_until: Instant) -> ContractChange:
    """Return a change to the wanted size, without its amount."""
    agreement = wanted.agreement
    return ContractChange(
        agreement_id=agreement.agreement_id,
        number=wanted.number,
        offer_id=agreement.offer.offer_id,
        user=agreement.user,
        resource=agreement.resource,
        bank=agreement.bank,
        issued_at=issued_at,
        previous=wanted.state.digest,
        cores=wanted.cores,
        until=wanted.until,
        effective_at=effective_at,
        valid_until=valid_until,
    )


class Resizes:
    """The commands of one user to change sizes, until they are proposed.

    Args:
        agreements: the user's agreements by id.
        history: of the user's changes.
        standing: returns an agreement's state (`UserParty.agreement_state`).
        is_open: whether a change of an agreement is open, or its price is being asked.
        inquire: asks sellers for their prices.
        propose: records and proposes changes.
        pace: of the user.
        ids: source of order ids.
    """

    def __init__(
        self,
        agreements: Mapping[str, Agreement],
        history: History,
        *,
        standing: Callable[[str], str],
        is_open: Callable[[str], bool],
        inquire: Callable[[PriceInquiry, Instant], list[Effect]],
        propose: Callable[[Sequence[ContractChange], Instant], list[Effect]],
        pace: Pace,
        ids: IdSource,
    ) -> None:
        self._agreements = agreements
        self._history = history
        self._standing = standing
        self._is_open = is_open
        self._inquire = inquire
        self._propose = propose
        self._pace = pace
        self._ids = ids

    # -- commands ------------------------------------------------------------------------------------------------

    def resize(self, wish: AgreementResized, now: Instant) -> list[Effect]:
        """Resize active slots, or quote the refund or cost."""
        ids = tuple(dict.fromkeys((wish.agreement_id, *wish.together)))
        for each in ids:
            problem = self._standing_problem(each) or amended.number_problem(len(self._history.posted(each)))
            if problem is not None:
                return self.none_done(ids, *problem)
        wanted = [self._wanted(each, wish) for each in ids]
        grows = all(amended.is_growth(each.state, each.cores, each.until) for each in wanted)
        banks = {each.agreement.bank for each in wanted}
        if len(ids) > 1 and (not grows or len(banks) > 1):
            detail = "changes can be paid together only if each one adds and all use one bank"
            return self.none_done(ids, NOT_TOGETHER, detail)
        if grows:
            return self._grow(wanted, wish.max_cost, now, quote_only=wish.quote_only)
        return self._shrink(wanted[0], now, quote_only=wish.quote_only)

    def _standing_problem(self, agreement_id: str) -> tuple[str, str] | None:
        standing = "unknown" if agreement_id not in self._agreements else self._standing(agreement_id)
        if standing != "active":
            return NOT_ACTIVE, f"only an active agreement can be changed; {agreement_id} is {standing}"
        if self._is_open(agreement_id):
            return ANOTHER_OPEN, f"{agreement_id} is already being changed; wait until that change ends"
        return None

    def _wanted(self, agreement_id: str, wish: AgreementResized) -> Wanted:
        agreement, state = self._agreements[agreement_id], self._history.state(agreement_id)
        number = self._history.last_number(agreement_id) + 1
        cores = state.cores if wish.cores is None else wish.cores
        until = state.until if wish.until is None else wish.until
        return Wanted(agreement, state, number, cores, until, _asking(wish, agreement))

    def _shrink(self, wanted: Wanted, now: Instant, *, quote_only: bool) -> list[Effect]:
        """Propose a smaller size, effective as soon as the notice allows."""
        agreement, state = wanted.agreement, wanted.state
        if wanted.cores > state.cores or wanted.until > state.until:
            return self.none_done([wanted.agreement_id], *amended.mixed_problem(state))
        timing = self._pace.timing
        effective_at = now + timing.amendment_notice
        valid_until = min(effective_at + timing.amendment_window, wanted.until)
        owed = amended.refund_owed(agreement, state, wanted.cores, wanted.until, effective_at)
        body = replace(proposal(wanted, now, effective_at, valid_until), amount=-owed)
        problem = amended.change_problem(agreement, state, body)
        if problem is not None:
            return self.none_done([wanted.agreement_id], *problem)
        if quote_only:
            return [Report(ChangeEnded(_quoted(body)))]
        return self._propose([body], now)

    def _grow(self, wanted: Sequence[Wanted], max_cost: int | None, now: Instant, *, quote_only: bool) -> list[Effect]:
        """Ask the sellers for their prices first."""
        ids = [each.agreement_id for each in wanted]
        for each in wanted:
            if each.agreement.offer.start_probability is not None:
                return self.none_done(ids, "not_reserved", "the agreement is a submitted job, whose size is fixed")
            if each.number > amended.AMENDMENT_NUMBER_MAX:
                detail = f"{each.agreement_id} has had {amended.AMENDMENT_NUMBER_MAX} amendments, which is the limit"
                return self.none_done(ids, "old_number", detail)
        return self._inquire(PriceInquiry(wanted, max_cost, self._pace, quote_only=quote_only), now)

    def inquired(self, inquiry: PriceInquiry, now: Instant) -> list[Effect]:
        """Report an inquiry that has failed, or propose what every seller has named a price for."""
        gone = [each for each in inquiry.wanted if self._standing(each.agreement_id) != "active"]
        if inquiry.is_answered and gone:
            what = f"{gone[0].agreement_id} is {self._standing(gone[0].agreement_id)} now"
            inquiry.failure = inquiry.failure or (NOT_ACTIVE, what)
        bodies: list[ContractChange] = []
        if inquiry.is_answered and inquiry.failure is None:
            bodies = inquiry.drawn_up(QUOTED if inquiry.quote_only else self._ids.new("order"), now)
        if inquiry.failure is not None:
            return [_not_done(each.agreement_id, each.state, *inquiry.failure) for each in inquiry.wanted]
        if inquiry.quote_only:
            return [Report(ChangeEnded(_quoted(body))) for body in bodies]
        return self._propose(bodies, now)

    def none_done(self, agreement_ids: Sequence[str], code: str, detail: str, *, ends: bool = False) -> list[Effect]:
        """Report that nothing was proposed for agreements, and why."""
        known = [each for each in agreement_ids if code != NOT_ACTIVE and each in self._agreements]
        states = {each: self._history.state(each) for each in known}
        return [_not_done(each, states.get(each), code, detail, ends=ends) for each in agreement_ids]


def _not_done(
    agreement_id: str, state: amended.SlotState | None, code: str, detail: str, *, ends: bool = False
) -> Report:
    cores, until = (0, 0) if state is None else (state.cores, state.until)
    return Report(ChangeEnded(ChangeOutcome(agreement_id, 0, False, cores, until, code=code, detail=detail, ends=ends)))


def _quoted(body: ContractChange) -> ChangeOutcome:
    """Return the outcome of a resize that was only quoted."""
    size = (body.cores, body.until, body.effective_at)
    return ChangeOutcome(body.agreement_id, 0, False, *size, body.refund, QUOTED, "nothing is proposed", body.charge)


def _asking(wish: AgreementResized, agreement: Agreement) -> int:
    """Return the maximum price in credits per core-hour charged: the owner's, else what the request allows."""
    offer = agreement.offer
    return price_with(agreement.request, offer.cores, offer.end - offer.start) if wish.price is None else wish.price
