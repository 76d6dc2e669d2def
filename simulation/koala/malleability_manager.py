"""The malleability manager: carries the messages of the size policy to jobs, cluster by cluster."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from simulation.koala.clusters import InformationService
from simulation.koala.policy import Asking, RunningMalleable, SizePolicy
from simulation.koala.runner import Runner


class Sent(NamedTuple):
    """A message of the manager.

    Attributes:
        time: microseconds.
        cluster: name.
        job: its number.
        processors: offered, or below 0 asked for.
        accepted: of them; an application may give more than it is asked for.
    """

    time: int
    cluster: str
    job: int
    processors: int
    accepted: int


@dataclass(slots=True)
class _Round:
    """A cluster's unfinished procedure of shrinking.

    Attributes:
        asking: the policy's procedure, None when it is at its end.
        awaited: jobs whose processors are still to be released.
        accepted: number that the last job accepted; passed to the policy after its release.
    """

    asking: Asking | None
    awaited: set[int] = field(default_factory=set)
    accepted: int = 0


class MalleabilityManager:
    """Starts the policies and carries their messages.

    Args:
        policy: whose size to change.
        information: what is known of the clusters.
        runners: of the jobs that run, by number, in the order of their starts.
        now: the time, microseconds.

    Attributes:
        sent: all messages, in order.
    """

    def __init__(
        self,
        policy: SizePolicy,
        information: InformationService,
        runners: Mapping[int, Runner],
        now: Callable[[], int],
    ) -> None:
        self._policy = policy
        self._information = information
        self._runners = runners
        self._now = now
        self._rounds: dict[str, _Round] = {}
        self.sent: list[Sent] = []

    def shrinking(self, cluster: str) -> bool:
        """Return whether processors of a cluster are awaited."""
        return cluster in self._rounds

    def malleable_in(self, cluster: str) -> list[RunningMalleable]:
        """Return running malleable jobs of a cluster that are in no change, in the order of their starts."""
        return [
            RunningMalleable(runner.number, runner.started, runner.size, runner.job.malleability.sizes)
            for runner in self._runners.values()
            if runner.job.malleable and runner.change is None and runner.held_in(cluster)
        ]

    def can_be_freed(self, cluster: str) -> int:
        """Return how many processors of a cluster that its malleable jobs would give, down to their minimums."""
        return sum(
            self._runners[job.number].would_give(cluster, job.can_give)
            for job in self.malleable_in(cluster)
            if job.can_give
        )

    def grow(self, cluster: str) -> None:
        """Offer a cluster's idle processors to its running malleable jobs."""
        value = self._information.available(cluster)
        if cluster in self._rounds or not (value or self._policy.rebalances):
            return
        jobs = self.malleable_in(cluster)
        if jobs:
            asking = self._policy.grow(jobs, value)
            self._carry(cluster, asking)

    def can_still_grow(self, cluster: str) -> bool:
        """Return whether a running malleable job of a cluster would accept something if the policy were asked again."""
        value = self._information.available(cluster)
        jobs = self.malleable_in(cluster) if value else []
        if not jobs or not any(job.can_take for job in jobs):
            return False
        asking = self._policy.grow(jobs, value)
        try:
            message = next(asking)
            while True:
                taken = self._runners[message.job].would_take(message.processors) if message.processors > 0 else 0
                if taken:
                    return True
                message = asking.send(0)
        except StopIteration:
            return False

    def shrink(self, cluster: str, value: int) -> None:
        """Ask the running malleable jobs of a cluster for processors; a round is under way until they are released."""
        round_ = self._rounds[cluster] = _Round(None)
        asking = self._policy.shrink(self.malleable_in(cluster), value)
        self._go_on(cluster, round_, asking, None)
        self._close(cluster)

    def released(self, job: int) -> None:
        """Continue the rounds that waited for a job to release its processors or to end."""
        for cluster, round_ in list(self._rounds.items()):
            if job in round_.awaited:
                round_.awaited.discard(job)
                if round_.asking is not None and not round_.awaited:
                    asking, round_.asking = round_.asking, None
                    self._go_on(cluster, round_, asking, round_.accepted)
                self._close(cluster)

    def _close(self, cluster: str) -> None:
        round_ = self._rounds[cluster]
        if round_.asking is None and not round_.awaited:
            del self._rounds[cluster]

    def _go_on(self, cluster: str, round_: _Round, asking: Asking, answer: int | None) -> None:
        try:
            message = next(asking) if answer is None else asking.send(answer)
            while True:
                accepted = self._request(cluster, message.job, -message.processors)
                if accepted:
                    round_.awaited.add(message.job)
                    if self._policy.waits:
                        round_.asking, round_.accepted = asking, accepted
                        return
                message = asking.send(accepted)
        except StopIteration:
            return

    def _carry(self, cluster: str, asking: Asking) -> None:
        try:
            message = next(asking)
            while True:
                if message.processors > 0:
                    accepted = self._runners[message.job].offered(cluster, message.processors)
                    self.sent.append(Sent(self._now(), cluster, message.job, message.processors, accepted))
                else:
                    accepted = self._request(cluster, message.job, -message.processors)
                message = asking.send(accepted)
        except StopIteration:
            return

    def _request(self, cluster: str, job: int, processors: int) -> int:
        runner = self._runners.get(job)
        if runner is None or runner.change is not None or processors < 1:
            return 0  # it has ended, or changes already, while another job was waited for
        accepted = runner.requested(cluster, processors)
        self.sent.append(Sent(self._now(), cluster, job, -processors, accepted))
        return accepted
