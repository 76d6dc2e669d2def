"""Fields of what a verb shows: one declaration gives the object in JSON, the row in CSV, the table and the pairs."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

import click

from ramp.cli.views.output import amount_text, duration_text, moment_text, print_pairs, print_rows, printed_as_json
from ramp.model.instant import from_datetime, iso, seconds
from ramp.model.money import credits_decimal, credits_text

T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)


def _same(value: object) -> object:
    return value


@dataclass(frozen=True, slots=True)
class Kind:
    """How values of a kind look: `plain` in JSON and CSV, `text` for people. None is null, and an empty text."""

    plain: Callable[[Any], object] = _same
    text: Callable[[Any], object] = _same
    is_number: bool = False
    is_prose: bool = False


TEXT: Final = Kind()
PROSE: Final = Kind(is_prose=True)
NUMBER: Final = Kind(is_number=True)
MOMENT: Final = Kind(iso, moment_text)
DATETIME: Final = Kind(lambda value: iso(from_datetime(value)), lambda value: moment_text(from_datetime(value)))
DURATION: Final = Kind(seconds, duration_text, is_number=True)
AMOUNT: Final = Kind(credits_decimal, credits_text, is_number=True)
"""An amount whose heading names the unit."""

CREDITS: Final = Kind(credits_decimal, amount_text)
"""An amount whose text names the unit."""


def address(short: Callable[[str], str]) -> Kind:
    """Return the kind of agents' names, which are shortened for people."""
    return Kind(text=short)


@dataclass(frozen=True, slots=True)
class Field(Generic[T_contra]):
    """One value of what is shown.

    Attributes:
        key: its name in JSON and CSV; empty where only people see it.
        heading: its heading or name for people; empty where only programs see it.
        of: finds the value.
        kind: how it looks.
        text: its text for people, where that is not the kind's.
        shown_if: whether a table has the column: one row for which this holds is enough.
    """

    key: str
    heading: str
    of: Callable[[T_contra], Any]
    kind: Kind = TEXT
    text: Callable[[T_contra], object] | None = None
    shown_if: Callable[[T_contra], bool] | None = None

    def plain(self, shown: T_contra) -> object:
        """Return the value for JSON and CSV."""
        value = self.of(shown)
        return None if value is None else self.kind.plain(value)

    def words(self, shown: T_contra) -> object:
        """Return the value for people."""
        if self.text is not None:
            return self.text(shown)
        value = self.of(shown)
        return "" if value is None else self.kind.text(value)


class Fields(Generic[T]):
    """The fields of one kind of thing, in the order in which they are shown."""

    def __init__(self, *fields: Field[T]) -> None:
        self._keys = [each for each in fields if each.key]
        self._headings = [each for each in fields if each.heading]

    def plain(self, shown: T) -> dict[str, object]:
        """Convert to JSON types."""
        return {each.key: each.plain(shown) for each in self._keys}

    def nothing(self) -> dict[str, object]:
        """Return the object of something unknown: null for each key."""
        return dict.fromkeys(each.key for each in self._keys)

    def print_csv(self, rows: Sequence[T]) -> None:
        """Print rows as CSV with a header; None is an empty field."""
        text = io.StringIO()
        writer = csv.DictWriter(text, [each.key for each in self._keys], lineterminator="\n")
        writer.writeheader()
        writer.writerows(map(self.plain, rows))
        click.echo(text.getvalue(), nl=False)

    def print_pairs(self, shown: T) -> None:
        """Print names and values, one field a line; empty ones are left out."""
        print_pairs([(each.heading, each.words(shown)) for each in self._headings])

    def print_table(self, rows: Sequence[T], *, title: str | None = None, error: bool = False) -> None:
        columns = [each for each in self._headings if each.shown_if is None or any(map(each.shown_if, rows))]
        print_rows(
            [each.heading for each in columns],
            [[each.words(row) for each in columns] for row in rows],
            right=[each.heading for each in columns if each.kind.is_number],
            wrap=[each.heading for each in columns if each.kind.is_prose],
            title=title,
            error=error,
        )

    def print_one(self, shown: T) -> None:
        """Print one thing as an object in JSON, or as pairs."""
        if not printed_as_json(self.plain(shown)):
            self.print_pairs(shown)

    def print_list(self, rows: Sequence[T], *, empty: str = "") -> None:
        """Print a list in JSON, or as a table; where it is empty, a sentence that says so."""
        if printed_as_json([self.plain(row) for row in rows]):
            return
        if empty and not rows:
            click.echo(empty)
        else:
            self.print_table(rows)
