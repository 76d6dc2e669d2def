"""A market for programs that wait: the methods of `AsyncMarket`, each of which blocks until the answer is there.

Coroutines run in an event loop of another thread, also where this thread has a loop. Their callbacks are called in the
thread that waits, and Ctrl-C there cancels the coroutine. Nothing stays open between two calls.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import functools
import queue
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Concatenate, Final, ParamSpec, TypeVar

from anyio.abc import TaskStatus
from anyio.from_thread import BlockingPortal, start_blocking_portal

from ramp.client.access import Access, SocketLine
from ramp.client.asyncio_market import AsyncMarket
from ramp.client.dialogues import Dialogue, converse
from ramp.client.submission import MarketUser

P = ParamSpec("P")
T = TypeVar("T")

_END: Final = object()


def call(function: Callable[P, Coroutine[object, None, T]], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a coroutine function to its end; returns its result.

    Raises:
        KeyboardInterrupt: for Ctrl-C, unless the coroutine returns a result all the same.
    """
    waiting = _Waiting()
    with start_blocking_portal() as portal:
        given: Any = [waiting.called_here(each) for each in args]
        named: Any = {name: waiting.called_here(each) for name, each in kwargs.items()}
        return waiting.result_of(portal, lambda: function(*given, **named))


def iterate(function: Callable[P, AsyncGenerator[T, None]], /, *args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
    """Iterate over an asynchronous generator.

    Raises:
        KeyboardInterrupt: for Ctrl-C.
    """
    waiting = _Waiting()
    found = function(*args, **kwargs)

    async def following() -> Any:
        return await anext(found, _END)

    with start_blocking_portal() as portal:
        try:
            while (each := waiting.result_of(portal, following)) is not _END:
                yield each
        finally:
            portal.call(found.aclose)


def ask(path: Path, dialogue: Dialogue[T]) -> T:
    """Hold a dialogue with the agent that listens at a control socket.

    Raises:
        RampError: from the dialogue or the connection.
    """

    async def held() -> T:
        async with await SocketLine.open(path) as line:
            return await converse(line, dialogue)

    return call(held)


class _Waiting:
    """A thread that waits for coroutines in another one."""

    def __init__(self) -> None:
        self._work: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._answer: concurrent.futures.Future[object] | None = None

    def called_here(self, value: Any) -> Any:
        """Return a callback that the waiting thread executes, while the loop waits; other values stay as they are."""
        if not callable(value):
            return value

        def callback(*args: object) -> object:
            answer: concurrent.futures.Future[object] = concurrent.futures.Future()

            def work() -> None:
                if answer.done():  # Ctrl-C came first
                    return
                try:
                    answer.set_result(value(*args))
                except Exception as error:  # for the coroutine to handle or to raise
                    answer.set_exception(error)

            self._answer = answer
            self._work.put(work)
            return answer.result()

        return callback

    def result_of(self, portal: BlockingPortal, function: Callable[[], Coroutine[object, None, T]]) -> T:
        async def run(*, task_status: TaskStatus[asyncio.Task[Any] | None]) -> T:
            task_status.started(asyncio.current_task())
            return await function()

        future: concurrent.futures.Future[T]
        future, task = portal.start_task(run)
        future.add_done_callback(lambda _: self._work.put(lambda: None))
        while True:
            try:
                while not future.done():
                    self._work.get()()
                return future.result()
            except KeyboardInterrupt:
                if future.done():
                    raise
                self._cancel(task)
            except concurrent.futures.CancelledError:
                raise KeyboardInterrupt from None

    def _cancel(self, task: asyncio.Task[Any]) -> None:
        """Cancel a coroutine, which waits for a callback or for something else."""
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(asyncio.CancelledError())
        else:
            task.get_loop().call_soon_threadsafe(task.cancel)


def _blocking(
    method: Callable[Concatenate[AsyncMarket, P], Coroutine[object, None, T]],
) -> Callable[Concatenate[Market, P], T]:
    """Make a blocking method of a coroutine method, with its signature and docstring."""

    @functools.wraps(method)
    def blocking(self: Market, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return call(method, self._as_async, *args, **kwargs)

    blocking.__module__, blocking.__qualname__ = __name__, f"Market.{method.__name__}"
    return blocking


def _iterating(
    method: Callable[Concatenate[AsyncMarket, P], AsyncGenerator[T, None]],
) -> Callable[Concatenate[Market, P], Iterator[T]]:
    """Make a blocking iterator of an asynchronous one, with its signature and docstring."""

    @functools.wraps(method)
    def iterating(self: Market, /, *args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
        return iterate(method, self._as_async, *args, **kwargs)

    iterating.__module__, iterating.__qualname__ = __name__, f"Market.{method.__name__}"
    return iterating


class Market(MarketUser, contextlib.AbstractContextManager["Market"]):
    """A market as one of its users; `ramp.connect` and `ramp.launch` make one, and a `with` block closes it.

    Nothing stays open between two calls. Callbacks are called in the thread of the call. For errors see `AsyncMarket`.
    """

    def __init__(self, access: Access, close: Callable[[], None] = lambda: None) -> None:
        super().__init__(access)
        self._as_async = AsyncMarket(access)
        self._close = close

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
        return call(self._as_async.ask, dialogue)
