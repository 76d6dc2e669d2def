"""A market for programs that wait: the methods of `AsyncMarket`, each of which blocks until the answer is there."""

from __future__ import annotations

import functools
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator
from types import TracebackType
from typing import Concatenate, ParamSpec, Self, TypeVar

from ramp.client import portal
from ramp.client.access import Access
from ramp.client.asyncio_market import AsyncMarket
from ramp.client.dialogues import Dialogue
from ramp.client.submission import MarketUser

P = ParamSpec("P")
T = TypeVar("T")


def _blocking(
    method: Callable[Concatenate[AsyncMarket, P], Coroutine[object, None, T]],
) -> Callable[Concatenate[Market, P], T]:
    """Make a blocking method of a coroutine method, with its signature and docstring."""

    @functools.wraps(method)
    def blocking(self: Market, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return portal.call(method, self._as_async, *args, **kwargs)

    blocking.__module__, blocking.__qualname__ = __name__, f"Market.{method.__name__}"
    return blocking


def _iterating(
    method: Callable[Concatenate[AsyncMarket, P], AsyncGenerator[T, None]],
) -> Callable[Concatenate[Market, P], Iterator[T]]:
    """Make a blocking iterator of an asynchronous one, with its signature and docstring."""

    @functools.wraps(method)
    def iterating(self: Market, /, *args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
        return portal.iterate(method, self._as_async, *args, **kwargs)

    iterating.__module__, iterating.__qualname__ = __name__, f"Market.{method.__name__}"
    return iterating


class Market(MarketUser):
    """A market as one of its users; `ramp.connect` and `ramp.launch` make one, and a `with` block closes it.

    Nothing stays open between two calls. Callbacks are called in the thread of the call. For errors see `AsyncMarket`.

    Args:
        access: where the market is.
        close: called when the block ends.
    """

    def __init__(self, access: Access, close: Callable[[], None] = lambda: None) -> None:
        super().__init__(access)
        self._as_async = AsyncMarket(access)
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
    buy_quote = _blocking(AsyncMarket.buy_quote)
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
    machines = _blocking(AsyncMarket.machines)

    def ask(self, dialogue: Dialogue[T]) -> T:
        """See `AsyncMarket.ask`."""
        return portal.call(self._as_async.ask, dialogue)
