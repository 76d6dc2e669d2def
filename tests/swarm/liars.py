"""Dishonest users and resources: they replay, omit, reorder and invent whatever they can form under their own keys.

A liar runs the honest protocol and lets its lies loose on what it would send: each of its habits may drop, delay,
change or add messages. So it comes far enough into every conversation for a lie to hurt. It lies so many times and then
keeps to the protocol, for a market in which liars never tire does not come to rest.
"""

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from random import Random
from typing import Any, Final

from ramp.errors import DocumentError
from ramp.model import contents as c
from ramp.model.acl import Message
from ramp.model.agreement import Agreement, ContractChange, PricePaid, Signed, end_of
from ramp.model.instant import HOUR, MINUTE, SECOND, Duration, Instant
from ramp.model.offer import RefusalCode
from ramp.model.ports import Notary
from ramp.model.seal import Role
from ramp.model.sizes.amended import order_line
from simulation.market.actors import BANK
from simulation.market.observing import Interceptor, NewInterceptor, Said
from tests.swarm.lies import Forger, missized

LIES_MAX: Final = 60
"""Lies of one liar in a run."""

KEPT_MAX: Final = 60
"""Messages that a liar remembers."""

DELAYS: Final[tuple[Duration, ...]] = (0, 0, SECOND, 10 * SECOND, MINUTE, 4 * MINUTE)

OUTDATED: Final = "a-state-that-is-gone"
"""Digest of the state that a pair in league changes again and again."""

BAIT: Final = (c.Registration, c.CallForProposals, c.Proposal, c.Acceptance)
"""What brings a liar into business; it seldom lies there."""


class Habit(StrEnum):
    """What a liar does."""

    OMIT = "omits"
    DELAY = "delays"
    RESHAPE = "changes"
    REPLAY = "replays what it said and heard to everybody"
    INVENT = "invents"
    IN_LEAGUE = "adds with its partner to states that their slots do not have, and gives them back meanwhile"  # of two
    # a buyer's
    WRONG_AGREEMENT = "commits to something else than was agreed"
    WRONG_VOTE = "commits with another vote"
    DOUBLED = "orders and commits twice"
    VOID_AFTER_COMMIT = "voids after committing"
    CANCEL_LATE = "cancels at any time"
    DOCTORED_CLAIM = "claims with doctored failures"
    TOO_LARGE = "orders too much"
    WRONG_PRICE = "proves another price than the rule's"  # drawn where rules are, beside the others
    # a seller's
    SILENT = "bids and goes silent"
    TWO_VOTES = "votes twice"
    FAIL_AFTER_PAYMENT = "says that it has failed, after it has countersigned or been paid"
    SINGLE_SIGNATURE = "brings agreements that it has not countersigned"
    NO_CANCELLATION = "refuses cancellations"
    OLD_PROOF = "settles with old proofs"
    FALSE_PAYMENT = "invents payments"
    WRONG_SIZE = "offers other sizes, times and costs than were asked for"  # drawn where sizes are, beside the others


COMMON: Final = (Habit.OMIT, Habit.DELAY, Habit.RESHAPE, Habit.REPLAY, Habit.INVENT)
BUYERS: Final = (
    Habit.WRONG_AGREEMENT,
    Habit.WRONG_VOTE,
    Habit.DOUBLED,
    Habit.VOID_AFTER_COMMIT,
    Habit.CANCEL_LATE,
    Habit.DOCTORED_CLAIM,
    Habit.TOO_LARGE,
)
SELLERS: Final = (
    Habit.SILENT,
    Habit.TWO_VOTES,
    Habit.FAIL_AFTER_PAYMENT,
    Habit.SINGLE_SIGNATURE,
    Habit.NO_CANCELLATION,
    Habit.OLD_PROOF,
    Habit.FALSE_PAYMENT,
)


@dataclass(frozen=True, slots=True)
class LiarSpec:
    """One liar of a market, a user or a resource; `rate` is the probability that a habit acts where it can."""

    role: Role
    habits: tuple[Habit, ...]
    rate: float


def draw_liar(role: Role, random: Random) -> LiarSpec:
    """Draw one: one to three habits of its trade, up to two of anybody's."""
    own = BUYERS if role is Role.USER else SELLERS
    habits = (*random.sample(own, random.randint(1, 2)), *random.sample(COMMON, random.randint(0, 2)))
    return LiarSpec(role, habits, random.choice((0.15, 0.4, 0.8)))


def interceptor(spec: LiarSpec, random: Random) -> NewInterceptor:
    """What makes a liar of a party, with a stream of random numbers of its own."""

    def make(name: str, notary: Notary, others: Sequence[str]) -> Interceptor:
        return Liar(name, spec, notary, random, others)

    return make


class Liar:
    """One liar of a run, among `others`; notary and random numbers are its own."""

    def __init__(self, name: str, spec: LiarSpec, notary: Notary, random: Random, others: Sequence[str]) -> None:
        self.told = 0
        self._name = name
        self._spec = spec
        self._random = random
        self._others = others
        self._forger = Forger(name, notary, random)
        self._said: list[Message] = []
        self._heard: list[Message] = []

    def hears(self, message: Message, now: Instant) -> list[Said]:
        """Take note of a message that has arrived; says what it makes the liar say at once."""
        _remember(self._heard, message)
        self._forger.scraps.keep(message.content)
        lies: list[Said] = []
        with contextlib.suppress(DocumentError):
            if self._lies(Habit.REPLAY):
                lies.append((self._replayed(now), self._delay()))
            if self._lies(Habit.INVENT):
                lies.append((self._invented(now), self._delay()))
            if Habit.IN_LEAGUE in self._spec.habits:
                lies += self._in_league(message, now)
        return lies

    def says(self, message: Message, now: Instant) -> list[Said]:
        """What it sends instead of a message that the protocol would send, which is signed and sealed."""
        _remember(self._said, message)
        self._forger.scraps.keep(message.content)
        said: list[Said] = [(message, 0)]
        habits = self._spec.habits
        if isinstance(message.content, BAIT) and self._random.random() < 0.9:
            # who is not called, or bids badly, harms nobody but by what it would sell
            habits = tuple(habit for habit in habits if habit is Habit.WRONG_SIZE)
        for habit in habits:
            act = _ACTS.get(habit)
            if act is not None and self.told < LIES_MAX and self._random.random() < self._spec.rate:
                kinds, lie = act
                lies = None
                with contextlib.suppress(DocumentError):  # what is for others to sign it cannot form
                    if isinstance(message.content, kinds):
                        lies = lie(self, message, message.content, now)
                if lies is not None:
                    self.told += 1
                    said = lies if len(said) == 1 and said[0][0] is message else [*said, *lies]
        return said

    def _lies(self, habit: Habit) -> bool:
        wants = habit in self._spec.habits and self.told < LIES_MAX and self._random.random() < self._spec.rate
        self.told += wants
        return wants

    def _delay(self) -> Duration:
        return self._random.choice(DELAYS)

    def _form(self, to: Message | str, content: c.Content, now: Instant, like: Message | None = None) -> Message:
        """A sealed message to somebody, in the conversation of another message."""
        receiver = to if isinstance(to, str) else to.receiver
        model = like if like is not None else to
        conversation_id, reply = (
            (model.conversation_id, model.reply_with) if isinstance(model, Message) else (self._name, "")
        )
        return self._forger.message(receiver, conversation_id, content, now, reply)

    def _in_league(self, message: Message, now: Instant) -> list[Said]:
        """The buyer orders two additions to one state, and may cancel; the seller countersigns whatever comes."""
        content = message.content
        signed = content.agreement if isinstance(content, c.Settled) else content
        body = signed.body if isinstance(signed, Signed) else None
        if isinstance(body, ContractChange) and (body.resource, body.previous) == (self._name, OUTDATED):
            return [(self._form(BANK, self._forger.signed(signed, now), now, message), self._delay())]
        if not isinstance(body, Agreement) or body.user != self._name:
            return []
        said: list[Said] = []
        for number in (1, 2):
            more = ContractChange(
                agreement_id=body.agreement_id,
                number=number,
                previous=OUTDATED,
                offer_id=body.offer.offer_id,
                user=self._name,
                resource=body.resource,
                bank=BANK,
                cores=body.offer.cores + 1,
                until=body.offer.end,
                effective_at=now + SECOND,
                issued_at=now,
                valid_until=now + 5 * MINUTE,
                amount=100,
                cpu_hour_cost=1,
                order_id=f"{body.agreement_id}-{number}",
            )
            order = c.PaymentOrder(more.order_id, (order_line(more),), more.valid_until)
            said.append((self._form(BANK, order, now, message), 0))
            said.append((self._form(body.resource, self._forger.signed(more, now), now, message), SECOND))
        return (
            said if self._random.random() < 0.5 else [*said, (self._cancelled(body, BANK, now, message), self._delay())]
        )

    def _cancelled(self, body: Agreement, receiver: str, now: Instant, like: Message) -> Message:
        wish = ContractChange(
            body.agreement_id, 0, body.offer.offer_id, self._name, body.resource, BANK, now, reason="a change of mind"
        )
        return self._form(receiver, self._forger.signed(wish, now), now, like)

    # -- anybody's habits ----------------------------------------------------------------------------------------

    def _replayed(self, now: Instant) -> Message:
        """Something said or heard before, as it was where it is its own, under its own seal else; to anybody."""
        old = self._random.choice([*self._heard, *self._said])
        receiver = old.receiver if self._random.random() < 0.5 else self._random.choice(self._others)
        if old.sender == self._name and receiver == old.receiver and self._random.random() < 0.7:
            return old
        receiver = self._random.choice(self._others) if receiver == self._name else receiver
        return self._form(receiver, old.content, now, old)

    def _invented(self, now: Instant) -> Message:
        old = self._random.choice([*self._heard, *self._said])
        content = old.content
        for _ in range(self._random.randint(1, 3)):
            content = self._forger.reshaped(content, now)
        return self._form(self._random.choice(self._others), content, now, old)

    def _omit(self, message: Message, content: c.Content, now: Instant) -> list[Said]:
        return []

    def _hold_back(self, message: Message, content: c.Content, now: Instant) -> list[Said]:
        return [(message, self._delay()), (message, self._delay())][: self._random.randint(1, 2)]

    def _reshape(self, message: Message, content: c.Content, now: Instant) -> list[Said]:
        changed = self._forger.reshaped(content, now)
        return [(self._forger.sealed(replace(message, content=changed), now), 0)]

    # -- a buyer's -----------------------------------------------------------------------------------------------

    def _wrong_agreement(self, message: Message, content: c.Commitment, now: Instant) -> list[Said] | None:
        body = self._forger.reshaped(content.agreement.body, now)
        if self._random.random() < 0.5 and isinstance(body, Agreement):
            body = replace(body, units_total=body.units_total + self._random.choice((-1, 1)))
        changed = replace(content, agreement=self._forger.signed(body, now))
        return [(self._forger.sealed(replace(message, content=changed), now), 0)]

    def _wrong_vote(self, message: Message, content: c.Commitment, now: Instant) -> list[Said] | None:
        votes = [each for each in self._heard if isinstance(each.content, c.FundsReserved)]
        other = self._random.choice(votes) if votes else None
        if other is None or other.seal is None:
            return None
        assert isinstance(other.content, c.FundsReserved)
        vote = other.content if self._random.random() < 0.5 else self._forger.reshaped(other.content, now)
        changed = replace(content, vote=vote, vote_seal=other.seal)
        return [(self._forger.sealed(replace(message, content=changed), now), 0)]

    def _doubled(self, message: Message, content: c.PaymentOrder | c.Commitment, now: Instant) -> list[Said] | None:
        if isinstance(content, c.PaymentOrder):
            again = replace(content, order_id=f"{content.order_id}-again", lines=(*content.lines, *content.lines[:1]))
            other = replace(content, order_id=f"{content.order_id}-too")
            return [(message, 0), *((self._form(message, each, now), self._delay()) for each in (again, other))]
        if isinstance(content.agreement.body, Agreement):
            body = replace(content.agreement.body, agreement_id=f"{content.agreement.body.agreement_id}-too")
            doubled = replace(content, agreement=self._forger.signed(body, now))
            return [(message, 0), (self._form(message, doubled, now), self._delay())]
        return None

    def _void_after_commit(self, message: Message, content: c.Commitment, now: Instant) -> list[Said] | None:
        vote = content.vote
        wish = c.OrderWithdrawal(vote.order_id, vote.valid_until, "a change of mind")
        return [(message, 0), (self._form(BANK, wish, now, message), self._delay())]

    def _cancel_late(self, message: Message, content: c.Commitment, now: Instant) -> list[Said] | None:
        body = content.agreement.body
        if not isinstance(body, Agreement):
            return None
        late = max(0, body.offer.start - now) + self._random.choice((-MINUTE, 0, SECOND, HOUR))
        delay = self._random.choice((*DELAYS, late))
        receivers = self._random.choice(((BANK,), (body.resource,), (body.resource, BANK)))
        return [(message, 0), *((self._cancelled(body, each, now, message), max(0, delay)) for each in receivers)]

    def _doctored_claim(self, message: Message, content: c.Commitment, now: Instant) -> list[Said] | None:
        body = content.agreement.body
        if not isinstance(body, Agreement):
            return None
        told = [each.content for each in self._heard if isinstance(each.content, Signed) and _is_failure(each.content)]
        claim = self._forger.signed(end_of(body, "so it says", now, RefusalCode.PLUGIN_FAILED), now)
        if told and self._random.random() < 0.5:
            claim = self._random.choice(told)
        return [(message, 0), (self._form(BANK, claim, now, message), self._delay())]

    def _too_large(self, message: Message, content: c.PaymentOrder, now: Instant) -> list[Said] | None:
        lines = tuple(replace(line, cost=line.cost * self._random.choice((1, 10, 10**6))) for line in content.lines)
        until = content.valid_until + self._random.choice((0, 10 * MINUTE, HOUR))
        large = replace(content, lines=lines, valid_until=until)
        return [(self._form(message, large, now), 0)]

    def _wrong_price(self, message: Message, content: c.Commitment, now: Instant) -> list[Said] | None:
        """Another offer sets the price, or none, or the rule is passed over; the cost is that of the order, or less."""
        body = content.agreement.body
        if not isinstance(body, Agreement) or body.price is None:
            return None
        others = [
            PricePaid(body.price.rule, offer, each.seal)
            for each in self._heard
            if isinstance(each.content, c.Proposal) and each.seal is not None
            for offer in each.content.offers
        ]
        price = self._random.choice((None, PricePaid(body.price.rule), *others))
        cost = self._random.choice((body.cost, body.offer.cost, max(0, body.offer.cost - 1)))
        changed = replace(content, agreement=self._forger.signed(replace(body, price=price, cost=cost), now))
        return [(self._forger.sealed(replace(message, content=changed), now), 0)]

    # -- a seller's ----------------------------------------------------------------------------------------------

    def _silent(self, message: Message, content: c.Content, now: Instant) -> list[Said] | None:
        return None if isinstance(content, c.CallForProposals | c.Proposal | c.Registration) else []

    def _two_votes(self, message: Message, content: c.HoldGranted, now: Instant) -> list[Said] | None:
        other = replace(content, reservation_id=f"{content.reservation_id}-too", hold_for=content.hold_for * 10)
        lies = [(message, 0), (self._form(message, other, now), self._delay())]
        self._random.shuffle(lies)
        return lies

    def _fail_after_payment(self, message: Message, content: c.Settled | Signed, now: Instant) -> list[Said] | None:
        body = content.agreement.body if isinstance(content, c.Settled) else content.body
        if not isinstance(body, Agreement):
            return None
        failed = self._forger.signed(end_of(body, "so it says", now, RefusalCode.PLUGIN_FAILED), now)
        receivers = self._random.choice(((body.user,), (body.user,), (BANK,), (body.user, BANK)))
        lies: list[Said] = [(self._form(each, failed, now, message), self._delay()) for each in receivers]
        return [(message, 0), *lies]

    def _single_signature(self, message: Message, content: Signed, now: Instant) -> list[Said] | None:
        if not isinstance(content.body, Agreement):
            return None
        for heard in reversed(self._heard):
            if isinstance(heard.content, c.Commitment) and heard.content.agreement.body == content.body:
                return [(replace(message, content=heard.content.agreement), 0)]
        return None

    def _no_cancellation(self, message: Message, content: Signed, now: Instant) -> list[Said] | None:
        if isinstance(content.body, ContractChange) and content.body.is_terminal:
            refused = c.ChangeRefused(content.body.agreement_id, 0, "no", "we do not do that")
            return [(self._form(content.body.user, refused, now, message), 0)]
        return None

    def _old_proof(self, message: Message, content: c.Confirmed | c.Settled, now: Instant) -> list[Said] | None:
        if isinstance(content, c.Confirmed):
            old = [each.content for each in self._said if isinstance(each.content, c.Settled)]
            if not old:
                return None
            proof = replace(self._random.choice(old), agreement_id=content.agreement_id, offer_id=content.offer_id)
            return [(message, 0), (self._form(message, proof, now), self._delay())]
        return [(self._form(message, self._forger.reshaped(content, now), now), 0)]

    def _wrong_size(self, message: Message, content: c.Proposal, now: Instant) -> list[Said] | None:
        called = {
            (heard.content.request_id, unit.number): unit
            for heard in self._heard
            if isinstance(heard.content, c.CallForProposals)
            for unit in heard.content.request.units
        }
        offers = tuple(
            missized(offer, called[key], self._random) if (key := (offer.request_id, offer.unit)) in called else offer
            for offer in content.offers
        )
        if offers == content.offers:
            return None
        return [(self._forger.sealed(replace(message, content=replace(content, offers=offers)), now), 0)]

    def _false_payment(self, message: Message, content: Signed, now: Instant) -> list[Said] | None:
        body = content.body
        if not isinstance(body, Agreement):
            return None
        paid = c.PaymentMade(body.agreement_id, f"payment-{body.agreement_id}", body.cost)
        seal = self._forger.sealed(self._form(body.user, paid, now, message), now).seal
        lies: list[Said] = [(self._form(self._random.choice(self._others), paid, now, message), self._delay())]
        if seal is not None:
            proof = c.Settled(body.agreement_id, body.offer.offer_id, content, paid, seal)
            lies.append((self._form(body.user, proof, now, message), self._delay()))
        return [(message, self._delay()), *lies]


def _is_failure(signed: Signed) -> bool:
    return isinstance(signed.body, ContractChange) and signed.body.is_failure


def _remember(kept: list[Any], new: Any) -> None:
    kept.append(new)
    del kept[:-KEPT_MAX]


_ACTS: dict[Habit, tuple[Any, Callable[[Liar, Message, Any, Instant], list[Said] | None]]] = {
    Habit.OMIT: (c.Content, Liar._omit),
    Habit.DELAY: (c.Content, Liar._hold_back),
    Habit.RESHAPE: (c.Content, Liar._reshape),
    Habit.WRONG_AGREEMENT: (c.Commitment, Liar._wrong_agreement),
    Habit.WRONG_VOTE: (c.Commitment, Liar._wrong_vote),
    Habit.DOUBLED: (c.PaymentOrder | c.Commitment, Liar._doubled),
    Habit.VOID_AFTER_COMMIT: (c.Commitment, Liar._void_after_commit),
    Habit.CANCEL_LATE: (c.Commitment, Liar._cancel_late),
    Habit.DOCTORED_CLAIM: (c.Commitment, Liar._doctored_claim),
    Habit.TOO_LARGE: (c.PaymentOrder, Liar._too_large),
    Habit.WRONG_PRICE: (c.Commitment, Liar._wrong_price),
    Habit.SILENT: (c.Content, Liar._silent),
    Habit.TWO_VOTES: (c.HoldGranted, Liar._two_votes),
    Habit.FAIL_AFTER_PAYMENT: (c.Settled | Signed, Liar._fail_after_payment),
    Habit.SINGLE_SIGNATURE: (Signed, Liar._single_signature),
    Habit.NO_CANCELLATION: (Signed, Liar._no_cancellation),
    Habit.OLD_PROOF: (c.Confirmed | c.Settled, Liar._old_proof),
    Habit.FALSE_PAYMENT: (Signed, Liar._false_payment),
    Habit.WRONG_SIZE: (c.Proposal, Liar._wrong_size),
}
"""What each habit makes of messages of which contents."""
