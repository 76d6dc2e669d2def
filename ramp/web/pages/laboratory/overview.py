"""The laboratory: what experiments have left behind, traces of simulations, and for the keeper a way to run more."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

from nicegui import ui

from ramp.web.laboratory.folder import ResultsError
from ramp.web.laboratory.laboratory import Laboratory
from ramp.web.laboratory.results import SUMMARY_FILE, VERDICTS, ExperimentResult, read_result
from ramp.web.pages import frame
from ramp.web.pages.laboratory.running import RunCard
from ramp.web.pages.refreshing import Refresher
from ramp.web.pages.tables import Column, table
from ramp.web.pages.visit import Visit
from ramp.web.security.sessions import Role

RESULTS = (
    Column("name", "Experiment"),
    *(Column(verdict, verdict, right=True) for verdict in VERDICTS),
    Column("version", "Version"),
    Column("took", "Took (s)", right=True),
    Column("written", "Written"),
)
TRACES = (Column("name", "Trace"), Column("size", "Size (kB)", right=True), Column("written", "Written"))


async def build(visit: Visit) -> None:
    """Fill the page."""
    laboratory = visit.site.laboratory
    frame.heading("Laboratory")
    ui.label(
        "Experiments repeat what papers have measured: each of their numbers stands beside ours and ends with agrees,"
        " DIFFERS or no number. In brackets is what a verdict must be read with."
    ).classes("ramp-quiet")
    if visit.session.role is Role.KEEPER:
        await RunCard(visit, laboratory.runs).build()
    shelf = ui.element("div").classes("column full-width").style("gap: 1rem")
    await _Shelf(visit, laboratory, shelf).begin()


class _Shelf:
    """What is in the folder of results; drawn anew when a run ends."""

    def __init__(self, visit: Visit, laboratory: Laboratory, room: ui.element) -> None:
        self._visit = visit
        self._laboratory = laboratory
        self._room = room
        self._over = self._runs_over()

    async def begin(self) -> None:
        """Draw it, and again whenever a run has ended."""
        await self._draw()
        refresher = Refresher(self._look)
        self._visit.until_gone(self._laboratory.runs.listen(refresher.changed))

    def _runs_over(self) -> int:
        return sum(run.number for run in self._laboratory.runs.past if run.is_over)

    def _look(self) -> None:
        over = self._runs_over()
        if over != self._over:
            self._over = over
            self._visit.soon(self._draw())

    async def _draw(self) -> None:
        try:
            results, broken, traces = await asyncio.to_thread(self._read)
        except ResultsError as error:
            with self._room:
                frame.problem(error)
            return
        self._room.clear()
        with self._room, frame.card():
            frame.subheading("Results")
            if broken:
                ui.label("\n".join(broken)).classes("ramp-wait").style("white-space: pre-line")
            nothing = "No experiment has been run yet; `ramp experiment run` writes results."
            table(RESULTS, results, "id", empty=nothing).link("name", "/laboratory/")
        with self._room, frame.card():
            frame.subheading("Traces of simulations")
            nothing = f"None; `ramp simulate ... --trace {self._laboratory.folder.path}/NAME.jsonl` writes one."
            table(TRACES, traces, "id", empty=nothing).link("name", "/laboratory/traces/")

    def _read(self) -> tuple[list[dict[str, object]], list[str], list[dict[str, object]]]:
        """Rows of results, what is wrong with others, and rows of traces."""
        folder = self._laboratory.folder
        results, broken = [], []
        for name in folder.experiments():
            written, _ = folder.modified(SUMMARY_FILE, name)
            if not written:
                continue  # somebody else's folder
            try:
                results.append(self._row(read_result(folder, name), written))
            except ResultsError as error:
                broken.append(f"Left out: {error}.")
        traces: list[dict[str, object]] = []
        for name in folder.traces():
            written, size = folder.modified(name)
            traces.append({"id": name, "name": name, "size": -(-size // 1000), "written": self._when(written)})
        return results, broken, traces

    def _row(self, result: ExperimentResult, written: int) -> dict[str, object]:
        return {
            "id": result.name,
            "name": result.name,
            **result.verdicts(),
            "version": version_text(result),
            "took": None if result.took_s is None else round(result.took_s, 1),
            "written": self._when(written),
        }

    def _when(self, written_ns: int) -> str:
        return self._visit.moment(datetime.fromtimestamp(written_ns // 1_000_000_000, UTC))


def version_text(result: ExperimentResult) -> str:
    """Which version of a study it was, in words."""
    seed = [] if result.seed is None else [f"seed {result.seed}"]
    mode = [result.mode] if result.mode else []
    return ", ".join([*(["small (quick)"] if result.quick else ["whole"]), *mode, *seed])
