"""Auction rules side by side: price paid, sellers' revenue, and how far the sales are from the cheapest allocation.

No paper has these numbers. The prices are those of Table 2 of Zasada and Coveney: the minimum price is what a seller
needs, the start price what it would like. All requests of a market are of one size and for the same hour, so the
cheapest acceptable allocation is known exactly: the free slots of least need. Sellers bid by the paper's formula, or
say what they need (truthful), or ask halfway between need and wish and undercut others by one credit (shading).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import Any, Final

from ramp.model import money
from ramp.model.instant import HOUR, MINUTE, SECOND, Instant
from ramp.model.offer import RefusalCode
from ramp.model.price_paid import SECOND_PRICE
from ramp.model.request import RequestForQuotation, RequestUnit, TotalCores
from ramp.model.slot import StaticTerms
from ramp.protocol.events import AuctionOptions, RequestSubmitted
from ramp.protocol.outcome import RequestOutcome, RequestStatus
from ramp.protocol.pricing import PriceQuestion, PriceRefusal, PricingStrategy, paper_price
from ramp.protocol.progress import Progress as Told
from ramp.protocol.progress import RequestEnded
from ramp.protocol.rules.auction_rule import PAPER_RULE
from simulation.experiments.comparison import Comparison, tell_comparison
from simulation.experiments.discovery import Experiment, Progress
from simulation.experiments.market.plots.auction_rules import draw_rules
from simulation.experiments.result import Column, Columns, grouped, write_rows, write_summary
from simulation.experiments.trials.plan import table2_resources
from simulation.experiments.worker_processes import run_all
from simulation.market.observing import unless_rule_failed
from simulation.market.random_streams import stream
from simulation.market.specs import ResourceSpec, UserSpec
from simulation.market.world import START, World
from simulation.resource.steady import SteadyMachine

SEALED_FIRST: Final = "sealed-first-price"
CORES: Final = (64, 128, 256)
"""Sizes of the machines, drawn with equal probability."""
SLOT: Final = 16
"""Cores of every request."""
REQUESTS: Final = 6
"""Requests of a market, one after another."""
CAP: Final = 80
"""Most that every user pays, credits per core hour: the highest start price of Table 2."""
SPACING: Final = 20 * SECOND
"""Between two requests; the one before has been paid by then."""
DEPOSIT: Final = 10**13
"""Of the user in minor units: money decides nothing here."""
LOADS: Final = (0.0, 0.3, 0.6, 0.9)
ROUNDS: Final = (1, 3, 5, 8)
REPETITIONS: Final = 3


def truthful(question: PriceQuestion) -> int | PriceRefusal:
    """Say what is needed, whatever the others do."""
    if question.minimum_price > question.asking and not question.best_offer:
        return PriceRefusal(RefusalCode.PRICE, question.minimum_price)
    return question.minimum_price


def shading(question: PriceQuestion) -> int | PriceRefusal:
    """Ask halfway between need and wish; where others ask less, undercut them by one, down to the need."""
    if question.own_last is not None and question.own_last == question.asking and not question.best_offer:
        return PriceRefusal(RefusalCode.OWN_OFFER_STANDS)
    wanted = (question.minimum_price + question.start_price) // 2
    bid = wanted if wanted <= question.asking else question.asking - (question.round_number > 1)
    if bid >= question.minimum_price or question.best_offer:
        return max(bid, question.minimum_price)
    return PriceRefusal(RefusalCode.PRICE, question.minimum_price)


SELLERS: Final[dict[str, PricingStrategy]] = {"paper": paper_price, "truthful": truthful, "shading": shading}


@dataclass(frozen=True, slots=True)
class Case:
    """One market.

    Attributes:
        rule: auction rule of all requests.
        rounds: of bidding; sealed rules have one.
        load: share of every machine that its own users take.
        sellers: how all sellers bid, a name of `SELLERS`.
        repetition: number of the market; it draws the sizes of the machines.
        seed: of all that is drawn.
    """

    rule: str
    rounds: int
    load: float
    sellers: str
    repetition: int
    seed: int


_COLUMNS: Final[Columns] = {
    "rule": Column("", "auction rule of all requests"),
    "rounds": Column("", "rounds of bidding; sealed rules have one"),
    "load": Column("share", "of every machine, taken by its own users"),
    "sellers": Column("", "how sellers bid: by the paper's formula, truthful (their need), or shading"),
    "repetition": Column("", "number of the market; each draws other sizes of machines"),
    "sold": Column("requests", "that were bought; in rules.csv its mean"),
    "of": Column("requests", "that were made and could have been served at the cap"),
    "price": Column("credits per core hour", "mean price paid"),
    "need": Column("credits per core hour", "mean minimum price of those who sold"),
    "revenue": Column("credits", "that all sellers got together"),
    "gain": Column("credits", "revenue less what the sellers needed"),
    "cheapest": Column("credits per core hour", "mean need in the cheapest acceptable allocation of as many requests"),
    "distance": Column("%", "by which the sellers' need is above that of the cheapest acceptable allocation"),
}


def run_case(case: Case) -> dict[str, Any]:
    """Run one market; returns its row."""
    random = stream(case.seed, f"rules/{case.repetition}")
    outcomes: list[RequestOutcome] = []

    def listen(_: str, progress: Told, __: Instant) -> None:
        if isinstance(progress, RequestEnded):
            outcomes.append(unless_rule_failed(progress.outcome))

    resources = []
    needs: list[int] = []
    for each in table2_resources():
        cores = random.choice(CORES)
        machine = SteadyMachine(each.name, cores, case.load)
        spec = ResourceSpec(each.name, machine, StaticTerms(cores), each.prices, SELLERS[case.sellers])
        resources.append(spec)
        needs += [each.prices.minimum_price] * ((cores - round(cores * case.load)) // SLOT)
    world = World(resources, [UserSpec("user", DEPOSIT)], seed=case.seed, listen=listen)
    begin = START + HOUR
    options = AuctionOptions(rounds=case.rounds, rule=case.rule)
    for number in range(1, REQUESTS + 1):
        unit = RequestUnit(1, CAP, begin + HOUR, TotalCores(SLOT), not_before=begin, wall_time=HOUR)
        command = RequestSubmitted(f"request{number}", RequestForQuotation((unit,)), options)
        world.command("user", command, START + number * SPACING)
    world.run(until=lambda: len(outcomes) == REQUESTS, limit=REQUESTS * SPACING + 10 * MINUTE)
    assert len(outcomes) == REQUESTS, "ten minutes after the last request all have ended"
    need_of = {each.name: each.prices.minimum_price for each in resources}
    return asdict(case) | measured(outcomes, need_of, needs)


def measured(outcomes: Sequence[RequestOutcome], need_of: Mapping[str, int], slots: Sequence[int]) -> dict[str, Any]:
    """Return the measures of a market whose requests have one unit each.

    `need_of` has each seller's minimum price; `slots` has that price once for every slot free at the begin.
    """
    bought = [unit for each in outcomes if each.status is RequestStatus.COMMITTED for unit in each.units]
    hours = SLOT  # of every request: its cores for an hour
    revenue = sum(unit.cost for unit in bought) / money.MINOR_UNITS_PER_CREDIT
    needed = sum(need_of[unit.offer.resource] for unit in bought)
    cheapest = sum(sorted(each for each in slots if each <= CAP)[: len(bought)])
    return {
        "sold": len(bought),
        "of": min(len(outcomes), sum(each <= CAP for each in slots)),
        "price": round(revenue / hours / len(bought), 3) if bought else None,
        "need": round(needed / len(bought), 3) if bought else None,
        "revenue": round(revenue, 2),
        "gain": round(revenue - needed * hours, 2),
        "cheapest": round(cheapest / len(bought), 3) if bought else None,
        "distance": round(100 * (needed / cheapest - 1), 3) if bought else None,
    }


_MEASURES: Final = ("sold", "of", "price", "need", "revenue", "gain", "cheapest", "distance")
_CELL: Final = ("rule", "rounds", "load", "sellers")


def means(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The mean over the repetitions of each rule, number of rounds, load and sort of sellers."""
    table = []
    for cell, mine in grouped(rows, *_CELL).items():
        found: dict[str, Any] = dict(zip(_CELL, cell, strict=True))
        for measure in _MEASURES:
            values = [row[measure] for row in mine if row[measure] is not None]
            found[measure] = round(fmean(values), 3) if values else None
        table.append(found)
    return table


def cases(seed: int, repetitions: int, rounds: Sequence[int], loads: Sequence[float]) -> list[Case]:
    """All markets: the paper's rule with every number of rounds, the sealed ones with one."""
    ways = [(PAPER_RULE, count) for count in rounds] + [(SEALED_FIRST, 1), (SECOND_PRICE, 1)]
    return [
        Case(rule, count, load, sellers, repetition, seed)
        for rule, count in ways
        for load in loads
        for sellers in SELLERS
        for repetition in range(1, repetitions + 1)
    ]


def run(
    out: Path,
    *,
    quick: bool,
    seed: int,
    processes: int | None,
    on_progress: Progress | None,
    repeat: int | None = None,
) -> dict[str, Any]:
    """Run the experiment; see `RunExperiment`."""
    repetitions = repeat or (1 if quick else REPETITIONS)
    rounds, loads = (ROUNDS[:2], LOADS[:3:2]) if quick else (ROUNDS, LOADS)
    wanted = cases(seed, repetitions, rounds, loads)
    markets = run_all(run_case, wanted, processes=processes, on_progress=on_progress)
    table = means(markets)
    write_rows(out / "markets.csv", markets)
    write_rows(out / "rules.csv", table)
    draw_rules(out / "rules.csv", out / "rules.png", quick=quick)
    return write_summary(
        out,
        experiment=EXPERIMENTS[0].name,
        seed=seed,
        quick=quick,
        parameters={
            "sellers": f"{len(table2_resources())} with the prices of Table 2, of {CORES} cores",
            "requests": f"{REQUESTS} one after another, each {SLOT} cores for the same hour at {CAP} at most",
            "rounds": list(rounds),
            "loads": list(loads),
            "repetitions": repetitions,
        },
        comparisons=comparisons(table),
        findings={"table": table},
        columns=_COLUMNS,
    )


def comparisons(table: Sequence[Mapping[str, Any]]) -> list[Comparison]:
    """What theory says of truthful sellers, beside what the markets showed."""

    def of(rule: str, sellers: str, measure: str) -> list[float]:
        wanted = [row for row in table if (row["rule"], row["sellers"]) == (rule, sellers)]
        return [row[measure] for row in wanted if row[measure] is not None]

    first, second = of(SEALED_FIRST, "truthful", "price"), of(SECOND_PRICE, "truthful", "price")
    more = [paid - offered for paid, offered in zip(second, first, strict=True)]
    picture = "rules.png"
    return [
        Comparison(
            "second price, truthful sellers: largest distance from the cheapest allocation",
            "none (Vickrey 1961)", max(of(SECOND_PRICE, "truthful", "distance")), "%", at_most=0.0, picture=picture,
            why="the one who needs least does not always win",
        ),
        Comparison(
            "truthful sellers: least price of second price above first price", "at least 0 (Vickrey 1961)", min(more),
            "credits per core hour", at_least=0.0, picture=picture, why="a winner is paid less than it has offered",
        ),
        Comparison(
            "second price, truthful sellers: least gain of all sellers", "at least 0 (Vickrey 1961)",
            min(of(SECOND_PRICE, "truthful", "gain")), "credits", at_least=0.0, picture=picture,
            why="a winner is paid less than it needs",
        ),
    ]  # fmt: skip


def _tell(summary: dict[str, Any]) -> list[str]:
    lines = ["price paid / sellers' gain / distance from the cheapest allocation, means over all loads"]
    rows = summary["table"]
    lines.append(f"{'rule':>20} rounds" + "".join(f"  {name:>26}" for name in SELLERS))
    for rule, rounds in dict.fromkeys((row["rule"], row["rounds"]) for row in rows):
        cells = ""
        for sellers in SELLERS:
            mine = [row for row in rows if (row["rule"], row["rounds"], row["sellers"]) == (rule, rounds, sellers)]
            price, gain, distance = (
                fmean([row[key] for row in mine if row[key] is not None]) for key in ("price", "gain", "distance")
            )
            cells += f"  {price:7.2f} / {gain:7.1f} / {distance:4.1f} %"
        lines.append(f"{rule:>20} {rounds:6}{cells}")
    return [*lines, "", *tell_comparison(summary)]


EXPERIMENTS: Final = (
    Experiment(
        "rules",
        "auction rules: price paid, sellers' revenue and distance from the cheapest allocation, by rounds and load",
        run,
        _tell,
        frozenset({"repeat"}),
    ),
)
