"""The User Agent's whole protocol: any number of requests, cancellations and queries at once (paper section 6.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ramp.errors import RemoteProtocolError
from ramp.model.acl import Message, Performative
from ramp.model.agreement import AccountQuery, Agreement, Cancellation, Signed
from ramp.model.contents import (
    AccountQueryRefused,
    AccountStatement,
    CancellationDone,
    CancellationRefused,
    Content,
    DirectoryListing,
    DirectoryQuery,
    Failed,
    HoldCancelled,
    HoldGranted,
    MachineQuery,
    MachineStatus,
    NotUnderstood,
    PaymentStatus,
    RefundMade,
)
from ramp.model.identifiers import IdSource
from ramp.model.instant import Instant
from ramp.protocol.auction import RESOURCE_SERVICE
from ramp.protocol.cancellation import CancellationRequest
from ramp.protocol.effects import Effect, Persist, Report, Send
from ramp.protocol.events import (
    AccountAsked,
    AgreementCancelled,
    Event,
    MachineAsked,
    MessageReceived,
    OffersApproved,
    RequestSubmitted,
    RequestWithdrawn,
    ResourcesAsked,
)
from ramp.protocol.outcome import CancellationOutcome, RequestStatus
from ramp.protocol.progress import CancellationEnded, QueryAnswered
from ramp.protocol.purchase import Purchase
from ramp.protocol.records import (
    AcceptanceAsked,
    CancellationConcluded,
    CancellationStarted,
    CommitDecided,
    Record,
    RequestConcluded,
    RequestStarted,
    UndoDecided,
    UnitSettled,
)
from ramp.protocol.timing import Pace, Retry, Timing, earliest
from ramp.protocol.voting import cancel_hold

NOT_ACTIVE = "not_active"
"""Code of a cancellation whose agreement this user does not have, or no longer."""


REPLAYED = "replayed"
"""The bank's code for a nonce that it has seen before."""

NONCE_MARK = "#"
"""Separates a query's id from the count of its tries; a nonce is good for one answer, and that may get lost."""


@dataclass(slots=True)
class _Query:
    """A question of the owner that waits for its answer."""

    send: Send
    retry: Retry
    limit: Instant


class UserParty:
    """Everything one User Agent does.

    Args:
        name: the agent's name.
        bank: name of the Banking Agent.
        directory: name of the directory agent.
        ids: where new identifiers come from.
        timing: the protocol's limits.
    """

    def __init__(self, name: str, *, bank: str, directory: str, ids: IdSource, timing: Timing) -> None:
        self.name = name
        self.deadline: Instant | None = None
        self.purchases: dict[str, Purchase] = {}
        self.agreements: dict[str, Agreement] = {}
        self._bank = bank
        self._directory = directory
        self._ids = ids
        self._timing = timing
        self._pace = Pace(timing)
        self._running: dict[str, Purchase] = {}
        self._cancellations: dict[str, CancellationRequest] = {}
        self._queries: dict[str, _Query] = {}
        self._given_back: set[str] = set()

    @property
    def open_cancellations(self) -> tuple[str, ...]:
        """Agreements that the owner is giving back and that have not been answered for."""
        return tuple(self._cancellations)

    def agreement_state(self, agreement_id: str) -> str:
        """What an agreement is now: `settling`, `active`, `cancelling`, `cancelled`, or `undone` with its request."""
        if agreement_id in self._given_back:
            return "cancelled"
        if agreement_id in self._cancellations:
            return "cancelling"
        outcome = self.purchases[self.agreements[agreement_id].request_id].outcome
        if outcome is None:
            return "settling"
        return "active" if outcome.status is RequestStatus.COMMITTED else "undone"

    # -- entries -------------------------------------------------------------------------------------------------

    def start(self, now: Instant) -> list[Effect]:
        """Nothing is to be done before the first command."""
        return []

    def recover(self, records: Sequence[Record], now: Instant) -> list[Effect]:
        """Take every unfinished request and cancellation up again from the journal."""
        by_request: dict[str, list[Record]] = {}
        cancellations: dict[str, Cancellation] = {}
        for record in records:
            if isinstance(
                record,
                RequestStarted | AcceptanceAsked | CommitDecided | UnitSettled | UndoDecided | RequestConcluded,
            ):
                by_request.setdefault(record.request_id, []).append(record)
            elif isinstance(record, CancellationStarted):
                cancellations[record.cancellation.agreement_id] = record.cancellation
            elif isinstance(record, CancellationConcluded):
                cancellations.pop(record.outcome.agreement_id, None)
                if record.outcome.done:
                    self._given_back.add(record.outcome.agreement_id)
        effects: list[Effect] = []
        for request_id, its_records in by_request.items():
            effects += self._recover_request(request_id, its_records, now)
        for agreement_id, cancellation in cancellations.items():
            machine = CancellationRequest(cancellation, self.agreements[agreement_id], self._pace)
            self._cancellations[agreement_id] = machine
            effects += machine.start(now)
        return self._armed(effects)

    def handle(self, event: Event, now: Instant) -> list[Effect]:
        """Take a command of the owner or a message.

        Raises:
            RemoteProtocolError: if a message has no place in any conversation of this user.
        """
        if isinstance(event, MessageReceived):
            return self._armed(self._on_message(event.message, now))
        return self._armed(self._on_command(event, now))

    def tick(self, now: Instant) -> list[Effect]:
        """Let everything act whose deadline has come."""
        effects: list[Effect] = []
        for purchase in list(self._running.values()):
            if purchase.deadline is not None and now >= purchase.deadline:
                effects += self._kept(purchase, purchase.tick(now))
        for agreement_id, machine in list(self._cancellations.items()):
            if machine.deadline is not None and now >= machine.deadline:
                effects += machine.tick(now) + self._end_cancellation(agreement_id, now)
        for query_id, query in list(self._queries.items()):
            if now >= query.limit:
                del self._queries[query_id]
                effects.append(Report(QueryAnswered(query_id, None)))
            elif query.retry.is_due(now):
                query.retry.again(now)
                query.send = _renewed(query.send, now)
                effects.append(query.send)
        return self._armed(effects)

    # -- commands ------------------------------------------------------------------------------------------------

    def _on_command(self, event: Event, now: Instant) -> list[Effect]:
        match event:
            case RequestSubmitted():
                if event.request_id in self.purchases:
                    return []
                purchase = self._new_purchase(event)
                return self._kept(purchase, purchase.start(now))
            case OffersApproved(request_id, approved) if request_id in self._running:
                purchase = self._running[request_id]
                return self._kept(purchase, purchase.approve(approved, now))
            case RequestWithdrawn(request_id) if request_id in self._running:
                purchase = self._running[request_id]
                return self._kept(purchase, purchase.withdraw(now))
            case AgreementCancelled(agreement_id, reason):
                return self._cancel(agreement_id, reason, now)
            case AccountAsked(query_id, since, until):
                body = AccountQuery(query_id, self.name, now, since, until)
                return self._ask(query_id, self._bank, Signed(body), now)
            case MachineAsked(query_id, resource, horizon):
                return self._ask(query_id, resource, MachineQuery(query_id, horizon), now)
            case ResourcesAsked(query_id):
                return self._ask(query_id, self._directory, DirectoryQuery(query_id, RESOURCE_SERVICE), now)
            case _:
                return []

    def _new_purchase(self, submitted: RequestSubmitted) -> Purchase:
        purchase = Purchase(
            submitted,
            user=self.name,
            bank=self._bank,
            directory=self._directory,
            ids=self._ids,
            pace=self._pace,
        )
        self.purchases[submitted.request_id] = purchase
        self._running[submitted.request_id] = purchase
        return purchase

    def _cancel(self, agreement_id: str, reason: str, now: Instant) -> list[Effect]:
        if agreement_id in self._cancellations:
            return []
        agreement = self.agreements.get(agreement_id)
        if agreement is None or self.agreement_state(agreement_id) != "active":
            state = "unknown" if agreement is None else self.agreement_state(agreement_id)
            detail = f"only an active agreement can be cancelled; {agreement_id} is {state}"
            outcome = CancellationOutcome(agreement_id, False, 0, NOT_ACTIVE, detail)
            return [Report(CancellationEnded(outcome))]
        cancellation = Cancellation(
            cancellation_id=self._ids.new("cancellation"),
            agreement_id=agreement_id,
            offer_id=agreement.offer.offer_id,
            user=self.name,
            resource=agreement.resource,
            rollback=False,
            reason=reason,
            issued_at=now,
        )
        machine = CancellationRequest(cancellation, agreement, self._pace)
        self._cancellations[agreement_id] = machine
        return [Persist(CancellationStarted(cancellation, now)), *machine.start(now)]

    def _ask(self, query_id: str, receiver: str, content: Content, now: Instant) -> list[Effect]:
        send = Send(
            Message(
                Performative.QUERY_REF,
                self.name,
                receiver,
                query_id,
                content,
                reply_with=query_id,
                reply_by=self._timing.query_limit,
            )
        )
        retry = Retry(self._pace)
        retry.begin(now)
        self._queries[query_id] = _Query(send, retry, now + self._timing.query_limit)
        return [send]

    # -- messages ------------------------------------------------------------------------------------------------

    def _on_message(self, message: Message, now: Instant) -> list[Effect]:
        content = message.content
        if isinstance(content, AccountStatement | AccountQueryRefused):
            return self._answered(content.nonce.partition(NONCE_MARK)[0], message, content, now)
        if isinstance(content, MachineStatus | DirectoryListing) and content.query_id in self._queries:
            return self._answered(content.query_id, message, content, now)
        if isinstance(content, RefundMade):
            return []
        if isinstance(content, CancellationDone | CancellationRefused | Failed | PaymentStatus):
            machine = self._cancellations.get(content.agreement_id)
            if machine is not None:
                agreement = machine.agreement
                expected = agreement.bank if isinstance(content, PaymentStatus) else agreement.resource
                self._check_sender(message, expected)
                return machine.handle(content, now) + self._end_cancellation(content.agreement_id, now)
            if isinstance(content, CancellationDone) and machine is None:
                late = self._given_back_late(message, content, now)
                if late:
                    return late
        purchase = self.purchases.get(message.conversation_id)
        if purchase is not None:
            return self._kept(purchase, purchase.handle(message, now))
        if isinstance(content, HoldGranted):
            return [cancel_hold(self.name, message.sender, message.conversation_id, content.offer_id)]
        if isinstance(content, HoldCancelled | NotUnderstood | MachineStatus | DirectoryListing):
            return []
        raise RemoteProtocolError(
            f"{type(content).__name__} belongs to no conversation here", conversation_id=message.conversation_id
        )

    def _answered(
        self,
        query_id: str,
        message: Message,
        answer: AccountStatement | AccountQueryRefused | MachineStatus | DirectoryListing,
        now: Instant,
    ) -> list[Effect]:
        query = self._queries.get(query_id)
        if query is None:
            return []
        self._check_sender(message, query.send.message.receiver)
        if isinstance(answer, AccountQueryRefused) and answer.code == REPLAYED:
            return []  # a copy of our own query that the network made; the real answer is on its way
        query.retry.answered(now)
        del self._queries[query_id]
        return [Report(QueryAnswered(query_id, answer))]

    # -- bookkeeping ---------------------------------------------------------------------------------------------

    def _recover_request(self, request_id: str, records: list[Record], now: Instant) -> list[Effect]:
        started = next((record for record in records if isinstance(record, RequestStarted)), None)
        if started is None:
            return []
        purchase = self._new_purchase(RequestSubmitted(request_id, started.request, started.options))
        decided = next((record for record in records if isinstance(record, CommitDecided)), None)
        if decided is not None:
            self.agreements.update({agreement.agreement_id: agreement for agreement in decided.agreements})
        concluded = next((record for record in records if isinstance(record, RequestConcluded)), None)
        if concluded is not None:
            purchase.recall(concluded.outcome, decided=decided is not None)
            del self._running[request_id]
            return []
        return self._kept(purchase, purchase.recover(records, now))

    def _kept(self, purchase: Purchase, effects: list[Effect]) -> list[Effect]:
        """Keep the agreements that a purchase has come to; forget its deadline once it has ended."""
        if purchase.confirmation is not None:
            for agreement in purchase.confirmation.agreements:
                self.agreements.setdefault(agreement.agreement_id, agreement)
        if purchase.outcome is not None and purchase.deadline is None:
            self._running.pop(purchase.request_id, None)
        return effects

    def _end_cancellation(self, agreement_id: str, now: Instant) -> list[Effect]:
        outcome = self._cancellations[agreement_id].outcome
        if outcome is None:
            return []
        del self._cancellations[agreement_id]
        if outcome.done:
            self._given_back.add(agreement_id)
        return [Persist(CancellationConcluded(outcome, now)), Report(CancellationEnded(outcome))]

    def _given_back_late(self, message: Message, done: CancellationDone, now: Instant) -> list[Effect]:
        """A unit is back after all, though its cancellation was refused at first (a copy got through later)."""
        agreement = self.agreements.get(done.agreement_id)
        if agreement is None or self.agreement_state(done.agreement_id) != "active":
            return []
        self._check_sender(message, agreement.resource)
        self._given_back.add(done.agreement_id)
        outcome = CancellationOutcome(done.agreement_id, True, done.refund)
        return [Persist(CancellationConcluded(outcome, now)), Report(CancellationEnded(outcome))]

    def _check_sender(self, message: Message, expected: str) -> None:
        if message.sender != expected:
            raise RemoteProtocolError(
                f"{message.sender} speaks for {expected}", conversation_id=message.conversation_id
            )

    def _armed(self, effects: list[Effect]) -> list[Effect]:
        self.deadline = earliest(
            *(purchase.deadline for purchase in self._running.values()),
            *(machine.deadline for machine in self._cancellations.values()),
            *(earliest(query.retry.due, query.limit) for query in self._queries.values()),
        )
        return effects


def _renewed(send: Send, now: Instant) -> Send:
    """The same question again; an account query takes a new nonce, for the bank answers each only once."""
    content = send.message.content
    if not (isinstance(content, Signed) and isinstance(content.body, AccountQuery)):
        return send
    query_id, _, tries = content.body.nonce.partition(NONCE_MARK)
    nonce = f"{query_id}{NONCE_MARK}{int(tries or 1) + 1}"
    body = replace(content.body, nonce=nonce, issued_at=now)
    return Send(replace(send.message, content=Signed(body)))
