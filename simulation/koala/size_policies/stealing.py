"""As `average`, for all waiting jobs at once."""

from __future__ import annotations

from simulation.koala.size_policies.average import Average


class Stealing(Average):
    """As average, but jobs shrink for every waiting job for which that is enough.

    What is released is the first's in the queue for which it suffices, whomever it was asked for (P. Zojer, J. Posner
    and T. Oezden, arXiv 2602.17318, 2026).
    """

    steals = True


POLICY = Stealing()
