"""A user's questions to its bank: what was taken back of a slot as it is known here.

One that has missed the words on a reclamation, or was never told, knows another state of its slot than the one that
stands, and cannot change it any more. The bank answers with the seller's document; once that is taken it is asked what
has changed the state that it makes, until nothing has. Nothing of it is kept: after a restart all is asked anew.
"""

from __future__ import annotations

from dataclasses import dataclass

from ramp.model.acl import Message, Performative
from ramp.model.agreement import Agreement
from ramp.model.contents import ReclamationNoticed, ReclamationPosted, ReclamationQuery
from ramp.model.instant import MINUTE, Duration, Instant
from ramp.model.sizes.reclaimed import RECLAMATION_NUMBER_MAX
from ramp.protocol.effects import Effect, Send
from ramp.protocol.timing import Pace, Retry, earliest

ASKED_AGAIN_EVERY: Duration = MINUTE
"""So seldom in the end a bank is asked again that says nothing; it may be away for long."""


@dataclass(frozen=True, slots=True)
class _Inquiry:
    """A question that the bank has not ended yet by saying that nothing has changed the state."""

    question: Message
    retry: Retry


class StateInquiries:
    """All of one user, one a slot at most.

    Args:
        pace: of the user.
    """

    def __init__(self, pace: Pace) -> None:
        self._pace = pace
        self._open: dict[str, _Inquiry] = {}

    def __contains__(self, agreement_id: str) -> bool:
        return agreement_id in self._open

    @property
    def deadline(self) -> Instant | None:
        """When `tick` wants to be called."""
        return earliest(*(each.retry.due for each in self._open.values()))

    @property
    def awaited(self) -> tuple[str, ...]:
        """The agreements of which the bank's answer is awaited."""
        return tuple(key for key, each in self._open.items() if each.retry.due is not None)

    def ask(self, agreement: Agreement, state: str, known: int, now: Instant) -> list[Effect]:
        """Ask what has changed a slot.

        Args:
            agreement: what was bought; one that gives its seller no right is not asked for.
            state: digest of the state that is known.
            known: the highest number of a reclamation that is known; 0 for none.
            now: the present.
        """
        if agreement.request.reclaim is None:
            return []
        agreement_id = agreement.agreement_id
        content = ReclamationQuery(agreement_id, min(known + 1, RECLAMATION_NUMBER_MAX), state)
        before = self._open.get(agreement_id)
        if before is not None and before.retry.due is not None and before.question.content == content:
            return []
        question = Message(
            Performative.REQUEST,
            agreement.user,
            agreement.bank,
            agreement.request_id,
            content,
            reply_with=f"{agreement_id}#s{content.number}",
        )
        retry = Retry(self._pace, ASKED_AGAIN_EVERY)
        retry.begin(now)
        self._open[agreement_id] = _Inquiry(question, retry)
        return [Send(question)]

    def answered(self, message: Message, agreement_id: str, now: Instant) -> bool:
        """Take a word of the bank; whether it answers what is asked.

        With a reclamation that changes the state more may follow, so the question stays until the bank says no more.
        That one is posted says nothing without its document.
        """
        inquiry = self._open.get(agreement_id)
        if inquiry is None or not self._answers(message, inquiry):
            return False
        if isinstance(message.content, ReclamationNoticed):
            inquiry.retry.answered(now)
        elif not isinstance(message.content, ReclamationPosted):
            inquiry.retry.answered(now)
            del self._open[agreement_id]
        return True

    def not_understood(self, message: Message) -> bool:
        """Take that a question was not understood, and ask no more; whether it was one of these."""
        for agreement_id, inquiry in self._open.items():
            if self._answers(message, inquiry):
                del self._open[agreement_id]
                return True
        return False

    def forget(self, agreement_id: str) -> None:
        """Ask no more of a slot."""
        self._open.pop(agreement_id, None)

    def tick(self, now: Instant) -> list[Effect]:
        """Ask again what was not answered."""
        effects: list[Effect] = []
        for inquiry in self._open.values():
            if inquiry.retry.is_due(now):
                inquiry.retry.again(now)
                effects.append(Send(inquiry.question))
        return effects

    def clock_set(self, by: Duration) -> None:
        """The clock has been set: see `Party.clock_set`."""
        for inquiry in self._open.values():
            inquiry.retry.clock_set(by)

    def _answers(self, message: Message, inquiry: _Inquiry) -> bool:
        asked = inquiry.question
        return (message.sender, message.in_reply_to) == (asked.receiver, asked.reply_with)
