"""Further size policies for KOALA, on the workloads of the paper of 2007, which measures FPSMA and EGS.

`Equipartition` and `Folding` are those of McCann and Zahorjan (1994), which the paper names; the others are read from
the description of Zojer, Posner and Oezden (2026). `ramp simulate` takes each by its place:

ramp experiment run examples/studies/size_policies.py:STUDY --out results --quick
ramp simulate --machine das3 --log wpm --approach pwa --sizes examples/studies/size_policies.py:Average
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from simulation.experiments.koala import study as paper
from simulation.experiments.koala.runs import APPROACHES, Setting, run_setting
from simulation.experiments.koala.study import POLICIES
from simulation.experiments.result import Means
from simulation.experiments.study import Shown, Study, rows_of
from simulation.koala.policy import Asking, Message, RunningMalleable, SizePolicy
from simulation.malleable.malleability import Sizes


class Equipartition(SizePolicy):
    """All malleable jobs of a cluster have equal sizes as far as they can; a round may both shrink and grow.

    C. McCann and J. Zahorjan, SIGMETRICS 1994; section 5.3.2 of the KOALA paper names the difference to EGS.
    """

    rebalances = True

    def grow(self, jobs: Sequence[RunningMalleable], value: int) -> Asking:
        """Take from those above their share, and offer idle processors to those below it."""
        targets = equal_sizes(jobs, sum(job.size for job in jobs) + value)
        for job in jobs:
            if job.size > targets[job.number]:
                yield Message(job.number, targets[job.number] - job.size)
        for job in jobs:
            wanted = min(targets[job.number] - job.size, value)
            if wanted > 0:
                value -= yield Message(job.number, wanted)

    def shrink(self, jobs: Sequence[RunningMalleable], value: int) -> Asking:
        """Shrink all to equal shares of the rest."""
        targets = equal_sizes(jobs, sum(job.size for job in jobs) - value)
        for job in jobs:
            if job.size > targets[job.number]:
                yield Message(job.number, targets[job.number] - job.size)


def equal_sizes(jobs: Sequence[RunningMalleable], processors: int) -> dict[int, int]:
    """Share out processors as equally as minimum and maximum allow; the first jobs get the remainder.

    An application refuses sizes that it cannot use when it is asked.
    """
    sizes = {job.number: job.sizes.least for job in jobs}
    left = processors - sum(sizes.values())
    growing = list(jobs)
    while left > 0 and growing:
        least = min(sizes[job.number] for job in growing)
        for job in growing:
            if sizes[job.number] == least and left > 0:
                sizes[job.number] += 1
                left -= 1
        growing = [job for job in growing if sizes[job.number] < job.sizes.maximum]
    return sizes


class Folding(SizePolicy):
    """The smallest job doubles, the largest one is halved (C. McCann and J. Zahorjan, SIGMETRICS 1994)."""

    def grow(self, jobs: Sequence[RunningMalleable], value: int) -> Asking:
        """Double the smallest job while processors suffice."""
        for job in sorted(jobs, key=lambda one: (one.size, one.started)):
            if job.size <= value and 2 * job.size <= job.sizes.maximum:
                value -= yield Message(job.number, job.size)

    def shrink(self, jobs: Sequence[RunningMalleable], value: int) -> Asking:
        """Halve the largest job."""
        for job in sorted(jobs, key=lambda one: (-one.size, -one.started)):
            half = min(job.size // 2, job.can_give)
            if half > 0:
                value -= yield Message(job.number, -half)
            if value <= 0:
                return


class Minimum(SizePolicy):
    """The job with the fewest processors above its minimum grows first, the one with the most shrinks first.

    P. Zojer, J. Posner and T. Oezden, arXiv 2602.17318, 2026.
    """

    preferred_first = False
    """No job grows above its preferred size while another is below its own."""

    def priority(self, job: RunningMalleable) -> int:
        """Return the rank of a job: the smallest grows first, the largest shrinks first."""
        return job.size - job.sizes.minimum

    def grow(self, jobs: Sequence[RunningMalleable], value: int) -> Asking:
        """Offer each job what it lacks, in the order of the priorities."""
        ordered = sorted(jobs, key=self.priority)
        taken = {job.number: 0 for job in jobs}
        for preferred in (True, False) if self.preferred_first else (False,):
            for job in ordered:
                limit = job.sizes.preferred if preferred else job.sizes.maximum
                wanted = min(limit - job.size, value)
                if wanted > 0 and not taken[job.number]:
                    taken[job.number] = yield Message(job.number, wanted)
                    value -= taken[job.number]

    def shrink(self, jobs: Sequence[RunningMalleable], value: int) -> Asking:
        """Ask each job for the processors still wanted, the largest priority first."""
        for job in sorted(jobs, key=self.priority, reverse=True):
            if job.can_give and value > 0:
                value -= yield Message(job.number, -min(job.can_give, value))


class Preferred(Minimum):
    """All jobs grow to their preferred size before one gets more; the job furthest above it shrinks first.

    P. Zojer, J. Posner and T. Oezden, arXiv 2602.17318, 2026.
    """

    preferred_first = True

    def priority(self, job: RunningMalleable) -> int:
        """Return the processors above the preferred size."""
        return job.size - job.sizes.preferred


def share_of_range(size: int, sizes: Sizes) -> float:
    """Return where a size lies between minimum and maximum, from 0 to 1."""
    span = sizes.maximum - sizes.minimum
    return (size - sizes.minimum) / span if span else 1.0


class Average(SizePolicy):
    """A processor goes to the job with the least of its range between minimum and maximum, and comes from the most.

    What running jobs are asked for is the first waiting job's, once all of it is released (P. Zojer, J. Posner and
    T. Oezden, arXiv 2602.17318, 2026).
    """

    def grow(self, jobs: Sequence[RunningMalleable], value: int) -> Asking:
        """Offer each job its whole share once; among equals, the first started come first."""
        given: Counter[int] = Counter()
        for _ in range(value):
            able = [job for job in jobs if given[job.number] < job.can_take]
            if not able:
                break
            least = min(able, key=lambda job: share_of_range(job.size + given[job.number], job.sizes))
            given[least.number] += 1
        for number, processors in given.items():
            yield Message(number, processors)

    def shrink(self, jobs: Sequence[RunningMalleable], value: int) -> Asking:
        """Ask each job once for its whole share; among equals, the last started come first."""
        taken: Counter[int] = Counter()
        for _ in range(value):
            able = [job for job in reversed(jobs) if taken[job.number] < job.can_give]
            if not able:
                break
            most = max(able, key=lambda job: share_of_range(job.size - taken[job.number], job.sizes))
            taken[most.number] += 1
        for number, processors in taken.items():
            yield Message(number, -processors)


class Stealing(Average):
    """As average, but jobs shrink for every waiting job for which that is enough.

    What is released is the first's in the queue for which it suffices, whomever it was asked for (P. Zojer, J. Posner
    and T. Oezden, arXiv 2602.17318, 2026).
    """

    steals = True


# -- the study ---------------------------------------------------------------------------------------------------------

OWN = {each.__name__.lower(): each for each in (Equipartition, Folding, Minimum, Preferred, Average, Stealing)}


def cases(run):
    """Every policy with the same jobs of each workload, as the paper runs it."""
    workloads = run.either(tuple(APPROACHES), ("W'm",))
    return [
        replace(paper.MAIN, workload=workload, policy=policy, seed=seed)
        for workload in workloads
        for policy in (*POLICIES, *OWN)
        for seed in run.seeds(paper.SEEDS, paper.QUICK_SEEDS)
    ]


def measure(setting: Setting):
    """One simulation's row."""
    place = f"{__file__}:{OWN[setting.policy].__name__}" if setting.policy in OWN else setting.policy
    return {**run_setting(replace(setting, policy=place)).row, "policy": setting.policy}


STUDY = Study(
    name="size-policies",
    about="further size policies on the workloads of the KOALA paper",
    cases=cases,
    measure=measure,
    tables={
        "runs": rows_of(),
        "means": Means(by=("workload", "policy"), of=paper.MEASURES, digits=2),
    },
    columns=paper.EXPERIMENTS[0].columns,
    shown=(Shown("means", "workload policy mean_execution_s mean_response_s mean_wait_s mean_used operations"),),
    parameters={"reading": "the main one of `ramp experiment run malleable`"},
)
