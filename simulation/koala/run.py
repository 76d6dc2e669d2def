"""One workload through the clusters of a machine's file under KOALA: the function `koala` and its result.

The jobs of a log become KOALA's so:

- A job that is not malleable is rigid and has one component, or as many equal ones as are asked for (sizes differ by
  one processor at most). Where those do not fit the empty clusters, as those of a job larger than a cluster, it has the
  fewest that do, up to `COMPONENTS_MAX`; where none do, it is refused. So larger jobs are co-allocated.
- A malleable job (`simulation.malleable.malleability`) has one component and never more than the largest cluster. It
  begins with its minimum; FCM alone may split that. A job that is larger than the largest cluster is rigid.
- Run times are the log's, at the log's size. KOALA uses no requested times.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import Final

from ramp.errors import ConfigurationError, WorkloadError
from ramp.model.instant import SECOND
from simulation.koala.clusters import Cluster, Kind, LocalUsers
from simulation.koala.jobs import Component, Fate, KoalaJob, Record
from simulation.koala.policy import Approach, PlacementPolicy, Replicas, SizePolicy, policy_of
from simulation.koala.scheduler import PLACEMENT_POLICIES, Held, Koala, KoalaOptions, Outcome
from simulation.koala.workloads import PAPER_SIZES, PAPER_SPEED_UP, WorkloadRecipe, log_of_jobs, make_jobs, recipe_of
from simulation.machine_files import load_multicluster
from simulation.machines.interface import JobRequest, Placement
from simulation.machines.kinds.multicluster import Clusters, MulticlusterDescription, lowest
from simulation.malleable.malleability import AmdahlLaw, Malleability, Sizes
from simulation.queueing.job_table import JobTable, jobs_of_log
from simulation.queueing.malleable_share import MalleableShare, malleable_share_of
from simulation.queueing.queue_simulation import EndedJob, EndReason
from simulation.queueing.whole_log import EndedJobs
from simulation.schedulers.interface import Job, Segment
from simulation.simulated_run import SimulatedRun, workload_of
from simulation.workload.swf import SwfLog

COMPONENTS_MAX: Final = 16
"""Of one job; the exact search for the fewest clusters is for few."""
_NO_SPEED_UP: Final = AmdahlLaw(1, 0)


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class KoalaRun(SimulatedRun):
    """What came of a run under KOALA.

    Attributes:
        outcome: what became of each job, who held which processors when, and the messages of the malleability manager.
    """

    outcome: Outcome

    @property
    def measures(self) -> dict[str, int | float]:
        """What the metrics of other machines do not have; times in seconds, means over completed jobs."""
        done = [one for one in self.outcome.records if one.fate is Fate.COMPLETED]
        clusters: dict[int, set[str]] = defaultdict(set)
        for change in self.outcome.held:
            clusters[change.job].add(change.cluster)
        times = [(one.job.submit_time, one.started or 0, one.ended or 0) for one in done]
        return {
            "submissions_failed": sum(one.fate is Fate.SUBMISSION_FAILED for one in self.outcome.records),
            "co_allocated_jobs": sum(len(names) > 1 for names in clusters.values()),
            "mean_execution_s": _mean_s([end - start for _, start, end in times]),
            "mean_response_s": _mean_s([end - submit for submit, _, end in times]),
            "most_processors_held": max(held for _, held in self.outcome.used),
            "messages": len(self.outcome.sent),
            "accepted_messages": sum(sent.accepted > 0 for sent in self.outcome.sent),
        }


def koala(
    log: str | Path | SwfLog,
    *,
    machine: str | Path | MulticlusterDescription,
    approach: str | Approach = "pwa",
    sizes: str | SizePolicy = "fpsma",
    placement: str | PlacementPolicy = "wf",
    threshold: int | None = None,
    poll_s: int = 10,
    tries: int | None = None,
    fill: bool = False,
    components: int = 1,
    load: float | None = None,
    max_jobs: int | None = None,
    size_divisor: int = 1,
    malleable_share: float | None = None,
    resize_cost_s: int = 0,
    seed: int = 1,
    watch: Callable[[SwfLog, int], Callable[[int], None] | None] | None = None,
) -> KoalaRun:
    """Run a workload through several clusters under KOALA.

    Args:
        log: name or path of a workload log, `synthetic`, a log that is read, or a workload of the paper (section 6.3):
            `wm`, `wmr`, `wpm` (W'm) or `wpmr` (W'mr).
        machine: name or path of the file of a multicluster, or what it says.
        approach: who has precedence: name or place (`module:Name`, `FILE.py:Name`) of an approach, or one.
        sizes: whose size to change: the same of a size policy.
        placement: where jobs run: the same of a placement policy.
        threshold: nodes of each cluster that are kept for its own users; the file's by default.
        poll_s: seconds between two polls of the information service.
        tries: failed tries of a placement after which a submission fails; never by default.
        fill: malleable jobs begin with what their cluster has for them, not with their minimum.
        components: equal components of each rigid job, 1 to `COMPONENTS_MAX`; more where they do not fit.
        load: offered load, reached by scaling the arrivals; the log's own by default.
        max_jobs: number of jobs to take, the first submitted; all by default.
        size_divisor: processors of the log that make one node.
        malleable_share: probability that a job of a log is malleable; none by default.
        resize_cost_s: seconds for which a malleable job stands still at every change of its size.
        seed: of synthetic jobs, the paper's workloads and speed-ups.
        watch: called with the log and the number of jobs; what it returns is called with the number of each that ends.

    Raises:
        ConfigurationError: something of that name does not exist, or an option is wrong.
        WorkloadError: the log is not here or damaged, or none of its jobs fits the machine.
    """
    if not 1 <= components <= COMPONENTS_MAX:
        raise ConfigurationError(f"must be 1 to {COMPONENTS_MAX}, got {components}", key="components")
    description = machine if isinstance(machine, MulticlusterDescription) else load_multicluster(machine)
    clusters, local_users = clusters_of(description, threshold)
    options = KoalaOptions(approach, sizes, placement, poll_s * SECOND, tries, fill)
    nodes = Clusters(description.name, {cluster.name: cluster.processors for cluster in clusters})
    usable = {cluster.name: cluster.usable for cluster in clusters}
    recipe = recipe_of(log)
    share: MalleableShare | None
    if recipe is not None:
        for key, stated in (("malleable-share", malleable_share is not None), ("size-divisor", size_divisor != 1)):
            if stated:
                raise ConfigurationError(f"the workload {recipe.name} fixes it; remove this option", key=key)
        name, workload, table, share = _paper_workload(recipe, resize_cost_s, seed, max_jobs)
    else:
        name, workload = workload_of(log, nodes.capacity, load, seed)
        table = jobs_of_log(workload, size_divisor=size_divisor, max_jobs=max_jobs)
        share = _share_of(table, max(usable.values()), malleable_share, resize_cost_s, seed)
    if load is not None:
        table = table.with_load(nodes.capacity, load)
    asked = _asked(table, share)
    submitted = _submitted(asked, components, policy_of(PLACEMENT_POLICIES, placement), usable)
    if not submitted:
        raise WorkloadError(f"none of the {len(table)} jobs fits the clusters of {nodes.name} (--size-divisor?)")
    began = time.perf_counter()
    simulation = Koala(clusters, submitted, options, local_users=local_users)
    on_end = None if watch is None else watch(workload, len(submitted))
    if on_end is not None:
        simulation.watch = lambda kind, subject: on_end(subject.number) if kind is Kind.JOB_END else None
    outcome = simulation.run()
    wall_s = time.perf_counter() - began
    ended, collected = _ended(outcome, asked, nodes), EndedJobs(table)
    for one in ended:
        collected(one)
    # of a malleable job that never changes, the size with which it began
    used = {one.job.job_number: one.placement.size for one in ended if one.job.malleability is not None}
    asked_for = [used.get(number, job.request.size) for number, job in asked.items()]
    result = collected.run(asked_for, nodes.capacity, len(table) - len(submitted))
    policies = " ".join(one if isinstance(one, str) else type(one).__name__ for one in (approach, sizes, placement))
    title = f"{name} on {nodes.name}, KOALA {policies}: {len(result.jobs):,} jobs"
    summary = None if share is None else share.summary(result)
    loaded = description.name if isinstance(machine, MulticlusterDescription) else str(machine)
    told = title, wall_s, result, ended, summary, loaded
    return KoalaRun(nodes, workload, f"KOALA {policies}", *told, outcome=outcome)


def _paper_workload(
    recipe: WorkloadRecipe, resize_cost_s: int, seed: int, max_jobs: int | None
) -> tuple[str, SwfLog, JobTable, MalleableShare]:
    if resize_cost_s < 0:
        raise ConfigurationError(f"must be at least 0 s, got {resize_cost_s} s", key="resize-cost")
    jobs = make_jobs(recipe, seed, suspension=resize_cost_s * SECOND)
    log = log_of_jobs(recipe.name, jobs)
    table = jobs_of_log(log, max_jobs=max_jobs)
    how = tuple(job.malleability if job.malleable else None for job in jobs[: len(table)])
    share = recipe.malleable_share
    return (
        recipe.name, log, table,
        MalleableShare(share, resize_cost_s, table.job_number, how, PAPER_SIZES, PAPER_SPEED_UP),
    )  # fmt: skip


def _share_of(
    table: JobTable, largest: int, share: float | None, resize_cost_s: int, seed: int
) -> MalleableShare | None:
    """Make a share of a log's jobs malleable, without those that are larger than the largest cluster."""
    sizes = table.size.tolist()
    drawn = malleable_share_of(table.job_number, sizes, largest, share, resize_cost_s, seed)
    if drawn is None:
        return None
    kept = zip(sizes, drawn.malleability, strict=True)
    return replace(drawn, malleability=tuple(how if size <= largest else None for size, how in kept))


def _asked(table: JobTable, share: MalleableShare | None) -> dict[int, Job]:
    columns = (table.job_number, table.submit_time, table.run_time, table.requested_time, table.size)
    malleability = [None] * len(table) if share is None else share.malleability
    return {
        number: Job(number, submit, run_time, requested, JobRequest(number, size), how)
        for number, submit, run_time, requested, size, how in zip(
            *(column.tolist() for column in columns), malleability, strict=True
        )
    }


def _submitted(
    asked: Mapping[int, Job], components: int, placement: PlacementPolicy, usable: Mapping[str, int]
) -> list[KoalaJob]:
    """Return the jobs as they are submitted to KOALA, without those that fit no empty clusters."""

    @cache
    def parts_of(size: int) -> tuple[Component, ...]:
        for count in range(min(components, size), min(COMPONENTS_MAX, size) + 1):
            parts = tuple(Component(size // count + (index < size % count)) for index in range(count))
            if placement.place(parts, usable, Replicas()) is not None:
                return parts
        return ()

    jobs = []
    for job in asked.values():
        size, how = job.request.size, job.malleability
        parts = parts_of(size) if how is None else (Component(how.sizes.least),)
        rigid = Malleability(Sizes(size, size, size), _NO_SPEED_UP)
        if parts:
            jobs.append(KoalaJob(job.job_number, job.submit_time, "", job.run_time, size, how or rigid, parts))
    return jobs


def clusters_of(
    description: MulticlusterDescription, threshold: int | None = None
) -> tuple[list[Cluster], list[LocalUsers]]:
    """Return the clusters of a machine's file, and those of their own users whose jobs come from a log.

    Args:
        description: what the file says.
        threshold: nodes of each cluster that are kept for its own users, in place of the file's.

    Raises:
        ConfigurationError: a cluster has no nodes beyond the threshold.
        WorkloadError: the log of a cluster's own users is not here or damaged.
    """
    clusters, users = [], []
    for one in description.cluster:
        kept = one.threshold if threshold is None else threshold
        if not 0 <= kept <= one.nodes:
            raise ConfigurationError(
                f"must be 0 to the {one.nodes} nodes of cluster {one.name}, got {kept}", key="threshold"
            )
        local = round(one.local_share * one.nodes)
        clusters.append(Cluster(one.name, one.nodes, threshold=kept, local=local, reserves=one.reserves))
        if one.local_log:
            jobs = jobs_of_log(workload_of(one.local_log, one.nodes, None, 1)[1])
            rows = zip(jobs.submit_time.tolist(), jobs.run_time.tolist(), jobs.size.tolist(), strict=True)
            users.append(LocalUsers(clusters[-1], rows))
    return clusters, users


def _ended(outcome: Outcome, asked: Mapping[int, Job], nodes: Clusters) -> tuple[EndedJob, ...]:
    """Return the runs of all jobs that started: the processors that a job takes are the first free nodes there."""
    places = _places(outcome.held, nodes)
    ended = []
    for record in sorted((one for one in outcome.records if one.started is not None), key=_end_of):
        number, start, end = record.job.number, record.started or 0, _end_of(record)
        history = [(max(begin, start), held) for begin, held in places[number]]
        moments = [*(begin for begin, _ in history[1:]), end]
        segments = [
            Segment(begin, until, Placement(number, held.bit_count(), held))
            for (begin, held), until in zip(history, moments, strict=True)
            if begin < until
        ]
        if not segments:  # it ran for no time at all
            held = max((held for _, held in history), key=int.bit_count)
            segments = [Segment(start, end, Placement(number, held.bit_count(), held))]
        *earlier, last = segments
        reason, resized = EndReason.COMPLETED, len(record.sizes) > 1
        ended.append(EndedJob(asked[number], last.placement, start, end, reason, tuple(earlier), resized))
    return tuple(ended)


def _places(held: Sequence[Held], nodes: Clusters) -> dict[int, list[tuple[int, int]]]:
    """Return the nodes of each job as bit sets: (time from which it held them, nodes), the last one empty."""
    places: dict[int, list[tuple[int, int]]] = {}
    free = sum(nodes.of.values())
    for change in held:
        history = places.setdefault(change.job, [])
        before = history[-1][1] if history else 0
        here = nodes.of[change.cluster]
        if change.processors > 0:
            after = before | lowest(change.processors, free & here)
        else:
            after = before & ~here | lowest((before & here).bit_count() + change.processors, before & here)
        free ^= before ^ after
        history.append((change.time, after))
    return places


def _end_of(record: Record) -> int:
    assert record.ended is not None, "a run ends when all jobs have"
    return record.ended


def _mean_s(times: Sequence[int]) -> float:
    return fmean(times) / SECOND if times else 0.0
