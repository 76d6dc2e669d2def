"""Traces that `ramp simulate --trace` writes, and their page: a torus in space, a flat machine as bars of processors.

A trace is JSON lines: the first names the machine; each other one is of a job, an advance reservation, or units out of
service.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import accumulate
from pathlib import Path
from typing import Any, Final, NamedTuple

from nicegui import ui

from ramp.errors import DocumentError
from ramp.shipped_files import shipped_directory
from ramp.web.pages import frame
from ramp.web.pages.charts import SOLD, Bar, Options, Taken, core_chart, draw_chart, lowest_bars, redraw
from ramp.web.pages.frame import Visit
from ramp.web.pages.laboratory.runs import answer_of
from ramp.web.pages.machines.torus import PlacesView
from ramp.web.pages.machines.torus_map import Kind, TorusMap, cables_of, extents_of, map_of

TRACE_SUFFIX: Final = ".jsonl"

TRACE_VERSION: Final = 1

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


class Stay(NamedTuple):
    """Units that a job, a segment of one, or a reservation occupies, with times in seconds of the log.

    A reservation or later segment counts as submitted at its start. `told` has `nodes`, `connection` and `links`.
    """

    submit_s: float
    start_s: float
    end_s: float
    name: str
    kind: Kind
    told: Mapping[str, Any]

    @property
    def processors(self) -> int:
        return int(self.told["nodes"])


def read_trace(folder: Path, name: str) -> tuple[str, Sequence[Stay]]:
    """Return the machine that a trace names, and what occupied its units.

    Args:
        folder: of all results.
        name: of the file, which may come from a browser.

    Raises:
        DocumentError: if there is no such trace, or a line is not one of a trace.
    """
    path = folder / name
    if path not in folder.glob(f"*{TRACE_SUFFIX}"):
        raise DocumentError(f"no trace {name}; `ramp simulate ... --trace FILE` writes one")
    machine, stays = "", list[Stay]()
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, start=1):
            try:
                told = json.loads(line)
                if number == 1:
                    machine = str(told["machine"])
                    if told["trace"] != TRACE_VERSION:
                        raise ValueError  # noqa: TRY301
                elif "out" not in told:
                    stays += _stays(told)
            except (ValueError, KeyError, TypeError) as error:
                raise DocumentError(f"line {number} is not a line of a trace", source=path.name) from error
    if not stays:
        raise DocumentError("the trace is empty", source=path.name)
    return machine, stays


def _stays(told: Mapping[str, Any]) -> Iterator[Stay]:
    is_job = "reservation" not in told
    name = f"{told['job_number']}" if is_job else f"reservation {told['reservation']}"
    kind = Kind.JOB if is_job else Kind.SOLD
    for number, each in enumerate(told.get("segments", [told])):
        start = each["start_time"]
        yield Stay(told["submit_time"] if is_job and number == 0 else start, start, each["end_time"], name, kind, each)


def moment_of(second: float) -> datetime:
    """A second of the log as a date, for pictures."""
    return datetime.fromtimestamp(second, UTC)


def elapsed_text(second: float) -> str:
    """A second of the log in words."""
    days, rest = divmod(round(second), 86_400)
    return f"day {days} {rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}, second {round(second)}"


def waiting_at(stays: Sequence[Stay], second: float) -> int:
    """Number of jobs in the queue."""
    return sum(each.submit_s <= second < each.start_s for each in stays)


def most_processors(stays: Sequence[Stay]) -> int:
    """Largest number of processors of a flat machine in use at once."""
    changes = [(each.start_s, each.processors) for each in stays]
    changes += [(each.end_s, -each.processors) for each in stays]
    return max(accumulate(change for _, change in sorted(changes)))


def drawn_at(stays: Sequence[Stay], machine: Mapping[str, Any], second: float) -> TorusMap:
    """A machine, as `ramp smap MACHINE --json` describes it, at a second; units of another machine are only counted."""
    entries = [
        (
            {**each.told, "name": each.name},
            "name",
            each.kind,
            {each.name: (moment_of(each.start_s), moment_of(each.end_s))},
        )
        for each in stays
        if each.start_s <= second < each.end_s
    ]
    return map_of(extents_of(machine["extents"]), cables_of(machine["cables"]), entries)


def bars_around(stays: Sequence[Stay], cores: int, second: float, span_s: float) -> tuple[Bar, ...]:
    """The occupation of a flat machine of `cores` processors during `span_s` seconds before and after a second."""
    taken = sorted(
        (
            Taken(each.name, _state(each, second), each.processors, moment_of(each.start_s), moment_of(each.end_s))
            for each in stays
            if each.start_s < second + span_s and second - span_s < each.end_s
        ),
        key=lambda each: each.start,
    )
    return lowest_bars(taken, cores, moment_of(second - span_s), moment_of(second + span_s))


def _state(stay: Stay, second: float) -> str:
    if stay.kind is Kind.SOLD:
        return "reserved"
    if stay.end_s <= second:
        return "ended"
    if stay.start_s <= second:
        return "running"
    return "waiting" if stay.submit_s <= second else "not submitted yet"


async def build(visit: Visit) -> None:
    """Fill the page."""
    name = visit.request.path_params["trace"]
    frame.heading(f"Trace {name}")
    machine, stays = read_trace(visit.site.results, name)
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
        span = f"from {elapsed_text(self._begin_s)}, to {elapsed_text(self._end_s)}"
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
        waiting = _jobs(waiting_at(self.stays, self.second))
        self._line.set_text(f"{elapsed_text(self.second)}: {self.show()}, waiting: {waiting}")

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
        most = most_processors(self.stays)
        self._cores = ui.number("Processors of the machine", value=most, min=1, precision=0, on_change=self.draw)
        self._cores.style(NARROW).props(f'hint="Default: {most}, the maximum in use at once"')
        self._chart = draw_chart({}, "Processors by job over a day; the line above states the number", 22)
        self.draw()

    def show(self) -> str:
        redraw(self._chart, self._options(int(self._cores.value or 1)))
        running = [each for each in self.stays if each.start_s <= self.second < each.end_s]
        return f"{sum(each.processors for each in running)} processors in use by {_jobs(len(running))}"

    def _options(self, cores: int) -> Options:
        begin, end = moment_of(self.second - HALF_SPAN_S), moment_of(self.second + HALF_SPAN_S)
        bars = bars_around(self.stays, cores, self.second, HALF_SPAN_S)
        moment = moment_of(self.second)
        options = core_chart(bars, cores, begin, end, STATES, "processors", moment)
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
            drawn = drawn_at(self.stays, self._machine, self.second)
            self._view = PlacesView(self.visit, drawn, lambda end: elapsed_text(end.timestamp()), NOTE)
        self.draw()

    def show(self) -> str:
        drawn = drawn_at(self.stays, self._machine, self.second)
        moment = moment_of(self.second)
        self._view.show(drawn, moment)
        taken, jobs = len(drawn.occupied(moment)), len(drawn.occupants) + drawn.left_out
        other = f" ({drawn.left_out} not of this machine)" if drawn.left_out else ""
        return f"{taken} of {drawn.units} units in use by {_jobs(jobs)}{other}"


def _jobs(count: int) -> str:
    return f"{count} job" if count == 1 else f"{count} jobs"
