"""Malleable jobs on tori: what boxes that grow and shrink by whole planes give against fragmentation.

Beyond Buisson and others 2007, whose clusters are flat. The same jobs run on the torus and on a flat machine of as many
units: what the torus adds to their waits is what places and cables cost, and malleable jobs may take of that.

ramp experiment run examples/studies/malleable_tori.py:STUDY --out results --quick
"""

from dataclasses import dataclass
from functools import cache

import numpy as np

from simulation.experiments.bluegene.runs import log_sizes
from simulation.experiments.figures import Axis, Curves, Figure
from simulation.experiments.result import Column, Means, grouped
from simulation.experiments.study import Shown, Study
from simulation.machine_files import FLAT_PREFIX, load_machine
from simulation.machines.interface import JobRequest
from simulation.malleable.malleability import LARGER, SMALLER, assigned_malleability
from simulation.plots.style import BLUE, GREEN, ORANGE, VERMILION
from simulation.queueing.job_table import shaped_jobs
from simulation.queueing.queue_simulation import Overrun
from simulation.queueing.whole_log import SchedulerOptions, run_log
from simulation.workload.metrics import summarise

HOUR_S = 3600
MACHINES = ("bgl", "torus3d", "angara-4x4x4")
CASES = {"slim meshes": (0.0, 0.0), "slim tori": (0.0, 1.0), "fat tori": (0.5, 1.0)}  # shares of fat jobs, of tori
ANY_BOX = "any box"
LOG_UNITS = 128
SHARES = (0.0, 0.2, 1.0)
LOAD = 0.6
KEYS = ("machine", "case", "places", "share", "suspension_s")
MEASURES = ("turnaround_h", "wait_h", "makespan_h", "utilisation", "changed_jobs", "wait_percent")


@dataclass(frozen=True)
class Setting:
    """One simulation of SDSC's first jobs; `flat`: on a machine where only the number of units counts."""

    machine: str
    case: str
    flat: bool
    share: float
    load: float
    jobs: int
    seed: int
    suspension_s: int = 0


def cases_of(machine):
    """The cases in which a machine is tried."""
    return (ANY_BOX,) if machine.startswith("angara") else tuple(CASES)


@cache
def empty_machine(name):
    """A machine, read once."""
    return load_machine(name)


def run_case(setting):
    """Run one simulation; setting and measures as one row."""
    torus = empty_machine(setting.machine)
    jobs = shaped(setting, torus)
    machine, requests = torus.copy(), jobs.requests
    if setting.flat:
        machine = load_machine(f"{FLAT_PREFIX}{torus.capacity}")
        requests = tuple(JobRequest(request.job_id, request.size) for request in requests)
    run = run_log(
        machine,
        jobs.jobs,
        SchedulerOptions("malleable", overrun=Overrun.KEEP),
        requests=requests,
        malleability=assigned_malleability(
            [request.size for request in requests],
            torus.capacity,
            setting.share,
            np.random.default_rng(setting.seed),
            setting.suspension_s * 1_000_000,
        ),
    )
    schedule, measures = run.schedule, summarise(run.schedule)
    turnaround = (schedule.end_time - schedule.submit_time) / 1e6
    return {
        "machine": setting.machine,
        "case": setting.case,
        "places": "no" if setting.flat else "yes",
        "share": setting.share,
        "load": setting.load,
        "seed": setting.seed,
        "suspension_s": setting.suspension_s,
        "turnaround_h": float(turnaround.mean()) / HOUR_S,
        "wait_h": measures.mean_wait_s / HOUR_S,
        "makespan_h": schedule.makespan / 1e6 / HOUR_S,
        "utilisation": measures.utilisation,
        "changed_jobs": 0 if schedule.pieces is None else len(np.unique(schedule.pieces.job)),
        "jobs": measures.jobs,
        "refused": run.refused,
    }


def shaped(setting, machine):
    """The jobs with their shapes."""
    jobs = log_sizes("SDSC", max_jobs=setting.jobs)
    divisor = max(LOG_UNITS // machine.capacity, 1)
    fat, tori = CASES.get(setting.case, (0.0, 0.0))
    return shaped_jobs(
        jobs.with_size(-(-jobs.size // divisor)),
        machine,
        fat_probability=fat,
        torus_probability=tori,
        seed=setting.seed,
        any_shape=setting.case == ANY_BOX,
    ).with_load(machine.capacity, setting.load)


def cases(run):
    """Every machine with places and without, and more and more malleable jobs, whose changes cost nothing or 60 s."""
    return [
        Setting(machine, case, flat, share, LOAD, run.either(1500, 300), seed, suspension)
        for machine in MACHINES
        for case in cases_of(machine)
        for flat in (False, True)
        for share in SHARES
        for suspension in ((0, 60) if share else (0,))
        for seed in run.seeds(5, 2)
    ]


def against_rigid(found):
    """All runs, each with its change of the wait against the same jobs when all are rigid."""
    where = ("machine", "case", "places", "seed")
    rigid = {key: rows[0]["wait_h"] for key, rows in grouped(found.answers["runs"], *where).items()}
    table = []
    for row in found.answers["runs"]:
        before = rigid[tuple(row[column] for column in where)]
        table.append({**row, "wait_percent": 100 * (row["wait_h"] / before - 1) if before else 0.0})
    return table


def notes(found):
    """What malleability takes of the waits, with places and without."""

    def told(machine, case, places):
        rows = [row for row in found["means"] if row["share"] and (row["machine"], row["case"]) == (machine, case)]
        mine = [row for row in rows if row["places"] == places and (row["share"], row["suspension_s"]) != (0.2, 60)]
        return ", ".join(f"{row['wait_percent']:+.0f} ±{row['wait_percent_half']:.0f} %" for row in mine)

    return [
        f"{machine}, {case}: mean wait against rigid jobs {told(machine, case, 'yes')} where places count, "
        f"{told(machine, case, 'no')} on a flat machine (20 % malleable, all, all with 60 s a change)"
        for machine in MACHINES
        for case in cases_of(machine)
    ]


def style(line, _):
    """Colours by what counts and what a change costs."""
    places, suspension = line
    colour = {("yes", 0): BLUE, ("yes", 60): VERMILION, ("no", 0): GREEN, ("no", 60): ORANGE}[line]
    label = ("places count" if places == "yes" else "flat") + (", 60 s a change" if suspension else "")
    return {"color": colour, "marker": "o", "linestyle": "--" if suspension else "-", "label": label}


STUDY = Study(
    name="malleable-tori",
    about="malleable jobs on tori: what boxes that grow and shrink give",
    cases=cases,
    measure=run_case,
    tables={"runs": against_rigid, "means": Means(by=KEYS, of=MEASURES)},
    columns={
        "machine": Column("", "bgl: multi-toroidal; torus3d: plain 3D torus; angara-4x4x4: an Angara torus"),
        "case": Column("", "shapes: slim or fat, meshes or tori; any box: as the machine's allocator likes"),
        "places": Column("", "no: the same jobs on a flat machine of as many units"),
        "share": Column("share of jobs", "probability that a job is malleable"),
        "load": Column("work / capacity", "offered load: work of the shapes until the last submission / capacity"),
        "suspension_s": Column("s", "for which a job stands still at every change of its size"),
        "turnaround_h": Column("h", "mean from submission to end"),
        "wait_h": Column("h", "mean from submission to start"),
        "makespan_h": Column("h", "from the first submission to the last end"),
        "utilisation": Column("share", "units held x time / (units x makespan)"),
        "wait_percent": Column("%", "wait_h against the same jobs, all rigid"),
        "changed_jobs": Column("jobs", "whose size changed while they ran"),
        "jobs": Column("jobs", "that ran"),
        "refused": Column("jobs", "that never fit the machine and were left out"),
        **{f"{name}_half": Column("", f"half of the 95 % interval of {name}, over seeds") for name in MEASURES},
    },
    figures={
        "tori.png": Figure(
            title="Beyond Buisson and others: malleable jobs where places count",
            size=(12.4, 7.4),
            draw=Curves(
                table="means",
                x=Axis("share", "malleable jobs (%)", 100),
                y=(Axis("wait_h", "mean wait (h)"),),
                panels=("machine", "case"),
                lines=("places", "suspension_s"),
                spread="_half",
                style=style,
                wrap=4,
            ),
            legend=4,
            note="Bars: 95 % intervals of the mean over the seeds.",
        )
    },
    shown=(Shown("means", f"{' '.join(KEYS)} wait_h wait_percent turnaround_h utilisation changed_jobs"),),
    parameters={
        "jobs": f"the first of SDSC-SP2-1998-4.2-cln at load {LOAD}; sizes halved where there are 64 units",
        "scheduler": "malleable: first-fit; running jobs shrink for the first that waits and grow when none does",
        "sizes": f"preferred: the shape's volume; minimum: a {SMALLER}th of it; maximum: {LARGER} times it, within the "
        "machine; a box grows by a plane and shrinks by halves of its longest side",
        "ends": "jobs run as long as the log says",
    },
    notes=notes,
)
