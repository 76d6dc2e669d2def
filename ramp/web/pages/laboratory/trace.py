"""A trace of `ramp simulate`, played: a torus in space, a flat machine as bars of processors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from nicegui import ui

from ramp.errors import RampError
from ramp.web.laboratory.laboratory import Laboratory, machine_names
from ramp.web.laboratory.traces import (
    EPOCH,
    MachineShape,
    Trace,
    bars_between,
    drawn_at,
    elapsed_text,
    likely_machine,
    moment_of,
)
from ramp.web.machines.torus_map import Kind, TorusMap
from ramp.web.pages import frame
from ramp.web.pages.charts import Options
from ramp.web.pages.laboratory.charts import trace_chart
from ramp.web.pages.machines.charts import PALETTE, SOLD
from ramp.web.pages.machines.scene import MachineScene
from ramp.web.pages.tables import Column, table
from ramp.web.pages.visit import Visit

TICK_S: Final = 0.5
"""Pause between two pictures while a trace is played, in seconds; a browser draws 1000 boxes in far less."""

SPEEDS: Final = {600: "10 min", 3600: "1 h", 6 * 3600: "6 h", 24 * 3600: "1 day"}
"""Seconds of the log from one picture to the next."""

SPAN_S: Final = 24 * 3600.0
"""How much of a flat machine is seen at once, in seconds of the log; the moment that is played is in the middle."""

STEPS: Final = 400
"""Positions of the slider: an arrow key moves it by one, so that a year is no journey."""

NOBODY: Final = "nobody"

NARROW: Final = "width: 14rem; max-width: 100%"
"""Style of a field that is no longer than what is chosen in it."""

CORES_MAX: Final = 10_000_000

HOLDERS: Final = (
    Column("name", "Who"),
    Column("units", "Units", right=True),
    Column("connection", "Connection"),
    Column("cables", "Cables", right=True),
    Column("end", "Ends at"),
)


async def build(visit: Visit) -> None:
    """Fill the page."""
    laboratory = visit.site.laboratory
    name = visit.request.path_params["trace"]
    frame.heading(f"Trace {name}")
    trace = await laboratory.trace(name)
    left_out = f"; {trace.left_out} lines make no sense and are left out" if trace.left_out else ""
    ui.label(
        f"{_jobs(trace.jobs)} from {elapsed_text(trace.begin_s)}, to {elapsed_text(trace.end_s)}{left_out}."
    ).classes("ramp-quiet ramp-number")
    with frame.card():
        if trace.is_flat:
            FlatTrace(visit, trace).build()
        else:
            await TorusTrace(visit, laboratory, trace).build()


class Player:
    """What moves a trace: a slider, a button that plays and pauses, and how fast it goes.

    Args:
        trace: what is played.
        show: draws the machine at a second of the log, and returns it in words.
    """

    def __init__(self, trace: Trace, show: Callable[[float], str]) -> None:
        self._trace = trace
        self._show = show
        self._second = trace.begin_s
        with ui.element("div").classes("row items-center full-width").style("gap: .4rem 1.4rem"):
            self._button = ui.button("Play", on_click=self._toggled).props("no-caps")
            self._speed = ui.select(SPEEDS, value=3600, label="A picture every").style("min-width: 8rem")
            with ui.element("div").style("flex: 1 1 14rem; padding: 0 .8rem"):
                step = max(round((trace.end_s - trace.begin_s) / STEPS), 1)
                self._slider = ui.slider(min=trace.begin_s, max=trace.end_s, step=step, value=trace.begin_s)
                self._slider.props('aria-label="Second of the log"').on_value_change(
                    lambda told: self._moved(told.value)
                )
        self._line = ui.label().props('role="status"').classes("ramp-number")
        self._timer = ui.timer(TICK_S, self._ticked, active=False)

    def draw(self) -> None:
        """Show the machine as it is at the second that is played."""
        self._line.set_text(f"{elapsed_text(self._second)}: {self._show(self._second)}")

    def _toggled(self) -> None:
        if not self._timer.active and self._second >= self._trace.end_s:
            self._slider.set_value(self._trace.begin_s)  # from the beginning again
        self._run(going=not self._timer.active)

    def _run(self, *, going: bool) -> None:
        self._timer.active = going
        self._button.set_text("Pause" if going else "Play")

    def _ticked(self) -> None:
        self._slider.set_value(min(self._second + int(self._speed.value or 3600), self._trace.end_s))
        if self._second >= self._trace.end_s:
            self._run(going=False)

    def _moved(self, second: object) -> None:
        if isinstance(second, int | float):
            self._second = min(max(float(second), self._trace.begin_s), self._trace.end_s)
            self.draw()


class FlatTrace:
    """A flat machine: its processors as bars, around the second that is played."""

    def __init__(self, visit: Visit, trace: Trace) -> None:
        self._visit = visit
        self._trace = trace
        self._cores = max(trace.most_processors(), 1)

    def build(self) -> None:
        """Draw the player and the bars."""
        player = Player(self._trace, self._show)
        ui.number("Processors of the machine", value=self._cores, min=1, max=CORES_MAX, precision=0).on_value_change(
            lambda told: self._resized(told.value, player)
        ).style(NARROW)
        ui.label("A trace does not say how many there are; at first it is the most that were taken at once.").classes(
            "ramp-quiet"
        )
        self._chart = ui.echart(self._options(self._trace.begin_s)).style("height: 22rem")
        self._chart.props('role="img" aria-label="Who has the processors over a day; the line above tells how many"')
        player.draw()

    def _resized(self, cores: object, player: Player) -> None:
        if isinstance(cores, int | float) and 1 <= cores <= CORES_MAX:
            self._cores = int(cores)
            player.draw()

    def _options(self, second: float) -> Options:
        begin, end = second - SPAN_S / 2, second + SPAN_S / 2
        bars = bars_between(self._trace, self._cores, begin, end, second)
        return trace_chart(bars, self._cores, begin, end, second, self._visit.dark)

    def _show(self, second: float) -> str:
        self._chart.options.clear()
        self._chart.options.update(self._options(second))
        self._chart.update()
        running = self._trace.at(second)
        taken = sum(each.processors for each in running)
        return f"{taken} processors taken by {_jobs(len(running))}, waiting: {_jobs(self._trace.waiting(second))}"


class TorusTrace:
    """A machine whose units have places, in space."""

    def __init__(self, visit: Visit, laboratory: Laboratory, trace: Trace) -> None:
        self._visit = visit
        self._laboratory = laboratory
        self._trace = trace
        self._chosen = ""
        self._machine: MachineShape | None = None

    async def build(self) -> None:
        """Ask which machine it is, and draw it."""
        names = machine_names()
        likely = likely_machine(self._trace, names)
        choice = ui.select(
            list(names), value=likely or None, label="Machine", on_change=lambda told: self._take(str(told.value))
        )
        choice.style(NARROW)
        self._room = ui.element("div").classes("full-width")
        if likely:
            await self._take(likely)

    async def _take(self, name: str) -> None:
        """Draw another machine."""
        self._room.clear()
        with self._room:
            waiting = frame.waiting("Looking how the machine is built…")
        try:
            self._machine = await self._laboratory.shape(name)
        except RampError as error:
            self._room.clear()
            with self._room:
                frame.problem(error)
            return
        waiting.delete()
        with self._room:
            self._player = Player(self._trace, self._show)
            self._who = ui.select(
                [NOBODY], value=NOBODY, label="Cables of", on_change=lambda told: self._pick(told.value)
            )
            self._who.style(NARROW)
            self._scene = MachineScene(
                drawn_at(self._trace, self._machine, self._trace.begin_s),
                self._visit,
                self._clicked,
                lasting_colours,
            )
            ui.label("Drag to turn, scroll to come nearer, click a box to keep its cables shown.").classes("ramp-quiet")
            self._holders = table(HOLDERS, [], "name", empty="Nobody has a unit then.")
            self._player.draw()

    def _show(self, second: float) -> str:
        assert self._machine is not None
        drawn = drawn_at(self._trace, self._machine, second)
        moment = moment_of(second)
        names = [NOBODY, *(each.name for each in drawn.occupants)]
        if self._who.options != names:
            self._who.set_options(names, value=self._chosen if self._chosen in names else NOBODY)
        self._scene.show(drawn, moment, self._chosen)
        self._holders.show(
            [
                {
                    "name": each.name,
                    "units": len(each.places),
                    "connection": ", ".join(each.connection) or "-",
                    "cables": len(drawn.wires(each)),
                    "end": "" if each.end is None else elapsed_text((each.end - EPOCH).total_seconds()),
                }
                for each in drawn.occupants
            ]
        )
        taken = len(drawn.occupied(moment))
        none = f"; {drawn.left_out} of them are none of this machine's" if drawn.left_out else ""
        return (
            f"{taken} of {drawn.units} units taken by {_jobs(len(drawn.occupants) + drawn.left_out)}{none}, "
            f"waiting: {_jobs(self._trace.waiting(second))}"
        )

    def _pick(self, name: object) -> None:
        chosen = "" if name in (None, NOBODY) else str(name)
        if chosen != self._chosen:
            self._chosen = chosen
            self._player.draw()

    def _clicked(self, name: str) -> None:
        self._who.set_value(name or NOBODY)


def _jobs(count: int) -> str:
    return f"{count} job" if count == 1 else f"{count} jobs"


def lasting_colours(drawn: TorusMap) -> dict[str, str]:
    """The colour of each occupant by name: a job keeps its own as others come and go."""
    return {
        each.name: PALETTE[int(each.name) % len(PALETTE)] if each.kind is Kind.JOB else SOLD for each in drawn.occupants
    }
