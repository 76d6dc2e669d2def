"""How results look: JSON, tables, and the texts of times, amounts and durations, each with its unit.

This is the one place where text gets to a terminal: hidden characters of others are written as escapes, never obeyed.
"""

from __future__ import annotations

import json
import os
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from typing import TYPE_CHECKING, Any, Final, TextIO

import click

from ramp.model.instant import SECOND, Instant, local_iso, with_local_times
from ramp.model.money import credits_text
from ramp.text import visible

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

WIDEST: Final = 2000
"""Columns given to a table that is measured; far more than any needs."""

LEAST: Final = 20
"""Columns given to a table at least."""

PROSE_LEAST: Final = 16
"""Columns that prose has in a narrow table at least."""

JSON: Final = "ramp.json"
"""Key in the metadata of a command's context if it was given `--json`."""

_BARS: Final = "▁▂▃▄▅▆▇█"


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


@contextmanager
def visible_output() -> Iterator[None]:
    """Let everything that this process prints pass through `VisibleStream`."""
    # Where a program calls `main` within itself, this may be the second time; an escape is not escaped again.
    with redirect_stdout(VisibleStream(raw_stream())), redirect_stderr(VisibleStream(raw_stream(error=True))):
        yield


def raw_stream(*, error: bool = False) -> TextIO:
    """Return the stream for text with this program's own escape sequences, which has been made visible before."""
    stream: Any = sys.stderr if error else sys.stdout
    return stream.raw if isinstance(stream, VisibleStream) else stream


def console(*, error: bool = False) -> Console:
    """Make a rich console that styles its text, but changes nothing of it except hidden characters."""
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.segment import Segment

    class VisibleConsole(Console):
        def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
            for text, style, control in super().render(renderable, options):
                yield Segment(text if control else visible(text), style, control)

    file = raw_stream(error=error)
    return VisibleConsole(file=file, stderr=error, highlight=False, markup=False, emoji=False)


def print_json(value: object) -> None:
    """Print one JSON value on standard output."""
    click.echo(json.dumps(value, indent=2, ensure_ascii=False))


def wants_json() -> bool:
    """Return whether the command was given `--json`."""
    context = click.get_current_context(silent=True)
    return context is not None and JSON in context.meta


def printed_as_json(value: object) -> bool:
    """Print a value as JSON if the command was given `--json`; return whether it was."""
    if wants_json():
        print_json(value)
    return wants_json()


def print_object(shown: Mapping[str, object]) -> None:
    """Print an object in JSON, or as pairs whose names are its keys in words."""
    if not printed_as_json(shown):
        print_pairs([(key.replace("_", " ").capitalize(), value) for key, value in shown.items()])


def say(text: str) -> None:
    """Print a message on standard error, so that results can be piped; a terminal wraps it at words."""
    is_terminal = sys.stderr.isatty()
    room = console(error=True).width if is_terminal else WIDEST
    with suppress(OSError):  # a message that cannot be shown must not end what it is about
        for line in _broken(text, room, is_terminal):
            click.echo(line, err=True)


def print_line(text: str, *, indent: int = 0) -> None:
    """Print a sentence as a result; a terminal wraps it at words and indents further lines by `indent` columns."""
    out = console()
    for line in _broken(text, out.width, out.is_terminal, indent):
        click.echo(line)


def _broken(text: str, room: int, is_terminal: bool, indent: int = 0) -> list[str]:
    """Wrap a text at words on a terminal; an id is never cut."""
    lines = []
    for line in with_local_times(text).split("\n"):
        if not is_terminal or len(line) <= room:
            lines.append(line)
        else:
            lines += textwrap.wrap(
                line, room, subsequent_indent=" " * indent, break_long_words=False, break_on_hyphens=False
            )
    return lines


def silence_output() -> None:
    """Send further standard output nowhere, because its reader has closed it."""
    with suppress(ValueError):  # of a stream without a file
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def new_table(
    *columns: str, right: Sequence[str] = (), wrap: Sequence[str] = (), title: str | None = None, narrow: bool = False
) -> Table:
    """Make an empty table; `right` and `wrap` name columns of numbers and of prose, `narrow` saves width."""
    from rich.table import Table

    table = Table(
        box=None,
        pad_edge=False,
        padding=(0, 1 if narrow else 2, 0, 0),
        title=title,
        title_justify="left",
        title_style="bold",
    )
    for column in columns:
        table.add_column(
            column.replace(" (", "\n(") if narrow else column,
            justify="right" if column in right else "left",
            no_wrap=column not in wrap,
            min_width=PROSE_LEAST if column in wrap else None,
        )
    return table


def print_rows(
    columns: Sequence[str],
    rows: Sequence[Sequence[object]],
    *,
    right: Sequence[str] = (),
    wrap: Sequence[str] = (),
    title: str | None = None,
    error: bool = False,
) -> None:
    """Print rows as a table, or only the title if there are no rows.

    A cut or folded id cannot be copied, so a table in a pipe is as wide as necessary. On a narrower terminal its
    columns draw together, then prose takes several lines, and as a last resort each row becomes a paragraph.

    Args:
        columns: the headings, units included.
        rows: the cells.
        right: headings of the columns that hold numbers.
        wrap: headings of the columns that hold prose.
        title: a line above it.
        error: print on standard error.
    """
    from rich.measure import Measurement

    if not rows:
        if title:
            click.echo(title, err=error)
        return
    out = console(error=error)
    room = out.width if out.is_terminal else WIDEST
    for narrow, prose in dict.fromkeys((narrow, tuple(prose)) for prose in ((), wrap) for narrow in (False, True)):
        table = new_table(*columns, right=right, wrap=prose, title=title, narrow=narrow)
        for row in rows:
            table.add_row(*(with_local_times(str(cell)) for cell in row))
        measured = Measurement.get(out, out.options.update(width=WIDEST), table)
        if (measured.minimum if prose else measured.maximum) <= room:
            out.width = min(max(measured.maximum, LEAST), room)
            with out.capture() as capture:
                out.print(table)
            for line in capture.get().splitlines():
                click.echo(line.rstrip(), raw_stream(error=error), color=out.is_terminal)
            return
    _print_paragraphs(columns, rows, title, error)


def _print_paragraphs(columns: Sequence[str], rows: Sequence[Sequence[object]], title: str | None, error: bool) -> None:
    """Print rows as paragraphs with one cell a line, without empty cells."""
    if title:
        click.echo(title, err=error)
    for number, row in enumerate(rows):
        if number:
            click.echo("", err=error)
        print_pairs(tuple(zip(columns, row, strict=True)), error=error)


@contextmanager
def waiting(what: str) -> Iterator[Callable[[str], None]]:
    """Show on a terminal that the program waits, and for what; yields a function that changes the text."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    with console(error=True).status(what) as shown:
        yield shown.update


def moment_text(moment: Instant) -> str:
    """Format an instant: ISO 8601 in the zone of this computer, whole seconds."""
    return local_iso(moment)


def amount_text(minor_units: int) -> str:
    """Format an amount: `1 234.50 credits`."""
    return f"{credits_text(minor_units)} credits"


def price_text(cpu_hour_cost: int) -> str:
    """Format a price."""
    return f"{cpu_hour_cost} credits/core-hour"


def duration_text(duration: int) -> str:
    """Format a duration in microseconds: `0.25 s`, `1 h 30 min`."""
    whole = round(duration / SECOND)
    if whole < 60:
        return f"{duration / SECOND:.{3 if duration < 10 * SECOND else 1}f} s"
    days, rest = divmod(whole, 86_400)
    hours, rest = divmod(rest, 3600)
    minutes, left = divmod(rest, 60)
    parts = ((days, "d"), (hours, "h"), (minutes, "min"), (left, "s"))
    return " ".join(f"{number} {unit}" for number, unit in parts if number)


def count_text(number: int, noun: str) -> str:
    """Format a number with its noun: `1 offer`, `20 offers`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def bar_text(shares: Sequence[float]) -> str:
    """Format shares from 0 to 1 as a line of bars, one character each."""
    top = len(_BARS) - 1
    return "".join(_BARS[min(top, max(0, round(share * top)))] for share in shares)


def print_pairs(pairs: Sequence[tuple[str, object]], *, error: bool = False) -> None:
    """Print names and values in two columns; empty values are left out.

    On a terminal a value of many words takes as many lines as it needs; no word is cut, for it may be an id.
    """
    shown = [(name, str(value)) for name, value in pairs if value not in (None, "")]
    width = max((len(name) for name, _ in shown), default=0)
    out = console(error=error)
    room = max(out.width - width - 2, LEAST)
    for name, value in shown:
        for number, line in enumerate(_broken(value, room, out.is_terminal)):
            click.echo(f"{'' if number else name:<{width}}  {line}", err=error)
