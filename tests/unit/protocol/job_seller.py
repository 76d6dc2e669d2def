"""A resource that launches jobs and has sold its slot to alice: it begins after an hour and lasts one."""

from dataclasses import dataclass
from typing import Any

from ramp.model import contents as c
from ramp.model.acl import Performative
from ramp.model.instant import HOUR, MINUTE, SECOND
from ramp.model.request import RequestUnit
from ramp.model.slot import StaticTerms
from ramp.protocol import effects as fx
from ramp.protocol import events as ev
from ramp.protocol.resource.jobs.launching import LaunchTerms
from ramp.protocol.resource.quotas import Quotas
from tests.unit.protocol.conftest import UNIT, OneResource, new_resource

MACHINE = StaticTerms(64, 16, torus=True, gpus_per_node=2, gpu_model="a100")
TERMS = LaunchTerms("local", {"alice": "alice1"}, grace=10 * SECOND, delivery_limit=5 * MINUTE)
ORDER = c.JobOrder("job-1", "a1", 16, 1, HOUR, ("./run",))


@dataclass
class JobSeller(OneResource):
    terms: LaunchTerms = TERMS

    def __post_init__(self) -> None:
        self.party = new_resource(Quotas(), self.terms, terms=MACHINE)

    def hears(self, content: Any, now: int = 0, user: str = "alice") -> list[fx.Effect]:
        return self.hear(user, content, now, performative=Performative.REQUEST)

    def told(self, event: ev.Event, now: int) -> list[fx.Effect]:
        return self.answered(self.party.handle(event, now), now)

    def seen(self, answer: Any, now: int, job_id: str = "job-1") -> list[fx.Effect]:
        return self.told(ev.JobSeen(job_id, answer), now)

    def tick(self, now: int) -> list[fx.Effect]:
        return self.answered(self.party.tick(now), now)

    def restart(self, now: int, terms: LaunchTerms | None = None) -> list[fx.Effect]:
        self.party = new_resource(Quotas(), terms or self.terms)
        return self.answered(self.party.recover(tuple(self.journal), now), now)

    @property
    def job(self) -> Any:
        (found,) = self.party.jobs.jobs_of("offer-res-1")
        return found


def job_seller(terms: LaunchTerms = TERMS, placement: str = "", unit: RequestUnit = UNIT) -> JobSeller:
    one = JobSeller(placement=placement, terms=terms, unit=unit)
    one.sell()
    return one


def asked(effects: list[fx.Effect]) -> list[type]:
    """What is asked of the launcher."""
    return [type(each) for each in effects if isinstance(each, fx.AskLauncher)]


def submitted(effects: list[fx.Effect]) -> fx.JobToRun:
    """The one job that is submitted to it."""
    (submit,) = [each for each in effects if isinstance(each, fx.SubmitJob)]
    return submit.job


def recorded(effects: list[fx.Effect]) -> list[type]:
    return [type(each.record) for each in effects if isinstance(each, fx.Persist)]
