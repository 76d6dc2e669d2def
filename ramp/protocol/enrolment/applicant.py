"""An applicant asks the enrolment office for a certificate until it answers, or the time is over."""

from __future__ import annotations

from ramp.errors import RemoteProtocolError
from ramp.model.acl import Message, Performative
from ramp.model.contents import EnrolmentGranted, EnrolmentRequest, NotUnderstood, RequestRefused
from ramp.model.instant import Instant
from ramp.model.seal import Role
from ramp.protocol.effects import Effect
from ramp.protocol.events import Event
from ramp.protocol.party import Party
from ramp.protocol.questions import Questions
from ramp.protocol.timing import Pace, Timing


class Applicant(Party):
    """Asks for one certificate; reports the answer as `QueryAnswered`, with None if it got no answer.

    Args:
        timing: the protocol's limits; it asks for `query_limit`.
    """

    def __init__(self, name: str, *, office: str, request: EnrolmentRequest, timing: Timing) -> None:
        super().__init__(name)
        self._office = office
        self._request = request
        self._questions = Questions(name, Pace(timing), self)

    def start(self, now: Instant) -> list[Effect]:
        return self._questions.ask(
            self._request.invitation_id,
            self._office,
            lambda: self._request,
            now,
            role=Role.ENROLMENT,
            performative=Performative.REQUEST,
        )

    def handle(self, event: Event, now: Instant) -> list[Effect]:
        """Take the office's answer.

        Raises:
            RemoteProtocolError: if a message is not for an applicant, or not sealed by the office.
        """
        if not isinstance(event, Message):
            return []
        match event.content:
            case EnrolmentGranted(invitation_id=reference) | RequestRefused(reference=reference):
                return self._questions.answered(reference, event, event.content, now)
            case NotUnderstood():
                return self._questions.not_understood(event, event.content)
        raise RemoteProtocolError(f"{type(event.content).__name__} is not a message for a certificate applicant")
