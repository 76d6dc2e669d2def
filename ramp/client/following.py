"""A request from submission to its end, through restarts of the User Agent, without any I/O.

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
"""Asks the owner whether to accept offers, given these, whether each meets the request, and their costs."""

OnEvent = Callable[[Event], None]
"""Called with each event."""


def nobody_approves(_: ApprovalAsked) -> bool:
    """Decline, for requests that were submitted without asking."""
    return False


@dataclass(slots=True)
class Following:
    """A request being followed.

    Attributes:
        submission: the request, with an id of the client's own that makes a second submission harmless.
        request: the first message of the next connection.
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
        return cls(submission, submission)

    @property
    def watch(self) -> Watch:
        return Watch(self.submission.request_id)

    @property
    def withdrawal(self) -> Withdraw:
        return Withdraw(self.submission.request_id)

    def heard(self, event: Event) -> ApprovalAsked | None:
        """Take an event; return it if the owner must answer. Raises `MarketRefused` at a refused submission."""
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
        """Take the loss of the connection; raises the error if a second submission failed as well."""
        again = isinstance(self.request, Submit)
        if again and self._tried:
            raise error
        self._tried = again
        self.request = self.watch

    def withdrawn(self) -> None:
        """Take a withdrawal by the owner: only the end of the request is waited for."""
        self.interrupted = True
        self._tried = isinstance(self.request, Submit)
        self.request = self.watch
