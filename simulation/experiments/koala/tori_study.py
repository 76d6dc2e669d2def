"""Malleable jobs on tori: what boxes that grow and shrink by whole planes give against fragmentation.

Beyond Buisson and others 2007, whose clusters are flat. The same jobs run on the torus and on a flat machine of as many
units: what the torus adds to their waits is what places and cables cost, and malleable jobs may take of that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from simulation.experiments.comparison import tell_comparison
from simulation.experiments.means import confidence_interval
from simulation.experiments.discovery import Experiment, Progress
from simulation.experiments.koala.plots import draw_tori
from simulation.experiments.koala.tori_runs import MACHINES, ToriSetting, cases_of, run_tori_setting
from simulation.experiments.result import Column, Columns, grouped, write_rows, write_summary
from simulation.experiments.worker_processes import run_all
from simulation.malleable.assignment import LARGER, SMALLER

SHARES: Final = (0.0, 0.2, 1.0)
LOAD: Final = 0.6
SEEDS: Final = 5
QUICK_SEEDS: Final = 2
JOBS: Final = 1500
QUICK_JOBS: Final = 300
SUSPENSIONS_S: Final = (0, 60)
MEASURES: Final = ("turnaround_h", "wait_h", "makespan_h", "utilisation")

_COLUMNS: Final[Columns] = {
    "machine": Column("", "bgl: multi-toroidal Blue Gene/L; torus3d: plain 3D torus; angara-4x4x4: an Angara torus"),
    "case": Column("", "shapes: slim or fat, meshes or tori; any box: as the machine's allocator likes"),
    "places": Column("", "no: the same jobs on a flat machine of as many units"),
    "share": Column("share of jobs", "probability that a job is malleable"),
    "load": Column("work / capacity", "offered load: work of the shapes until the last submission / capacity"),
    "suspension_s": Column("s", "for which a job stands still at every change of its size"),
    "turnaround_h": Column("h", "mean from submission to end"),
    "wait_h": Column("h", "mean from submission to start"),
    "makespan_h": Column("h", "from the first submission to the last end"),
    "utilisation": Column("share", "units held x time / (units x makespan)"),
    "wait_percent": Column("%", "wait_h against the same jobs, all rigid, mean over seeds"),
    "wait_percent_half": Column("%", "half of its 95 % interval"),
    "changed_jobs": Column("jobs", "whose size changed while they ran"),
    "jobs": Column("jobs", "that ran"),
    "refused": Column("jobs", "that never fit the machine and were left out"),
    **{f"{name}_half": Column("", f"half of the 95 % interval of {name}, over seeds") for name in MEASURES},
}

Row = Mapping[str, Any]


def run(out: Path, *, quick: bool, seed: int, processes: int | None, on_progress: Progress | None) -> dict[str, Any]:
    """Run the study; see `simulation.experiments.discovery.RunExperiment`."""
    jobs, seeds = (QUICK_JOBS, QUICK_SEEDS) if quick else (JOBS, SEEDS)
    settings = [
        ToriSetting(machine, case, flat, share, LOAD, jobs, one, suspension)
        for machine in MACHINES
        for case in cases_of(machine)
        for flat in (False, True)
        for share in SHARES
        for suspension in (SUSPENSIONS_S if share else SUSPENSIONS_S[:1])
        for one in range(seed, seed + seeds)
    ]
    rows = run_all(run_tori_setting, settings, processes=processes, on_progress=on_progress)
    found = means(rows)
    write_rows(out / "runs.csv", rows)
    write_rows(out / "means.csv", found)
    draw_tori(out / "means.csv", out / "tori.png", quick=quick)
    return write_summary(
        out,
        experiment=EXPERIMENTS[0].name,
        seed=seed,
        quick=quick,
        parameters={
            "jobs": f"the first {jobs} of SDSC-SP2-1998-4.2-cln at load {LOAD}; sizes halved where there are 64 units",
            "scheduler": "malleable: first-fit; running jobs shrink for the first that waits and grow when none does",
            "sizes": f"preferred: the shape's volume; minimum: a {SMALLER}th of it; maximum: {LARGER} times it, within "
            "the machine; a box grows by a plane and shrinks by halves of its longest side",
            "speed-up": "as in malleable-logs; run times of the log are at the preferred size",
            "ends": "jobs run as long as the log says",
        },
        comparisons=[],
        findings={"means": found, "notes": notes(found)},
        columns=_COLUMNS,
    )


def means(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Means over seeds with half intervals, one line a case."""
    keys = ("machine", "case", "places", "share", "suspension_s")
    rigid = {
        (row["machine"], row["case"], row["places"], row["seed"]): row["wait_h"] for row in rows if not row["share"]
    }
    found = []
    for group, mine in grouped(rows, *keys).items():
        line: dict[str, Any] = dict(zip(keys, group, strict=True))
        for measure in MEASURES:
            value = confidence_interval([row[measure] for row in mine])
            line |= {measure: round(value.mean, 3), f"{measure}_half": round(value.half_width, 3)}
        waits = [(row["wait_h"], rigid[row["machine"], row["case"], row["places"], row["seed"]]) for row in mine]
        change = confidence_interval([100 * (wait / before - 1) if before else 0.0 for wait, before in waits])
        line |= {"wait_percent": round(change.mean, 1), "wait_percent_half": round(change.half_width, 1)}
        line["changed_jobs"] = round(sum(row["changed_jobs"] for row in mine) / len(mine))
        found.append(line)
    return found


def notes(found: Sequence[Row]) -> list[str]:
    """What malleability takes of the waits, with places and without."""
    by_case = {(row["machine"], row["case"], row["places"], row["share"], row["suspension_s"]): row for row in found}
    told = []
    for machine in MACHINES:
        for case in cases_of(machine):
            with_places, without = (_changes(by_case, machine, case, places) for places in ("yes", "no"))
            told.append(
                f"{machine}, {case}: mean wait against rigid jobs {with_places} where places count, {without} on a "
                "flat machine (20 % malleable, all, all with 60 s a change)"
            )
    return told


def _changes(by_case: Mapping[tuple[Any, ...], Row], machine: str, case: str, places: str) -> str:
    def told(share: float, suspension: int) -> str:
        row = by_case[machine, case, places, share, suspension]
        return f"{row['wait_percent']:+.0f} ±{row['wait_percent_half']:.0f} %"

    few, every = SHARES[1:]
    return f"{told(few, 0)}, {told(every, 0)}, {told(every, SUSPENSIONS_S[-1])}"


def _tell(summary: Mapping[str, Any]) -> list[str]:
    heading = (
        f"{'machine':13} {'case':12} {'places':6} {'share':>5} {'change s':>8} {'wait h':>7} {'against rigid %':>16} "
        f"{'turnaround h':>12} {'utilisation':>11} {'changed':>7}"
    )
    table = [
        f"{row['machine']:13} {row['case']:12} {row['places']:6} {row['share']:5.0%} {row['suspension_s']:8} "
        f"{row['wait_h']:7.2f} {row['wait_percent']:+9.1f} ±{row['wait_percent_half']:5.1f} "
        f"{row['turnaround_h']:12.2f} {row['utilisation']:11.1%} {row['changed_jobs']:7}"
        for row in summary["means"]
    ]
    return [*tell_comparison(summary), "", *(f"Note: {note}" for note in summary["notes"]), "", heading, *table]


EXPERIMENTS: Final = (
    Experiment("malleable-tori", "malleable jobs on tori: what boxes that grow and shrink give", run, _tell),
)
