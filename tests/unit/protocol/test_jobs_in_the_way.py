"""Cores that are taken back of a slot with jobs, on a machine that gives and takes whole nodes.

Alice has four nodes of four cores for an hour, and her seller takes half of them back. Each node with a job of hers has
to stay, so that her jobs are in the way of more than their cores say.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from ramp.model import contents as c
from ramp.model.acl import Performative
from ramp.model.contents.jobs import JobState
from ramp.model.instant import HOUR, MINUTE, SECOND
from ramp.model.offer import Refusal, RefusalCode
from ramp.model.request import ReclaimTerms
from ramp.model.slot import Reservation, Slot
from ramp.protocol import effects as fx
from ramp.protocol import events as ev
from ramp.protocol.amending.asking import ResizeSlot, SlotResized
from ramp.protocol.progress import ReclamationAdvanced
from ramp.protocol.reclaiming.asking import ReclaimOrdered
from ramp.protocol.resource.jobs.launching import LaunchTerms

TERMS = LaunchTerms("local", {"alice": "alice1"}, grace=10 * SECOND, delivery_limit=5 * MINUTE)
NODE = 4
ENDS_IN = 3 * SECOND
"""So long a job takes to end."""


@dataclass
class Site:
    """A resource with its machine and launcher, and the bank that says yes to everything.

    Attributes:
        one: the resource.
        places: the nodes of each job.
        unseen: jobs that have started and are not seen to run before the machine refuses for the first time.
        strangers: nodes with jobs of nobody whom the agent knows.
        asked: when the machine was asked for the new size.
        ended: the jobs that were ended, in this order.
    """

    one: Any
    places: dict[str, set[int]]
    unseen: set[str] = field(default_factory=set)
    strangers: frozenset[int] = frozenset()
    asked: list[int] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)
    gone_at: dict[str, int] = field(default_factory=dict)
    cores: int = 4 * NODE
    dropped: tuple[str, str] | None = None

    def begin(self, *orders: tuple[str, int]) -> str:
        """The slot with its jobs; its offer's id."""
        self.one.unit = replace(self.one.unit, reclaim=ReclaimTerms(NODE, MINUTE, 0))
        offer: str = self.one.sell().offer_id
        for name, cores in orders:
            order = c.JobOrder(name, "a1", cores, 1, HOUR, (c.JobArgument("./run"),))
            self.act(self.one.hear("alice", order, HOUR, performative=Performative.REQUEST), HOUR)
        return offer

    def take(self, offer: str, cores: int) -> None:
        """Take so many cores back, and let ten minutes pass."""
        now = HOUR + MINUTE
        effects, problem = self.one.party.order_reclamation(ReclaimOrdered(offer, cores), now)
        assert problem == ""
        self.act(effects, now)
        while self.one.party.deadline is not None and self.one.party.deadline < HOUR + 11 * MINUTE:
            now = max(now, self.one.party.deadline)
            self.act(self.one.party.tick(now), now)

    def act(self, effects: list[fx.Effect], now: int) -> None:
        for effect in effects:
            answer = self.answer(effect, now)
            if answer is not None:
                self.act(self.one.party.handle(answer, now), now)
            elif isinstance(effect, fx.Send):
                self.bank(effect.message.content, now)
            elif isinstance(effect, fx.Report):
                self.told(effect.progress)

    def told(self, progress: object) -> None:
        if isinstance(progress, ReclamationAdvanced) and progress.stage == "dropped":
            self.dropped = progress.code, progress.detail

    def answer(self, effect: fx.Effect, now: int) -> Any:
        if isinstance(effect, ResizeSlot):
            return SlotResized(effect.key, effect.step, self.resized(effect, now))
        if isinstance(effect, fx.CancelJob):
            name = effect.job.job_id
            if name not in self.gone_at:
                self.ended.append(name)
                self.gone_at[name] = now + ENDS_IN
        if isinstance(effect, fx.AskLauncher) and not isinstance(effect, fx.ReadJobFile):
            return ev.JobSeen(effect.job.job_id, self.sight(effect.job, now))
        return None

    def sight(self, job: fx.JobToRun, now: int) -> ev.JobSight:
        if now >= self.gone_at.get(job.job_id, now + 1):
            return ev.JobSight(JobState.CANCELLED, "1", job.cores, HOUR, now)
        if job.job_id in self.unseen:
            return ev.JobSight(JobState.QUEUED, "1")
        return ev.JobSight(JobState.RUNNING, "1", job.cores, HOUR)

    def resized(self, asked: ResizeSlot, now: int) -> Any:
        if asked.cores != self.cores:
            self.asked.append(now)
            still = [self.places[name] for name in self.places if now < self.gone_at.get(name, now + 1)]
            if NODE * len(set().union(self.strangers, *still)) > asked.cores:
                self.unseen.clear()
                return Refusal(0, RefusalCode.JOB_IN_THE_WAY, detail="its nodes have jobs")
            self.cores = asked.cores
        slot = Slot(HOUR, asked.until, asked.cores, 0.5)
        return Reservation(asked.key, f"R-{asked.key}", slot, True, None)

    def bank(self, content: Any, now: int) -> None:
        said: Any = None
        if isinstance(content, c.ReclamationNotice):
            said = c.ReclamationNoticed("a1", 1, now, content.reclamation)
            self.body: Any = content.reclamation.body
        elif isinstance(content, c.ReclamationTaken):
            said = c.ReclamationPosted("a1", 1, "t", self.body.refund, self.body.compensation)
        if said is not None:
            self.act(self.one.hear("bank", said, now, performative=Performative.AGREE), now)


@pytest.fixture
def one(launching_resource: Any) -> Any:
    return launching_resource(TERMS)


def test_what_has_room_on_what_is_left_runs_on(one: Any) -> None:
    site = Site(one, {"a": {1}, "b": {2}})
    site.take(site.begin(("a", 1), ("b", 1)), 2 * NODE)
    assert (site.ended, site.cores, site.dropped) == ([], 2 * NODE, None)


def test_small_jobs_on_a_node_each_end_one_by_one_the_one_ordered_last_first_until_it_is_enough(one: Any) -> None:
    site = Site(one, {"a": {1}, "b": {2}, "c": {3}, "d": {4}})
    site.take(site.begin(("a", 1), ("b", 1), ("c", 1), ("d", 1)), 2 * NODE)
    assert site.ended == ["d", "c"]
    assert (site.cores, site.dropped) == (2 * NODE, None)
    assert site.asked[-1] - site.asked[0] < 30 * SECOND


def test_with_a_large_job_those_that_are_in_the_way_without_it_end_too(one: Any) -> None:
    every = {1, 2, 3, 4}
    site = Site(one, {"big": every, "a": {1}, "b": {2}, "c": {3}, "d": {4}})
    site.take(site.begin(("big", 12), ("a", 1), ("b", 1), ("c", 1), ("d", 1)), 2 * NODE)
    assert site.ended == ["big", "d", "c"]
    assert (site.cores, site.dropped) == (2 * NODE, None)


def test_what_fits_on_the_nodes_that_are_left_runs_on(one: Any) -> None:
    site = Site(one, {"big": {1, 2, 3}, "a": {4}, "b": {4}, "c": {4}, "d": {4}})
    site.take(site.begin(("big", 12), ("a", 1), ("b", 1), ("c", 1), ("d", 1)), 2 * NODE)
    assert site.ended == ["big"]
    assert (site.cores, site.dropped) == (2 * NODE, None)


def test_a_job_that_was_not_seen_to_run_is_looked_at_and_ends_if_it_does(one: Any) -> None:
    site = Site(one, {"a": {1}, "b": {2}, "c": {3}}, unseen={"a", "b", "c"})
    site.take(site.begin(("a", 1), ("b", 1), ("c", 1)), 2 * NODE)
    assert site.ended == ["c"]
    assert (site.cores, site.dropped) == (2 * NODE, None)


def test_a_job_may_have_started_unseen_from_its_time_on_until_it_is_seen_to_run(one: Any) -> None:
    site = Site(one, {"a": {1}}, unseen={"a"})
    (job,) = one.party.jobs.jobs_of(site.begin(("a", 1)))
    assert [job.may_have_started(now) for now in (HOUR - 1, HOUR, HOUR + 1)] == [False, True, True]
    site.unseen.clear()
    site.act(job.look(HOUR + 1), HOUR + 1)
    assert job.state is JobState.RUNNING
    assert not job.may_have_started(HOUR + 1)


def test_where_none_of_its_jobs_is_left_it_comes_to_nothing(one: Any) -> None:
    site = Site(one, {}, strangers=frozenset({1, 2, 3}))
    site.take(site.begin(), 2 * NODE)
    assert (site.cores, site.dropped) == (4 * NODE, ("job_in_the_way", "its nodes have jobs"))
    assert len(site.asked) == 1
