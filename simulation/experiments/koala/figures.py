"""Malleable jobs under KOALA again: figures 6, 7 and 8 of the 2007 study, and what its open points do to its outcome.

J. Buisson, O. Sonmez, H. Mohamed, W. Lammers, D. Epema, "Scheduling Malleable Applications in Multicluster Systems",
CoreGRID TR-0092, 2007.

Our copy has no curves, and does not say how much of DAS-3 KOALA could use, how often it polled, or what a resize costs.
The main reading has 100 nodes, polls every 10 s and 30 s of suspension: it was chosen from the axis of figure 8 (e),
which ends at 100, and from a prototype. What other readings come to stands in `readings.csv`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from simulation.experiments.comparison import tell_comparison
from simulation.experiments.discovery import Experiment, Progress
from simulation.experiments.koala.plots import draw_figure, draw_figure6, draw_readings
from simulation.experiments.koala.runs import APPROACHES, RunResult, Setting, run_row, run_setting
from simulation.experiments.koala.statements import POLICIES, PRA, PWA, comparisons, of, outcome_two
from simulation.experiments.result import Column, Columns, write_rows, write_summary
from simulation.experiments.worker_processes import run_all
from simulation.koala.workloads import APPLICATIONS

SEEDS: Final = 10
QUICK_SEEDS: Final = 2
MAIN: Final = Setting("Wm", "FPSMA", 1)
"""The main reading, by its defaults."""
CAPACITIES: Final = (100, 120, 272)
SUSPENSIONS_S: Final = (0.0, 5.0, 30.0, 60.0)
REFERENCES: Final = ("none", "equipartition", "folding", "minimum", "preferred", "average", "stealing")
_STATED_S: Final = {("GADGET-2", 2): 600, ("GADGET-2", 46): 240, ("FT", 2): 120, ("FT", 32): 60}
"""Run times that the text has in words; at the maximum it says "best"."""
_PERCENTS: Final = range(101)

_OUTCOME: Final[Columns] = {
    f"{what}_{policy}_W_{kind}{suffix}": Column(unit, f"{words} of {policy} with W'{kind}{half}")
    for what, ending, unit, words in (("wait", "_s", "s", "mean wait"), ("used", "", "processors", "mean in use"))
    for policy in POLICIES
    for kind in ("m", "mr")
    for suffix, half in ((ending, ""), (f"_half{ending}", ", half of its 95 % interval"))
}
_COLUMNS: Final[Columns] = {
    **_OUTCOME,
    "reading": Column("", "what is read; the rest as in the main reading"),
    "only_egs_waits": Column("", "whether EGS with W'm waits surely more than each other, and twice as long"),
    "egs_waits_most": Column("", "whether EGS with W'm waits surely more than each other"),
    "egs_uses_most": Column("", "whether EGS with W'm uses surely more than each other"),
    "workload": Column("", "of the paper"),
    "policy": Column("", "of sizes"),
    "combination": Column("", "policy and workload"),
    "capacity": Column("nodes", "that KOALA may use, of 272"),
    "suspension_s": Column("s", "for how long a change of size stops a job"),
    "poll_s": Column("s", "between two polls of the information service"),
    "processors_are": Column("", "nodes or CPUs"),
    "arrivals": Column("", "fixed or exponential times between jobs"),
    "initial": Column("processors", "with which malleable jobs begin"),
    "mean_wait_s": Column("s", "from submission to start"),
    "waiting_share": Column("share of jobs", "that waited at all"),
    "mean_execution_s": Column("s", "from start to end"),
    "mean_response_s": Column("s", "from submission to end"),
    "mean_used": Column("processors", "held by managed jobs, mean until the last submission"),
    "most_used": Column("processors", "held by managed jobs at most"),
    "messages": Column("", "messages of the malleability manager; in figures 7f and 8f those accepted so far"),
    "operations": Column("messages", "that were accepted"),
    "grown": Column("messages", "offers that were accepted"),
    "application": Column("", "of the paper"),
    "machines": Column("machines", "nodes of the cluster"),
    "time_s": Column("s", "since the first submission; in figure6.csv the run time"),
    "stated_s": Column("s", "run time that the text states"),
    "percent": Column("% of jobs", "with no more than this"),
    "value": Column("as the panel", "processors or seconds, all seeds together"),
    "processors": Column("processors", "in use, one seed"),
}

Row = Mapping[str, Any]


def run(out: Path, *, quick: bool, seed: int, processes: int | None, on_progress: Progress | None) -> dict[str, Any]:
    """Run the study; see `simulation.experiments.discovery.RunExperiment`."""
    seeds = range(seed, seed + (QUICK_SEEDS if quick else SEEDS))
    main = [replace(MAIN, workload=workload, policy=policy, seed=one)
            for workload in APPROACHES for policy in POLICIES for one in seeds]  # fmt: skip
    others = REFERENCES[:1] if quick else REFERENCES
    references = [replace(setting, policy=policy) for setting in main if setting.policy == POLICIES[0]
                  for policy in others]  # fmt: skip
    readings = _readings(quick=quick)
    of_readings = [replace(changed, workload=workload, policy=policy, seed=one)
                   for changed in readings.values() for workload in PWA for policy in POLICIES
                   for one in seeds]  # fmt: skip
    done = [0]
    total = len(main) + len(references) + len(of_readings)

    def progress(count: int, _: int) -> None:
        if on_progress is not None:
            on_progress(done[0] + count, total)

    results = run_all(run_setting, main, processes=processes, on_progress=progress)
    done[0] = len(main)
    more = run_all(run_row, [*references, *of_readings], processes=processes, on_progress=progress)
    rows, reference_rows = [result.row for result in results], more[: len(references)]
    table = _reading_table(readings, more[len(references) :])
    write_rows(out / "runs.csv", [*rows, *reference_rows])
    write_rows(out / "readings.csv", table)
    _write_panels(out, dict(zip(main, results, strict=True)), seed)
    note = (
        f"Reading: {MAIN.capacity} nodes, polls every {MAIN.poll_s:g} s, {MAIN.suspension_s:g} s of suspension a resize"
    )
    draw_figure6(out / "figure6.csv", out / "figure6.png", quick=quick)
    for number in (7, 8):
        draw_figure(
            number, out, out / f"figure{number}.png", f"{note}; (a) to (d) over {len(seeds)} seeds.", quick=quick
        )
    draw_readings(out / "readings.csv", out / "readings.png", quick=quick)
    return write_summary(
        out,
        experiment=EXPERIMENTS[0].name,
        seed=seed,
        quick=quick,
        parameters=_parameters(len(seeds)),
        comparisons=comparisons(rows, reference_rows),
        findings={
            "readings": table,
            "means": _means([*rows, *reference_rows], (*POLICIES, *others)),
            "notes": _notes(table, len(seeds)),
        },
        columns=_COLUMNS,
    )


def _readings(*, quick: bool) -> dict[str, Setting]:
    """Readings by name: all capacities with all costs, and every other open point alone."""
    grid = {
        f"{capacity} nodes, {suspension:g} s a resize": replace(MAIN, capacity=capacity, suspension_s=suspension)
        for capacity in (CAPACITIES[:1] if quick else CAPACITIES)
        for suspension in (SUSPENSIONS_S[1:3] if quick else SUSPENSIONS_S)
    }
    if quick:
        return grid
    return grid | {
        "polls every 1 s": replace(MAIN, poll_s=1.0),
        "polls every 60 s": replace(MAIN, poll_s=60.0),
        "processors are CPUs, 2 a node": replace(MAIN, of_cpus=True),
        "exponential arrivals": replace(MAIN, exponential=True),
        "jobs begin with what is free": replace(MAIN, fills=True),
    }


def _reading_table(readings: Mapping[str, Setting], rows: Sequence[Row]) -> list[dict[str, Any]]:
    each = len(rows) // len(readings)
    return [
        {"reading": name, **outcome_two(rows[index * each : (index + 1) * each])} for index, name in enumerate(readings)
    ]


def _write_panels(out: Path, results: Mapping[Setting, RunResult], seed: int) -> None:
    write_rows(out / "figure6.csv", _run_times())
    for number, workloads in ((7, PRA), (8, PWA)):
        combinations = [(policy, workload) for policy in POLICIES for workload in workloads]
        panels: dict[str, list[dict[str, Any]]] = {letter: [] for letter in "abcdef"}
        for policy, workload in combinations:
            mine = {key: one for key, one in results.items() if (key.policy, key.workload) == (policy, workload)}
            name = f"{policy}/{workload}"
            for letter in "abcd":
                values = sorted(value for one in mine.values() for value in one.per_job[letter])
                panels[letter] += [
                    {"combination": name, "percent": percent, "value": round(values[_place(values, percent)], 3)}
                    for percent in _PERCENTS
                ]
            first = next(one for key, one in mine.items() if key.seed == seed)
            panels["e"] += [
                {"combination": name, "time_s": round(time, 3), "processors": used} for time, used in first.used
            ]
            panels["f"] += [
                {"combination": name, "time_s": round(time, 3), "messages": count}
                for count, time in enumerate(first.messages, 1)
            ]
        for letter, rows in panels.items():
            write_rows(out / f"figure{number}{letter}.csv", rows)


def _place(values: Sequence[float], percent: int) -> int:
    return (len(values) - 1) * percent // 100


def _run_times() -> list[dict[str, Any]]:
    return [
        {
            "application": application.name,
            "machines": size,
            "time_s": round(application.law.run_time(size), 3),
            "stated_s": _STATED_S.get((application.name, size), ""),
        }
        for application in APPLICATIONS
        for size in range(application.sizes.minimum, application.sizes.maximum + 1)
        if size in application.sizes
    ]


def _means(rows: Sequence[Row], policies: Iterable[str]) -> list[dict[str, Any]]:
    """Execution, response, wait and use of every policy and workload, with half intervals."""
    found = []
    for workload in APPROACHES:
        for policy in policies:
            row: dict[str, Any] = {"workload": workload, "policy": policy}
            for measure in ("mean_execution_s", "mean_response_s", "mean_wait_s", "mean_used", "operations"):
                value = of(rows, workload, policy, measure)
                row |= {measure: round(value.mean, 2), f"{measure}_half": round(value.half_width, 2)}
            found.append(row)
    return found


def _notes(table: Sequence[Row], seeds: int) -> list[str]:
    only = [row["reading"] for row in table if row["only_egs_waits"]]
    both = [row["reading"] for row in table if row["only_egs_waits"] and row["egs_uses_most"]]
    words = "; ".join(only) if only else "in none"
    return [
        (
            f"The stated outcome of figure 8 (EGS with W'm alone waits, and uses most) over {seeds} seeds: EGS/W'm "
            f"waits surely, and at least twice as long as any other, in {len(only)} of {len(table)} readings "
            f"({words}); it also "
            f"uses surely most in {len(both)}."
        ),
        "Section 7 of the paper and all curves are lost in our copy: figure 6 is fitted through four numbers in words.",
    ]


def _parameters(seeds: int) -> dict[str, Any]:
    return {
        "system": "DAS-3: 85 + 41 + 68 + 46 + 32 nodes; placement WF; all jobs in one cluster",
        "capacity": f"{MAIN.capacity} nodes, each cluster's in proportion; chosen after the axis of figure 8 (e)",
        "poll_s": MAIN.poll_s,
        "suspension_s": MAIN.suspension_s,
        "stub and release latencies": 0,
        "tries": "a submission never fails",
        "arrivals": "fixed",
        "seeds": seeds,
        "references": "the same jobs with other policies; none = all stay at their minimum",
        "PRA": "waiting jobs are placed in a cluster where the policy, asked again, would have nothing accepted",
        "in use": "processors held, from the first to the last submission",
    }


def _tell(summary: Mapping[str, Any]) -> list[str]:
    lines = [*tell_comparison(summary), "", *(f"Note: {note}" for note in summary["notes"]), ""]
    lines.append(f"{'workload':9} {'policy':14} {'execution s':>16} {'response s':>16} {'wait s':>14} {'in use':>14}")
    for row in summary["means"]:
        cells = (
            f"{row[measure]:{width}.1f} ±{row[f'{measure}_half']:5.1f}"
            for measure, width in (
                ("mean_execution_s", 9),
                ("mean_response_s", 9),
                ("mean_wait_s", 7),
                ("mean_used", 7),
            )
        )
        lines.append(f"{row['workload']:9} {row['policy']:14} {' '.join(cells)}")
    return lines


EXPERIMENTS: Final = (
    Experiment("malleable", "malleable jobs under KOALA: figures 6 to 8 (Buisson and others 2007)", run, _tell),
)
