"""A market for programs that wait: the methods of `AsyncMarket`, each of which blocks until the answer is there.

Blocking connections stand behind the asyncio interface, so one implementation serves both kinds of market.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import threading
import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator, Sequence
from types import TracebackType
from typing import Concatenate, ParamSpec, Self, TypeVar

from ramp.client import asyncio_market, dialogues
from ramp.client.access import Access
from ramp.client.asyncio_market import MACHINES_LIMIT_S, AsyncMarket, Seconds
from ramp.client.dialogues import Dialogue
from ramp.client.line import AsyncLine, Line
from ramp.client.machine_state import MachineState
from ramp.client.submission import MarketUser
from ramp.control.events import Event
from ramp.control.requests import Request
from ramp.errors import RampError
from ramp.model.instant import HOUR, Instant
from ramp.options import checked

P = ParamSpec("P")
T = TypeVar("T")


def finish(coroutine: Coroutine[object, None, T]) -> T:
    """Run a coroutine to its end in this thread, without an event loop; all its connections must block."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    raise AssertionError("a blocking connection must not suspend its coroutine")


class OverBlocking:
    """A blocking `Access` as an `AsyncAccess`.

    Args:
        access: the market.
        turn: makes connections answer one after the other, and lets other tasks run between two events. Without it
            the coroutines never suspend; see `finish`.
    """

    def __init__(self, access: Access, turn: asyncio.Lock | None = None) -> None:
        self._access = access
        self._turn = turn

    @property
    def user(self) -> str:
        return self._access.user

    @property
    def domain(self) -> str:
        return self._access.domain

    @property
    def users(self) -> tuple[str, ...]:
        return self._access.users

    def now(self) -> Instant:
        return self._access.now()

    def new_id(self, kind: str) -> str:
        return self._access.new_id(kind)

    async def open_async(self) -> AsyncLine:
        return LineOverBlocking(self._access.open(), self._turn)

    async def reopen_async(self) -> AsyncLine:
        return LineOverBlocking(self._access.reopen(), self._turn)


class LineOverBlocking:
    """A blocking `Line` as an `AsyncLine`; for `turn` see `OverBlocking`."""

    def __init__(self, line: Line, turn: asyncio.Lock | None = None) -> None:
        self._line = line
        self._turn = turn

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._line.__exit__(kind, error, trace)

    async def send(self, request: Request) -> None:
        self._line.send(request)

    async def events(self, request: Request) -> AsyncGenerator[Event, None]:
        async with self._turn or contextlib.nullcontext():
            for event in self._line.events(request):
                yield event
                if self._turn is not None:
                    await asyncio.sleep(0)


def converse(line: Line, dialogue: Dialogue[T]) -> T:
    """Hold a dialogue over a connection; see `ramp.client.asyncio_market.converse`."""
    return finish(asyncio_market.converse(LineOverBlocking(line), dialogue))


@checked
class _BlockingMarket(AsyncMarket):
    """The methods of `AsyncMarket` as coroutines that never suspend."""

    async def _pause(self) -> None:
        time.sleep(asyncio_market.LOOK_AGAIN_S)

    async def machines(
        self,
        names: Sequence[str],
        limit_s: Seconds = MACHINES_LIMIT_S,
        on_failure: Callable[[str, str], None] | None = None,
    ) -> dict[str, MachineState]:
        """Ask many machines at the same time; those that do not answer within a limit in seconds are missing.

        Args:
            names: of the resources.
            limit_s: seconds.
            on_failure: called with the name of each machine that fails, and the reason.
        """
        found: dict[str, MachineState] = {}

        def ask(name: str) -> None:
            try:
                found[name] = finish(self.ask(dialogues.machine(name, HOUR)))
            except (RampError, OSError) as error:
                if on_failure is not None:
                    on_failure(name, str(error))

        threads = [threading.Thread(target=ask, args=(name,), daemon=True) for name in names]
        for thread in threads:
            thread.start()
        end = time.monotonic() + limit_s
        for thread in threads:
            thread.join(max(0.0, end - time.monotonic()))
        return dict(found)


def _blocking(
    method: Callable[Concatenate[_BlockingMarket, P], Coroutine[object, None, T]],
) -> Callable[Concatenate[Market, P], T]:
    """Make a blocking method of a coroutine method, with its signature and docstring."""

    @functools.wraps(method)
    def blocking(self: Market, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return finish(method(self._as_async, *args, **kwargs))

    blocking.__module__, blocking.__qualname__ = __name__, f"Market.{method.__name__}"
    return blocking


def _iterating(
    method: Callable[Concatenate[_BlockingMarket, P], AsyncGenerator[T, None]],
) -> Callable[Concatenate[Market, P], Iterator[T]]:
    """Make a blocking iterator of an asynchronous one, with its signature and docstring."""

    @functools.wraps(method)
    def iterating(self: Market, /, *args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
        found = method(self._as_async, *args, **kwargs)
        try:
            while True:
                yield finish(anext(found))
        except StopAsyncIteration:
            return
        finally:
            finish(found.aclose())

    iterating.__module__, iterating.__qualname__ = __name__, f"Market.{method.__name__}"
    return iterating


class Market(MarketUser[Access]):
    """A market as one of its users; `ramp.connect` and `ramp.launch` make one, and a `with` block closes it.

    Nothing stays open between two calls. For errors see `AsyncMarket`.

    Args:
        access: where the market is.
        close: called when the block ends.
    """

    def __init__(self, access: Access, close: Callable[[], None] = lambda: None) -> None:
        super().__init__(access)
        self._as_async = _BlockingMarket(OverBlocking(access))
        self._close = close

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stop a market of `ramp.launch`; disconnect from a market of `ramp.connect`."""
        self._close()

    submit = _blocking(AsyncMarket.submit)
    quote = _blocking(AsyncMarket.quote)
    follow = _blocking(AsyncMarket.follow)

    watch = _iterating(AsyncMarket.watch)

    reservations = _blocking(AsyncMarket.reservations)
    requests = _blocking(AsyncMarket.requests)
    cancel = _blocking(AsyncMarket.cancel)
    resize = _blocking(AsyncMarket.resize)
    resize_together = _blocking(AsyncMarket.resize_together)
    balance = _blocking(AsyncMarket.balance)
    statement = _blocking(AsyncMarket.statement)

    launch = _blocking(AsyncMarket.launch)
    jobs = _blocking(AsyncMarket.jobs)
    job = _blocking(AsyncMarket.job)
    job_output = _blocking(AsyncMarket.job_output)
    job_files = _blocking(AsyncMarket.job_files)
    fetch_job = _blocking(AsyncMarket.fetch_job)
    follow_job = _iterating(AsyncMarket.follow_job)
    wait_job = _blocking(AsyncMarket.wait_job)
    cancel_job = _blocking(AsyncMarket.cancel_job)

    resources = _blocking(AsyncMarket.resources)
    machine = _blocking(AsyncMarket.machine)
    machines = _blocking(_BlockingMarket.machines)

    def ask(self, dialogue: Dialogue[T]) -> T:
        """See `AsyncMarket.ask`."""
        return finish(self._as_async.ask(dialogue))
