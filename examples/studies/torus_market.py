"""Markets on live torus machines, which the paper of the market (2014) does not have.

`SIZES`: requests of growing size and torus share, on Table 2's flat machines and four live tori.
`FRAGMENTATION`: the same streams priced by the paper's formula and by a price for fragmentation.
`MONTH`: a month of market, day by day.
`MOLDABLE`: such a market with no, some or all requests leaving their size to the seller; seeds are compared one by one.

ramp experiment run examples/studies/torus_market.py:SIZES --out results --quick
"""

import time
from collections import Counter
from dataclasses import dataclass, field, replace
from statistics import fmean

from ramp.model.instant import DAY, HOUR, MINUTE, SECOND, Instant
from ramp.model.request import MoldableTerms, RequestForQuotation, RequestUnit, TorusTerms, TotalCores
from ramp.protocol.events import AuctionOptions, RequestSubmitted
from ramp.protocol.outcome import RequestStatus
from ramp.protocol.progress import RequestEnded
from ramp.protocol.timing import Timing
from ramp.runtime.configuration.file import load_config
from ramp.runtime.configuration.values import open_plugin, pricing_strategy
from ramp.shipped_files import find_config
from simulation.experiments.figures import Axis, Curves, Figure
from simulation.experiments.result import Column, Means
from simulation.experiments.study import Shown, Study
from simulation.experiments.trials.plan import STAND_IN_NOTE, workload_of
from simulation.machines.grid import Grid
from simulation.market.actors import COMPOSITION
from simulation.market.observing import unless_rule_failed
from simulation.market.random_streams import stream
from simulation.market.specs import ResourceSpec, UserSpec
from simulation.market.world import START, World
from simulation.queueing.queue_simulation import EndedJob
from simulation.resource.modelled import ModelledMachine

SMALLER = 2
"""The least size of a moldable request is the size asked divided by this, rounded up."""
LARGER = 4
"""Factor from the size asked to the greatest size."""
SERIAL_SHARE_MAX = 0.5
"""Share of the run at the size asked that stays serial, under Amdahl's law; uniform from 0 to this.

Of the run with one core it would be nothing or everything to requests of thousands of cores.
"""
PARALLELISM_BITS = 2.0
"""Downey's average parallelism is the size asked times two to the power of a uniform number from 0 to this."""
VARIANCE_MAX = 2.0
"""His variance of parallelism (sigma) is uniform from 0 to this."""


USERS = 5
DEPOSIT = 10**13
"""Of every user in minor units: money decides nothing here."""
REGISTRATION = 1 * SECOND
"""From the agents' start to the first request; all have registered by then."""
OPENING = START + REGISTRATION
"""When requests may begin to come."""
QUIET_TIMING = replace(Timing(), heartbeat=9 * MINUTE, lease=10 * MINUTE)
"""Nobody leaves this market, so registrations last as long as the directory allows."""


PRICE = 80
"""What users pay at most; no machine starts higher, so price excludes nobody by itself."""
MIXED_SIZES = (1024, 2048, 4096, 8192, 16_384)
MONTH_SIZES = (64, 256, 1024, 4096, 16_384)
MEASURES = ("success_rate", "mean_price", "mean_load", "background", "market", "mean_wait_h")


@dataclass(frozen=True, slots=True)
class MarketCase:
    """One market to run.

    Attributes:
        swarm: name of a shipped swarm; its machines are on the market.
        cores: sizes of requests, drawn with equal probability.
        torus_share: share of requests that want a torus; the others say nothing of it.
        pricing: pricing strategy of all machines.
        days: for how long requests come.
        requests_a_day: mean rate, Poisson.
        price: most that the users pay, credits per core hour.
        seed: of all that is drawn.
        load: offered load of the live machines' own users; None leaves the swarm's.
        moldable_share: probability that a request leaves its size to the seller. Those that do so at a share do so at
            every larger one. Those that want a torus may as well: a range of cores excludes only a stated shape, which
            nobody has here.
    """

    swarm: str
    cores: tuple[int, ...]
    torus_share: float
    pricing: str
    days: int
    requests_a_day: float
    price: int
    seed: int
    load: float | None = None
    moldable_share: float = 0.0


@dataclass(slots=True)
class Meter:
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


def swarm_resources(name):
    """The machines of a shipped swarm, in its order."""
    return load_config(find_config(name)).resources


def run_market(case):
    """Run one market to its end; its totals, and rows for machines, sales and days."""
    begun = time.process_time()
    opening = OPENING
    resources = [resource_of(each, case) for each in swarm_resources(case.swarm)]
    machines = {each.name: open_plugin(each, opening, None, case.seed) for each in resources}
    outcomes = []

    def listen(_, progress, __):
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
        name: Meter(machine, machine.clock.log_time(opening))
        for name, machine in machines.items()
        if isinstance(machine, ModelledMachine)
    }
    for meter in meters.values():
        meter.machine.live.on_end = meter.ended
    world.run(limit=REGISTRATION)
    submitted = submit(world, case, opening)
    world.run(limit=case.days * DAY + HOUR)
    assert len(outcomes) == submitted, "an hour after the last request all have ended"
    end = opening + case.days * DAY
    sales = [
        sale_row(outcome, bought.offer)
        for outcome in outcomes
        if outcome.status is RequestStatus.COMMITTED
        for bought in outcome.units
    ]
    for meter in meters.values():
        meter.machine.advance(world.now)  # one that nobody could use was never asked
    rows = [machine_row(meter, name, sales, opening, end) for name, meter in meters.items()]
    days = [day_row(day, opening + day * DAY, meters, outcomes, sales) for day in range(case.days)]
    return {
        "row": totals(case, outcomes, sales, rows, time.process_time() - begun),
        "machines": rows,
        "sales": sales,
        "days": days,
    }


def resource_of(resource, case):
    """A machine with the load and the prices of the case."""
    options = resource.options
    if resource.plugin == "modelled" and case.load is not None:
        options = {**options, "load": case.load}
    return replace(resource, options=options, pricing=case.pricing)


def submit(world, case, opening):
    """Schedule the stream of requests; returns how many there are."""
    asked = requests_of(case, opening)
    for number, (at, unit) in enumerate(asked, 1):
        command = RequestSubmitted(f"request{number}", RequestForQuotation((unit,)), AuctionOptions())
        world.command(f"user{number % USERS}", command, at)
    return len(asked)


def sale_row(outcome, offer):
    """One unit that was bought."""
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


def machine_row(meter, name, sales, opening, end):
    """What one live machine's own users and the market had of it."""
    machine = meter.machine
    sold = [sale for sale in sales if sale["resource"] == name]
    return {
        "resource": name,
        "machine": machine.machine.name,
        "background": round(meter.share(meter.begin, machine.live.now), 4),
        "market": round(sold_share(machine, sold, opening, end), 4),
        "sales": len(sold),
        "mean_price": round(fmean(sale["price"] for sale in sold), 2) if sold else None,
        "mean_load": round(fmean(sale["load"] for sale in sold), 4) if sold else None,
        "background_jobs": len(meter.waits),
        "mean_wait_h": round(fmean(meter.waits) / HOUR, 3) if meter.waits else 0.0,
    }


def sold_share(machine, sold, begin, end):
    """Share of a machine that its sales have in [begin, end)."""
    core_time = sum(sale["cores"] * max(0, min(sale["end"], end) - max(sale["start"], begin)) for sale in sold)
    return float(core_time / (machine.capacity * (end - begin)))


def day_row(day, begin, meters, outcomes, sales):
    """Requests, sales and use of one day."""
    asked = [outcome for outcome in outcomes if begin <= outcome.started_at < begin + DAY]
    bought = [outcome for outcome in asked if outcome.status is RequestStatus.COMMITTED]
    prices = [unit.offer.cpu_hour_cost for outcome in bought for unit in outcome.units]
    own, sold = [], []
    for name, meter in meters.items():
        first = meter.machine.clock.log_time(begin)
        own.append(meter.share(first, meter.machine.clock.log_time(begin + DAY)))
        mine = [sale for sale in sales if sale["resource"] == name]
        sold.append(sold_share(meter.machine, mine, begin, begin + DAY))
    return {
        "day": day,
        "requests": len(asked),
        "bought": len(bought),
        "mean_price": round(fmean(prices), 2) if prices else None,
        "background": round(fmean(own), 4),
        "market": round(fmean(sold), 4),
    }


def totals(case, outcomes, sales, machines, cpu_s):
    """The totals of a market."""
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


def requests_of(case, opening):
    """When each request comes, and its only unit, in order of time; the last comes an hour before the end."""
    random = stream(case.seed, f"torus-market/{case.requests_a_day}")
    # a stream of its own: the other numbers are what they are without moldable requests
    shapes = stream(case.seed, f"torus-market/moldable/{case.requests_a_day}")
    asked: list[tuple[Instant, RequestUnit]] = []
    at = opening
    while True:
        at += int(random.expovariate(case.requests_a_day) * DAY)
        if at >= opening + case.days * DAY - HOUR:
            return asked
        asked.append((at, unit_of(case, at, random, shapes)))


def unit_of(case, at, random, shapes):
    """One request."""
    size, torus, ahead, length, slack = (random.random() for _ in range(5))
    start = at + 10 * MINUTE + int(ahead * 6 * HOUR)
    wall_time = (1 + int(length * 8)) * HOUR
    cores = case.cores[int(size * len(case.cores))]
    terms = TorusTerms(connection="torus") if torus < case.torus_share else None
    deadline = start + wall_time + int(slack * 12) * HOUR
    moldable = moldable_terms(cores, case.moldable_share, shapes)
    return RequestUnit(1, case.price, deadline, TotalCores(cores), start, wall_time, torus=terms, moldable=moldable)


def moldable_terms(cores, share, random):
    """The sizes that will do and a speed-up law, half of them Amdahl's and half Downey's; None where one size does."""
    chosen, kind, serial, parallelism, variance = (random.random() for _ in range(5))
    if chosen >= share:
        return None
    if kind < 0.5:
        here = serial * SERIAL_SHARE_MAX
        law = f"amdahl:{here / (here + cores * (1 - here)):.6f}"  # of the run with one core, as the law is written
    else:
        law = f"downey:{cores * 2 ** (PARALLELISM_BITS * parallelism):.3f}:{VARIANCE_MAX * variance:.3f}"
    return MoldableTerms(-(-cores // SMALLER), LARGER * cores, law)


# -- the studies -------------------------------------------------------------------------------------------------------


def labels(case):
    """What tells the cases apart."""
    return {
        "request_cores": " ".join(map(str, case.cores)),
        "torus_share": case.torus_share,
        "pricing": case.pricing,
        "requests_a_day": case.requests_a_day,
        "moldable_share": case.moldable_share,
        "seed": case.seed,
    }


def rows_of(part):
    """Rows of all markets behind what tells their cases apart."""
    return lambda found: [{**labels(case), **row} for case, run in found.pairs() for row in run[part]]


def markets(found):
    """A row for each market; refusals by code in a single column."""
    rows = []
    for case, run in found.pairs():
        refusals = " ".join(f"{code}:{count}" for code, count in run["row"]["refusals_first_round"].items())
        rows.append({**labels(case), **run["row"], "refusals_first_round": refusals})
    return rows


def sales(found):
    """All sales, with each seller's kind of workload."""
    workloads = {each.name: workload_of(each) for case, _ in found.pairs()[:1] for each in swarm_resources(case.swarm)}
    return [{**row, "workload": workloads[row["resource"]]} for row in rows_of("sales")(found)]


def market_study(**declared):
    """A study whose cases are markets."""
    return Study(
        measure=run_market,
        columns=COLUMNS,
        parameters={
            "price": PRICE,
            "request": "one unit; start wished 10 min to 6 h ahead, wall time 1 to 8 h, up to 11 h of slack; 3 rounds",
        },
        notes=(STAND_IN_NOTE,),
        **declared,
    )


SHARE = "share of the machine"
COLUMNS = {
    "cores": Column("cores", "of the sale"),
    "request_cores": Column("cores", "sizes of the requests of the market"),
    "torus_share": Column("share of requests", "that want a torus"),
    "pricing": Column("", "strategy: ramp (the paper's formula) or fragmentation"),
    "requests_a_day": Column("1/day", "mean rate of requests"),
    "moldable_share": Column("share of requests", "probability that a request leaves its size to the seller"),
    "requests": Column("requests", "that were made"),
    "bought": Column("requests", "that were bought"),
    "success_rate": Column("share of requests", "that were bought"),
    "mean_price": Column("credits per core hour", "mean price of the sales"),
    "price_a_core_hour": Column("credits per core hour", "spent in all over core hours sold"),
    "mean_load": Column("share of the cores", "mean projected load at the offers that were bought"),
    "background": Column(SHARE, "that its own users had; in tables of markets the mean over live machines"),
    "market": Column(SHARE, "that was sold; in tables of markets the mean over live machines"),
    "mean_wait_h": Column("h", "mean wait of the machine's own jobs"),
    "refusals_first_round": Column("", "how many offers were refused for which reason in first rounds"),
    "days": Column("days", "for how long requests came"),
    "cpu_s": Column("s", "CPU time of the whole simulation"),
    "resource": Column("", "name of the seller"),
    "workload": Column("", "real log, stand-in (synthetic in place of a missing log) or generated"),
    "machine": Column("", "its machine file"),
    "sales": Column("", "units that it sold"),
    "background_jobs": Column("jobs", "of its own users that began"),
    "request_id": Column("", "of the request"),
    "price": Column("credits per core hour", "of the sale"),
    "load": Column("share of the cores", "projected load that the offer was made at"),
    "start": Column("us", "begin of the slot, since 1970"),
    "end": Column("us", "end of the slot, since 1970"),
    "placement": Column("", "where on the machine; empty on flat machines"),
    "day": Column("", "number of the day"),
    **{f"{name}_half": Column("as the measure", f"half of the 95 % interval of {name}") for name in MEASURES},
    **{f"{name}_change": Column("as the measure", "less that of the first case, seed by seed") for name in MEASURES},
    **{
        f"{name}_change_half": Column("as the measure", f"half of the 95 % interval of {name}_change")
        for name in MEASURES
    },
}
USE_AND_PRICE = (
    Axis("success_rate", "requests bought (%)", 100),
    Axis("mean_price", "credits per core hour"),
    Axis("background", "own users (% of the machines)", 100),
    Axis("market", "sold (% of the machines)", 100),
)


def growing_requests(run):
    """Every size of requests with every share of tori."""
    sizes = run.either((256, 1024, 4096, 16_384, 32_768, 65_536), (256, 16_384))
    return [
        MarketCase("quickstart", (size,), share, "ramp", run.either(30, 5), 12.0, PRICE, run.seed)
        for size in sizes
        for share in run.either((0.0, 0.5, 1.0), (0.0, 1.0))
    ]


SIZES = market_study(
    name="torus-market",
    about="requests of growing size and torus share against a mixed swarm of flat machines and live tori",
    cases=growing_requests,
    tables={"torus_market": markets, "machines": rows_of("machines"), "sales": sales},
    figures={
        "torus_market.png": Figure(
            title="Beyond Zasada and Coveney: a market with live tori, by size and torus share of the requests",
            size=(14, 4.4),
            draw=Curves(
                table="torus_market",
                x=Axis("request_cores", "size of the requests (cores)"),
                y=USE_AND_PRICE,
                lines=("torus_share",),
                title=lambda panel: panel[0],
            ),
        )
    },
    shown=(Shown("torus_market", f"request_cores torus_share {' '.join(MEASURES)}"),),
)


def against_first(*case):
    """A table of means over seeds, and of changes against the first of the cases, seed by seed."""

    def table(found):
        first = {}
        rows = []
        for row in found["markets"]:
            base = first.setdefault((row["requests_a_day"], row["seed"]), row)
            change = {
                f"{name}_change": None if None in (row[name], base[name]) else row[name] - base[name]
                for name in MEASURES
            }
            rows.append({**row, **change})
        return Means(by=case, of=(*MEASURES, *(f"{name}_change" for name in MEASURES)), digits=4).over(rows)

    return table


def both_pricings(run):
    """The same streams of requests, priced by the paper's formula and by a price for fragmentation."""
    return [
        MarketCase("torus", MIXED_SIZES, 0.5, pricing, run.either(30, 5), rate, PRICE, seed)
        for rate in run.either((10.0, 30.0), (30.0,))
        for seed in run.seeds(4, 1)
        for pricing in ("ramp", "fragmentation")
    ]


FRAGMENTATION = market_study(
    name="torus-market-fragmentation",
    about="what a price for fragmentation does to utilisation and prices on live tori",
    cases=both_pricings,
    tables={
        "markets": markets,
        "machines": rows_of("machines"),
        "differences": against_first("requests_a_day", "pricing"),
    },
    figures={
        "fragmentation.png": Figure(
            title="Beyond Zasada and Coveney: a price for fragmentation on live tori",
            size=(14, 4.4),
            draw=Curves(
                table="differences",
                x=Axis("requests_a_day", "requests a day"),
                y=USE_AND_PRICE,
                lines=("pricing",),
                spread="_half",
                title=lambda panel: panel[0],
            ),
        )
    },
    shown=(Shown("differences", "requests_a_day pricing success_rate success_rate_change mean_price market"),),
)


def one_month(run):
    """One market."""
    return [MarketCase("torus", MONTH_SIZES, 0.5, "ramp", run.either(30, 5), 48.0, PRICE, run.seed)]


MONTH = market_study(
    name="torus-market-month",
    about="a month of market on five live torus machines, and how long it takes on one core",
    cases=one_month,
    tables={"markets": markets, "days": rows_of("days"), "machines": rows_of("machines"), "sales": sales},
    figures={
        "month.png": Figure(
            title="Beyond Zasada and Coveney: a month of market on five live tori",
            size=(14, 4.4),
            draw=Curves(
                table="days",
                x=Axis("day", "day"),
                y=(Axis("bought", "requests bought"), *USE_AND_PRICE[1:]),
                title=lambda panel: panel[0],
            ),
        )
    },
    shown=(
        Shown("machines", "resource background market sales mean_price mean_load mean_wait_h"),
        Shown("markets", "days requests bought cpu_s"),
    ),
)


def moldable_shares(run):
    """The same requests, of which no, some and all leave their size to the seller."""
    return [
        MarketCase("torus", MONTH_SIZES, 0.5, "ramp", run.either(30, 2), 48.0, PRICE, seed, moldable_share=share)
        for seed in run.seeds(5, 2)
        for share in (0.0, 0.2, 1.0)
    ]


MOLDABLE = market_study(
    name="torus-market-malleable",
    about="a month of market on live tori with 0, 20 and 100 % of the requests moldable",
    cases=moldable_shares,
    tables={"markets": markets, "changes": against_first("moldable_share")},
    figures={
        "moldable.png": Figure(
            title="Beyond Zasada and Coveney: a market on live tori with moldable requests",
            size=(14, 4.4),
            draw=Curves(
                table="changes",
                x=Axis("moldable_share", "moldable requests (%)", 100),
                y=USE_AND_PRICE,
                spread="_half",
                title=lambda panel: panel[0],
            ),
        )
    },
    shown=(Shown("changes", "moldable_share success_rate success_rate_change mean_price mean_price_change market"),),
)
