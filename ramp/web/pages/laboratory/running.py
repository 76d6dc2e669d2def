"""Running experiments from the page, for the market's keeper: what to run, how far it is, and why it has failed."""

from __future__ import annotations

from typing import Any, Final

from nicegui import ui

from ramp.errors import RampError
from ramp.model.instant import MINUTE, SECOND, to_datetime
from ramp.web.laboratory.options import MODES, WORDS, OfferedExperiment, RunOptions
from ramp.web.laboratory.run import Run, RunState
from ramp.web.laboratory.runs import Runs
from ramp.web.pages import frame
from ramp.web.pages.refreshing import Refresher
from ramp.web.pages.tables import Column, table
from ramp.web.pages.visit import Visit

ANY_MODE: Final = "as the experiment does"
"""Of the choice where markets are run."""

PAST = (
    Column("experiment", "Run"),
    Column("options", "Options"),
    Column("state", "How it ended"),
    Column("took", "Took"),
    Column("begun", "Begun"),
)


class RunCard:
    """The card of the laboratory that only the keeper has; whoever else calls it is refused by `Runs`."""

    def __init__(self, visit: Visit, runs: Runs) -> None:
        self._visit = visit
        self._runs = runs
        self._offered: dict[str, OfferedExperiment] = {}
        self._fields: dict[str, Any] = {}

    async def build(self) -> None:
        """Draw it; the list of experiments comes when it is known."""
        with frame.card():
            frame.subheading("Run an experiment")
            self._form = ui.element("div").classes("full-width")
            with self._form:
                frame.waiting("Looking which experiments there are…")
            self._refusal = ui.label().props('role="alert"').classes("ramp-bad")
            with ui.element("div").classes("full-width") as self._now:
                self._line = ui.label().props('role="status"').classes("ramp-number")
                self._bar = ui.linear_progress(0, show_value=False).props('aria-label="Progress of the run" rounded')
                self._stop = ui.button("Stop it", on_click=self._stopped).props("outline no-caps")
            self._failed = ui.element("div").classes("full-width")
            self._past = table(PAST, [], "id", empty="Nothing has been run from here yet.")
        refresher = Refresher(self._draw)
        self._visit.until_gone(self._runs.listen(refresher.changed))
        self._draw()
        self._visit.soon(self._fill())

    async def _fill(self) -> None:
        """Draw the form once it is known what there is."""
        try:
            offered = await self._runs.offered()
        except RampError as error:
            self._form.clear()
            with self._form:
                frame.problem(error)
            return
        self._offered = {each.name: each for each in offered}
        self._form.clear()
        with self._form:
            if not offered:
                ui.label("There are no experiments here.").classes("ramp-quiet")
                return
            self._build_form()

    def _build_form(self) -> None:
        names = list(self._offered)
        with ui.element("div").classes("ramp-fields"):
            self._choice = ui.select(names, value=names[0], label="Experiment", on_change=self._chosen)
            self._fields = {
                "seed": ui.number("Seed", value=1, min=0, precision=0),
                "processes": ui.number("Processes", min=1, precision=0, placeholder="one a core"),
                "repeat": ui.number("Repetitions", min=1, precision=0, placeholder="the paper's"),
                "mode": ui.select([ANY_MODE, *MODES], value=ANY_MODE, label="Markets run"),
                **{name: ui.input(label) for name, label in WORDS.items()},
            }
            for name in ("processes", "repeat"):
                self._fields[name].props("stack-label")  # what holds where it is empty is seen
        self._about = ui.label().classes("ramp-quiet")
        with ui.element("div").classes("row items-center").style("gap: .4rem 1.2rem"):
            self._fields["quick"] = ui.checkbox("Small version (quick)", value=True)
            self._fields["whole_logs"] = ui.checkbox("Also over the whole logs")
            self._fields["replace"] = ui.checkbox("Replace earlier results")
            self._start = ui.button("Run", on_click=self._started).props("no-caps")
        self._chosen()
        self._draw()

    def _chosen(self) -> None:
        """Show the options that the chosen experiment knows, and hide the others."""
        chosen = self._offered[self._choice.value]
        self._about.set_text(chosen.about)
        for name in ("repeat", "mode", "whole_logs", *WORDS):
            self._fields[name].set_visibility(name in chosen.options)

    def _started(self) -> None:
        chosen = self._offered.get(str(self._choice.value))
        if chosen is None:
            return
        value = {name: each.value for name, each in self._fields.items()}
        known = {name: value[name] for name in ("repeat", "mode", "whole_logs", *WORDS) if name in chosen.options}
        options = RunOptions(
            quick=bool(value["quick"]),
            replace=bool(value["replace"]),
            seed=value["seed"],
            processes=value["processes"],
            repeat=known.get("repeat"),
            mode="" if known.get("mode", ANY_MODE) == ANY_MODE else str(known["mode"]),
            whole_logs=bool(known.get("whole_logs")),
            words={name: str(known.get(name) or "").strip() for name in WORDS},
        )
        self._try(lambda: self._runs.start(self._visit.session, chosen, options))

    def _stopped(self) -> None:
        self._try(lambda: self._runs.stop(self._visit.session))

    def _try(self, what: Any) -> None:
        try:
            what()
        except RampError as error:
            self._refusal.set_text(str(error))
        else:
            self._refusal.set_text("")

    def _draw(self) -> None:
        """Show how runs are."""
        past = self._runs.past
        latest = past[-1] if past else None
        going = latest is not None and not latest.is_over
        self._now.set_visibility(going)
        if latest is not None and going:
            self._line.set_text(progress_text(latest))
            self._bar.set_value(latest.done / latest.total if latest.total else 0)
            self._bar.props(remove="indeterminate") if latest.total else self._bar.props("indeterminate")
            self._stop.set_enabled(latest.state is RunState.RUNNING)
        if self._fields:
            self._start.set_enabled(not going)
        self._failed.clear()
        if latest is not None and latest.state is RunState.FAILED:
            with self._failed:
                ui.label(f"{latest.experiment} has failed:").props('role="alert"').classes("ramp-bad")
                output = ui.element("pre").classes("ramp-output").props('tabindex="0" aria-label="What it said"')
                with output:
                    ui.label(latest.problem)
        self._past.show([self._row(each) for each in reversed(past) if each.is_over])

    def _row(self, run: Run) -> dict[str, object]:
        took = "" if run.ended_at is None else f"{(run.ended_at - run.begun_at) / SECOND:.0f} s"
        return {
            "id": run.number,
            "experiment": run.experiment,
            "options": " ".join(run.arguments[1:]),
            "state": run.state.value,
            "took": took,
            "begun": self._visit.moment(to_datetime(run.begun_at // MINUTE * MINUTE)),
        }


def progress_text(run: Run) -> str:
    """How far a run is, in words."""
    if run.state is RunState.STOPPING:
        return f"{run.experiment} is being stopped"
    if not run.total:
        return f"{run.experiment} has begun"
    left = f", about {run.left} left" if run.left else ""
    return f"{run.experiment}: {run.done} of {run.total} simulations{left}"
