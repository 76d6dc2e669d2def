"""What a site grants to those who launch jobs on its slots: each buyer's local account, and what counts as late."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from ramp.model.instant import MINUTE, SECOND, Duration

OWN_ACCOUNT: Final = "@own"
"""The Resource Agent's own account, or `nobody` where that is root; only for machines that are simulated.

No Unix account has such a name.
"""

EVERYBODY: Final = "*"
"""In the place of a buyer's local name: whoever of that domain has no line of its own. No party is called so."""

HANDOVER: Final = "handover"
"""The executor that launches nothing: slots are handed over to buyers' accounts, who run jobs there by themselves."""


@dataclass(frozen=True, slots=True)
class LaunchTerms:
    """How a resource launches jobs.

    Attributes:
        executor: what runs them: `local` on the agent's own computer, where the machine is simulated; a batch system;
            or `handover`, their buyers.
        accounts: the local account of every buyer, by full name, and by `*@DOMAIN` of all others of that domain;
            nobody else is dealt with.
        grace: a job that starts so long after it was due is still on time.
        delivery_limit: a job that has not started so long after it was due never will: the slot is not delivered. Never
            later than the slot's end.
    """

    executor: str
    accounts: Mapping[str, str] = field(default_factory=dict)
    grace: Duration = 10 * SECOND
    delivery_limit: Duration = 5 * MINUTE

    @property
    def launches(self) -> bool:
        """Whether jobs are launched; else buyers run them by themselves, on slots that their accounts are given."""
        return self.executor != HANDOVER

    def account(self, user: str) -> str:
        """The local account of a buyer, by full name; the empty string where there is none."""
        return self.accounts.get(user) or self.accounts.get(f"{EVERYBODY}@{user.rpartition('@')[2]}", "")

    def problem(self, user: str) -> str:
        """Why a buyer is not dealt with, or the empty string."""
        if self.account(user):
            return ""
        return f"no local account for {user} here; [accounts] of the seller's configuration maps buyers"
