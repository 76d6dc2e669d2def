"""Results of experiments, as `ramp experiment run ... --out DIR` writes them: folders, and the page of one of them."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from nicegui import ui
from starlette.requests import Request
from starlette.responses import FileResponse, PlainTextResponse, Response
from starlette.routing import Route

from ramp.errors import DocumentError
from ramp.web.pages import frame
from ramp.web.pages.frame import Visit
from ramp.web.pages.laboratory.runs import SUMMARY_FILE
from ramp.web.pages.row_tables import Column, Kind, RowTable

PICTURE: Final = ".png"
TABLE: Final = ".csv"

ROWS_MAX: Final = 2000
"""Rows of a table that are shown; the downloaded file has all of them."""

_COLUMN: Final = re.compile(r"^\| `(.+?)` \| (.*?) \|", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Result:
    """The folder of an experiment's results, and the contents of its `summary.json`."""

    path: Path
    summary: Mapping[str, Any]

    @property
    def version(self) -> str:
        """Size, mode and seed of the study, in words."""
        mode = self.summary["parameters"].get("mode")
        size = "quick version" if self.summary["quick"] else "full version"
        return ", ".join([size, *([mode] if mode else []), f"seed {self.summary['seed']}"])

    @property
    def notes(self) -> list[str]:
        """Remarks of the study on its results."""
        return [*self.summary.get("notes", []), *([self.summary["note"]] if "note" in self.summary else [])]

    def files(self, suffix: str) -> list[str]:
        """Names of the study's files with an ending."""
        return [name for name in self.summary["files"] if name.endswith(suffix)]

    def rows(self, picture: str = "") -> list[Mapping[str, Any]]:
        """Comparisons with the paper that `picture` shows, or that no picture shows."""
        pictures = self.files(PICTURE)
        return [
            row
            for row in self.summary["comparison"]
            if (row["picture"] if row["picture"] in pictures else "") == picture
        ]


def experiments_in(folder: Path) -> list[str]:
    """Names of the experiments with results in a folder, which need not exist."""
    found = (path.parent.name for path in folder.glob(f"*/{SUMMARY_FILE}"))
    return sorted(name for name in found if not name.startswith("."))  # a hidden folder is a run's unfinished work


def read_result(folder: Path, experiment: str) -> Result:
    """Read the results of an experiment.

    Args:
        folder: of all results.
        experiment: its name, which may come from a browser.

    Raises:
        DocumentError: if there are no such results, or their summary is not JSON.
    """
    if experiment not in experiments_in(folder):
        raise DocumentError(f"no results of the experiment {experiment}; `ramp experiment run` writes them")
    path = folder / experiment
    try:
        return Result(path, json.loads((path / SUMMARY_FILE).read_text("utf-8")))
    except ValueError as error:
        raise DocumentError(f"not JSON: {error}", source=f"{experiment}/{SUMMARY_FILE}") from error


def read_table(result: Result, name: str) -> tuple[list[str], list[list[float | str | None]], bool]:
    """Read headings with units and first rows of a CSV file (None for an empty cell), and whether these are all."""
    with (result.path / name).open(encoding="utf-8", newline="") as stream:
        reader = csv.reader(stream)
        names = next(reader, [])
        rows = [[_value(cell) for cell in line] for line in islice(reader, ROWS_MAX)]
        complete = next(reader, None) is None
    units = _units(result, name)
    headings = [f"{each} ({units[each]})" if units.get(each, "") not in ("", each) else each for each in names]
    return headings, rows, complete


def _units(result: Result, table: str) -> Mapping[str, str]:
    """The unit of each column of a table, as `columns.md` states it."""
    section = (result.path / "columns.md").read_text("utf-8").partition(f"## {table}\n")[2].partition("\n## ")[0]
    return {column: unit.replace("`", "") for column, unit in _COLUMN.findall(section)}


def _value(cell: str) -> float | str | None:
    for kind in (int, float):
        try:
            return kind(cell)
        except ValueError:
            continue
    return cell or None


def files_route(folder: Path) -> Route:
    """The route by which browsers fetch pictures and tables from the folder of all results."""

    async def answer(request: Request) -> Response:
        name = request.path_params["name"]
        try:
            result = read_result(folder, request.path_params["experiment"])
        except DocumentError as error:
            return PlainTextResponse(f"{error}\n", status_code=404)
        if name not in (*result.files(PICTURE), *result.files(TABLE)):
            return PlainTextResponse("no such picture or table\n", status_code=404)
        return FileResponse(result.path / name)

    return Route("/laboratory/files/{experiment}/{name}", answer, methods=["GET"])


async def build(visit: Visit) -> None:
    """Fill the page."""
    name = visit.request.path_params["experiment"]
    frame.heading(f"Experiment {name}")
    result = read_result(visit.site.results, name)
    ui.label(f"{result.version}; {result.summary['wall_s']:.0f} s.").classes("ramp-quiet ramp-number")
    for note in result.notes:
        ui.label(note)
    for picture in result.files(PICTURE):
        with frame.card():
            _draw_picture(result, picture)
    rest = result.rows()
    if rest:
        with frame.card("Comparisons without a figure"):
            _draw_rows(rest)
    tables = result.files(TABLE)
    if tables:
        with frame.card("Tables"):
            choice = ui.select(tables, value=tables[0], label="Table").style("width: 18rem; max-width: 100%")
            shown = ui.element("div").classes("full-width")
            choice.on_value_change(lambda told: _draw_table(result, told.value, shown))
            _draw_table(result, tables[0], shown)


def _address(result: Result, name: str) -> str:
    return quote(f"/laboratory/files/{result.path.name}/{name}")


def _draw_picture(result: Result, name: str) -> None:
    frame.subheading(name)
    rows = result.rows(name)
    image = ui.element("img").style("max-width: 100%; height: auto; background: #fff; border-radius: 8px")
    image.props["src"] = _address(result, name)
    image.props["alt"] = f"Figure {name}; comparisons in the table below: {len(rows)}"
    if rows:
        _draw_rows(rows)
    else:
        ui.label("No paper states a number for this figure.").classes("ramp-quiet")


def _draw_rows(rows: Sequence[Mapping[str, Any]]) -> None:
    columns = (
        Column("Statement", itemgetter("what")),
        Column("Paper", itemgetter("paper"), Kind.NUMBER),
        Column("Ours", lambda row: round(row["ours"], 4), Kind.NUMBER),
        Column("Unit", itemgetter("unit")),
        Column("Agrees if", itemgetter("agrees_if")),
        Column("Verdict", itemgetter("verdict"), Kind.VERDICT),
        Column("Reason", itemgetter("why")),
    )
    RowTable(columns, rows).props("wrap-cells").classes("ramp-compared")


def _draw_table(result: Result, name: str, place: ui.element) -> None:
    headings, rows, complete = read_table(result, name)
    columns = [
        Column(heading, itemgetter(at), Kind.TEXT if any(isinstance(row[at], str) for row in rows) else Kind.NUMBER)
        for at, heading in enumerate(headings)
    ]
    place.clear()
    with place:
        if not complete:
            ui.label(f"The first {len(rows)} rows; download the file for all.").classes("ramp-quiet")
        RowTable(columns, rows, empty="No rows.")
        ui.link(f"Download {name}", _address(result, name)).props("download")
