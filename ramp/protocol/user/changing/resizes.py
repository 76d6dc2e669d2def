"""The owner's wishes for other sizes of slots: drawn up, and asked for their prices.

A smaller size is proposed at once. For a larger one the sellers are asked for their prices first, and all slots of a
command are then paid by one order. A price inquiry binds no party, and a restart forgets it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from ramp.model.acl import Message, Performative
from ramp.model.agreement import Agreement, ContractChange, change_key
from ramp.model.contents import ChangeCall, ChangePriced, ChangeRefused, Content
from ramp.model.instant import Instant
from ramp.model.money import credits_text
from ramp.model.seal import Role
from ramp.model.sizes import amended
from ramp.model.sizes.moldable import price_with
from ramp.protocol.belief import said_by
from ramp.protocol.effects import Effect, Report, Send
from ramp.protocol.events import AgreementResized
from ramp.protocol.outcome import QUOTED, ChangeOutcome
from ramp.protocol.progress import ChangeEnded
from ramp.protocol.timing import Pace, Retried, Retry, Timing
from ramp.protocol.user.changing.history import History

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


class PriceInquiry(Retried):
    """The open inquiry for one command.

    Args:
        max_cost: maximum total cost in minor units, or None.
        quote_only: whether it ends with the prices.

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


def wanted_size(wish: AgreementResized, agreement: Agreement, history: History) -> Wanted:
    """Return the size that the owner wants one slot to have."""
    state, number = history.state(agreement.agreement_id), history.last_number(agreement.agreement_id) + 1
    cores = state.cores if wish.cores is None else wish.cores
    until = state.until if wish.until is None else wish.until
    return Wanted(agreement, state, number, cores, until, _asking(wish, agreement))


def growth_problem(wanted: Wanted) -> tuple[str, str] | None:
    """Return why an addition is not asked for, as code and sentence, or None."""
    if wanted.agreement.offer.start_probability is not None:
        return "not_reserved", "the agreement is a submitted job, whose size is fixed"
    if wanted.number > amended.AMENDMENT_NUMBER_MAX:
        detail = f"{wanted.agreement_id} has had {amended.AMENDMENT_NUMBER_MAX} amendments, which is the limit"
        return "old_number", detail
    return None


def reduction(wanted: Wanted, timing: Timing, now: Instant) -> ContractChange:
    """Return a change to a smaller size, effective as soon as the notice allows."""
    effective_at = now + timing.amendment_notice
    valid_until = min(effective_at + timing.amendment_window, wanted.until)
    owed = amended.refund_owed(wanted.agreement, wanted.state, wanted.cores, wanted.until, effective_at)
    return replace(proposal(wanted, now, effective_at, valid_until), amount=-owed)


def not_done(
    agreement_id: str, state: amended.SlotState | None, code: str, detail: str, *, ends: bool = False
) -> Report:
    """Report that nothing was proposed for an agreement, and why."""
    cores, until = (0, 0) if state is None else (state.cores, state.until)
    return Report(ChangeEnded(ChangeOutcome(agreement_id, 0, False, cores, until, code=code, detail=detail, ends=ends)))


def quoted(body: ContractChange) -> Report:
    """Report the refund or cost of a resize that is only quoted."""
    size, why = (body.cores, body.until, body.effective_at), (QUOTED, "nothing is proposed")
    return Report(ChangeEnded(ChangeOutcome(body.agreement_id, 0, False, *size, body.refund, *why, body.charge)))


def _asking(wish: AgreementResized, agreement: Agreement) -> int:
    """Return the maximum price in credits per core-hour charged: the owner's, else what the request allows."""
    offer = agreement.offer
    return price_with(agreement.request, offer.cores, offer.end - offer.start) if wish.price is None else wish.price
