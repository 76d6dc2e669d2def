"""Agents of markets of several sites: the enrolment office, and whoever asks it for a certificate."""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar

from ramp.agents.party_agent import PartyAgent
from ramp.model.acl import Performative
from ramp.protocol.progress import EnrolmentAnswered, Progress, QueryAnswered
from ramp.runtime.logs.events import record
from ramp.xmpp.behaviour import Courier


class EnrolmentServer(Courier):
    """Enrolment office: requests for certificates, and questions what has been revoked."""

    performatives = (Performative.REQUEST.value, Performative.QUERY_REF.value)


class EnrolmentAnswers(Courier):
    """Applicant: what the enrolment office answers."""

    performatives = (Performative.INFORM.value, Performative.REFUSE.value)


class EnrolmentAgent(PartyAgent):
    """The market's enrolment office."""

    behaviours_served: ClassVar[tuple[type[Courier], ...]] = (EnrolmentServer,)

    def watch(self, progress: Progress) -> None:
        """Tell of every request that was granted; of refusals, which strangers may cause, one a minute of each."""
        if not isinstance(progress, EnrolmentAnswered):
            return
        if not progress.code:
            record(str(self.jid), "enrolment", f"{progress.invitation_id} is granted to {progress.sender}")
            return
        what = f"{progress.invitation_id}: a request of {progress.sender} is refused: {progress.code}"
        self.complain(progress.sender, "%s", what)


class ApplicantAgent(PartyAgent):
    """Asks the office of a market for one certificate, from an account that the market's keeper has made.

    Attributes:
        answer: the office's, or that none has come in time.
    """

    behaviours_served: ClassVar[tuple[type[Courier], ...]] = (EnrolmentAnswers,)

    def __init__(self, *args: Any, **keywords: Any) -> None:
        self.answer: asyncio.Future[QueryAnswered] = asyncio.get_running_loop().create_future()
        super().__init__(*args, **keywords)

    def watch(self, progress: Progress) -> None:
        """Take the answer."""
        if isinstance(progress, QueryAnswered) and not self.answer.done():
            self.answer.set_result(progress)
