"""The one place where text gets to a terminal: hidden characters of others are written as escapes, never obeyed."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, TextIO

from ramp.text import visible

if TYPE_CHECKING:
    from rich.console import Console


class VisibleStream:
    """A text stream that writes hidden characters as escapes; `raw` is the stream below."""

    def __init__(self, raw: TextIO) -> None:
        self.raw = raw

    def write(self, text: str) -> int:
        self.raw.write(visible(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.raw, name)


@contextlib.contextmanager
def visible_output() -> Iterator[None]:
    """Let everything that this process prints pass through `VisibleStream`."""
    # Where a program calls `main` within itself, this may be the second time; an escape is not escaped again.
    with (
        contextlib.redirect_stdout(VisibleStream(raw_stream())),
        contextlib.redirect_stderr(VisibleStream(raw_stream(error=True))),
    ):
        yield


def raw_stream(*, error: bool = False) -> TextIO:
    """Return the stream for text with this program's own escape sequences, which has been made visible before."""
    stream: Any = sys.stderr if error else sys.stdout
    return stream.raw if isinstance(stream, VisibleStream) else stream


def console(*, error: bool = False, width: int | None = None) -> Console:
    """Make a rich console that styles its text, but changes nothing of it except hidden characters."""
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.segment import Segment

    class VisibleConsole(Console):
        def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
            for text, style, control in super().render(renderable, options):
                yield Segment(text if control else visible(text), style, control)

    file = raw_stream(error=error)
    return VisibleConsole(file=file, stderr=error, width=width, highlight=False, markup=False, emoji=False)
