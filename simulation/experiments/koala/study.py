"""Malleable jobs under KOALA again: figures 6, 7 and 8 of the 2007 study, and what its open points do to its outcome.

J. Buisson, O. Sonmez, H. Mohamed, W. Lammers, D. Epema, "Scheduling Malleable Applications in Multicluster Systems",
CoreGRID TR-0092, 2007.

Our copy has no curves, and does not say how much of DAS-3 KOALA could use, how often it polled, or what a resize costs.
The main reading has 100 nodes, polls every 10 s and 30 s of suspension: it was chosen from the axis of figure 8 (e),
which ends at 100, and from a prototype. What other readings come to stands in `readings.csv`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from simulation.experiments.comparison import Comparison
from simulation.experiments.koala.pictures import FIGURES
from simulation.experiments.koala.runs import APPROACHES, Setting, run_setting
from simulation.experiments.result import Column, Columns, ConfidenceInterval, Means, Rows, confidence_interval
from simulation.experiments.study import Found, Run, Shown, Study
from simulation.koala.workloads import APPLICATIONS

PWA: Final = ("W'm", "W'mr")
PRA: Final = ("Wm", "Wmr")
POLICIES: Final = ("FPSMA", "EGS")
ALMOST_THE_SAME_PERCENT: Final = 10.0
"""Between curves that a reader calls almost the same: a tenth of the panel's mean."""
FAR_WORSE_PERCENT: Final = 20.0
"""What a reader would at least call far worse in a cumulative distribution."""
_LOST: Final = "our copy has no curves; only the axis' end is known"


def of(rows: Rows, workload: str, policy: str, measure: str) -> ConfidenceInterval:
    """A measure of one combination over the seeds."""
    return confidence_interval(
        [row[measure] for row in rows if row["workload"] == workload and row["policy"] == policy]
    )


def outcome_two(rows: Rows) -> dict[str, Any]:
    """Whether EGS with W'm alone waits, and uses the most: the statement that figure 8 is discussed with.

    Returns:
        Waits and uses of the four combinations with half their 95 % intervals, and whether EGS/W'm waits surely more
        than each of the others, and uses surely more.
    """
    found: dict[str, Any] = {}
    waits, uses = {}, {}
    for workload in PWA:
        for policy in POLICIES:
            name = f"{policy}_{workload.replace(chr(39), '_')}"
            waits[policy, workload] = wait = of(rows, workload, policy, "mean_wait_s")
            uses[policy, workload] = use = of(rows, workload, policy, "mean_used")
            found |= {
                f"wait_{name}_s": round(wait.mean, 2),
                f"wait_{name}_half_s": round(wait.half_width, 2),
                f"used_{name}": round(use.mean, 2),
                f"used_{name}_half": round(use.half_width, 2),
            }
    mine, others = ("EGS", "W'm"), [key for key in waits if key != ("EGS", "W'm")]
    found["egs_waits_most"] = all(_above(waits[mine], waits[key]) for key in others)
    found["only_egs_waits"] = found["egs_waits_most"] and all(waits[mine].mean >= 2 * waits[key].mean for key in others)
    found["egs_uses_most"] = all(_above(uses[mine], uses[key]) for key in others)
    return found


def _above(one: ConfidenceInterval, other: ConfidenceInterval) -> bool:
    return one.mean - one.half_width > other.mean + other.half_width


def comparisons(rows: Rows, reference: Rows) -> list[Comparison]:
    """Compare the paper's statements with ours.

    `reference` has the same jobs when all stay at their minimum.
    """
    return [*of_pwa(rows), *_malleability_helps(rows, reference), *_axes(rows)]


def of_pwa(rows: Rows) -> list[Comparison]:
    """What is said of the four combinations under PWA; the second row is the response time of EGS with W'm."""
    execution = {(w, p): of(rows, w, p, "mean_execution_s").mean for w in PWA for p in POLICIES}
    response = {(w, p): of(rows, w, p, "mean_response_s").mean for w in PWA for p in POLICIES}
    wait = {(w, p): of(rows, w, p, "mean_wait_s").mean for w in PWA for p in POLICIES}
    used = {(w, p): of(rows, w, p, "mean_used").mean for w in PWA for p in POLICIES}
    mine = ("W'm", "EGS")

    def rest(values: dict[tuple[str, str], float]) -> float:
        return max(value for key, value in values.items() if key != mine)

    mean = sum(execution.values()) / len(execution)
    return [
        Comparison(
            "PWA: mean execution times of the four combinations, largest less smallest",
            "almost the same",
            100 * (max(execution.values()) - min(execution.values())) / mean,
            "% of their mean",
            at_most=ALMOST_THE_SAME_PERCENT,
            why="rigid jobs of 2 cannot grow: with more processors for each, the mixed workload takes longer",
            picture="figure8.png",
        ),
        Comparison(
            "PWA: response time of EGS with W'm over the worst of the other three",
            "far worse",
            100 * (response[mine] / rest(response) - 1),
            "%",
            at_least=FAR_WORSE_PERCENT,
            why="jobs run for minutes and wait for seconds: no reading makes waits weigh in the response time",
            picture="figure8.png",
        ),
        Comparison(
            "PWA: wait of EGS with W'm over the longest of the other three",
            "longer waits are the reason",
            wait[mine] / rest(wait) if rest(wait) else float(wait[mine] > 0),
            "times",
            at_least=2.0,
            why="with 30 s a resize everybody waits for one; EGS alone does where they cost 0 or 5 s: readings.csv",
            picture="readings.png",
        ),
        Comparison(
            "PWA: processors in use with EGS and W'm, above the most of the other three",
            "the highest",
            used[mine] - rest(used),
            "processors",
            at_least=1.0,
            why="both policies give out whatever is idle, so W'm fills the machine under either",
            picture="figure8.png",
        ),
    ]


def _malleability_helps(rows: Rows, reference: Rows) -> list[Comparison]:
    found = []
    for policy in POLICIES:
        for workload in (*PRA, *PWA):
            plain = of(reference, workload, "none", "mean_execution_s").mean
            used = of(reference, workload, "none", "mean_used").mean
            found += [
                Comparison(
                    f"{policy}/{workload}: mean execution time against the same jobs at their minimum",
                    "shorter",
                    100 * (of(rows, workload, policy, "mean_execution_s").mean / plain - 1),
                    "%",
                    at_most=-1.0,
                    why="what a resize costs is more than what the processors gain",
                    picture="figure7.png" if workload in PRA else "figure8.png",
                ),
                Comparison(
                    f"{policy}/{workload}: processors in use against the same jobs at their minimum",
                    "higher utilisation",
                    of(rows, workload, policy, "mean_used").mean / used,
                    "times",
                    at_least=1.01,
                    why="nobody grows",
                    picture="figure7.png" if workload in PRA else "figure8.png",
                ),
            ]
    return found


def _axes(rows: Rows) -> list[Comparison]:
    found = []
    for figure, workloads, used, messages, measure in (
        (7, PRA, 120, 1000, "grown"),
        (8, PWA, 100, 500, "operations"),
    ):
        mine = [row for row in rows if row["workload"] in workloads and row["policy"] in POLICIES]
        most = max(row["most_used"] for row in mine)
        found += [
            Comparison(
                f"figure {figure} (e): most processors in use, within the axis",
                f"axis to {used}",
                float(most),
                "processors",
                at_most=float(used),
                why="the capacity of the reading is above the axis",
                picture=f"figure{figure}.png",
            ),
            Comparison(
                f"figure {figure} (f): messages that were accepted, within the axis",
                f"axis to {messages}",
                max(of(rows, w, p, measure).mean for w in workloads for p in POLICIES),
                "messages",
                at_most=float(messages),
                why=f"{_LOST}: they sent fewer, so management was triggered less often than by our polls",
                picture=f"figure{figure}.png",
            ),
        ]
    return found


SEEDS: Final = 10
QUICK_SEEDS: Final = 2
MAIN: Final = Setting("Wm", "FPSMA", 1)
"""The main reading, by its defaults."""
CAPACITIES: Final = (100, 120, 272)
SUSPENSIONS_S: Final = (0.0, 5.0, 30.0, 60.0)
_STATED_S: Final = {("GADGET-2", 2): 600, ("GADGET-2", 46): 240, ("FT", 2): 120, ("FT", 32): 60}
"""Run times that the text has in words; at the maximum it says "best"."""
_PERCENTS: Final = range(101)
MEASURES: Final = ("mean_execution_s", "mean_response_s", "mean_wait_s", "mean_used", "operations")

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
    **{f"{name}_half": Column("", f"half of the 95 % interval of {name}, over seeds") for name in MEASURES},
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


def cases(run: Run) -> Mapping[str, Sequence[Setting]]:
    """Both policies with all workloads, the same jobs at their minimum, and the readings of PWA."""
    seeds = run.seeds(SEEDS, QUICK_SEEDS)
    main = [
        replace(MAIN, workload=workload, policy=policy, seed=one, drawn=True)
        for workload in APPROACHES
        for policy in POLICIES
        for one in seeds
    ]
    references = [replace(setting, policy="none", drawn=False) for setting in main if setting.policy == POLICIES[0]]
    readings = {
        name: [
            replace(changed, workload=workload, policy=policy, seed=one)
            for workload in PWA
            for policy in POLICIES
            for one in seeds
        ]
        for name, changed in _readings(run.quick).items()
    }
    return {"main": main, "references": references, **readings}


def _readings(quick: bool) -> dict[str, Setting]:
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


def _rows(found: Found, *parts: str) -> Rows:
    return [result.row for part in parts for result in found.answers[part]]


def _outcomes(found: Found) -> Rows:
    return [{"reading": name, **outcome_two(_rows(found, name))} for name in _readings(found.run.quick)]


def _combinations(found: Found, workloads: Sequence[str]) -> dict[str, list[Any]]:
    return {
        f"{policy}/{workload}": [
            result for case, result in found.pairs("main") if (case.policy, case.workload) == (policy, workload)
        ]
        for policy in POLICIES
        for workload in workloads
    }


def _panel(letter: str, workloads: Sequence[str]) -> Callable[[Found], Rows]:
    def distribution(found: Found) -> Rows:
        rows = []
        for name, results in _combinations(found, workloads).items():
            values = sorted(value for one in results for value in one.per_job[letter])
            rows += [
                {"combination": name, "percent": percent, "value": round(values[_place(values, percent)], 3)}
                for percent in _PERCENTS
            ]
        return rows

    def used(found: Found) -> Rows:
        return [
            {"combination": name, "time_s": round(time, 3), "processors": processors}
            for name, (first, *_) in _combinations(found, workloads).items()
            for time, processors in first.used
        ]

    def messages(found: Found) -> Rows:
        return [
            {"combination": name, "time_s": round(time, 3), "messages": count}
            for name, (first, *_) in _combinations(found, workloads).items()
            for count, time in enumerate(first.messages, 1)
        ]

    return {"e": used, "f": messages}.get(letter, distribution)


def _place(values: Sequence[float], percent: int) -> int:
    return (len(values) - 1) * percent // 100


def _run_times(_: Found) -> Rows:
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


def _notes(found: Found) -> Sequence[str]:
    table, seeds = found["readings"], found.run.either(SEEDS, QUICK_SEEDS)
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


def _parameters(found: Found) -> Mapping[str, Any]:
    return {
        "system": "DAS-3: 85 + 41 + 68 + 46 + 32 nodes; placement WF; all jobs in one cluster",
        "capacity": f"{MAIN.capacity} nodes, each cluster's in proportion; chosen after the axis of figure 8 (e)",
        "poll_s": MAIN.poll_s,
        "suspension_s": MAIN.suspension_s,
        "stub and release latencies": 0,
        "tries": "a submission never fails",
        "arrivals": "fixed",
        "seeds": found.run.either(SEEDS, QUICK_SEEDS),
        "references": "the same jobs with the policy none: all stay at their minimum",
        "PRA": "waiting jobs are placed in a cluster where the policy, asked again, would have nothing accepted",
        "in use": "processors held, from the first to the last submission",
    }


EXPERIMENTS: Final = (
    Study(
        name="malleable",
        about="malleable jobs under KOALA: figures 6 to 8 (Buisson and others 2007)",
        cases=cases,
        measure=run_setting,
        tables={
            "runs": lambda found: _rows(found, "main", "references"),
            "readings": _outcomes,
            "figure6": _run_times,
            **{
                f"figure{number}{letter}": _panel(letter, workloads)
                for number, workloads in ((7, PRA), (8, PWA))
                for letter in "abcdef"
            },
            "means": Means(by=("workload", "policy"), of=MEASURES, digits=2),
        },
        columns=_COLUMNS,
        figures=FIGURES,
        comparisons=lambda found: comparisons(_rows(found, "main"), _rows(found, "references")),
        shown=(Shown("means", "workload policy mean_execution_s mean_response_s mean_wait_s mean_used"),),
        findings={"readings": lambda found: found["readings"]},
        parameters=_parameters,
        notes=_notes,
    ),
)
