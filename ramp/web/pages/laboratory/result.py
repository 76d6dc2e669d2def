"""The results of one experiment: each figure beside the paper's values and verdicts, and the tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any
from urllib.parse import quote

from nicegui import ui

from ramp.web.laboratory.results import PICTURE, TABLE, Result, read_result, read_table
from ramp.web.pages import frame
from ramp.web.pages.row_tables import Column, Kind, table
from ramp.web.pages.visit import Visit


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
        with frame.card():
            frame.subheading("Comparisons without a figure")
            _draw_rows(rest)
    tables = result.files(TABLE)
    if tables:
        with frame.card():
            frame.subheading("Tables")
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
    table(columns, rows).drawn.props("wrap-cells").classes("ramp-compared")


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
        table(columns, rows, empty="No rows.")
        ui.link(f"Download {name}", _address(result, name)).props("download")
