"""One market on live torus machines in virtual time: a stream of requests, and what became of everybody's work."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import Any, Final

from ramp.model.instant import DAY, HOUR, MINUTE, SECOND, Instant
from ramp.model.offer import Offer
from ramp.model.request import RequestForQuotation
from ramp.protocol.events import AuctionOptions, RequestSubmitted
from ramp.protocol.outcome import RequestOutcome, RequestStatus
from ramp.protocol.progress import Progress, RequestEnded
from ramp.protocol.timing import Timing
from ramp.runtime.configuration.file import load_config
from ramp.runtime.configuration.values import ResourceConfig, open_plugin, pricing_strategy
from simulation.experiments.torus_market.demand import MarketCase, request_id, requests_of
from simulation.experiments.trials.plan import swarms_directory
from simulation.machines.grid import Grid
from simulation.market.actors import COMPOSITION
from simulation.market.observing import unless_rule_failed
from simulation.market.specs import ResourceSpec, UserSpec
from simulation.market.world import START, World
from simulation.queueing.queue_simulation import EndedJob
from simulation.resource.modelled import ModelledMachine

USERS: Final = 5
DEPOSIT: Final = 10**13
"""Of every user in minor units: money decides nothing here."""
REGISTRATION: Final = 1 * SECOND
"""From the agents' start to the first request; all have registered by then."""
OPENING: Final[Instant] = START + REGISTRATION
"""When requests may begin to come."""
QUIET_TIMING: Final = replace(Timing(), heartbeat=9 * MINUTE, lease=10 * MINUTE)
"""Nobody leaves this market, so registrations last as long as the directory allows."""


@dataclass(frozen=True, slots=True)
class MarketRun:
    """What one market came to.

    Attributes:
        row: the totals, JSON types.
        machines: a row for each live machine.
        sales: a row for each unit bought.
        days: a row for each day: its requests, what they bought, and the use of the live machines on that day.
    """

    row: dict[str, Any]
    machines: list[dict[str, Any]]
    sales: list[dict[str, Any]]
    days: list[dict[str, Any]]


@dataclass(slots=True)
class _Meter:
    """Counts the work of one live machine's own users from an instant of machine time on.

    `ran` has start, end and units of every job that ended since.
    """

    machine: ModelledMachine
    begin: int
    ran: list[tuple[int, int, int]] = field(default_factory=list)
    waits: list[int] = field(default_factory=list)

    def ended(self, job: EndedJob) -> None:
        """Keep when and where a job ran, and how long it waited if it began in the time that is measured."""
        self.ran.append((job.start_time, job.end_time, job.placement.size))
        if job.start_time >= self.begin:
            self.waits.append(job.start_time - job.job.submit_time)

    def share(self, begin: int, end: int) -> float:
        """Share of the machine that its own users had in [begin, end), machine time not after now."""
        runs = [(job.start_time, end, job.placement.size) for job in self.machine.live.queue.running.values()]
        unit_time = sum(units * max(0, min(last, end) - max(first, begin)) for first, last, units in (*self.ran, *runs))
        return unit_time / (Grid(self.machine.machine.extents).size * (end - begin))


def swarm_resources(name: str) -> tuple[ResourceConfig, ...]:
    """The machines of a shipped swarm, in its order."""
    return load_config(swarms_directory() / f"{name}.toml").resources


def run_market(case: MarketCase) -> MarketRun:
    """Run one market to its end."""
    begun = time.process_time()
    opening = OPENING
    resources = [_resource(each, case) for each in swarm_resources(case.swarm)]
    machines = {each.name: open_plugin(each, opening, None, case.seed) for each in resources}
    outcomes: list[RequestOutcome] = []

    def listen(_: str, progress: Progress, __: Instant) -> None:
        if isinstance(progress, RequestEnded):
            outcomes.append(unless_rule_failed(progress.outcome))

    world = World(
        [
            ResourceSpec(each.name, machines[each.name], each.terms, each.prices, pricing_strategy(each.pricing))
            for each in resources
        ],
        [UserSpec(f"user{number}", DEPOSIT) for number in range(USERS)],
        seed=case.seed,
        composition=replace(COMPOSITION, timing=QUIET_TIMING),
        listen=listen,
    )
    meters = {
        name: _Meter(machine, machine.clock.log_time(opening))
        for name, machine in machines.items()
        if isinstance(machine, ModelledMachine)
    }
    for meter in meters.values():
        meter.machine.live.on_end = meter.ended
    world.run(limit=REGISTRATION)
    submitted = _submit(world, case, opening)
    world.run(limit=case.days * DAY + HOUR)
    assert len(outcomes) == submitted, "an hour after the last request all have ended"
    end = opening + case.days * DAY
    sales = [
        _sale(outcome, bought.offer)
        for outcome in outcomes
        if outcome.status is RequestStatus.COMMITTED
        for bought in outcome.units
    ]
    for meter in meters.values():
        meter.machine.advance(world.now)  # one that nobody could use was never asked
    rows = [_machine_row(meter, name, sales, opening, end) for name, meter in meters.items()]
    days = [_day_row(day, opening + day * DAY, meters, outcomes, sales) for day in range(case.days)]
    return MarketRun(_totals(case, outcomes, sales, rows, time.process_time() - begun), rows, sales, days)


def _resource(resource: ResourceConfig, case: MarketCase) -> ResourceConfig:
    options = resource.options
    if resource.plugin == "modelled" and case.load is not None:
        options = {**options, "load": case.load}
    return replace(resource, options=options, pricing=case.pricing)


def _submit(world: World, case: MarketCase, opening: Instant) -> int:
    """Schedule the stream of requests; returns how many there are."""
    asked = requests_of(case, opening)
    for number, (at, unit) in enumerate(asked, 1):
        command = RequestSubmitted(request_id(number), RequestForQuotation((unit,)), AuctionOptions())
        world.command(f"user{number % USERS}", command, at)
    return len(asked)


def _sale(outcome: RequestOutcome, offer: Offer) -> dict[str, Any]:
    return {
        "request_id": outcome.request_id,
        "resource": offer.resource,
        "price": offer.cpu_hour_cost,
        "load": round(offer.load, 4),
        "cores": offer.cores,
        "start": offer.start,
        "end": offer.end,
        "placement": offer.placement,
    }


def _machine_row(
    meter: _Meter, name: str, sales: list[dict[str, Any]], opening: Instant, end: Instant
) -> dict[str, Any]:
    machine = meter.machine
    sold = [sale for sale in sales if sale["resource"] == name]
    return {
        "resource": name,
        "machine": machine.machine.name,
        "background": round(meter.share(meter.begin, machine.live.now), 4),
        "market": round(_sold_share(machine, sold, opening, end), 4),
        "sales": len(sold),
        "mean_price": round(fmean(sale["price"] for sale in sold), 2) if sold else None,
        "mean_load": round(fmean(sale["load"] for sale in sold), 4) if sold else None,
        "background_jobs": len(meter.waits),
        "mean_wait_h": round(fmean(meter.waits) / HOUR, 3) if meter.waits else 0.0,
    }


def _sold_share(machine: ModelledMachine, sold: list[dict[str, Any]], begin: Instant, end: Instant) -> float:
    """Share of a machine that its sales have in [begin, end)."""
    core_time = sum(sale["cores"] * max(0, min(sale["end"], end) - max(sale["start"], begin)) for sale in sold)
    return float(core_time / (machine.capacity * (end - begin)))


def _day_row(
    day: int,
    begin: Instant,
    meters: dict[str, _Meter],
    outcomes: list[RequestOutcome],
    sales: list[dict[str, Any]],
) -> dict[str, Any]:
    asked = [outcome for outcome in outcomes if begin <= outcome.started_at < begin + DAY]
    bought = [outcome for outcome in asked if outcome.status is RequestStatus.COMMITTED]
    prices = [unit.offer.cpu_hour_cost for outcome in bought for unit in outcome.units]
    own, sold = [], []
    for name, meter in meters.items():
        first = meter.machine.clock.log_time(begin)
        own.append(meter.share(first, meter.machine.clock.log_time(begin + DAY)))
        mine = [sale for sale in sales if sale["resource"] == name]
        sold.append(_sold_share(meter.machine, mine, begin, begin + DAY))
    return {
        "day": day,
        "requests": len(asked),
        "bought": len(bought),
        "mean_price": round(fmean(prices), 2) if prices else None,
        "background": round(fmean(own), 4),
        "market": round(fmean(sold), 4),
    }


def _totals(
    case: MarketCase,
    outcomes: list[RequestOutcome],
    sales: list[dict[str, Any]],
    machines: list[dict[str, Any]],
    cpu_s: float,
) -> dict[str, Any]:
    refusals = Counter(
        str(each.refusal.code) for outcome in outcomes for record in outcome.rounds[:1] for each in record.refusals
    )
    core_hours = sum(sale["cores"] * (sale["end"] - sale["start"]) / HOUR for sale in sales)
    spent = sum(sale["price"] * sale["cores"] * (sale["end"] - sale["start"]) / HOUR for sale in sales)
    return {
        "requests": len(outcomes),
        "bought": len(sales),
        "success_rate": round(len(sales) / len(outcomes), 4) if outcomes else 0.0,
        "mean_price": round(fmean(sale["price"] for sale in sales), 2) if sales else None,
        "price_a_core_hour": round(spent / core_hours, 2) if sales else None,
        "mean_load": round(fmean(sale["load"] for sale in sales), 4) if sales else None,
        "background": round(fmean(row["background"] for row in machines), 4),
        "market": round(fmean(row["market"] for row in machines), 4),
        "mean_wait_h": round(fmean(row["mean_wait_h"] for row in machines), 3),
        "refusals_first_round": dict(sorted(refusals.items())),
        "days": case.days,
        "cpu_s": round(cpu_s, 2),
    }
