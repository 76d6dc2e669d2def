"""KOALA's placement policies on co-allocated jobs with input files, which the paper of 2007 does not measure.

ramp experiment run examples/studies/co_allocation.py:STUDY --out results

The paper describes WF, CF, CM and FCM (section 4.1) and measures WF alone, with jobs of one component and no files.
Jobs, files and networks here are ours. Jobs are rigid, have 1 to 4 components and one input file on two clusters.
Delft, which has no Myri-10G (the paper's table 1), is reached with a tenth of the others' bandwidth. What co-allocation
costs a job in run time is not modelled.
"""

import random
from collections import defaultdict
from statistics import fmean

from simulation.experiments.comparison import Comparison
from simulation.experiments.figures import Axis, Curves, Figure
from simulation.experiments.result import Column, Means
from simulation.experiments.study import Shown, Study, rows_of
from simulation.koala.jobs import Component, KoalaJob
from simulation.koala.policy import Replicas
from simulation.koala.run import clusters_of
from simulation.koala.scheduler import Koala, KoalaOptions
from simulation.machine_files import load_multicluster
from simulation.malleable.malleability import AmdahlLaw, Malleability, Sizes

POLICIES = ("wf", "cf", "cm", "fcm")
MEASURES = ("clusters", "transfer_s", "response_s")
GAPS_S = (20, 30, 40, 60, 90)
SECOND = 1_000_000
GIGABYTE = 10**9
FAST = 1.25 * GIGABYTE
"""Bytes a second: 10 Gbit/s."""


def cases(run):
    """Every policy with the same jobs, which come faster or slower."""
    gaps = run.either(GAPS_S, GAPS_S[1:3])
    return [(policy, gap, seed) for policy in POLICIES for gap in gaps for seed in run.seeds(10, 2)]


def drawn(gap_s, seed, clusters):
    """Two hundred jobs, and where their files are."""
    draw = random.Random(f"{seed} co-allocation")
    jobs, sites, sizes, now = [], {}, {}, 0.0
    for number in range(1, 201):
        parts = [draw.choice((2, 4, 8, 16, 24)) for _ in range(draw.randint(1, 4))]
        name, total = f"file{number}", sum(parts)
        sites[name], sizes[name] = frozenset(draw.sample(clusters, 2)), draw.randint(5, 100) * GIGABYTE
        rigid = Malleability(Sizes(total, total, total), AmdahlLaw(1, 0))
        run_time = draw.randint(60, 1200) * SECOND
        components = tuple(Component(part, (name,)) for part in parts)
        jobs.append(KoalaJob(number, round(now * SECOND), "", run_time, total, rigid, components))
        now += draw.expovariate(1 / gap_s)
    slow = {(one, two): 0.1 if "delft" in (one, two) else 1.0 for one in clusters for two in clusters if one != two}
    return jobs, Replicas(sites, sizes, {pair: share * FAST for pair, share in slow.items()})


def measured(case):
    """Waits, transfers and clusters of the jobs under one policy."""
    policy, gap_s, seed = case
    clusters, _ = clusters_of(load_multicluster("das3"))
    jobs, replicas = drawn(gap_s, seed, [cluster.name for cluster in clusters])
    outcome = Koala(clusters, jobs, KoalaOptions("pwa", "none", policy), replicas=replicas).run()
    held = defaultdict(set)
    for change in outcome.held:
        held[change.job].add(change.cluster)
    transfers = [max(replicas.transfer_s((f"file{job}",), each) for each in where) for job, where in held.items()]
    return {
        "policy": policy,
        "gap_s": gap_s,
        "seed": seed,
        "clusters": fmean(len(where) for where in held.values()),
        "transfer_s": fmean(transfers),
        "response_s": fmean((one.ended - one.job.submit_time) / SECOND for one in outcome.records),
    }


def compared(found):
    """What the policies are for; the paper has no number of it."""

    def mean(policy, what):
        return fmean(row[what] for row in found["runs"] if row["policy"] == policy)

    others = min(mean(policy, "transfer_s") for policy in POLICIES if policy != "cf")
    why = "the paper describes the policy and measures WF only"
    clusters = mean("cm", "clusters") / mean("wf", "clusters")
    response = mean("fcm", "response_s") / mean("cm", "response_s")
    return [
        Comparison("CF: transfer over the others' least", "-", mean("cf", "transfer_s") / others, "times", why=why),
        Comparison("CM: clusters of a job over WF's", "-", clusters, "times", why=why),
        Comparison("FCM: response over CM's", "shorter queue time", response, "times", at_most=1.0,
                   why="its parts need all files of the job, in more clusters"),
    ]  # fmt: skip


STUDY = Study(
    name="co-allocation",
    about="KOALA's placement policies on co-allocated jobs with input files (ours; the paper measures WF only)",
    cases=cases,
    measure=measured,
    tables={"runs": rows_of(), "means": Means(by=("policy", "gap_s"), of=MEASURES, digits=2)},
    columns={
        "policy": Column("", "placement policy"),
        "gap_s": Column("s", "mean time between two jobs"),
        "clusters": Column("clusters", "of a job, mean"),
        "transfer_s": Column("s", "for the input file to be on all clusters of a job, mean"),
        "response_s": Column("s", "from submission to end, mean"),
        **{f"{name}_half": Column("", f"half of the 95 % interval of {name}, over seeds") for name in MEASURES},
    },
    figures={"response.png": Figure(title="Placement of co-allocated jobs with files", size=(11, 4), draw=Curves(
        table="means", x=Axis("gap_s", "s between two jobs"), lines=("policy",), spread="_half", y=[
            Axis("clusters", "clusters of a job"), Axis("transfer_s", "transfer (s)"),
            Axis("response_s", "response (s)")]), legend=4)},
    shown=(Shown("means", "policy gap_s clusters transfer_s response_s"),),
    comparisons=compared,
)  # fmt: skip
