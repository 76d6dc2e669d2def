"""A market for programs that run on asyncio; `ramp.client.market` offers the same methods to programs that wait.

`EveryUser` watches all users of a market, through restarts of their agents. The control sockets lie in the market's
state folder, which only its owner reads; so this is the owner's view.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Annotated, Final, TypeVar

from ramp.client import dialogues
from ramp.client.access import find_market
from ramp.client.jobs import Job, JobFile, job_of, work_of
from ramp.client.machine_state import MachineState
from ramp.client.request import Count
from ramp.client.results import Account, Cancelled, Reservation, Resized, Resource
from ramp.client.submission import AsyncRequests, Credits
from ramp.client.times import duration_of, moment_of
from ramp.control.events import Event, RequestStanding, Watching
from ramp.errors import ConfigurationError, RampError
from ramp.model.contents.jobs import STDOUT
from ramp.model.instant import HOUR
from ramp.model.money import credits_of
from ramp.model.request import NUMBER_MAX
from ramp.options import Bounds, checked, read_argument
from ramp.protocol.events import AgreementResized
from ramp.runtime.state_folder import StateFolder

MACHINES_LIMIT_S: Final = 25.0
"""How long all machines together may take to report their state, in seconds."""

LOOK_AGAIN_S: Final = 1.0
"""Pause between two looks at a job that is waited for, in seconds."""

Offset = Annotated[int, Bounds(0, NUMBER_MAX)]
Seconds = Annotated[float, Bounds(0, 86_400)]
Price = Annotated[int, Bounds(0, NUMBER_MAX)]

T = TypeVar("T")


@checked
class AsyncMarket(AsyncRequests, contextlib.AbstractAsyncContextManager["AsyncMarket"]):
    """A market as one of its users; `ramp.connect_async` and `ramp.launch_async` make one.

    Nothing stays open between two calls. Every failure raises a `ramp.RampError`:

    - `NoMarket`: no market is running.
    - `MarketRefused`, with a `code`: a party refuses.
    - `ConfigurationError`, `DocumentError`: bad input.
    - other `TransportError`: an agent ended or does not listen.

    The end of an auction is no error: see `Purchase.status`.
    """

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Nothing stays open between two calls."""

    async def reservations(self, *, everything: bool = False) -> tuple[Reservation, ...]:
        """Return reservations by start; with `everything` also cancelled and void ones."""
        return await self.ask(dialogues.reservations(self.access.domain, everything=everything))

    async def requests(self) -> tuple[RequestStanding, ...]:
        """Return all requests with their state, in the order of submission."""
        return await self.ask(dialogues.requests())

    async def cancel(self, any_id: str, reason: str = "") -> tuple[Cancelled, ...]:
        """Give back an agreement, a reservation, or all that a request has bought; or withdraw a running request.

        Args:
            any_id: id of any of these; it may be cut short as long as it is unique.
            reason: for the records of the resource and the bank.
        """
        return await self.ask(dialogues.cancel(any_id, reason))

    async def resize(
        self,
        any_id: str,
        *others: str,
        cores: Count | None = None,
        until: str | datetime | None = None,
        quote_only: bool = False,
        price: Price | None = None,
        max_cost: Credits | None = None,
    ) -> tuple[Resized, ...]:
        """Resize a bought slot, or add to several at once; returns when the bank has posted it, or it has failed.

        Additions to several slots are paid by one order: all or none. The seller sets the price of an addition; see it
        first with `quote_only`.

        Args:
            any_id: id of a reservation or agreement; it may be cut short as long as it is unique.
            *others: ids of further ones.
            cores: new number of cores of each (default: unchanged).
            until: new end of each (default: unchanged).
            quote_only: only preview the refund or cost.
            price: maximum price of the addition in credits per core hour; by default the limit of the request.
            max_cost: maximum total cost of all additions in credits; by default only `price` limits it.

        Raises:
            ConfigurationError: if an id does not mean exactly one slot, or `until` is invalid.
        """
        end = None if until is None else read_argument("until", moment_of, until, self.access.now())
        limit = None if max_cost is None else read_argument("max_cost", credits_of, max_cost)
        wish = AgreementResized("", cores, end, quote_only, price, limit)
        return await self.ask(dialogues.resize((any_id, *others), wish))

    async def balance(self) -> Account:
        """Return the balance of the account, as the bank states it."""
        return await self.ask(dialogues.account())

    async def statement(self, since: str | datetime | None = None, until: str | datetime | None = None) -> Account:
        """Return the balance and every payment, refund and deposit between two moments (default: all).

        Raises:
            ConfigurationError: if a time is invalid, or the first is after the last.
        """
        now = self.access.now()
        first = 0 if since is None else read_argument("since", moment_of, since, now)
        last = None if until is None else read_argument("until", moment_of, until, now)
        if last is not None and first > last:
            raise ConfigurationError(f"since must be before until: got since={since}, until={until}")
        return await self.ask(dialogues.account(first, last))

    async def launch(
        self,
        any_id: str,
        command: str | Sequence[str] = (),
        *,
        script: str | Path | None = None,
        inputs: Sequence[str | Path] = (),
        cores: Count | None = None,
        together: bool = True,
        environment: Mapping[str, str] | None = None,
        application: str = "",
        version: str = "",
    ) -> tuple[Job, ...]:
        """Run a command or a script on reservations: one job on each slot of an id.

        The units of a request begin together where their slots overlap. RAMP_UNIT, RAMP_UNITS and RAMP_PEERS describe
        them to each other. The resource runs a job once, as the local account that its site maps the user to.

        Args:
            any_id: an agreement, a reservation, or a request.
            command: words, or one text as a shell would split it; arguments of the script where there is one.
            script: a file that is staged and run.
            inputs: further files and folders that are copied into the job's folder.
            cores: number of cores on each slot; by default all.
            together: whether units begin together.
            environment: environment variables of the job.
            application: an application of the resource, in place of a command; `command` is its input.
            version: of the application; by default that of the request, or the resource's first one.

        Raises:
            MarketRefused: if a resource refuses the job; jobs on other units are then cancelled.
            ConfigurationError: if there is no command or no active reservation, or a limit is exceeded.
        """
        order, archive = work_of(
            command,
            script=script,
            inputs=inputs,
            cores=cores,
            environment=environment,
            application=application,
            version=version,
        )
        found = await self.ask(dialogues.launch(any_id, order, archive, self.access.new_id, together=together))
        return tuple(job_of(each, self.access.domain) for each in found)

    async def jobs(self) -> tuple[Job, ...]:
        """Return all jobs with their state, in the order of launching."""
        return tuple(job_of(each, self.access.domain) for each in await self.ask(dialogues.jobs()))

    async def job(self, any_id: str) -> Job:
        """Return a job by its name, or the beginning of it."""
        return job_of(await self.ask(dialogues.job(any_id)), self.access.domain)

    async def job_output(self, any_id: str, name: str = STDOUT, offset: Offset = 0) -> bytes:
        """Return the output of a job (`stdout`, `stderr`) or a file that it wrote, so far, from an offset in bytes."""
        return await self.ask(dialogues.job_output(any_id, name, offset))

    async def job_files(self, any_id: str) -> tuple[JobFile, ...]:
        """List a job's streams, and the files in its folder and all folders below."""
        return await self.ask(dialogues.job_files(any_id))

    async def fetch_job(self, any_id: str, folder: str | Path, *paths: str) -> tuple[Path, ...]:
        """Save files of a job below a local folder, and return their new paths.

        Args:
            any_id: the job.
            folder: is made if it is missing; files of the same names are replaced.
            *paths: of the wanted files, as `job_files` lists them; by default all but `stdout` and `stderr`.

        Raises:
            ConfigurationError: if a file is missing or cannot be written, or all are larger than 256 MiB together.
        """
        return await self.ask(dialogues.fetched(any_id, Path(folder), paths))

    async def follow_job(self, any_id: str, name: str = STDOUT) -> AsyncGenerator[bytes, None]:
        """Iterate over the output of a job, or a file that it writes, until the job has ended.

        Yields:
            Pieces in order, as soon as they are there.
        """
        offset = 0
        while True:
            piece, ended = await self.ask(dialogues.job_news(any_id, name, offset))
            if piece:
                yield piece
                offset += len(piece)
            elif ended:
                return
            else:
                await asyncio.sleep(LOOK_AGAIN_S)

    async def wait_job(self, any_id: str, on_change: Callable[[Job], None] | None = None) -> Job:
        """Return a job once it has ended; `on_change` is called with every new state before."""
        last = ""
        while True:
            found = await self.job(any_id)
            if found.state != last and on_change is not None:
                on_change(found)
            if found.has_ended:
                return found
            last = found.state
            await asyncio.sleep(LOOK_AGAIN_S)

    async def cancel_job(self, any_id: str) -> Job:
        """End a job; its slot stays bought. A job that has ended stays as it is."""
        return job_of(await self.ask(dialogues.cancel_job(any_id)), self.access.domain)

    async def resources(self, *, machines: bool = False) -> tuple[Resource, ...]:
        """Return the registered resources; with `machines` also the state of their machines.

        `Resource.machine` is None where the machine does not answer in time.
        """
        found = await self.ask(dialogues.resources(self.access.domain, draining_too=True))
        return await self.machines(found) if machines else found

    async def machine(self, resource: str, horizon: str | timedelta = "24h") -> MachineState:
        """Return the state of a resource's machine, and its projected load over a horizon."""
        return await self.ask(dialogues.machine(resource, read_argument("horizon", duration_of, horizon, zero=False)))

    async def machines(
        self, resources: Sequence[Resource], limit_s: Seconds = MACHINES_LIMIT_S
    ) -> tuple[Resource, ...]:
        """Return resources with the states of their machines, which are asked at the same time.

        Those that do not answer within the limit have none, and those that fail have the reason.
        """
        found: dict[str, Resource] = {}

        async def ask(each: Resource) -> None:
            try:
                found[each.address] = replace(each, machine=await self.ask(dialogues.machine(each.address, HOUR)))
            except RampError as error:
                found[each.address] = replace(each, problem=str(error))

        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(limit_s):
                await asyncio.gather(*map(ask, resources))
        return tuple(found.get(each.address, each) for each in resources)


PAUSES_S: Final = (0.5, 1.0, 2.0, 5.0)
"""Pauses before a User Agent that does not answer is asked again, in seconds; the last from then on."""


class EveryUser(ABC):
    """Watches all users of a market; a subclass takes the events."""

    def __init__(self, state: StateFolder) -> None:
        self._state = state
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def keep(self, users: Iterable[str]) -> None:
        """Watch exactly these users from now on; keep the connections of those already watched."""
        wanted = set(users)
        for name in wanted - set(self._tasks):
            self._tasks[name] = asyncio.get_running_loop().create_task(self._follow(name))
        for name in set(self._tasks) - wanted:
            self._tasks.pop(name).cancel()

    async def end(self) -> None:
        """Stop watching; requests continue at the users' agents."""
        tasks = list(self._tasks.values())
        self.keep(())
        await asyncio.gather(*tasks, return_exceptions=True)

    def market(self, user: str) -> AsyncMarket:
        """Return the market as a user, by local name; raises `RampError` if the user is not there."""
        return AsyncMarket(find_market(self._state, user))

    @abstractmethod
    def take(self, user: str, event: Event) -> None:
        """Take an event of a user."""

    async def catch_up(self, market: AsyncMarket) -> None:  # noqa: B027 (optional)
        """Read what happened to a user before a connection; a `RampError` leaves that to the next connection."""

    async def _follow(self, user: str) -> None:
        failures = 0
        while True:
            try:
                market = self.market(user)
                async with aclosing(market.watch()) as events:
                    async for event in events:
                        failures = 0
                        if isinstance(event, Watching):
                            with suppress(RampError):
                                await self.catch_up(market)
                        else:
                            self.take(user, event)
            except RampError as error:
                logging.getLogger(__name__).info("watching %s: %s", user, error)
            except Exception:  # an error here or in the callback must not end the watch
                logging.getLogger(__name__).exception("watching %s", user)
            await asyncio.sleep(PAUSES_S[min(failures, len(PAUSES_S) - 1)])
            failures += 1
