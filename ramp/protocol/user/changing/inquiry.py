"""A buyer's question at what price its sellers would enlarge slots, by one order for all of them.

A price inquiry binds no party, and a restart forgets it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ramp.model.acl import Message, Performative
from ramp.model.agreement import Agreement, ContractChange, change_key
from ramp.model.contents import ChangeCall, ChangePriced
from ramp.model.instant import Duration, Instant
from ramp.model.money import credits_text
from ramp.model.sizes.amended import SlotState, change_problem, charge_owed
from ramp.protocol.effects import Effect, Send
from ramp.protocol.outcome import QUOTED
from ramp.protocol.timing import Pace, Retry, earliest, moved

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
    state: SlotState
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

    def __init__(self, wanted: Sequence[Wanted], max_cost: int | None, pace: Pace, *, quote_only: bool) -> None:
        self.wanted = tuple(wanted)
        self.quote_only = quote_only
        self.failure: tuple[str, str] | None = None
        self._max_cost = max_cost
        self._prices: dict[str, int] = {}
        self._pace = pace
        self._retry = Retry(pace)
        self._limit: Instant | None = None

    @property
    def deadline(self) -> Instant | None:
        return earliest(self._retry.due, self._limit)

    @property
    def is_answered(self) -> bool:
        """Whether every seller has named a price."""
        return len(self._prices) == len(self.wanted)

    @property
    def key(self) -> str:
        return self.wanted[0].agreement_id

    def asks_for(self, agreement_id: str) -> bool:
        """Return whether it asks for the price of a slot's growth."""
        return any(each.agreement_id == agreement_id for each in self.wanted)

    def of(self, agreement_id: str) -> Wanted:
        return next(each for each in self.wanted if each.agreement_id == agreement_id)

    def start(self, now: Instant) -> list[Effect]:
        """Ask the sellers for their prices."""
        self._retry.begin(now)
        self._limit = now + self._pace.patience(self._pace.timing.query_limit)
        return self._calls()

    def on_timer(self, now: Instant) -> list[Effect]:
        """Ask again, or give up."""
        if self._limit is not None and now >= self._limit:
            silent = {each.agreement.resource for each in self.wanted if each.agreement_id not in self._prices}
            self.failure = "no_answer", f"{', '.join(sorted(silent))} did not name a price in time"
            return []
        self._retry.again(now)
        return self._calls()

    def clock_set(self, by: Duration) -> None:
        self._retry.clock_set(by)
        self._limit = moved(self._limit, by)

    def take(self, priced: ChangePriced, now: Instant) -> None:
        """Take a seller's price; one for another size is a late answer to an earlier call of the same number."""
        wanted = self.of(priced.agreement_id)
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
            change_problem(each.agreement, each.state, body) for each, body in zip(self.wanted, bodies, strict=True)
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
        return replace(paid, amount=charge_owed(wanted.state, paid))

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
