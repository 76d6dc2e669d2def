"""The pictures that `ramp simulate` draws of its run."""

from __future__ import annotations

from pathlib import Path

from simulation.machines.flat import FlatMachine
from simulation.machines.interface import GridMachine, Machine
from simulation.queueing.run_history import PlacementRecorder, amount_over_time, bars_without_places
from simulation.queueing.whole_log import LogRun


class RunPictures:
    """Draws a run when it is over.

    Args:
        machine: that runs the jobs.
        gantt: the PNG of who held which units when; None for none.
        timeline: the PNG of what ran and waited over time; None for none.

    Attributes:
        recorder: has to be told of every job that ends; None where nobody has to be.
    """

    def __init__(self, machine: Machine, gantt: Path | None, timeline: Path | None) -> None:
        self._machine = machine
        self._gantt = gantt
        self._timeline = timeline
        places = gantt is not None and not isinstance(machine, FlatMachine)
        self.recorder = PlacementRecorder() if places else None

    def draw(self, run: LogRun, title: str) -> None:
        """Draw what is wanted.

        Args:
            run: with at least one job.
            title: above each picture.
        """
        machine, schedule = self._machine, run.schedule
        noun = str(getattr(machine, "unit_noun", "processor"))
        if self._timeline is not None:
            from simulation.plots.one_run import draw_timeline

            draw_timeline(
                self._timeline,
                amount_over_time(schedule.start_time, schedule.end_time, schedule.held),
                amount_over_time(schedule.submit_time, schedule.start_time),
                amount_over_time(schedule.submit_time, schedule.start_time, schedule.size),
                title=title,
                capacity=schedule.capacity,
                unit_noun=noun,
            )
        if self._gantt is not None:
            from simulation.plots.one_run import draw_gantt

            for granted in run.reservations:
                if self.recorder is not None and granted is not None:
                    self.recorder.reserved(granted)
            units = 1
            for extent in machine.extents:
                units *= extent
            draw_gantt(
                self._gantt,
                bars_without_places(run) if self.recorder is None else self.recorder.bars(),
                origin=int(schedule.submit_time.min()),
                title=title,
                capacity=units,
                unit_noun=noun,
                name_of=machine.unit_name if isinstance(machine, GridMachine) else None,
            )
