"""Runs coroutines for programs that wait: in an event loop of another thread, also where this thread has a loop.

Callbacks of the coroutine are called in the thread that waits for it, and Ctrl-C there cancels the coroutine. Nothing
stays open between two calls.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import queue
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any, Final, ParamSpec, TypeVar

from anyio.abc import TaskStatus
from anyio.from_thread import BlockingPortal, start_blocking_portal

from ramp.client.dialogues import Dialogue, converse
from ramp.client.line import SocketLine

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
