"""The User Agent's whole protocol (paper section 6.1): any number of requests, cancellations and queries at once."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from ramp.errors import RemoteProtocolError, RuleFailed
from ramp.model import contents as c
from ramp.model.acl import Message
from ramp.model.agreement import Agreement, ContractChange, Signed
from ramp.model.instant import Duration, Instant
from ramp.model.ports import IdSource
from ramp.model.probable_start import request_problem
from ramp.model.seal import Role
from ramp.protocol import events as ev
from ramp.protocol import records as rc
from ramp.protocol.agreement_terms import OrderWord
from ramp.protocol.belief import sealed_by
from ramp.protocol.clock_comparison import ClockComparison
from ramp.protocol.conversations import Conversations, Retention, guarded
from ramp.protocol.effects import Archive, Effect, Report, cancel_hold
from ramp.protocol.outcome import RequestOutcome, RequestStatus
from ramp.protocol.party import Party
from ramp.protocol.progress import ClockCompared, RecordsMissing, RequestEnded
from ramp.protocol.questions import Directories, ListingPages, Questions
from ramp.protocol.rules.auction_rule import PAPER_RULE, AuctionRule
from ramp.protocol.rules.checked_rule import CheckedRule, RuleBook
from ramp.protocol.timing import Pace, Timing
from ramp.protocol.user.changing.desk import Changes
from ramp.protocol.user.jobs import JobAnswer, JobCommand, OwnJobs
from ramp.protocol.user.moves import Moves
from ramp.protocol.user.purchase import Purchase

AuctionAnswer = c.Proposal | c.DirectoryListing
"""Messages to an auction; most messages of a market are proposals."""


class EndedRequests:
    """The ended requests of one user.

    An ended request keeps its full course for as long as an offer is valid, for late offers and proofs of payment.
    After that only its outcome is kept, as after a restart.

    Args:
        changes: of its agreements; a request waits for the open ones, and for the end of a resized slot.

    Attributes:
        retention: when to call `due`.
    """

    def __init__(
        self, purchases: dict[str, Purchase], agreements: dict[str, Agreement], changes: Changes, timing: Timing
    ) -> None:
        self._purchases = purchases
        self._agreements = agreements
        self._changes = changes
        self._linger = timing.offer_validity
        self._time = timing.retention
        self.retention = Retention(timing)
        self._drawn_up: dict[str, list[str]] = {}
        self._at_length: deque[tuple[Instant, str]] = deque()

    def drew_up(self, agreement: Agreement) -> None:
        """Record an agreement of a request; it may be voided later."""
        if agreement.agreement_id not in self._agreements:
            self._agreements[agreement.agreement_id] = agreement
            self._drawn_up.setdefault(agreement.request_id, []).append(agreement.agreement_id)

    def ended(self, purchase: Purchase, now: Instant) -> None:
        """Record that a request has ended, now or before a restart."""
        outcome = purchase.outcome
        assert outcome is not None
        of_request = [self._agreements[each] for each in self._drawn_up.get(purchase.request_id, ())]
        ends = [outcome.started_at + outcome.duration]
        ends += [unit.offer.end for unit in outcome.units if unit.agreement_id]
        ends += [agreement.valid_until for agreement in of_request]
        self.retention.keep(purchase.request_id, max(ends))
        self._at_length.append((now + self._linger, purchase.request_id))
        while self._at_length and self._at_length[0][0] <= now:
            over = self._purchases.get(self._at_length.popleft()[1])
            if over is not None:
                over.shorten()

    def due(self, now: Instant) -> tuple[str, ...]:
        """Forget and return the requests whose retention is over, with their agreements."""
        references: list[str] = []
        for request_id in self.retention.due(now):
            purchase = self._purchases.get(request_id)
            if purchase is None or purchase.outcome is None:
                continue  # suspended after a bug until the next start
            agreement_ids = self._drawn_up.get(request_id, [])
            if any(each in self._changes for each in agreement_ids):
                self.retention.keep(request_id, now)
                continue
            latest = max(map(self._changes.history.new_end, agreement_ids), default=0)
            if now < latest + self._time:
                self.retention.keep(request_id, latest)
                continue
            del self._purchases[request_id]
            for agreement_id in self._drawn_up.pop(request_id, ()):
                del self._agreements[agreement_id]
            references += [request_id, *agreement_ids]
        return tuple(references)

    def clock_set(self, by: Duration) -> None:
        self._at_length = deque((until + by, request_id) for until, request_id in self._at_length)


class UserParty(Party):
    """Everything one User Agent does."""

    def __init__(
        self, name: str, *, bank: str, directories: Sequence[str], ids: IdSource, timing: Timing, rules: RuleBook
    ) -> None:
        super().__init__(name)
        self.purchases: dict[str, Purchase] = {}
        self.agreements: dict[str, Agreement] = {}
        self._bank = bank
        self._directories = Directories(directories)
        self._ids = ids
        self._timing = timing
        self._rules = rules
        self._pace = Pace(timing)
        self._running: Conversations[Purchase] = Conversations(self, followed=self._followed)
        self.changes = Changes(self.agreements, self.agreement_state, self._pace, ids, self)
        self._questions = Questions(name, self._pace, self)
        self._ended = EndedRequests(self.purchases, self.agreements, self.changes, timing)
        self.task(self._ended.retention, self._let_go)
        self.follow(self._ended)
        self.jobs = OwnJobs(self.agreements, self.agreement_state, self._questions, self.changes.history)
        self.moves = Moves(self.agreements)
        self._clock = ClockComparison(name, bank)
        self.follow(self._clock)
        self._bought: set[str] = set()

    @property
    def clock(self) -> ClockCompared | None:
        return self._clock.known

    def agreement_state(self, agreement_id: str) -> str:
        """Return the state of an agreement: `settling`, `active`, `cancelling`, `cancelled`, `lost`, or `void`."""
        ended = self.changes.history.ended.get(agreement_id)
        if ended is not None:
            return "lost" if ended.cause else "cancelled"
        if self.changes.is_ending(agreement_id):
            return "cancelling"
        if agreement_id in self._bought:
            return "active"
        agreement = self.agreements[agreement_id]
        confirmation = self.purchases[agreement.request_id].confirmation  # of the present order; earlier ones are void
        if confirmation is None or confirmation.result is not None or agreement not in confirmation.agreements:
            return "void"
        return "settling"

    def doubts(self) -> dict[str, str]:
        """Return everything in doubt, by request or agreement, and how it will be decided."""
        found = {each.request_id: each.doubt for each in self._running.values() if each.doubt}
        return found | self.changes.doubts

    # -- entries -------------------------------------------------------------------------------------------------

    def recover(self, records: Sequence[rc.Record], now: Instant) -> list[Effect]:
        """Resume every unfinished request and cancellation from the journal."""
        by_request: dict[str, list[rc.RequestRecord]] = {}
        for record in records:
            if isinstance(record, rc.RequestRecord):
                by_request.setdefault(record.request_id, []).append(record)
        effects: list[Effect] = []
        for request_id, its_records in by_request.items():
            effects += guarded(request_id, partial(self._recover_request, request_id, its_records, now))
        effects += self.changes.recover(records, now)
        effects += self._claimed(records, now)
        for agreement_id in self.changes.history.ended:
            self._note_refund(agreement_id)
        self.moves.recover(records)
        return effects + self.jobs.recover(records, now)

    def resume(self, reference: str, records: Sequence[rc.Record], now: Instant) -> list[Effect]:
        """Resume one request, cancellation or query after a bug in it."""
        if dropped := self._questions.drop(reference):
            return dropped
        if reference in self.agreements:
            return self.changes.resume(reference, records, now)
        purchase = self.purchases.get(reference)
        self.forget(reference)
        its_records = [each for each in records if isinstance(each, rc.RequestRecord) and each.request_id == reference]
        if its_records:
            effects = self._recover_request(reference, its_records, now)
            again = self.purchases.get(reference)
            if purchase is not None and purchase.outcome is None and again is not None and again.outcome is not None:
                effects.append(Report(RequestEnded(again.outcome)))  # a quote whose purchase is not on record
            return effects + self._claimed(its_records, now)
        if purchase is None:
            return []
        reason = "the user agent failed before the request began"
        return [Report(RequestEnded(RequestOutcome(reference, RequestStatus.FAILED, reason, (), (), now, 0)))]

    def forget(self, reference: str) -> None:
        self.purchases.pop(reference, None)
        self._running.drop(reference)
        self.changes.rest(reference)

    def handle(self, event: ev.Event, now: Instant) -> list[Effect]:
        """Take a command of the owner or a message.

        Raises:
            RemoteProtocolError: if a message belongs to no conversation of this user.
        """
        if not isinstance(event, Message):
            return self._on_command(event, now)
        purchase = self._running.get(event.conversation_id) if isinstance(event.content, AuctionAnswer) else None
        if purchase is None:
            return self._on_message(event, now)
        return self._running.act(purchase.request_id, partial(purchase.on_message, event, now), now)

    # -- commands ------------------------------------------------------------------------------------------------

    def _on_command(self, event: ev.Event, now: Instant) -> list[Effect]:
        if isinstance(event, JobCommand):
            return self.jobs.command(event, now)
        match event:
            case ev.RequestSubmitted():
                return self._on_submitted(event, now)
            case ev.OffersApproved(request_id, approved, sellers) if request_id in self._running:
                answer = partial(self._running[request_id].approve, approved, sellers, now)
                return self._running.act(request_id, answer, now)
            case ev.RequestWithdrawn(request_id) if request_id in self._running:
                return self._running.act(request_id, partial(self._running[request_id].withdraw, now), now)
            case ev.AgreementCancelled(agreement_id, reason):
                return self.changes.cancel(agreement_id, reason, now)
            case ev.AgreementResized():
                return self.changes.resize(event, now)
            case ev.AccountAsked():
                return self._questions.ask_account(event, self._bank, now)
            case ev.MachineAsked(query_id, resource, horizon):
                return self._questions.ask(query_id, resource, lambda: c.MachineQuery(query_id, horizon), now)
            case ev.ResourcesAsked(query_id, service):
                pages = ListingPages()
                query = lambda: c.DirectoryQuery(query_id, service, pages.after)  # noqa: E731
                return self._questions.ask(query_id, self._directories, query, now, pages=pages)
            case ev.ClockAsked(query_id):
                return self._clock.ask(query_id, now)
            case _:
                return []

    def _on_submitted(self, submitted: ev.RequestSubmitted, now: Instant) -> list[Effect]:
        if submitted.request_id in self.purchases:
            return []
        submitted = replace(submitted, options=self._rules.settled(submitted.options))
        refusal, code = self._clock.refusal(self._timing.message_age), ""
        try:
            rule = self._rules.rule(submitted.options)
        except RuleFailed as failed:
            refusal, code = failed.reason, failed.code
        else:
            refusal = refusal or request_problem(submitted.request, pays_offer=rule.pays_offer)
        if refusal:  # nothing has been sent yet
            status, name = RequestStatus.FAILED, submitted.options.rule
            outcome = RequestOutcome(submitted.request_id, status, refusal, (), (), now, 0, name, code)
            return [Report(RequestEnded(outcome))]
        purchase = self._new_purchase(submitted, rule)
        return self._running.act(submitted.request_id, partial(purchase.start, now), now)

    def _new_purchase(self, submitted: ev.RequestSubmitted, rule: CheckedRule) -> Purchase:
        purchase = Purchase(
            submitted,
            user=self.name,
            bank=self._bank,
            directories=self._directories,
            rule=rule,
            ids=self._ids,
            pace=self._pace,
            clock_warning=lambda: self._clock.warning,
        )
        self.purchases[submitted.request_id] = purchase
        return self._running.add(submitted.request_id, purchase)

    # -- messages ------------------------------------------------------------------------------------------------

    def _on_message(self, message: Message, now: Instant) -> list[Effect]:
        content = message.content
        if isinstance(content, JobAnswer):
            return self.jobs.answered(message, content, now)
        if self.changes.concern(content):
            effects = self.changes.handle(message, content, now)
            if isinstance(content, c.ChangePosted):
                self._note_refund(content.agreement_id)
            return effects
        match content:
            case c.AccountStatement(nonce=query_id) | c.RequestRefused(reference=query_id):
                return self._questions.answered(query_id, message, content, now)
            case c.ClockReading():
                return self._clock.answered(message, content, now)
            case c.MachineStatus(query_id=query_id) | c.DirectoryListing(query_id=query_id) if (
                query_id in self._questions
            ):
                return self._questions.answered(query_id, message, content, now)
            case c.SlotMoved():
                return self.moves.told(message, content, now)
            case c.NotUnderstood() if effects := self._questions.not_understood(
                message, content
            ) or self.changes.not_understood(message, now):
                return effects
            case Signed(body=ContractChange(agreement_id=agreement_id)) if agreement_id in self._bought:
                return self.changes.claim(content, now)
        return self._for_purchase(message, now)

    def _for_purchase(self, message: Message, now: Instant) -> list[Effect]:
        content = message.content
        purchase = self._purchase_of(message)
        if purchase is not None and purchase.request_id in self._running:
            return self._running.act(purchase.request_id, partial(purchase.on_message, message, now), now)
        if purchase is not None:
            return guarded(purchase.request_id, partial(purchase.on_message, message, now))
        if isinstance(content, c.HoldGranted):
            sealed_by(message, Role.RESOURCE)
            return [cancel_hold(self.name, message.sender, message.conversation_id, content.offer_id)]
        if isinstance(content, c.HoldCancelled | c.NotUnderstood | c.MachineStatus | c.DirectoryListing | OrderWord):
            return []
        raise RemoteProtocolError(f"{type(content).__name__} does not belong to any conversation here")

    def _purchase_of(self, message: Message) -> Purchase | None:
        """Return the purchase of a message."""
        content = message.content
        if not isinstance(content, OrderWord):
            return self.purchases.get(message.conversation_id)
        for purchase in self._running.values():
            if purchase.confirmation is not None and purchase.confirmation.order_id == content.order_id:
                return purchase
        return None

    def _note_refund(self, agreement_id: str) -> None:
        """Mark a unit as not bought if it was refunded before its purchase ended."""
        if agreement_id in self.changes.history.ended:
            purchase = self._running.get(self.agreements[agreement_id].request_id)
            if purchase is not None and purchase.confirmation is not None:
                purchase.confirmation.note_refund(agreement_id)

    # -- bookkeeping ---------------------------------------------------------------------------------------------

    def _recover_request(self, request_id: str, records: Sequence[rc.RequestRecord], now: Instant) -> list[Effect]:
        if lacking := _lacking(records):
            what = f"the journal has no {' and no '.join(lacking)} of it, so it is not resumed; restore a backup"
            return [Report(RecordsMissing(request_id, what))]
        started = next(record for record in records if isinstance(record, rc.RequestStarted))
        # a recorded purchase needs no rule: the auction is over, and agreed prices stay
        again = ev.RequestSubmitted(request_id, started.request, started.options)
        purchase = self._new_purchase(again, CheckedRule(PAPER_RULE, AuctionRule()))
        for record in records:
            if isinstance(record, rc.FundsAsked):
                for agreement in record.agreements:
                    self._ended.drew_up(agreement)
        concluded = _conclusion(records)
        if concluded is not None:
            decided = any(isinstance(record, rc.CommitDecided) for record in records)
            purchase.recall(concluded.outcome, decided=decided)
            self._bought.update(unit.agreement_id for unit in concluded.outcome.units if unit.agreement_id)
            self._running.drop(request_id)
            self._ended.ended(purchase, now)
            return []
        return self._running.act(request_id, partial(purchase.recover, records, now), now)

    def _claimed(self, records: Sequence[rc.Record], now: Instant) -> list[Effect]:
        """Claim the money of bought units whose recorded failure the journal does not settle."""
        failures = (record.failure for record in records if isinstance(record, rc.FailureTold))
        bought = (each for each in failures if each.body.agreement_id in self._bought)
        return [effect for failure in bought for effect in self.changes.claim(failure, now)]

    def _followed(self, purchase: Purchase, effects: list[Effect], now: Instant) -> list[Effect]:
        """Keep a purchase's agreements; remove it from the running ones once it has ended."""
        confirmation = purchase.confirmation
        if confirmation is not None:
            for agreement in confirmation.agreements:
                self._ended.drew_up(agreement)
        if purchase.outcome is not None:
            bought = {unit.agreement_id for unit in purchase.outcome.units if unit.agreement_id}
            if not bought <= self._bought:
                self._bought |= bought
                claims = confirmation.result.claims if confirmation is not None and confirmation.result else ()
                effects += [effect for failure in claims for effect in self.changes.claim(failure, now)]
            if purchase.deadline is None and self._running.drop(purchase.request_id) is not None:
                self._ended.ended(purchase, now)
        return effects

    def _let_go(self, now: Instant) -> list[Effect]:
        """Archive the requests whose retention is over, and forget what belongs to them."""
        references = self._ended.due(now)
        self.jobs.forget(references)
        self.moves.forget(references)
        self._bought.difference_update(references)
        self.changes.forget(references)
        return [Archive(references)] if references else []


def _conclusion(records: Sequence[rc.RequestRecord]) -> rc.RequestConcluded | None:
    """Return the end of a request; None if it runs, or was bought after its quote and runs again."""
    for record in reversed(records):
        if isinstance(record, rc.RequestConcluded):
            return record
        if isinstance(record, rc.AcceptanceAsked | rc.FundsAsked):
            break
    return None


def _lacking(records: Sequence[rc.RequestRecord]) -> list[str]:
    """Return the record types that a request needs and its journal lacks."""
    found = {type(each) for each in records}
    needed: list[type] = [rc.RequestStarted]
    if not found.isdisjoint({rc.CommitDecided, rc.UnitSettled, rc.VoidAsked, rc.OrderClosed}):
        needed.append(rc.FundsAsked)
    return [kind.__name__ for kind in needed if kind not in found]
