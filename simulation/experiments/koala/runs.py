"""One simulation of the KOALA study: its parameters, its measures, and what its figures show of it."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any, Final

from ramp.model.instant import SECOND
from simulation.koala.clusters import Cluster
from simulation.koala.jobs import Fate
from simulation.koala.scheduler import Koala, KoalaOptions, Outcome
from simulation.koala.workloads import RECIPES, WorkloadRecipe, make_jobs
from simulation.machine_files import load_multicluster

APPROACHES: Final = {
    "Wm": "PRA",
    "Wmr": "PRA",
    "W'm": "PWA",
    "W'mr": "PWA",
}
"""With which approach the paper runs which workload."""
PROCESSORS_OF_A_NODE: Final = 2
"""DAS-3's nodes were dual Opterons of one core each."""


@dataclass(frozen=True, slots=True)
class Setting:
    """All that decides one simulation.

    Attributes:
        workload: by the paper's name.
        policy: of sizes.
        seed: of the workload.
        capacity: nodes that KOALA may use, of DAS-3's 272; the rest is each cluster's threshold, in proportion.
        suspension_s: for how long a change of size stops a job.
        poll_s: interval of the information service.
        of_cpus: processors are CPUs, two a node.
        exponential: times between jobs are drawn.
        fills: jobs begin with what is there, not with 2.
        drawn: the result has what the paper's panels show.
    """

    workload: str
    policy: str
    seed: int
    capacity: int = 100
    suspension_s: float = 30.0
    poll_s: float = 10.0
    of_cpus: bool = False
    exponential: bool = False
    fills: bool = False
    drawn: bool = False


@dataclass(frozen=True, slots=True)
class RunResult:
    """What a simulation gives.

    Attributes:
        row: of a table: setting and measures.
        per_job: values of the paper's panels a to d, one a job, by panel.
        used: (second, processors) of panel e.
        messages: seconds of panel f, one a message that was accepted.
    """

    row: dict[str, Any]
    per_job: dict[str, list[float]] = field(default_factory=dict)
    used: list[tuple[float, int]] = field(default_factory=list)
    messages: list[float] = field(default_factory=list)


def clusters_of(capacity: int, *, of_cpus: bool = False) -> list[Cluster]:
    """Return DAS-3's clusters with this many usable nodes in all, by largest remainders."""
    description = load_multicluster("das3")
    shares = [cluster.nodes * capacity / description.nodes for cluster in description.cluster]
    usable = [int(share) for share in shares]
    by_remainder = sorted(range(len(shares)), key=lambda index: usable[index] - shares[index])
    for index in by_remainder[: capacity - sum(usable)]:
        usable[index] += 1
    each = PROCESSORS_OF_A_NODE if of_cpus else 1
    return [
        Cluster(cluster.name, each * cluster.nodes, threshold=each * (cluster.nodes - nodes))
        for cluster, nodes in zip(description.cluster, usable, strict=True)
    ]


def run_setting(setting: Setting) -> RunResult:
    """Run one simulation."""
    recipe = RECIPES[setting.workload]
    recipe = WorkloadRecipe(recipe.name, recipe.inter_arrival_s, recipe.malleable_share, setting.exponential)
    suspension = round(setting.suspension_s * SECOND)
    options = KoalaOptions(
        APPROACHES[setting.workload],
        setting.policy,
        poll_interval=round(setting.poll_s * SECOND),
        fills=setting.fills,
    )
    clusters = clusters_of(setting.capacity, of_cpus=setting.of_cpus)
    outcome = Koala(clusters, make_jobs(recipe, setting.seed, suspension=suspension), options).run()
    return _measured(setting, outcome)


def _measured(setting: Setting, outcome: Outcome) -> RunResult:
    second = SECOND
    ended = [record for record in outcome.records if record.fate is Fate.COMPLETED]
    starts = [record.started or 0 for record in ended]
    ends = [record.ended or 0 for record in ended]
    submits = [record.job.submit_time for record in ended]
    execution = [(end - start) / second for start, end in zip(starts, ends, strict=True)]
    response = [(end - submit) / second for submit, end in zip(submits, ends, strict=True)]
    wait = [(start - submit) / second for submit, start in zip(submits, starts, strict=True)]
    grown = [sent for sent in outcome.sent if sent.accepted and sent.processors > 0]
    accepted = [sent for sent in outcome.sent if sent.accepted]
    arriving = max(submits)
    row: dict[str, Any] = {
        "workload": setting.workload,
        "policy": setting.policy,
        "seed": setting.seed,
        "capacity": setting.capacity,
        "suspension_s": setting.suspension_s,
        "poll_s": setting.poll_s,
        "processors_are": "CPUs" if setting.of_cpus else "nodes",
        "arrivals": "exponential" if setting.exponential else "fixed",
        "initial": "what is free" if setting.fills else "2",
        "mean_wait_s": round(fmean(wait), 3),
        "waiting_share": round(sum(value > 0 for value in wait) / len(wait), 4),
        "mean_execution_s": round(fmean(execution), 3),
        "mean_response_s": round(fmean(response), 3),
        "mean_used": round(_mean_until(outcome.used, arriving), 3),
        "most_used": max(used for _, used in outcome.used),
        "messages": len(outcome.sent),
        "operations": len(accepted),
        "grown": len(grown),
    }
    if not setting.drawn:
        return RunResult(row)
    figure = {
        "a": [record.mean_size for record in ended],
        "b": [float(record.largest_size) for record in ended],
        "c": execution,
        "d": response,
    }
    told = grown if APPROACHES[setting.workload] == "PRA" else accepted
    used = [(time / second, processors) for time, processors in outcome.used]
    return RunResult(row, figure, used, [sent.time / second for sent in told])


def _mean_until(used: tuple[tuple[int, int], ...], until: int) -> float:
    known = used[: bisect_right(used, (until, 1 << 60))]
    moments = [*(time for time, _ in known[1:]), until]
    area = sum(processors * (end - begin) for (begin, processors), end in zip(known, moments, strict=True))
    return area / until if until else 0.0
