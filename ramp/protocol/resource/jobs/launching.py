"""A site's terms for launching jobs on its slots: local accounts of buyers and delays that count as late."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from ramp.model.instant import MINUTE, SECOND, Duration
from ramp.protocol.resource.jobs.applications import Application

OWN_ACCOUNT: Final = "@own"
"""The Resource Agent's own account (`nobody` for root), for simulated machines only; not a Unix account name."""

EVERYBODY: Final = "*"
"""Local name that stands for all buyers of a domain without a line of their own. No party has this name."""

LOCAL: Final = "local"
"""The executor that runs jobs on the agent's own computer, each under a keeper of the site."""

HANDOVER: Final = "handover"
"""The executor that launches nothing: buyers run their own jobs on the slots handed over to their accounts."""


@dataclass(frozen=True, slots=True)
class LaunchTerms:
    """How a resource launches jobs.

    Attributes:
        executor: `local` (the agent's own computer, for simulated machines), a batch system, or `handover` to the
            buyers.
        accounts: local account of each buyer by full name, and `*@DOMAIN` for all others of that domain; other buyers
            are refused.
        grace: a local job that starts within this time after it was due is on time.
        delivery_limit: if the site could not start a local job within this time after it was due, or by the slot's
            end, the slot is undelivered; a job that is due later than that before the end shows nothing, except in the
            first half of a short slot.
        applications: the seller's catalogue.
    """

    executor: str
    accounts: Mapping[str, str] = field(default_factory=dict)
    grace: Duration = 10 * SECOND
    delivery_limit: Duration = 5 * MINUTE
    applications: tuple[Application, ...] = ()

    @property
    def launches(self) -> bool:
        return self.executor != HANDOVER

    @property
    def keeps_jobs(self) -> bool:
        """Whether the site starts the jobs itself, so that their starts show the delivery of their slot."""
        return self.executor == LOCAL

    def account(self, user: str) -> str:
        """Return the local account of a buyer, or the empty string."""
        return self.accounts.get(user) or self.accounts.get(f"{EVERYBODY}@{user.rpartition('@')[2]}", "")

    def problem(self, user: str) -> str:
        """Return why a buyer is refused, or the empty string."""
        if self.account(user):
            return ""
        return f"no local account for {user} here; [accounts] of the seller's configuration maps buyers"
