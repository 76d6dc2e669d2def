"""A submission: its options, its document, and how it is followed to its end through restarts of the User Agent."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Final, Literal, TypeVar

from ramp.client import dialogues
from ramp.client.access import Access, refused
from ramp.client.dialogues import Dialogue, converse
from ramp.client.request import Requestable, document_of, resolved
from ramp.client.results import Purchase, purchase_of, sellers_of, short_name
from ramp.client.times import duration_of
from ramp.control.events import Event, MarketRefusalCode, Refused
from ramp.control.requests import Submit, Watch
from ramp.errors import ConfigurationError, MarketRefused, TransportError
from ramp.model.instant import Instant
from ramp.model.money import credits_of
from ramp.options import Bounds, checked, read_argument
from ramp.protocol.events import Approval, AuctionOptions, Preference
from ramp.protocol.outcome import RequestStatus
from ramp.protocol.progress import ApprovalAsked, RequestEnded
from ramp.protocol.rules.checked_rule import ROUNDS_MAX

T = TypeVar("T")

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


def auction_options(
    *,
    rounds: int,
    round_time: str | timedelta,
    prefer: str,
    approve: Approve = "auto",
    max_cost: Credits | None = None,
    quote_only: bool = False,
    rule: str = "",
    name: str = "",
) -> AuctionOptions:
    """Check the options of an auction; raises `ConfigurationError` that names the invalid argument."""
    try:
        limit = None if max_cost is None else read_argument("max_cost", credits_of, max_cost)
        return AuctionOptions(
            rounds=rounds,
            round_time=read_argument("round_time", duration_of, round_time, zero=False),
            preference=Preference(prefer),
            approval=Approval.ASK if callable(approve) else Approval(approve),
            quote_only=quote_only,
            max_cost=limit,
            rule=fixed_rule(rule),
            name=name,
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


@checked
class AsyncRequests(MarketUser):
    """The part of `AsyncMarket` that asks for quotations and buys."""

    async def submit(
        self,
        *requests: Requestable,
        rounds: Rounds = ROUNDS,
        round_time: str | timedelta = ROUND_TIME,
        prefer: Prefer = "cheapest",
        approve: Approve = "auto",
        max_cost: Credits | None = None,
        rule: str = "",
        name: str = "",
        on_event: OnEvent | None = None,
    ) -> Purchase:
        """Auction requests as one, buy the best offers by two-phase commit, pay, and return the result.

        All units are bought or none. If the User Agent restarts, the call waits for it. Cancelling the task, or Ctrl-C
        in `Market`, withdraws the request and waits for its end; then it is raised, unless everything was bought
        before. The second one is raised at once.

        Args:
            *requests: from `ramp.request`, or files of RFQL.
            rounds: rounds of bidding.
            round_time: limit of a round; it closes as soon as every answer is in.
            prefer: how offers are ranked.
            approve: `"auto"`, `"best-offer"`, or a function that decides whether to buy, given a `ramp.ApprovalAsked`
                with the offers, whether each meets the request, and their costs.
            max_cost: maximum total cost in credits.
            rule: name of the auction rule (`ramp plugins list rule`), or `FILE.py:Name`; the market's own where empty.
            name: your own name for the request, of at most 80 characters; sellers do not see it.
            on_event: called with each event: `ramp.RoundOpened`, `ramp.RoundClosed` and so on.

        Raises:
            RampError: see the class.
            asyncio.CancelledError: after a withdrawal; `Market` raises KeyboardInterrupt.
        """
        options = auction_options(
            rounds=rounds,
            round_time=round_time,
            prefer=prefer,
            approve=approve,
            max_cost=max_cost,
            rule=rule,
            name=name,
        )
        asked = approve if callable(approve) else nobody_approves
        return await self._purchase(requests, options, asked, on_event)

    async def quote(
        self,
        *requests: Requestable,
        rounds: Rounds = ROUNDS,
        round_time: str | timedelta = ROUND_TIME,
        prefer: Prefer = "cheapest",
        rule: str = "",
        name: str = "",
        on_event: OnEvent | None = None,
    ) -> Purchase:
        """Auction requests, but stop before accepting: nothing is held or bought; the arguments are `submit`'s.

        Raises:
            RampError: see the class.
        """
        options = auction_options(
            rounds=rounds, round_time=round_time, prefer=prefer, quote_only=True, rule=rule, name=name
        )
        return await self._purchase(requests, options, nobody_approves, on_event)

    async def buy_quote(
        self, request_id: str, numbers: Sequence[int] = (1,), *, on_event: OnEvent | None = None
    ) -> Purchase:
        """Buy the offers of a quote while they stand: exactly these, all or none.

        Args:
            request_id: of the quote.
            numbers: rank of the offer for each unit, from 1, in the order of the units (`RequestOutcome.ranked`).
            on_event: called with each event.

        Raises:
            ConfigurationError: if the quote has no such offers.
            MarketRefused: `quote_over` if they stand no more.
            RampError: see the class.
        """
        quote = await self.ask(dialogues.outcome(request_id))
        if quote is None or quote.status is not RequestStatus.QUOTED:
            state = "running" if quote is None else quote.status.value
            raise ConfigurationError(f"{request_id} is {state}, expected a quote whose offers have not been bought")
        await self.ask(dialogues.approve(request_id, True, sellers_of(quote, numbers)))
        async with aclosing(self.watch(request_id)) as events:
            async for event in events:
                if on_event is not None:
                    on_event(event)
                if isinstance(event, RequestEnded) and event.outcome.status is not RequestStatus.QUOTED:
                    return purchase_of(event.outcome, event.files, self.access.domain)
        raise TransportError(f"the User Agent ended; see the result with `ramp status {request_id}`")

    async def _purchase(
        self, requests: Sequence[Requestable], options: AuctionOptions, approve: Approver, on_event: OnEvent | None
    ) -> Purchase:
        submitted = submission(requests, options, self.access.now(), self.access.new_id("request"))
        ended, withdrawn = await self.follow(submitted, approve=approve, on_event=on_event)
        purchase = purchase_of(ended.outcome, ended.files, self.access.domain)
        if withdrawn:
            if not purchase.committed:
                raise asyncio.CancelledError
            task = asyncio.current_task()
            assert task is not None
            task.uncancel()  # it returns what was bought
        return purchase

    async def follow(
        self,
        submitted: Submit,
        *,
        approve: Approver = nobody_approves,
        on_event: OnEvent | None = None,
        on_interrupt: Callable[[], None] = lambda: None,
        on_lost: Callable[[], None] = lambda: None,
    ) -> tuple[RequestEnded, bool]:
        """Submit a request and follow it to its end, with callbacks; returns also whether it was withdrawn.

        Args:
            submitted: the request, with an id of the client's own that makes a second submission harmless.
            approve: asked about offers.
            on_event: called with each event.
            on_interrupt: called at the first cancellation, before the request is withdrawn.
            on_lost: called when the User Agent has ended during the request, before the wait for its restart.

        Raises:
            RampError: see the class.
            asyncio.CancelledError: for the second cancellation; the first withdraws and waits.
        """
        asked: Submit | Watch = submitted
        lost_submission = withdrawn = False
        line = await self.access.open()
        while True:
            ended = None
            try:
                async with line, aclosing(line.events(asked)) as events:
                    async for event in events:
                        if on_event is not None:
                            on_event(event)
                        match event:
                            case RequestEnded():
                                ended = event
                            case Refused(MarketRefusalCode.UNKNOWN_REQUEST) if asked is not submitted and not withdrawn:
                                asked = submitted  # the agent ended before it had written the request down
                            case Refused():
                                raise refused(event)
                            case ApprovalAsked():
                                await self._answer(event, approve)
            except TransportError:
                if asked is submitted and lost_submission:
                    raise
                lost_submission = asked is submitted
                asked = Watch(submitted.request_id)
                on_lost()
            except asyncio.CancelledError:
                if withdrawn:
                    raise
                withdrawn, lost_submission = True, asked is submitted
                asked = Watch(submitted.request_id)  # only its end is waited for
                on_interrupt()
                async with await self.access.reopen() as other:
                    with contextlib.suppress(MarketRefused):  # it was never submitted, or has ended
                        await converse(other, dialogues.withdraw(submitted.request_id))
            if ended is not None:
                return ended, withdrawn
            line = await self.access.reopen()

    async def _answer(self, asked: ApprovalAsked, approve: Approver) -> None:
        approved = False
        try:
            approved = approve(asked)
        finally:  # the agent would wait for an answer
            await self.ask(dialogues.approve(asked.request_id, approved))

    async def watch(self, request_id: str = "") -> AsyncGenerator[Event, None]:
        """Iterate over events: of one request until it ends, or of all requests of this user, without end.

        Yields:
            `ramp.Submitted`, `RoundOpened`, `RoundClosed`, `ApprovalAsked`, `UnitAdvanced`, `RequestEnded`, and
            `UnitMoved` for slots that a resource moves to other nodes; their times are integers of microseconds
            (`ramp.to_datetime`).

        Raises:
            RampError: see the class.
        """
        async with await self.access.open() as line, aclosing(line.events(Watch(request_id))) as events:
            async for event in events:
                if isinstance(event, Refused):
                    raise refused(event)
                yield event

    async def ask(self, dialogue: Dialogue[T]) -> T:
        """Hold a dialogue over a connection of its own.

        Raises:
            RampError: see the class.
        """
        async with await self.access.open() as line:
            return await converse(line, dialogue)
