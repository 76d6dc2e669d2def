"""A request from submission to its end, through restarts of the User Agent: what to send next, without any I/O.

The blocking market and the one for asyncio both drive it: they send `request` on a fresh connection, hand over what
comes, and call `lost` when the connection ends before the request has.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ramp.client.line import refused
from ramp.control.events import Event, MarketRefusalCode, Refused, RequestEnded
from ramp.control.requests import Submit, Watch, Withdraw
from ramp.errors import TransportError
from ramp.protocol.progress import ApprovalAsked

Approver = Callable[[ApprovalAsked], bool]
"""Asks the owner about offers: which they are, whether each meets the request, and what would be paid for it."""

OnEvent = Callable[[Event], None]
"""Called with each event."""


def nobody_approves(_: ApprovalAsked) -> bool:
    """Says no, for requests that were submitted without asking."""
    return False


@dataclass(slots=True)
class Following:
    """A request being followed.

    Attributes:
        submission: what was asked for, with an id of the client's own: submitting again under it is harmless.
        request: what to send on the next connection.
        interrupted: whether the owner has withdrawn it.
        ended: how it ended, once it has.
    """

    submission: Submit
    request: Submit | Watch
    interrupted: bool = False
    ended: RequestEnded | None = None
    _tried: bool = False

    @classmethod
    def begin(cls, submission: Submit) -> Following:
        """Begin with the submission."""
        return cls(submission, submission)

    @property
    def watch(self) -> Watch:
        """Asks what has become of it."""
        return Watch(self.submission.request_id)

    @property
    def withdrawal(self) -> Withdraw:
        """Stops it."""
        return Withdraw(self.submission.request_id)

    def heard(self, event: Event) -> ApprovalAsked | None:
        """Take an event; returns it where the owner has to answer.

        Raises:
            MarketRefused: if the request was not taken.
        """
        if isinstance(event, RequestEnded):
            self.ended = event
        elif isinstance(event, Refused):
            forgotten = event.code is MarketRefusalCode.UNKNOWN_REQUEST and isinstance(self.request, Watch)
            if not forgotten or self.interrupted:
                raise refused(event)
            self.request = self.submission  # the agent ended before it had written the request down
        elif isinstance(event, ApprovalAsked):
            return event
        return None

    def lost(self, error: TransportError) -> None:
        """The connection has ended before the request has.

        Raises:
            TransportError: that error, if the request was submitted again in vain.
        """
        again = isinstance(self.request, Submit)
        if again and self._tried:
            raise error
        self._tried = again
        self.request = self.watch

    def withdrawn(self) -> None:
        """The owner no longer wants it: from here on only its end is waited for."""
        self.interrupted = True
        self._tried = isinstance(self.request, Submit)
        self.request = self.watch
