"""A trace of `ramp simulate`, played: a torus in space, a flat machine as bars of processors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Final

from nicegui import ui

from ramp.shipped_files import shipped_directory
from ramp.web.laboratory import traces
from ramp.web.laboratory.runs import answer_of
from ramp.web.laboratory.traces import Stay
from ramp.web.machines.torus_map import Kind
from ramp.web.pages import frame
from ramp.web.pages.charts import SOLD, Options, core_chart, draw_chart, redraw
from ramp.web.pages.machines.torus import PlacesView
from ramp.web.pages.visit import Visit

TICK_S: Final = 0.5
"""Pause between two pictures while a trace is played, in seconds."""

SPEEDS: Final = {600: "10 min", 3600: "1 h", 6 * 3600: "6 h", 24 * 3600: "1 day"}
"""Seconds of the log from one picture to the next."""

HALF_SPAN_S: Final = 12 * 3600.0
"""Seconds of the log before and after the current one in the picture of a flat machine."""

STEPS: Final = 400
"""Positions of the slider."""

NARROW: Final = "width: 14rem; max-width: 100%"

STATES: Final = {
    "ended": "#b4bec7",
    "running": "#4e79a7",
    "waiting": "#c98a2b",
    "not submitted yet": "#8a97a3",
    "reserved": SOLD,
}
"""Colours of bars."""

NOTE: Final = "Drag to turn, scroll to zoom, click a box to show its cables."


async def build(visit: Visit) -> None:
    """Fill the page."""
    name = visit.request.path_params["trace"]
    frame.heading(f"Trace {name}")
    machine, stays = traces.read_trace(visit.site.results, name)
    with frame.card():
        if stays[0].told["nodes"].isdecimal():
            _FlatPlayer(visit, stays).build()
        else:
            await _TorusPlayer(visit, stays).build(machine)


class _Player(ABC):
    """Moves through a trace with a slider and a button that plays and pauses."""

    def __init__(self, visit: Visit, stays: Sequence[Stay]) -> None:
        self.visit = visit
        self.stays = stays
        self.second = self._begin_s = min(each.submit_s for each in stays)
        self._end_s = max(each.end_s for each in stays)
        jobs = len({each.name for each in stays if each.kind is Kind.JOB})
        span = f"from {traces.elapsed_text(self._begin_s)}, to {traces.elapsed_text(self._end_s)}"
        ui.label(f"{_jobs(jobs)} {span}.").classes("ramp-quiet ramp-number")

    @abstractmethod
    def show(self) -> str:
        """Draw the machine at `second` and describe it in words."""

    def build_controls(self) -> None:
        with ui.element("div").classes("row items-center full-width").style("gap: .4rem 1.4rem"):
            self._button = ui.button("Play", on_click=self._toggle).props("no-caps")
            self._speed = ui.select(SPEEDS, value=3600, label="Time per picture").style("min-width: 8rem")
            with ui.element("div").style("flex: 1 1 14rem; padding: 0 .8rem"):
                step = max(round((self._end_s - self._begin_s) / STEPS), 1)
                self._slider = ui.slider(min=self._begin_s, max=self._end_s, step=step, value=self._begin_s)
                self._slider.props('aria-label="Second of the log"').on_value_change(
                    lambda told: self._move(told.value)
                )
        self._line = ui.label().props('role="status"').classes("ramp-number")
        self._timer = ui.timer(TICK_S, self._tick, active=False)
        self._button.bind_text_from(self._timer, "active", lambda going: "Pause" if going else "Play")

    def draw(self) -> None:
        waiting = _jobs(traces.waiting_at(self.stays, self.second))
        self._line.set_text(f"{traces.elapsed_text(self.second)}: {self.show()}, waiting: {waiting}")

    def _toggle(self) -> None:
        if not self._timer.active and self.second >= self._end_s:
            self._slider.set_value(self._begin_s)
        self._timer.active = not self._timer.active

    def _tick(self) -> None:
        self._slider.set_value(min(self.second + self._speed.value, self._end_s))
        if self.second >= self._end_s:
            self._timer.active = False

    def _move(self, second: float) -> None:
        self.second = second
        self.draw()


class _FlatPlayer(_Player):
    def build(self) -> None:
        self.build_controls()
        most = traces.most_processors(self.stays)
        self._cores = ui.number("Processors of the machine", value=most, min=1, precision=0, on_change=self.draw)
        self._cores.style(NARROW).props(f'hint="Default: {most}, the maximum in use at once"')
        self._chart = draw_chart({}, "Processors by job over a day; the line above states the number", 22)
        self.draw()

    def show(self) -> str:
        redraw(self._chart, self._options(int(self._cores.value or 1)))
        running = [each for each in self.stays if each.start_s <= self.second < each.end_s]
        return f"{sum(each.processors for each in running)} processors in use by {_jobs(len(running))}"

    def _options(self, cores: int) -> Options:
        begin, end = traces.moment_of(self.second - HALF_SPAN_S), traces.moment_of(self.second + HALF_SPAN_S)
        bars = traces.bars_around(self.stays, cores, self.second, HALF_SPAN_S)
        moment = traces.moment_of(self.second)
        options = core_chart(bars, cores, begin, end, self.visit.dark, STATES, "processors", moment)
        options["grid"]["top"] = 84  # the legend has two lines on a narrow screen
        options["useUTC"] = True
        # dates mean nothing in a log
        options["xAxis"]["axisLabel"][":formatter"] = f"ramp.hoursFrom({round(1000 * self.second)})"
        return options


class _TorusPlayer(_Player):
    """A machine whose units have places, in space."""

    async def build(self, machine: str) -> None:
        """Draw the player for the machine that the trace names."""
        names = sorted(path.stem for path in shipped_directory("agents_config/machines").glob("*.toml"))
        likely = machine if machine in names else ""
        choice = ui.select(names, value=likely or None, label="Machine").style(NARROW)
        place = ui.element("div").classes("full-width")
        choice.on_value_change(lambda told: self._take(told.value, place))
        if likely:
            await self._take(likely, place)

    async def _take(self, name: str, place: ui.element) -> None:
        place.clear()
        with place:
            waiting = frame.waiting("Loading the machine…")
            self._machine: dict[str, Any] = await answer_of("smap", name)
            waiting.delete()
            self.build_controls()
            drawn = traces.drawn_at(self.stays, self._machine, self.second)
            self._view = PlacesView(self.visit, drawn, lambda end: traces.elapsed_text(end.timestamp()), NOTE)
        self.draw()

    def show(self) -> str:
        drawn = traces.drawn_at(self.stays, self._machine, self.second)
        moment = traces.moment_of(self.second)
        self._view.show(drawn, moment)
        taken, jobs = len(drawn.occupied(moment)), len(drawn.occupants) + drawn.left_out
        other = f" ({drawn.left_out} not of this machine)" if drawn.left_out else ""
        return f"{taken} of {drawn.units} units in use by {_jobs(jobs)}{other}"


def _jobs(count: int) -> str:
    return f"{count} job" if count == 1 else f"{count} jobs"
