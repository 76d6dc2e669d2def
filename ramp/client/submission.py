"""A submission: its options, its document, and how it is followed to its end through restarts of the User Agent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Final, Literal

from ramp.client.access import Access
from ramp.client.line import refused
from ramp.client.request import Requestable, document_of, length_given, resolved
from ramp.client.results import short_name
from ramp.control.events import Event, MarketRefusalCode, Refused, RequestEnded
from ramp.control.requests import Submit, Watch
from ramp.errors import ConfigurationError, TransportError
from ramp.model.instant import Instant
from ramp.model.money import credits_of
from ramp.options import Bounds
from ramp.protocol.events import Approval, AuctionOptions, Preference
from ramp.protocol.progress import ApprovalAsked
from ramp.protocol.rules.checked_rule import ROUNDS_MAX

Approver = Callable[[ApprovalAsked], bool]
"""Asks the owner whether to accept offers, given these, whether each meets the request, and their costs."""

OnEvent = Callable[[Event], None]
"""Called with each event."""

Approve = Literal["auto", "best-offer"] | Approver
"""`auto` buys what meets the request; `best-offer` also buys, unasked, the best offer where none meets it; a function
is asked about the offers before anything is bought."""

Prefer = Literal["cheapest", "soonest"]

ROUNDS: Final = AuctionOptions().rounds
ROUND_TIME: Final = timedelta(microseconds=AuctionOptions().round_time)
"""Default options of a submission."""

Rounds = Annotated[int, Bounds(1, ROUNDS_MAX)]
Credits = int | str | Decimal


def credits_given(given: Credits, name: str, *, zero: bool = False) -> int:
    """Convert credits to minor units; raises `ConfigurationError` that names the argument."""
    try:
        return credits_of(given, zero=zero)
    except ValueError as error:
        raise ConfigurationError(str(error), key=name) from error


def auction_options(
    *,
    rounds: int,
    round_time: str | timedelta,
    prefer: str,
    approve: Approve = "auto",
    max_cost: Credits | None = None,
    quote_only: bool = False,
    rule: str = "",
) -> AuctionOptions:
    """Check the options of an auction; raises `ConfigurationError` that names the invalid argument."""
    try:
        limit = None if max_cost is None else credits_given(max_cost, "max_cost")
        return AuctionOptions(
            rounds=rounds,
            round_time=length_given(round_time, "round_time", zero=False),
            preference=Preference(prefer),
            approval=Approval.ASK if callable(approve) else Approval(approve),
            quote_only=quote_only,
            max_cost=limit,
            rule=fixed_rule(rule),
        )
    except ValueError as error:
        raise ConfigurationError(str(error)) from error


def fixed_rule(rule: str) -> str:
    """Return an auction rule as the User Agent finds it: a file by its absolute path."""
    where, _, name = rule.rpartition(":")
    return f"{Path(where).resolve()}:{name}" if where.endswith(".py") else rule


def submission(parts: Sequence[Requestable], options: AuctionOptions, now: Instant, request_id: str) -> Submit:
    """Make a submission with all times fixed."""
    return Submit(document_of(resolved(parts, now)), request_id, options)


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


class MarketUser:
    """The part of `Market` and `AsyncMarket` that never waits."""

    def __init__(self, access: Access) -> None:
        self.access = access

    @property
    def user(self) -> str:
        """Local name of the user."""
        return self.access.user

    def short(self, address: str) -> str:
        """An agent's name without the market's own domain; names of other domains stay whole."""
        return short_name(address, self.access.domain)
