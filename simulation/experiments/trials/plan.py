"""What a market experiment does and what came out of it, in the same words for both ways of running it.

A plan is a market (resources, users, how long its machines have been running) and the requests submitted to it, each at
a fixed time after the opening. `simulation.experiments.trials.simulated` runs a plan in virtual time,
`simulation.experiments.trials.xmpp` with agents in processes of their own; both give the same kind of result.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from ramp.model.instant import HOUR, SECOND, Duration, Instant
from ramp.model.offer import Offer, RefusalCode
from ramp.model.request import RequestForQuotation, RequestUnit, TotalCores
from ramp.protocol.events import AuctionOptions
from ramp.protocol.outcome import RequestOutcome, RequestStatus, RoundRecord
from ramp.runtime.configuration.file import load_config
from ramp.runtime.configuration.sites import EMBEDDED
from ramp.runtime.configuration.values import ResourceConfig
from ramp.shipped_files import find_config
from simulation.workload.logs import find_log

STAND_IN: Final = "stand-in"
REAL_LOG: Final = "real log"
OWN_WORKLOAD: Final = "generated"
"""What a resource's workload may be, in all tables and pictures."""

STAND_IN_NOTE: Final = f"{STAND_IN}: a synthetic workload in place of a log that is not on this machine"


class Mode(StrEnum):
    """How a plan is run: in virtual time, or over real XMPP with agents in their own processes."""

    SIMULATED = "simulated"
    XMPP = "xmpp"


@dataclass(frozen=True, slots=True)
class UnitWish:
    """One unit of a request, with times relative to its submission.

    Attributes:
        price: most the user pays, whole credits per core hour.
        cores: cores wanted.
        lead: from the submission to the earliest start.
        wall: wall time.
        slack: how much later than that the run may start.
    """

    price: int
    cores: int
    lead: Duration
    wall: Duration = HOUR
    slack: Duration = 0


@dataclass(frozen=True, slots=True)
class Submission:
    """One request to be auctioned.

    Attributes:
        label: names it within the plan.
        user: who asks.
        at: when, counted from the market's opening.
        wishes: the units.
        options: rounds, round time and so on.
    """

    label: str
    user: str
    at: Duration
    wishes: tuple[UnitWish, ...]
    options: AuctionOptions = field(default_factory=AuctionOptions)

    def request(self, opening: Instant) -> RequestForQuotation:
        """The request for quotation of a market that opened at an instant."""
        submitted = opening + self.at
        units = [
            RequestUnit(
                number,
                wish.price,
                submitted + wish.lead + wish.wall + wish.slack,
                TotalCores(wish.cores),
                not_before=submitted + wish.lead,
                wall_time=wish.wall,
            )
            for number, wish in enumerate(self.wishes, 1)
        ]
        return RequestForQuotation(tuple(units))


@dataclass(frozen=True, slots=True)
class Links:
    """Network between the hosts of a market; agents without a host in `host_of` are on the first one.

    Attributes:
        host_of: host of each agent.
        latency: one-way latency between each host and the first one, where the XMPP server is.
        jitter: mean of an exponential delay on top, per direction.
        loss: probability that a packet is lost; TCP sends it again after `retransmission`.
        retransmission: how long that takes.
    """

    host_of: dict[str, str]
    latency: dict[str, Duration]
    jitter: Duration = 0
    loss: float = 0.0
    retransmission: Duration = 200_000


@dataclass(frozen=True, slots=True)
class MarketPlan:
    """A market and what is submitted to it.

    Attributes:
        label: names it among the plans of an experiment.
        resources: the sellers.
        users: number of buyers, called `user1` and so on.
        submissions: the requests.
        age: how long the machines have been running when the market opens.
        seed: of the simulator's random streams.
        heartbeat: pause between two registrations of a resource.
        resources_per_process: Resource Agents that share a process.
        links: the network between hosts; None = all on one host.
        server: kind of the XMPP server of a market on one host, `embedded` or `prosody`.
        round_trips_cost: whether the simulator lets messages and bids take processing time.
    """

    label: str
    resources: tuple[ResourceConfig, ...]
    users: int
    submissions: tuple[Submission, ...]
    age: Duration = 0
    seed: int = 1
    heartbeat: Duration = 5 * SECOND
    resources_per_process: int = 10
    links: Links | None = None
    server: str = EMBEDDED
    round_trips_cost: bool = True


@dataclass(frozen=True, slots=True)
class ProcessUse:
    """What one process of a market used while requests were running; in virtual time its station's service times."""

    name: str
    cpu_s: float
    memory_mb: float


@dataclass(frozen=True, slots=True)
class AuctionResult:
    """How one submission went.

    Attributes:
        submission: what was submitted.
        outcome: how it ended.
        answered: of each round, who answered how long after the calls had gone out.
        called_again: how many calls were sent again in all rounds.
    """

    submission: Submission
    outcome: RequestOutcome
    answered: tuple[tuple[tuple[str, Duration], ...], ...]
    called_again: int = 0

    @property
    def sold(self) -> bool:
        """Whether everything asked for was bought, or quoted where that was all that was wanted."""
        return self.outcome.status in (RequestStatus.COMMITTED, RequestStatus.QUOTED)

    @property
    def bidding(self) -> tuple[RoundRecord, ...]:
        """The rounds of bidding, without the extra round of best offers."""
        return tuple(record for record in self.outcome.rounds if not record.best_offer)

    @property
    def round_durations(self) -> tuple[Duration, ...]:
        """Durations of the rounds of bidding."""
        return tuple(record.duration for record in self.bidding)

    @property
    def negotiation(self) -> Duration:
        """Time outside the rounds: asking the directory, voting, confirmation and payment."""
        return self.outcome.duration - sum(record.duration for record in self.outcome.rounds)

    def price(self, unit: int = 1) -> float | None:
        """Sale price of a unit in credits per core hour, or None if it was not sold."""
        if not self.sold:
            return None
        return float(next(each for each in self.outcome.units if each.unit == unit).price_paid)

    def winner(self, unit: int = 1) -> str | None:
        """Who sold a unit, or None if nobody did."""
        if not self.sold:
            return None
        return next(bought.offer.resource for bought in self.outcome.units if bought.unit == unit)

    def able(self) -> frozenset[str]:
        """Resources that had the first unit's slot: they offered it, or refused only for the price."""
        codes = (RefusalCode.PRICE, RefusalCode.OWN_OFFER_STANDS)
        found: set[str] = set()
        for record in self.outcome.rounds:
            found.update(offer.resource for offer in record.offers if offer.unit == 1)
            found.update(
                each.resource for each in record.refusals if each.refusal.unit == 1 and each.refusal.code in codes
            )
        return frozenset(found)


@dataclass(frozen=True, slots=True)
class MarketResult:
    """How a plan went.

    Attributes:
        plan: the plan.
        auctions: its submissions, in their order.
        messages: messages between agents, heartbeats left out; 0 where nobody counts them.
        cpu_s: CPU time used from the opening on, by all processes together.
        wall_s: wall time from the opening to the end of the last request.
        launch_s: wall time until everybody was ready.
        processes: CPU time and memory by process.
        foreign_cores: cores that others on this machine kept busy meanwhile; 0 in virtual time.
    """

    plan: MarketPlan
    auctions: tuple[AuctionResult, ...]
    messages: int
    cpu_s: float
    wall_s: float
    launch_s: float
    processes: tuple[ProcessUse, ...] = ()
    foreign_cores: float = 0.0


def table2_resources() -> tuple[ResourceConfig, ...]:
    """The paper's twenty machines (Table 2), in its order."""
    return load_config(find_config("table2")).resources


def workload_of(resource: ResourceConfig) -> str:
    """Whether a resource replays its log, has a stand-in for it, or has a workload that never was a log."""
    if "log" not in resource.options:
        return OWN_WORKLOAD
    return REAL_LOG if find_log(str(resource.options["log"])) is not None else STAND_IN


def stand_ins(resources: Sequence[ResourceConfig]) -> str:
    """How many of the resources have a stand-in, for verdicts; empty if none has."""
    count = sum(workload_of(each) == STAND_IN for each in resources)
    return f"{count} of {len(resources)} stand-ins" if count else ""


def offers_of(result: AuctionResult) -> list[tuple[int, int, Offer]]:
    """All offers of the bidding for the first unit, as (round number, asking price, offer)."""
    return [
        (record.round_number, dict(record.asked)[1], offer)
        for record in result.bidding
        for offer in record.offers
        if offer.unit == 1
    ]
