"""The Banking Agent's whole protocol (paper sections 5.1.2 and 6.3).

The bank checks both signatures before money moves, and what it has once answered for an agreement stays its answer: the
ledger posts a payment at most once and remembers refusals. It needs no journal besides the ledger.
"""

from __future__ import annotations

from ramp.errors import RemoteProtocolError
from ramp.model.acl import Message, Performative
from ramp.model.agreement import AccountQuery, Agreement, Cancellation, Signed
from ramp.model.contents import (
    AccountQueryRefused,
    AccountStatement,
    Content,
    NotUnderstood,
    PaymentMade,
    PaymentQuery,
    PaymentRefused,
    PaymentStatus,
    RefundMade,
    RefundRefused,
    Unverified,
)
from ramp.model.instant import Instant
from ramp.protocol.effects import Effect, LookUpAccount, LookUpPayment, PostPayment, PostRefund, RefusePayment, Send
from ramp.protocol.events import (
    AccountLookedUp,
    Event,
    MessageReceived,
    PaymentLookedUp,
    PaymentPosted,
    RefundPosted,
)
from ramp.protocol.timing import Timing

EXPIRED = "expired"
BAD_SIGNATURE = "bad_signature"
BAD_TERMS = "bad_terms"


class BankParty:
    """Everything the Banking Agent does.

    Args:
        name: the agent's name.
        timing: the protocol's limits.
    """

    def __init__(self, name: str, *, timing: Timing) -> None:
        self.name = name
        self.deadline: Instant | None = None
        self._timing = timing
        self._asked: dict[str, list[Message]] = {}
        self._calls = 0

    def start(self, now: Instant) -> list[Effect]:
        """The bank waits to be asked."""
        return []

    def tick(self, now: Instant) -> list[Effect]:
        """The bank has no deadlines."""
        return []

    def handle(self, event: Event, now: Instant) -> list[Effect]:
        """Take a message or the ledger's answer.

        Raises:
            RemoteProtocolError: if a message has no place here.
        """
        match event:
            case MessageReceived(message):
                return self._on_message(message, now)
            case PaymentPosted():
                return self._on_payment_posted(event)
            case RefundPosted():
                return self._on_refund_posted(event)
            case PaymentLookedUp():
                return self._on_payment_looked_up(event, now)
            case AccountLookedUp():
                return self._on_account_looked_up(event, now)
            case _:
                return []

    # -- messages ------------------------------------------------------------------------------------------------

    def _on_message(self, message: Message, now: Instant) -> list[Effect]:
        content = message.content
        match content:
            case Signed(body=Agreement()):
                return self._on_agreement(message, content, now)
            case Signed(body=Cancellation()):
                return self._on_cancellation(message, content)
            case Signed(body=AccountQuery()):
                return self._on_account_query(message, content, now)
            case PaymentQuery(agreement_id):
                call_id = self._wait(message, "status")
                return [LookUpPayment(call_id, agreement_id)]
            case Unverified(kind="agreement", reference=agreement_id) if agreement_id:
                return self._refuse_for_good(message, agreement_id, content.code, content.detail)
            case Unverified():
                return [self._refuse_unverified(message, content)]
            case NotUnderstood():
                return []
            case _:
                raise RemoteProtocolError(
                    f"{type(content).__name__} is nothing for a bank", conversation_id=message.conversation_id
                )

    def _on_agreement(self, message: Message, signed: Signed, now: Instant) -> list[Effect]:
        """TransactionUpdate: both signatures, the terms and the date, then the ledger."""
        agreement = signed.body
        assert isinstance(agreement, Agreement)
        if signed.signers != (agreement.user, agreement.resource):
            detail = "the agreement is not signed by its user and countersigned by its resource"
            return self._refuse_for_good(message, agreement.agreement_id, BAD_SIGNATURE, detail)
        if agreement.bank != self.name or agreement.cost != agreement.offer.cost or agreement.cost <= 0:
            detail = "the agreement names another bank or a cost that its offer does not give"
            return self._refuse_for_good(message, agreement.agreement_id, BAD_TERMS, detail)
        self._asked.setdefault(agreement.agreement_id, []).append(message)
        if now > agreement.valid_until:
            return [LookUpPayment(agreement.agreement_id, agreement.agreement_id)]
        return [PostPayment(agreement)]

    def _on_cancellation(self, message: Message, signed: Signed) -> list[Effect]:
        """CancelListener: user and resource have both signed, so the payment is reversed."""
        cancellation = signed.body
        assert isinstance(cancellation, Cancellation)
        if signed.signers != (cancellation.user, cancellation.resource):
            detail = "the cancellation is not signed by its user and countersigned by its resource"
            refused = RefundRefused(cancellation.agreement_id, BAD_SIGNATURE, detail)
            return [self._reply(message, Performative.REFUSE, refused)]
        self._asked.setdefault(f"refund/{cancellation.agreement_id}", []).append(message)
        return [PostRefund(cancellation.agreement_id, cancellation.user, cancellation.resource)]

    def _on_account_query(self, message: Message, signed: Signed, now: Instant) -> list[Effect]:
        """BalanceRequest: signed by the account's owner, fresh, and never seen before."""
        query = signed.body
        assert isinstance(query, AccountQuery)
        if signed.signers != (query.account,):
            refused = AccountQueryRefused(query.nonce, BAD_SIGNATURE, "the query is not signed by the account's owner")
            return [self._reply(message, Performative.REFUSE, refused)]
        if abs(now - query.issued_at) > self._timing.account_query_age:
            refused = AccountQueryRefused(query.nonce, EXPIRED, "the query is too old or from the future")
            return [self._reply(message, Performative.REFUSE, refused)]
        call_id = self._wait(message, "account")
        return [LookUpAccount(call_id, query.nonce, query.account, query.issued_at, query.since, query.until)]

    def _refuse_for_good(self, message: Message, agreement_id: str, code: str, detail: str) -> list[Effect]:
        """Whoever is refused releases the slot, so a better copy that comes later must not be paid any more.

        Only the two parties know an agreement's id, so nobody else can have it refused.
        """
        self._asked.setdefault(agreement_id, []).append(message)
        return [RefusePayment(agreement_id, code, detail)]

    def _refuse_unverified(self, message: Message, content: Unverified) -> Send:
        refused: Content
        if content.kind == "agreement":
            refused = PaymentRefused(content.reference, content.code, content.detail)
        elif content.kind == "cancellation":
            refused = RefundRefused(content.reference, content.code, content.detail)
        else:
            refused = AccountQueryRefused(content.reference, content.code, content.detail)
        return self._reply(message, Performative.REFUSE, refused)

    # -- the ledger's answers ------------------------------------------------------------------------------------

    def _on_payment_posted(self, posted: PaymentPosted) -> list[Effect]:
        effects: list[Effect] = []
        for message in self._asked.pop(posted.agreement_id, []):
            if posted.code:
                effects.append(self._refuse_payment(message, posted.agreement_id, posted.code, posted.detail))
            else:
                made = PaymentMade(posted.agreement_id, posted.transfer_id, posted.amount)
                effects.append(self._reply(message, Performative.AGREE, made))
        return effects

    def _on_refund_posted(self, posted: RefundPosted) -> list[Effect]:
        effects: list[Effect] = []
        for message in self._asked.pop(f"refund/{posted.agreement_id}", []):
            if posted.code:
                refused = RefundRefused(posted.agreement_id, posted.code, posted.detail)
                effects.append(self._reply(message, Performative.REFUSE, refused))
                continue
            made = RefundMade(posted.agreement_id, posted.transfer_id, posted.amount)
            effects.append(self._reply(message, Performative.AGREE, made))
            assert isinstance(message.content, Signed)
            assert isinstance(message.content.body, Cancellation)
            effects.append(
                Send(Message(Performative.INFORM, self.name, message.content.body.user, message.conversation_id, made))
            )
        return effects

    def _on_payment_looked_up(self, found: PaymentLookedUp, now: Instant) -> list[Effect]:
        effects: list[Effect] = []
        for message in self._asked.pop(found.call_id, []):
            if isinstance(message.content, PaymentQuery):
                status = PaymentStatus(found.agreement_id, found.status, found.transfer_id, now)
                effects.append(self._reply(message, Performative.INFORM, status))
            elif found.transfer_id:
                made = PaymentMade(found.agreement_id, found.transfer_id, found.amount)
                effects.append(self._reply(message, Performative.AGREE, made))
            else:
                detail = "the agreement came after its validity"
                effects.append(self._refuse_payment(message, found.agreement_id, found.code or EXPIRED, detail))
        return effects

    def _on_account_looked_up(self, found: AccountLookedUp, now: Instant) -> list[Effect]:
        effects: list[Effect] = []
        for message in self._asked.pop(found.call_id, []):
            assert isinstance(message.content, Signed)
            query = message.content.body
            assert isinstance(query, AccountQuery)
            if found.code:
                refused = AccountQueryRefused(query.nonce, found.code, found.detail)
                effects.append(self._reply(message, Performative.REFUSE, refused))
                continue
            statement = AccountStatement(
                query.nonce, query.account, found.balance, found.reserved, found.credit_limit, now, found.lines
            )
            effects.append(self._reply(message, Performative.INFORM, statement))
        return effects

    # -- common --------------------------------------------------------------------------------------------------

    def _wait(self, message: Message, kind: str) -> str:
        self._calls += 1
        call_id = f"{kind}-{self._calls}"
        self._asked[call_id] = [message]
        return call_id

    def _refuse_payment(self, message: Message, agreement_id: str, code: str, detail: str) -> Send:
        return self._reply(message, Performative.REFUSE, PaymentRefused(agreement_id, code, detail))

    def _reply(self, message: Message, performative: Performative, content: Content) -> Send:
        return Send(
            Message(
                performative,
                self.name,
                message.sender,
                message.conversation_id,
                content,
                in_reply_to=message.reply_with,
            )
        )
