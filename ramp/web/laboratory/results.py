"""An experiment's results as its folder tells them: the papers' values beside ours, pictures and tables.

Any program may have written the folder, so every value is checked before it is shown; what makes no sense is left out
and counted, and results of which not even the summary makes sense are an error of theirs alone.
"""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from itertools import islice
from typing import Any, Final

from ramp.web.laboratory.folder import ResultsError, ResultsFolder

SUMMARY_FILE: Final = "summary.json"
COLUMNS_FILE: Final = "columns.md"
PICTURE_SUFFIX: Final = ".png"
TABLE_SUFFIX: Final = ".csv"

SUMMARY_MAX: Final = 4 << 20
"""Bytes of a summary that is read; those of the largest studies have some 100 000."""

FILE_MAX: Final = 16 << 20
"""Bytes of a picture or table that is shown."""

ROWS_MAX: Final = 2000
"""Rows of a table that are shown; the file has all of them."""

COLUMNS_MAX: Final = 60
"""Columns of a table that are shown."""

TEXT_MAX: Final = 1000
"""Characters of a text that are shown."""

VERDICTS: Final = ("agrees", "DIFFERS", "no number")
"""What a comparison ends with; in brackets behind it stands what it must be read with."""

PNG: Final = b"\x89PNG\r\n\x1a\n"
"""How a PNG file begins (ISO/IEC 15948, 5.2)."""

_UNIT_LINE: Final = re.compile(r"\| `([^`|]+)` \| ([^|]*) \|")


@dataclass(frozen=True, slots=True)
class ComparedRow:
    """A paper's number or sentence beside ours.

    Attributes:
        what: the statement.
        paper: the paper's value, or what it says in words.
        ours: our value; None where it is no number.
        unit: of both.
        agrees_if: what decides the verdict, in words.
        verdict: one of `VERDICTS`, with what it must be read with.
        why: why they differ, or nothing.
        picture: file of the picture that shows it, or nothing.
    """

    what: str
    paper: float | str
    ours: float | None
    unit: str
    agrees_if: str
    verdict: str
    why: str
    picture: str


@dataclass(frozen=True, slots=True)
class ExperimentResult:
    """What an experiment has left behind.

    Attributes:
        name: of the experiment.
        seed: of all that was drawn; None where it is not said.
        quick: whether it was the small version.
        mode: `simulated` or `xmpp` where it has such, or nothing.
        took_s: how long it took, in seconds; None where it is not said.
        rows: the papers' values beside ours.
        pictures: files.
        tables: files.
        notes: sentences of the study's own.
        left_out: rows that make no sense.
    """

    name: str
    seed: int | None
    quick: bool
    mode: str
    took_s: float | None
    rows: tuple[ComparedRow, ...]
    pictures: tuple[str, ...]
    tables: tuple[str, ...]
    notes: tuple[str, ...]
    left_out: int

    def verdicts(self) -> dict[str, int]:
        """How many rows end with each verdict."""
        return {each: sum(row.verdict.startswith(each) for row in self.rows) for each in VERDICTS}

    def rows_of(self, picture: str) -> tuple[ComparedRow, ...]:
        """The rows that a picture shows; of the empty name, those that none shows."""
        return tuple(row for row in self.rows if (row.picture if row.picture in self.pictures else "") == picture)


@dataclass(frozen=True, slots=True)
class ResultTable:
    """A table of an experiment's results.

    Attributes:
        headings: of the columns, with their units where the results say them.
        numbers: of each column, whether it holds numbers only.
        rows: the cells: numbers as such, so that they sort by value; None for a cell that is not there.
        whole: whether these are all rows and columns of the file.
    """

    headings: tuple[str, ...]
    numbers: tuple[bool, ...]
    rows: tuple[tuple[float | int | str | None, ...], ...]
    whole: bool


def read_result(folder: ResultsFolder, name: str) -> ExperimentResult:
    """Read the results of an experiment.

    Raises:
        ResultsError: if there are none, or their summary makes no sense.
    """
    where = f"{name}/{SUMMARY_FILE}"
    try:
        told = json.loads(folder.read(SUMMARY_FILE, SUMMARY_MAX, name))
    except (ValueError, RecursionError) as error:
        raise ResultsError(f"{where} is no JSON: {error}") from error
    if not isinstance(told, dict):
        raise ResultsError(f"{where} is no JSON object, as `ramp experiment run` writes it")
    if told.get("experiment") != name:
        raise ResultsError(f"{where} is of the experiment {_text(told.get('experiment'))!r}, not of {name}")
    given = told.get("comparison")
    rows = [_row(each) for each in given] if isinstance(given, list) else []
    files = folder.files(name)
    parameters = told.get("parameters")
    seed, took = told.get("seed"), told.get("wall_s")
    notes = told.get("notes") if isinstance(told.get("notes"), list) else []
    return ExperimentResult(
        name=name,
        seed=seed if type(seed) is int else None,
        quick=told.get("quick") is True,
        mode=_text(parameters.get("mode")) if isinstance(parameters, dict) else "",
        took_s=_number(took),
        rows=tuple(row for row in rows if row is not None),
        pictures=tuple(each for each in files if each.endswith(PICTURE_SUFFIX)),
        tables=tuple(each for each in files if each.endswith(TABLE_SUFFIX)),
        notes=tuple(_text(each) for each in [*(notes or []), told.get("note")] if isinstance(each, str) and each),
        left_out=rows.count(None),
    )


def read_picture(folder: ResultsFolder, experiment: str, name: str) -> bytes:
    """A picture of an experiment's results.

    Raises:
        ResultsError: if there is no such PNG file.
    """
    content = folder.read(name, FILE_MAX, experiment)
    if not name.endswith(PICTURE_SUFFIX) or not content.startswith(PNG):
        raise ResultsError(f"{experiment}/{name} is no PNG picture")
    return content


def read_table(folder: ResultsFolder, experiment: str, name: str) -> ResultTable:
    """A table of an experiment's results, with the units that they say.

    Raises:
        ResultsError: if there is no such CSV file of UTF-8 text.
    """
    if not name.endswith(TABLE_SUFFIX):
        raise ResultsError(f"{experiment}/{name} is no table of comma-separated values")
    try:
        text = folder.read(name, FILE_MAX, experiment).decode("utf-8")
        read = list(islice(csv.reader(StringIO(text, newline="")), ROWS_MAX + 2))
    except (UnicodeDecodeError, csv.Error) as error:
        raise ResultsError(f"{experiment}/{name} is no table of comma-separated values: {error}") from error
    names, lines = (read[0], read[1:]) if read else ([], [])
    width = min(len(names), COLUMNS_MAX)
    units = _units(folder, experiment, name)
    cells = [[_text(line[at]) if at < len(line) else "" for at in range(width)] for line in lines[:ROWS_MAX]]
    values = [[_value(cell) for cell in line] for line in cells]
    numbers = [
        any(line[at] != "" for line in cells) and all(not isinstance(line[at], str) for line in values)
        for at in range(width)
    ]
    return ResultTable(
        headings=tuple(
            f"{each} ({units[each]})" if units.get(each, each) not in ("", each) else each
            for each in map(_text, names[:width])
        ),
        numbers=tuple(numbers),
        rows=tuple(
            tuple(value if number else cell for value, cell, number in zip(given, line, numbers, strict=True))
            for given, line in zip(values, cells, strict=True)
        ),
        whole=len(lines) <= ROWS_MAX and len(names) <= COLUMNS_MAX,
    )


def _units(folder: ResultsFolder, experiment: str, table: str) -> dict[str, str]:
    """Units of a table's columns, as `columns.md` says them; none where it does not."""
    try:
        text = folder.read(COLUMNS_FILE, SUMMARY_MAX, experiment).decode("utf-8")
    except (ResultsError, UnicodeDecodeError):
        return {}
    found: dict[str, str] = {}
    section = ""
    for line in text.splitlines():
        if line.startswith("## "):
            section = line.removeprefix("## ").strip()
        elif section == table and (matched := _UNIT_LINE.match(line)) is not None:
            found[matched[1]] = _text(matched[2].strip().replace("`", ""))
    return found


def _row(given: object) -> ComparedRow | None:
    if not isinstance(given, Mapping):
        return None
    what, verdict, paper = given.get("what"), given.get("verdict"), given.get("paper")
    if not isinstance(what, str) or not isinstance(verdict, str) or not verdict.startswith(VERDICTS):
        return None
    number = _number(paper)
    if number is None and not isinstance(paper, str):
        return None
    texts: dict[str, Any] = {key: _text(given.get(key)) for key in ("unit", "agrees_if", "why", "picture")}
    return ComparedRow(
        what=_text(what),
        paper=_text(paper) if number is None else number,
        ours=_number(given.get("ours")),
        verdict=_text(verdict),
        **texts,
    )


def _number(value: object) -> float | None:
    """A finite number; whether something is true is none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _value(cell: str) -> float | int | str | None:
    """A cell as a number where it is one; what is not there, or infinite, is None."""
    if cell == "":
        return None
    try:
        return int(cell)
    except ValueError:
        pass
    try:
        number = float(cell)
    except ValueError:
        return cell
    return number if math.isfinite(number) else None


def _text(value: object) -> str:
    return value[:TEXT_MAX] if isinstance(value, str) else ""


def told_rows(rows: Sequence[ComparedRow]) -> list[dict[str, object]]:
    """Rows as a table of the pages has them; numbers as such, so that they sort by value."""
    return [
        {
            "id": number,
            "what": row.what,
            "paper": row.paper,
            "ours": None if row.ours is None else round(row.ours, 4),
            "unit": row.unit,
            "agrees_if": row.agrees_if,
            "verdict": row.verdict,
            "why": row.why,
        }
        for number, row in enumerate(rows)
    ]
