"""A market for programs that run on asyncio: the blocking market's methods as coroutines."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

from ramp.client import dialogues
from ramp.client.access import AsyncAccess
from ramp.client.dialogues import Dialogue
from ramp.client.following import Approver, Following, OnEvent, nobody_approves
from ramp.client.jobs.job import Job, job_of
from ramp.client.jobs.work import work_of
from ramp.client.line import AsyncLine, refused
from ramp.client.machine_state import MachineState
from ramp.client.market import MACHINES_LIMIT_S
from ramp.client.request import Requestable
from ramp.client.results import Account, Cancelled, Purchase, Reservation, Resized, Resource, with_machines
from ramp.client.submission import ROUND_TIME, ROUNDS, Approve, MarketUser, Prefer, auction_options
from ramp.client.times import duration_of
from ramp.control.events import Event, Refused, RequestEnded, RequestStanding
from ramp.control.requests import Approve as Approved
from ramp.control.requests import Resize, Submit, Watch
from ramp.errors import RampError, TransportError
from ramp.model.contents.jobs import STDOUT
from ramp.model.instant import HOUR
from ramp.runtime.identifiers import RandomIds

WITHDRAW_LIMIT_S = 5.0
"""How long a cancelled task waits until its withdrawal has been heard, in seconds."""

T = TypeVar("T")


async def converse(line: AsyncLine, dialogue: Dialogue[T]) -> T:
    """Hold a dialogue over a connection; see `ramp.client.market.converse`."""
    try:
        request = next(dialogue)
        while True:
            *_, last = [event async for event in line.events(request)]
            request = dialogue.send(last)
    except StopIteration as end:
        result: T = end.value
        return result


class AsyncMarket(MarketUser[AsyncAccess]):
    """A market as one of its users; `ramp.connect_async` and `ramp.launch_async` make one.

    The methods are those of `ramp.Market`.

    Args:
        access: where the market is.
    """

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Nothing stays open between two calls."""

    async def submit(
        self,
        *requests: Requestable,
        rounds: int = ROUNDS,
        round_time: str | timedelta = ROUND_TIME,
        prefer: Prefer = "cheapest",
        approve: Approve = "auto",
        max_cost: int | str | Decimal | None = None,
        rule: str = "",
        on_event: OnEvent | None = None,
    ) -> Purchase:
        """See `Market.submit`; a task that is cancelled withdraws its request."""
        options = auction_options(
            rounds=rounds, round_time=round_time, prefer=prefer, approve=approve, max_cost=max_cost, rule=rule
        )
        asked = approve if callable(approve) else nobody_approves
        return await self._purchase(self._submission(requests, options), asked, on_event)

    async def quote(
        self,
        *requests: Requestable,
        rounds: int = ROUNDS,
        round_time: str | timedelta = ROUND_TIME,
        prefer: Prefer = "cheapest",
        rule: str = "",
        on_event: OnEvent | None = None,
    ) -> Purchase:
        """See `Market.quote`."""
        options = auction_options(rounds=rounds, round_time=round_time, prefer=prefer, quote_only=True, rule=rule)
        return await self._purchase(self._submission(requests, options), nobody_approves, on_event)

    async def _purchase(self, submitted: Submit, approve: Approver, on_event: OnEvent | None) -> Purchase:
        following = Following.begin(submitted)
        try:
            ended = await self._follow(following, approve, on_event)
        except asyncio.CancelledError:
            with contextlib.suppress(RampError, TimeoutError):
                async with asyncio.timeout(WITHDRAW_LIMIT_S):
                    await self.ask(dialogues.withdraw(submitted.request_id))
            raise
        return self._purchase_of(ended)

    async def _follow(self, following: Following, approve: Approver, on_event: OnEvent | None) -> RequestEnded:
        line = await self.access.open_async()
        while True:
            try:
                async with line, aclosing(line.events(following.request)) as events:
                    async for event in events:
                        if on_event is not None:
                            on_event(event)
                        asked = following.heard(event)
                        if asked is not None:
                            try:
                                approved = approve(asked)
                            except Exception:  # who is not there to answer would be waited for
                                await line.send(Approved(False))
                                raise
                            await line.send(Approved(approved))
            except TransportError as error:
                following.lost(error)
            if following.ended is not None:
                return following.ended
            line = await self.access.reopen_async()

    async def watch(self, request_id: str = "") -> AsyncIterator[Event]:
        """See `Market.watch`."""
        async with await self.access.open_async() as line, aclosing(line.events(Watch(request_id))) as events:
            async for event in events:
                if isinstance(event, Refused):
                    raise refused(event)
                yield event

    async def reservations(self, *, everything: bool = False) -> tuple[Reservation, ...]:
        """See `Market.reservations`."""
        return await self.ask(dialogues.reservations(self.access.domain, everything=everything))

    async def requests(self) -> tuple[RequestStanding, ...]:
        """See `Market.requests`."""
        return await self.ask(dialogues.requests())

    async def cancel(self, any_id: str, reason: str = "") -> tuple[Cancelled, ...]:
        """See `Market.cancel`."""
        return await self.ask(dialogues.cancel(any_id, reason))

    async def resize(
        self,
        any_id: str,
        *,
        cores: int | None = None,
        until: str | datetime | None = None,
        quote_only: bool = False,
        price: int | None = None,
        max_cost: int | None = None,
    ) -> Resized:
        """See `Market.resize`."""
        end = None if until is None else dialogues.moment_given(until, self.access.now())
        wish = Resize("", cores, end, quote_only, price, max_cost)
        return await self.ask(dialogues.resize(any_id, wish))

    async def resize_together(
        self,
        any_ids: Sequence[str],
        *,
        cores: int | None = None,
        until: str | datetime | None = None,
        quote_only: bool = False,
        price: int | None = None,
        max_cost: int | None = None,
    ) -> tuple[Resized, ...]:
        """See `Market.resize_together`."""
        end = None if until is None else dialogues.moment_given(until, self.access.now())
        wish = Resize("", cores, end, quote_only, price, max_cost)
        return await self.ask(dialogues.resize_together(any_ids, wish))

    async def balance(self) -> Account:
        """See `Market.balance`."""
        return await self.ask(dialogues.account())

    async def statement(self, since: str | datetime | None = None, until: str | datetime | None = None) -> Account:
        """See `Market.statement`."""
        return await self.ask(dialogues.statement(since, until, self.access.now()))

    async def launch(
        self,
        any_id: str,
        command: str | Sequence[str] = (),
        *,
        script: str | Path | None = None,
        inputs: Sequence[str | Path] = (),
        cores: int | None = None,
        together: bool = True,
    ) -> tuple[Job, ...]:
        """See `Market.launch`."""
        work = work_of(command, script=script, inputs=inputs, cores=cores, together=together)
        found = await self.ask(dialogues.launch(any_id, work, RandomIds().new))
        return tuple(job_of(each, self.access.domain) for each in found)

    async def jobs(self) -> tuple[Job, ...]:
        """See `Market.jobs`."""
        return tuple(job_of(each, self.access.domain) for each in await self.ask(dialogues.jobs()))

    async def job(self, any_id: str) -> Job:
        """See `Market.job`."""
        return job_of(await self.ask(dialogues.job(any_id)), self.access.domain)

    async def job_output(self, any_id: str, name: str = STDOUT, offset: int = 0) -> bytes:
        """See `Market.job_output`."""
        return await self.ask(dialogues.job_output(any_id, name, offset))

    async def cancel_job(self, any_id: str) -> Job:
        """See `Market.cancel_job`."""
        return job_of(await self.ask(dialogues.cancel_job(any_id)), self.access.domain)

    async def resources(self, *, machines: bool = False) -> tuple[Resource, ...]:
        """See `Market.resources`."""
        found = await self.ask(dialogues.resources(self.access.domain, draining_too=True))
        return with_machines(found, await self.machines([each.address for each in found])) if machines else found

    async def machine(self, resource: str, horizon: str | timedelta = "24h") -> MachineState:
        """See `Market.machine`."""
        return await self.ask(dialogues.machine(resource, duration_of(horizon, "horizon")))

    async def machines(self, names: Sequence[str], limit_s: float = MACHINES_LIMIT_S) -> dict[str, MachineState]:
        """See `Market.machines`."""
        found: dict[str, MachineState] = {}

        async def ask(name: str) -> None:
            with contextlib.suppress(RampError):
                found[name] = await self.ask(dialogues.machine(name, HOUR))

        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(limit_s):
                await asyncio.gather(*(ask(name) for name in names))
        return dict(found)

    async def ask(self, dialogue: Dialogue[T]) -> T:
        """See `Market.ask`."""
        async with await self.access.open_async() as line:
            return await converse(line, dialogue)
