"""Units of allocation against utilisation: what the 2005 Blue Gene/L study leaves to its future research.

All numbers are ours. The same jobs come at the same times to a machine of 65 536 nodes that is given out in midplanes
of 512 nodes or in smaller boxes of nodes. A processor of the CTC log stands for 128 nodes, as in the study; a job holds
whole units. All jobs are meshes with the study's slim shapes, because only whole midplanes can be wired as a torus.

ramp experiment run examples/studies/granularity.py:STUDY --out results --quick
"""

from dataclasses import dataclass, replace
from typing import Any, Final

from simulation.experiments.bluegene.runs import EASY, log_sizes
from simulation.experiments.bluegene.study import MAIN_JOBS, QUICK_JOBS
from simulation.experiments.result import Column, Columns
from simulation.experiments.study import Shown, Study
from simulation.machines.bluegene.machine import BlueGene
from simulation.machines.description import build_machine
from simulation.queueing.job_table import JobTable, shaped_jobs
from simulation.queueing.queue_simulation import Overrun
from simulation.queueing.whole_log import SchedulerOptions, run_log
from simulation.workload.metrics import summarise

NODES: Final = 64 * 32 * 32
NODES_A_PROCESSOR: Final = 128
UNITS: Final = {64: (16, 8, 8), 128: (16, 8, 4), 256: (16, 4, 4), 512: (8, 4, 4)}
"""Nodes of a unit, and the units of the machine in each dimension."""
LOADS: Final = (0.6, 0.8, 1.0)

COLUMNS: Final[Columns] = {
    "unit_nodes": Column("nodes", "that are given out together; 512 is a midplane"),
    "asked_percent": Column("%", "utilisation by the nodes that the jobs ask for, over the makespan"),
    "held_percent": Column("%", "the same by the nodes that they hold"),
    "wait_s": Column("s", "mean time from submission to start"),
    "places": Column("", "boxes that the search may look at, for the shapes of this workload"),
}


@dataclass(frozen=True, slots=True)
class Granularity:
    """One simulation.

    Attributes:
        unit_nodes: key of `UNITS`.
        load: offered load, by the nodes that the jobs ask for.
        max_jobs: number of jobs taken from the log; None = all.
    """

    unit_nodes: int
    load: float
    max_jobs: int | None

    def measure(self, processors: JobTable | None = None) -> dict[str, Any]:
        """Run the simulation.

        Args:
            processors: jobs with sizes in processors; by default those of the CTC log.

        Raises:
            WorkloadError: the log is not on this computer.
        """
        jobs = log_sizes("CTC", max_jobs=self.max_jobs, divided=False) if processors is None else processors
        asked = jobs.with_size(jobs.size * NODES_A_PROCESSOR)
        rings = [
            {"name": x, "ring": list(range(width))} for x, width in zip("xyz", UNITS[self.unit_nodes], strict=True)
        ]
        named = {"kind": "cabled-torus", "name": f"units of {self.unit_nodes} nodes", "prefix": "u"}
        machine = build_machine({**named, "dimension": rings}, source=named["name"])
        assert isinstance(machine, BlueGene)
        shaped = shaped_jobs(
            jobs.with_size(-(-asked.size // self.unit_nodes)), machine, fat_probability=0, torus_probability=0, seed=1
        )
        coming = replace(shaped.jobs, submit_time=asked.with_load(NODES, self.load).submit_time)
        run = run_log(machine, coming, SchedulerOptions(EASY, overrun=Overrun.KEEP), requests=shaped.requests)
        summary = summarise(run.schedule)
        work = float((asked.size * asked.run_time).sum())
        return {
            "unit_nodes": self.unit_nodes,
            "load": self.load,
            "asked_percent": round(100 * work / (NODES * run.schedule.makespan), 2),
            "held_percent": round(100 * summary.utilisation, 2),
            "wait_s": round(summary.mean_wait_s),
            "places": len(machine.catalogue.candidates),
        }


def cases(run):
    """Every unit at every load."""
    jobs = run.either(MAIN_JOBS, QUICK_JOBS)
    return [Granularity(unit, load, jobs) for load in LOADS for unit in UNITS]


STUDY = Study(
    name="granularity",
    about="units smaller than midplanes on Blue Gene/L: utilisation, waits",
    cases=cases,
    measure=Granularity.measure,
    order=lambda case: -case.load,
    columns={**COLUMNS, "load": Column("", "offered load, by the nodes that the jobs ask for")},
    shown=(Shown("runs", "load unit_nodes asked_percent held_percent wait_s places"),),
    parameters={"jobs": "of CTC, slim meshes", "scheduler": "EASY on the requested times"},
)
