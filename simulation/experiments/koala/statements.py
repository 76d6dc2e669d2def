"""What the KOALA paper states, beside what comes out here."""

from __future__ import annotations

from typing import Any, Final

from simulation.experiments.comparison import Comparison
from simulation.experiments.means import ConfidenceInterval, confidence_interval
from simulation.experiments.result import Rows

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
