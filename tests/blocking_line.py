"""A connection to an agent whose events a test takes one by one."""

from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path

from anyio.from_thread import BlockingPortal, start_blocking_portal

from ramp.client.access import Line, SocketLine
from ramp.control.events import Event
from ramp.control.requests import Request


class BlockingLine:
    def __init__(self, portal: BlockingPortal, line: Line) -> None:
        self._portal = portal
        self._line = line

    def events(self, request: Request) -> Iterator[Event]:
        """Send a request and yield its events up to and including the last."""
        found = self._line.events(request)
        try:
            while (event := self._portal.call(anext, found, None)) is not None:
                yield event
        finally:
            self._portal.call(found.aclose)


@contextmanager
def connected(agent: Path | Callable[[], Coroutine[object, None, Line]]) -> Iterator[BlockingLine]:
    """Connect to the agent that listens at a control socket, or as a coroutine function does, until the block ends."""
    with start_blocking_portal() as portal:
        line = portal.call(SocketLine.open, agent) if isinstance(agent, Path) else portal.call(agent)
        with portal.wrap_async_context_manager(line):
            yield BlockingLine(portal, line)
