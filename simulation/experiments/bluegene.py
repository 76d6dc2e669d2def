"""The 2005 Blue Gene/L allocation study again: its figures 6, 7 and 8 over whole logs.

Y. Aridor, T. Domany, O. Goldshmidt, J. E. Moreira and E. Shmueli, "Resource allocation and utilization in the Blue
Gene/L supercomputer", IBM J. Res. & Dev. 49(2/3), 2005.

Utilisation here is the work of the shapes (volume x run time) over 128 midplanes x makespan, and the offered load
counts the same work over the time of the arrivals. The study refers to another paper for its definition; these
readings give its numbers. What the other readings give is part of the result (`readings.csv`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from itertools import chain, islice
from pathlib import Path
from typing import Any, Final

from simulation.experiments.bluegene_readings import (
    readings_of_headlines,
    readings_of_slim_gaps,
    tabulate_headlines,
    tabulate_slim_gaps,
    tell_readings,
)
from simulation.experiments.bluegene_runs import (
    LOGS,
    MULTI_TOROIDAL,
    PAPER_FULL_LOAD,
    PLAIN,
    SLIM_CASES,
    Setting,
    fat_sizes,
    log_sizes,
    run_setting,
)
from simulation.experiments.discovery import Experiment, Progress
from simulation.experiments.result import Comparison, run_all, tell_comparison, write_rows, write_summary
from simulation.plots.bluegene import draw_figure6, draw_figure7, draw_figure8

LOADS: Final = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
QUICK_LOADS: Final = (0.2, 0.6, 1.0)
QUICK_JOBS: Final = 5000
TOLERANCE_POINTS: Final = 4.0
"""Percentage points within which a utilisation counts as reproduced."""
PAPER_LOSS_MAX: Final = 40.0
"""Per cent of utilisation lost at most from slim to fat jobs of equal sizes."""

NOTES: Final = (
    "The study prints four values at full load and statements in words; the other points of its curves are not known.",
    (
        "As the makespan is part of the definition, the end of a log weighs. First-fit starves SDSC's jobs of 64 "
        "midplanes, 8x4x2: as tori they take whole z-lines, so two of them never run side by side, while two meshes "
        "do. They are most of what is left after the last submission, and that is where the slim curves part; until "
        "then they lie close together, as the study says. But counted so, SDSC's fat tori on the plain torus stay "
        "further below its value (see readings)."
    ),
    (
        "The study's logs are older, uncleaned versions of those used here, and it does not say whether it took all of "
        "their jobs."
    ),
)
"""What a reader of the comparison should know."""

Row = Mapping[str, Any]


def run(out: Path, *, quick: bool, seed: int, processes: int | None, on_progress: Progress | None) -> dict[str, Any]:
    """Run the study; see `simulation.experiments.discovery.RunExperiment`."""
    loads, max_jobs = (QUICK_LOADS, QUICK_JOBS) if quick else (LOADS, None)
    figure7 = [
        Setting(log, machine, fat, torus, load, seed, max_jobs)
        for load in reversed(loads)  # the long ones first, so that no process is left alone with one at the end
        for log in LOGS
        for machine in (MULTI_TOROIDAL, PLAIN)
        for fat in (0.0, 1.0)
        for torus in (0.0, 0.5, 1.0)
    ]
    figure8 = [
        Setting(log, MULTI_TOROIDAL, fat, 1.0, load, seed, max_jobs, sizes_as_fat=True)
        for load in reversed(loads)
        for log in LOGS
        for fat in (0.0, 0.5, 1.0)
    ]
    headlines, slim_gaps = readings_of_headlines(seed, max_jobs), readings_of_slim_gaps(seed, max_jobs)
    parts = (figure7, figure8, [setting for _, setting in headlines], [setting for _, setting in slim_gaps])
    rows = iter(run_all(run_setting, list(chain(*parts)), processes=processes, on_progress=on_progress))
    of_figure7, of_figure8, of_headlines, of_slim_gaps = (list(islice(rows, len(part))) for part in parts)
    rows7, rows8 = _in_order(of_figure7), _in_order(of_figure8)
    rows_of_readings = tabulate_headlines(headlines, of_headlines)
    rows_of_slim_gaps = tabulate_slim_gaps(slim_gaps, of_slim_gaps)
    write_rows(out / "figure6.csv", _histograms(max_jobs))
    write_rows(out / "figure7.csv", rows7)
    write_rows(out / "figure8.csv", rows8)
    write_rows(out / "readings.csv", rows_of_readings)
    write_rows(out / "slim_gaps.csv", rows_of_slim_gaps)
    draw_figure6(out / "figure6.csv", out / "figure6.png")
    draw_figure7(out / "figure7.csv", out / "figure7.png", PAPER_FULL_LOAD)
    draw_figure8(out / "figure8.csv", out / "figure8.png")
    return write_summary(
        out,
        experiment=EXPERIMENTS[0].name,
        seed=seed,
        quick=quick,
        parameters=_parameters(loads, max_jobs),
        comparisons=_comparisons(rows7, rows8),
        findings={"readings": rows_of_readings, "slim_gaps": rows_of_slim_gaps, "notes": list(NOTES)},
    )


def _in_order(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    keys = ("log", "machine", "fat_probability", "torus_probability", "load")
    return sorted(rows, key=lambda row: tuple(row[key] for key in keys))


def _histograms(max_jobs: int | None) -> list[dict[str, Any]]:
    """Figure 6: how many jobs have which size before and after fattening."""
    rows = []
    for log in LOGS:
        jobs = log_sizes(log, max_jobs=max_jobs)
        before = Counter(jobs.size.tolist())
        after = Counter(fat_sizes(jobs, (8, 4, 4)).size.tolist())
        rows += [
            {"log": log, "size": size, "jobs_before": before[size], "jobs_after": after[size]}
            for size in sorted(before.keys() | after.keys())
        ]
    return rows


def _percent(rows: Sequence[Row], column: str = "utilisation", **wanted: object) -> dict[float, float]:
    """A utilisation in per cent by load of the rows with the wanted values."""
    return {row["load"]: 100 * row[column] for row in rows if all(row[key] == value for key, value in wanted.items())}


def _largest_gap(curves: Sequence[Mapping[float, float]]) -> float:
    """Largest difference between any two curves at one load."""
    gaps = [max(curve[load] for curve in curves) - min(curve[load] for curve in curves) for load in curves[0]]
    return max(gaps)


def _comparisons(rows7: Sequence[Row], rows8: Sequence[Row]) -> list[Comparison]:
    return [*_headlines(rows7), *_slim_gaps(rows7), *_mesh_gaps(rows7), *_losses(rows8)]


def _headlines(rows: Sequence[Row]) -> list[Comparison]:
    """Fat jobs, all tori, at full load: the numbers that the paper prints."""
    ours = {
        case: _percent(rows, log=case[0], machine=case[1], fat_probability=1.0, torus_probability=1.0)[1.0]
        for case in PAPER_FULL_LOAD
    }
    result = [
        Comparison(
            f"{log}: utilisation, fat tori at full load, {machine}", paper, ours[log, machine], "%", TOLERANCE_POINTS
        )
        for (log, machine), paper in PAPER_FULL_LOAD.items()
    ]
    for log in LOGS:
        paper = round(PAPER_FULL_LOAD[log, MULTI_TOROIDAL] / PAPER_FULL_LOAD[log, PLAIN], 2)
        ratio = ours[log, MULTI_TOROIDAL] / ours[log, PLAIN]
        result.append(Comparison(f"{log}: the same, {MULTI_TOROIDAL} over {PLAIN}", paper, ratio, "times"))
    return result


def _slim_gaps(rows: Sequence[Row]) -> list[Comparison]:
    """The curves of figure 7(a): meshes, half and all tori on Blue Gene/L, all tori on the 3D torus."""
    result = []
    for log in LOGS:
        paper = "almost none" if log == "CTC" else "very small"
        for column, words in (("utilisation", ""), ("utilisation_while_arriving", ", until the last submission")):
            curves = [
                _percent(rows, column, log=log, machine=machine, fat_probability=0.0, torus_probability=torus)
                for machine, torus in SLIM_CASES
            ]
            gaps = {"largest gap between slim curves": curves, "largest gap between machines, slim tori": curves[-2:]}
            result += [
                Comparison(f"{log}: {what}{words}", paper, _largest_gap(some), "points", at_most=TOLERANCE_POINTS)
                for what, some in gaps.items()
            ]
    return result


def _mesh_gaps(rows: Sequence[Row]) -> list[Comparison]:
    """The paper's footnote: meshes do alike on both machines."""
    result = []
    for log in LOGS:
        gap = max(
            _largest_gap(
                [
                    _percent(rows, log=log, machine=machine, fat_probability=fat, torus_probability=0.0)
                    for machine in (MULTI_TOROIDAL, PLAIN)
                ]
            )
            for fat in (0.0, 1.0)
        )
        what = f"{log}: largest gap between machines, meshes"
        result.append(Comparison(what, "very similar", gap, "points", at_most=TOLERANCE_POINTS))
    return result


def _losses(rows: Sequence[Row]) -> list[Comparison]:
    """Figure 8: what fat shapes cost at equal sizes."""
    result = []
    for log in LOGS:
        slim, fat = (_percent(rows, log=log, fat_probability=share) for share in (0.0, 1.0))
        loss = max(100 * (1 - fat[load] / slim[load]) for load in slim)
        what = f"{log}: largest loss from slim to fat at equal sizes"
        result.append(Comparison(what, f"up to {PAPER_LOSS_MAX:g}", loss, "%"))
    return result


def _parameters(loads: Sequence[float], max_jobs: int | None) -> dict[str, Any]:
    return {
        "logs": {log: {"file": name, "processors_per_midplane": divisor} for log, (name, divisor) in LOGS.items()},
        "jobs": "all" if max_jobs is None else f"the first {max_jobs} of each log",
        "loads": list(loads),
        "scheduler": "first-fit over the whole queue; jobs run as long as the log says",
        "utilisation": "volume of the shapes x run time / (128 midplanes x time from first submission to last end)",
        "offered_load": "volume of the shapes x run time / (128 midplanes x time from first to last submission)",
        "figure8": "all jobs have the sizes that fattening gives them; all are tori; Blue Gene/L",
        "example_setting": asdict(Setting("CTC", MULTI_TOROIDAL, 1.0, 1.0, 1.0, 1, max_jobs)),
    }


def _tell(summary: Mapping[str, Any]) -> list[str]:
    notes = [f"Note: {note}" for note in summary["notes"]]
    return [*tell_comparison(summary), "", *tell_readings(summary), "", *notes]


EXPERIMENTS: Final = (
    Experiment("bluegene", "utilisation of Blue Gene/L against a 3D torus (Aridor and others 2005)", run, _tell),
)
