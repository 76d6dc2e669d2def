"""One job after the other, by the processors above the preferred size."""

from __future__ import annotations

from simulation.koala.size_policies.minimum import Minimum
from simulation.koala.sizing import RunningMalleable


class Preferred(Minimum):
    """All jobs grow to their preferred size before one gets more; the job furthest above it shrinks first.

    P. Zojer, J. Posner and T. Oezden, arXiv 2602.17318, 2026.
    """

    preferred_first = True

    def priority(self, job: RunningMalleable) -> int:
        """Return the processors above the preferred size."""
        return job.size - job.sizes.preferred


POLICY = Preferred()
