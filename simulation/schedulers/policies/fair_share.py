"""Fair share: the user who has used least comes first.

As in Slurm's multifactor plug-in, use is units x seconds of past and running jobs, and halves with every half life.
Slurm's factor 2 ** -(use / share) falls with use / share, so the order of users is that of use / share. Jobs of one
user keep their order of arrival. Use is accounted to the moment of each decision, where Slurm does so every 5 minutes.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from math import expm1, log
from typing import Annotated, Literal

from ramp.model.instant import SECOND
from ramp.options import Bounds
from simulation.schedulers.declaration import scheduler
from simulation.schedulers.interface import Job, Site
from simulation.schedulers.ordered import OrderedQueue, OrderOptions


@dataclass(frozen=True, slots=True)
class FairShareOptions(OrderOptions):
    """Options of the scheduler.

    Attributes:
        half_life_h: hours after which use counts half; Slurm's default is 7 days.
        by: users or groups of the log.
        shares: share of each user or group by its number; 1 for the others.
    """

    half_life_h: Annotated[float, Bounds(0.001)] = 168.0
    by: Literal["user", "group"] = "user"
    shares: Mapping[str, Annotated[float, Bounds(0.001)]] = field(default_factory=dict)


class FairShare(OrderedQueue):
    """Users who have used least come first; use decays with a half life."""

    def __init__(self, options: FairShareOptions) -> None:
        super().__init__(options)
        self._options = options
        self._decay = log(2) / (options.half_life_h * 3600)  # a second
        self._use: dict[Hashable, float] = {}  # units x seconds, decayed to `_until`
        self._held: dict[Hashable, int] = {}  # units since then
        self._until = 0

    def account(self, job: Job) -> Hashable:
        return job.group if self._options.by == "group" else job.user

    def decide(self, site: Site) -> int | None:
        """Account what has been used since the last decision, then start jobs in the new order."""
        gone = expm1(self._decay * (self._until - site.now) / SECOND)
        self._until = site.now
        for account in self._use.keys() | self._held.keys():
            use = self._use.get(account, 0.0)
            self._use[account] = use = use + gone * (use - self._held.get(account, 0) / self._decay)
            # to a thousandth, so that equal use is equal whatever the order of adding it up
            self.ranks[account] = round(use / self._options.shares.get(str(account), 1.0), 3)
        again = super().decide(site)
        self._held.clear()
        for running in site.running.values():
            account = self.account(running.job)
            self._held[account] = self._held.get(account, 0) + running.placement.size
        return again


SCHEDULER = scheduler(FairShare, options=FairShareOptions)
