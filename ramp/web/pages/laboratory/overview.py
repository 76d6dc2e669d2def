"""The laboratory: results of experiments, traces of simulations, and a form with which the keeper runs experiments."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from nicegui import ui
from nicegui.elements.mixins.validation_element import ValidationElement

from ramp.errors import ConfigurationError
from ramp.model.seal import Role
from ramp.web.pages import frame
from ramp.web.pages.dialogs import mark
from ramp.web.pages.frame import Visit
from ramp.web.pages.laboratory.results import experiments_in, read_result
from ramp.web.pages.laboratory.runs import SUMMARY_FILE, Run
from ramp.web.pages.laboratory.trace import TRACE_SUFFIX
from ramp.web.pages.row_tables import Column, Kind, RowTable

LOOK_S: Final = 0.5
"""Pause between two looks at the run in progress, in seconds."""

VERDICTS: Final = ("agrees", "DIFFERS", "no number")
MODES: Final = {"": "default of the experiment", "simulated": "in virtual time", "xmpp": "over XMPP"}
WORDS: Final = {"rule": "Auction rule", "pricing": "Pricing strategy", "swarm": "Market", "log": "Workload log"}
"""Options whose values are names, with their labels in the form."""


async def build(visit: Visit) -> None:
    """Fill the page."""
    frame.heading("Laboratory")
    ui.label(
        "Experiments repeat the measurements of papers. Each number of a paper is compared with ours: agrees, DIFFERS,"
        " or no number. Remarks in brackets limit the verdict."
    ).classes("ramp-quiet")
    card = frame.card()
    shelf = ui.element("div").classes("column full-width").style("gap: 1rem")
    with shelf:
        _draw_shelf(visit)
    card.set_visibility(visit.session.role is Role.KEEPER)
    if visit.session.role is Role.KEEPER:
        with card:
            await _RunCard(visit, shelf).build()


def _draw_shelf(visit: Visit) -> None:
    folder = visit.site.results

    results = [read_result(folder, name) for name in experiments_in(folder)]
    with frame.card("Results"):
        nothing = f"No results yet. `ramp experiment run NAME --out {folder}` writes them."
        RowTable(
            (
                Column("Experiment", lambda result: result.path.name, link="/laboratory/"),
                *(_verdict_column(verdict) for verdict in VERDICTS),
                Column("Version", lambda result: result.version),
                Column("Duration (s)", lambda result: result.summary["wall_s"], Kind.NUMBER),
                Column("Written", lambda result: _written(result.path / SUMMARY_FILE), Kind.TIME),
            ),
            results,
            key=lambda result: result.path.name,
            empty=nothing,
        )
    with frame.card("Traces of simulations"):
        nothing = f"No traces yet. `ramp simulate ... --trace {folder}/NAME.jsonl` writes one."
        RowTable(
            (
                Column("Trace", lambda path: path.name, link="/laboratory/traces/"),
                Column("Size (kB)", lambda path: -(-path.stat().st_size // 1000), Kind.NUMBER),
                Column("Written", _written, Kind.TIME),
            ),
            sorted(folder.glob(f"*{TRACE_SUFFIX}")),
            key=lambda path: path.name,
            empty=nothing,
        )


def _written(path: Path) -> datetime:
    return datetime.fromtimestamp(path.stat().st_mtime, UTC)


def _verdict_column(verdict: str) -> Column:
    return Column(verdict, lambda result: result.summary["verdicts"].get(verdict), Kind.NUMBER)


class _RunCard:
    """The form that starts a run, and its progress."""

    def __init__(self, visit: Visit, shelf: ui.element) -> None:
        self._visit = visit
        self._shelf = shelf
        self._runs = visit.site.runs
        self._going = False

    async def build(self) -> None:
        frame.subheading("Run an experiment")
        waiting = frame.waiting("Loading the list of experiments…")
        try:
            self._offered = await self._runs.offered()
        finally:
            waiting.delete()
        self._build_form()
        self._refusal = ui.label().props('role="alert"').classes("ramp-bad")
        self._line = ui.label().props('role="status"').classes("ramp-number")
        with ui.element("div").classes("full-width") as self._now:
            self._bar = ui.linear_progress(0, show_value=False).props('aria-label="Progress of the run" rounded')
            ui.button("Stop", on_click=self._runs.stop).props("outline no-caps")
        self._said = ui.label().props('role="alert"').classes("ramp-bad").style("white-space: pre-wrap")
        self._look()
        ui.timer(LOOK_S, self._look)

    def _build_form(self) -> None:
        names = list(self._offered)
        with ui.element("div").classes("ramp-fields"):
            self._choice = ui.select(names, value=names[0], label="Experiment", on_change=self._choose)
            self._fields: dict[str, Any] = {
                "seed": ui.number("Seed", value=1, min=0, precision=0),
                "processes": ui.number("Processes", min=1, precision=0, placeholder="one per core"),
                "repeat": ui.number("Repetitions", min=1, precision=0, placeholder="as in the paper"),
                "mode": ui.select(MODES, value="", label="Markets run"),
                **{name: ui.input(label) for name, label in WORDS.items()},
            }
            for name in ("processes", "repeat"):
                self._fields[name].props("stack-label")  # a label on the line would hide the placeholder
        self._about = ui.label().classes("ramp-quiet")
        with ui.element("div").classes("row items-center").style("gap: .4rem 1.2rem"):
            self._fields["quick"] = ui.checkbox("Quick version", value=True)
            self._fields["whole_logs"] = ui.checkbox("Whole logs as well")
            self._fields["replace"] = ui.checkbox("Replace earlier results")
            self._start = ui.button("Run", on_click=self._started).props("no-caps")
        self._choose()

    def _choose(self) -> None:
        """Show only the options of the chosen experiment."""
        chosen = self._offered[self._choice.value]
        self._about.set_text(chosen["about"])
        for name in ("repeat", "mode", "whole_logs", *WORDS):
            self._fields[name].set_visibility(name in chosen["options"])

    def _started(self) -> None:
        values = {name.replace("_", "-"): each.value for name, each in self._fields.items() if each.visible}
        mode = values.pop("mode", "")
        refusal, at = "", ""
        try:
            self._runs.start(self._choice.value, {**values, mode: bool(mode)})
        except ConfigurationError as error:
            refusal, at = error.reason, (error.key or "").removeprefix("--").replace("-", "_")
        for name, field in self._fields.items():
            if isinstance(field, ValidationElement):
                mark(field, refusal if name == at else "")
        self._refusal.set_text(refusal)

    def _look(self) -> None:
        run = self._runs.latest
        going = run is not None and not run.is_over
        self._now.set_visibility(going)
        self._start.set_enabled(not going)
        if run is None:
            return
        if going:
            self._bar.set_value(run.done / run.total if run.total else 0)
        elif self._going:
            self._shelf.clear()
            with self._shelf:
                _draw_shelf(self._visit)
        self._going = going
        self._line.set_text(progress_text(run))
        self._said.set_text("\n".join(run.said) if run.state == "failed" else "")


def progress_text(run: Run) -> str:
    """The state of a run in words."""
    if run.state != "running" or not run.total:
        return f"{run.experiment}: {run.state}"
    left = f", about {run.left} left" if run.left else ""
    return f"{run.experiment}: {run.done} of {run.total} simulations{left}"
