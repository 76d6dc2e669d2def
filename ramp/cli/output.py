"""How results look: JSON, tables, and the texts of times, amounts and durations, each with its unit."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import click

from ramp.model.instant import SECOND, Instant, iso
from ramp.model.money import MINOR_UNITS_PER_CREDIT, credits_text

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

WIDEST: Final = 2000
"""Columns given to a table that is measured; far more than any needs."""

_BARS: Final = "▁▂▃▄▅▆▇█"


def print_json(value: object) -> None:
    """Print one JSON value on standard output."""
    click.echo(json.dumps(value, indent=2, ensure_ascii=False))


def say(text: str) -> None:
    """Print chatter: on standard error, so that results can be piped."""
    click.echo(text, err=True)


def console(*, error: bool = False) -> Console:
    """A rich console that changes nothing of the text it is given."""
    from rich.console import Console

    return Console(stderr=error, highlight=False, markup=False, emoji=False)


def print_table(table: Table, *, error: bool = False) -> None:
    """Print a table as wide as it must be: an id that is cut or folded cannot be copied."""
    from rich.measure import Measurement

    out = console(error=error)
    needed = Measurement.get(out, out.options.update(width=WIDEST), table).maximum
    out.width = max(needed, 20)
    with out.capture() as capture:
        out.print(table)
    for line in capture.get().splitlines():
        click.echo(line.rstrip(), err=error, color=out.is_terminal)


def new_table(*columns: str, right: Sequence[str] = (), title: str | None = None) -> Table:
    """An empty table in the one style of all verbs.

    Args:
        columns: the headings, units included.
        right: those of them whose cells are numbers.
        title: a line above it.
    """
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), title=title, title_justify="left", title_style="bold")
    for column in columns:
        table.add_column(column, justify="right" if column in right else "left", no_wrap=True)
    return table


def print_rows(
    columns: Sequence[str], rows: Sequence[Sequence[object]], *, right: Sequence[str] = (), title: str | None = None
) -> None:
    """Print rows as a table; only the title where there are none."""
    if not rows:
        if title:
            click.echo(title)
        return
    table = new_table(*columns, right=right, title=title)
    for row in rows:
        table.add_row(*(str(cell) for cell in row))
    print_table(table)


@contextmanager
def waiting(what: str) -> Iterator[None]:
    """Show on a terminal that something goes on; does nothing where standard error is none."""
    if not sys.stderr.isatty():
        yield
        return
    with console(error=True).status(what):
        yield


def moment_text(moment: Instant) -> str:
    """An instant for people: ISO 8601 in UTC, whole seconds."""
    return iso(moment - moment % SECOND)


def amount_text(minor_units: int) -> str:
    """An amount for people: `1 234.50 credits`."""
    return f"{credits_text(minor_units)} credits"


def amount_json(minor_units: int) -> float:
    """An amount for JSON, in credits; the nearest double prints as exactly the two decimals."""
    return minor_units / MINOR_UNITS_PER_CREDIT


def price_text(cpu_hour_cost: int) -> str:
    """A price for people."""
    return f"{cpu_hour_cost} credits/core-hour"


def duration_text(duration: int) -> str:
    """A duration for people: `0.25 s`, `1 h 30 min`.

    Args:
        duration: microseconds.
    """
    whole = round(duration / SECOND)
    if whole < 60:
        return f"{duration / SECOND:.{3 if duration < 10 * SECOND else 1}f} s"
    days, rest = divmod(whole, 86_400)
    hours, rest = divmod(rest, 3600)
    minutes, left = divmod(rest, 60)
    parts = ((days, "d"), (hours, "h"), (minutes, "min"), (left, "s"))
    return " ".join(f"{number} {unit}" for number, unit in parts if number)


def count_text(number: int, noun: str) -> str:
    """A number with its noun: `1 offer`, `20 offers`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def bar_text(shares: Sequence[float]) -> str:
    """Shares from 0 to 1 as a line of bars, one character each; a share of nothing is the lowest bar."""
    top = len(_BARS) - 1
    return "".join(_BARS[min(top, max(0, round(share * top)))] for share in shares)


def print_pairs(pairs: Sequence[tuple[str, Any]]) -> None:
    """Print names and values in two columns; empty values are left out."""
    shown = [(name, str(value)) for name, value in pairs if value not in (None, "")]
    width = max((len(name) for name, _ in shown), default=0)
    for name, value in shown:
        click.echo(f"{name:<{width}}  {value}")
