"""One experiment's results: each picture beside the papers' values and verdicts, and its tables to sort."""

from __future__ import annotations

import asyncio

from nicegui import ui

from ramp.web.laboratory.folder import ResultsError, ResultsFolder
from ramp.web.laboratory.results import (
    ROWS_MAX,
    ComparedRow,
    ExperimentResult,
    ResultTable,
    read_result,
    read_table,
    told_rows,
)
from ramp.web.pages import frame
from ramp.web.pages.laboratory.overview import version_text
from ramp.web.pages.tables import Column, table
from ramp.web.pages.visit import Visit

ROWS = (
    Column("what", "Statement"),
    Column("paper", "Paper", right=True),
    Column("ours", "Here", right=True),
    Column("unit", "Unit"),
    Column("agrees_if", "Agrees if"),
    Column("verdict", "Verdict"),
    Column("why", "Why"),
)

VERDICT_CELL = """<q-td :props="props"><span :class="props.value.startsWith('agrees') ? 'ramp-good'
 : props.value.startsWith('DIFFERS') ? 'ramp-bad' : 'ramp-quiet'">{{ props.value }}</span></q-td>"""
"""A verdict in its colour, and in its word for whoever sees no colours."""


async def build(visit: Visit) -> None:
    """Fill the page."""
    folder = visit.site.laboratory.folder
    name = visit.request.path_params["experiment"]
    frame.heading(f"Experiment {name}")
    result = await asyncio.to_thread(read_result, folder, name)
    took = "" if result.took_s is None else f"; it took {result.took_s:.0f} s"
    ui.label(f"{version_text(result)}{took}.").classes("ramp-quiet ramp-number")
    for note in result.notes:
        ui.label(note)
    if result.left_out:
        ui.label(f"{result.left_out} rows of the comparison make no sense and are left out.").classes("ramp-wait")
    for picture in result.pictures:
        _build_picture(result, picture)
    rest = result.rows_of("")
    if rest:
        with frame.card():
            frame.subheading("What no picture shows")
            _build_rows(rest)
    if result.tables:
        with frame.card():
            await _Tables(folder, result).build()


def _build_picture(result: ExperimentResult, name: str) -> None:
    with frame.card():
        frame.subheading(name)
        rows = result.rows_of(name)
        told = f"{len(rows)} rows of the table below are about it" if rows else "no paper states a number of it"
        ui.element("img").props(f'src="/laboratory/files/{result.name}/{name}" alt="Picture {name}; {told}"').style(
            "max-width: 100%; height: auto; background: #fff; border-radius: 8px"
        )
        if rows:
            _build_rows(rows)
        else:
            ui.label("No paper states a number of what this shows.").classes("ramp-quiet")


def _build_rows(rows: tuple[ComparedRow, ...]) -> None:
    drawn = table(ROWS, told_rows(rows), "id").drawn
    drawn.props("wrap-cells").classes("ramp-compared")
    drawn.add_slot("body-cell-verdict", VERDICT_CELL)


class _Tables:
    """The tables of the results, one at a time."""

    def __init__(self, folder: ResultsFolder, result: ExperimentResult) -> None:
        self._folder = folder
        self._result = result

    async def build(self) -> None:
        """Draw the choice and the first table."""
        frame.subheading("Tables")
        ui.select(
            list(self._result.tables),
            value=self._result.tables[0],
            label="Table",
            on_change=lambda told: self._show(str(told.value)),
        ).style("width: 18rem; max-width: 100%")
        self._shown = ui.element("div").classes("full-width")
        await self._show(self._result.tables[0])

    async def _show(self, name: str) -> None:
        if name not in self._result.tables:  # what a browser says is checked like everything else
            return
        try:
            found = await asyncio.to_thread(read_table, self._folder, self._result.name, name)
        except ResultsError as error:
            self._shown.clear()
            with self._shown:
                frame.problem(error)
            return
        self._shown.clear()
        with self._shown:
            self._draw(name, found)

    def _draw(self, name: str, found: ResultTable) -> None:
        if not found.whole:
            ui.label(f"The first {ROWS_MAX} rows; the file has more.").classes("ramp-quiet")
        columns = [
            Column(f"c{at}", heading, right=number)
            for at, (heading, number) in enumerate(zip(found.headings, found.numbers, strict=True))
        ]
        rows = [
            {"id": number, **{f"c{at}": cell for at, cell in enumerate(row)}} for number, row in enumerate(found.rows)
        ]
        table(columns, rows, "id", empty="It has no rows.")
        ui.link(f"Download {name}", f"/laboratory/files/{self._result.name}/{name}").props("download")
