"""One job after the other, by the processors above the minimum."""

from __future__ import annotations

from collections.abc import Sequence

from simulation.koala.sizing import Asking, Message, RunningMalleable, SizePolicy


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


POLICY = Minimum()
