"""Auction rules side by side: price paid, sellers' revenue, and how far the sales are from the cheapest allocation.

No paper has these numbers. The prices are those of Table 2 of Zasada and Coveney: the minimum price is what a seller
needs, the start price what it would like. All requests of a market are of one size and for the same hour, so the
cheapest acceptable allocation is known exactly: the free slots of least need. Sellers bid by the paper's formula, or
say what they need (truthful), or ask halfway between need and wish and undercut others by one credit (shading).

ramp experiment run examples/studies/auction_rules.py:STUDY --out results --quick
"""

from dataclasses import asdict, dataclass

from ramp.model import money
from ramp.model.instant import HOUR, MINUTE, SECOND
from ramp.model.offer import RefusalCode
from ramp.model.price_paid import SECOND_PRICE
from ramp.model.request import RequestForQuotation, RequestUnit, TotalCores
from ramp.model.slot import StaticTerms
from ramp.protocol.events import AuctionOptions, RequestSubmitted
from ramp.protocol.outcome import RequestStatus
from ramp.protocol.pricing import PriceRefusal, paper_price
from ramp.protocol.progress import RequestEnded
from ramp.protocol.rules.auction_rule import PAPER_RULE
from simulation.experiments.figures import Axis, Curves, Figure, plain_style
from simulation.experiments.result import Column, Means
from simulation.experiments.study import Comparison, Shown, Study, rows_of
from simulation.experiments.trials.plan import table2_resources
from simulation.market.observing import unless_rule_failed
from simulation.market.random_streams import stream
from simulation.market.specs import ResourceSpec, UserSpec
from simulation.market.world import START, World
from simulation.resource.steady import SteadyMachine

SEALED_FIRST = "sealed-first-price"
CORES = (64, 128, 256)
"""Sizes of the machines, drawn with equal probability."""
SLOT = 16
"""Cores of every request."""
REQUESTS = 6
"""Requests of a market, one after another."""
CAP = 80
"""Most that every user pays, credits per core hour: the highest start price of Table 2."""
SPACING = 20 * SECOND
"""Between two requests; the one before has been paid by then."""
DEPOSIT = 10**13
"""Of the user in minor units: money decides nothing here."""


def truthful(question):
    """Say what is needed, whatever the others do."""
    if question.minimum_price > question.asking and not question.best_offer:
        return PriceRefusal(RefusalCode.PRICE, question.minimum_price)
    return question.minimum_price


def shading(question):
    """Ask halfway between need and wish; where others ask less, undercut them by one, down to the need."""
    if question.own_last is not None and question.own_last == question.asking and not question.best_offer:
        return PriceRefusal(RefusalCode.OWN_OFFER_STANDS)
    wanted = (question.minimum_price + question.start_price) // 2
    bid = wanted if wanted <= question.asking else question.asking - (question.round_number > 1)
    if bid >= question.minimum_price or question.best_offer:
        return max(bid, question.minimum_price)
    return PriceRefusal(RefusalCode.PRICE, question.minimum_price)


SELLERS = {"paper": paper_price, "truthful": truthful, "shading": shading}


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


def run_case(case):
    """Run one market; returns its row."""
    random = stream(case.seed, f"rules/{case.repetition}")
    outcomes = []

    def listen(_, progress, __):
        if isinstance(progress, RequestEnded):
            outcomes.append(unless_rule_failed(progress.outcome))

    resources = []
    needs = []
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


def measured(outcomes, need_of, slots):
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


MEASURES = ("sold", "of", "price", "need", "revenue", "gain", "cheapest", "distance")


def cases(run):
    """All markets: the paper's rule with every number of rounds, the sealed ones with one."""
    ways = [(PAPER_RULE, rounds) for rounds in run.either((1, 3, 5, 8), (1, 3))]
    return [
        Case(rule, rounds, load, sellers, repetition, run.seed)
        for rule, rounds in [*ways, (SEALED_FIRST, 1), (SECOND_PRICE, 1)]
        for load in run.either((0.0, 0.3, 0.6, 0.9), (0.0, 0.6))
        for sellers in SELLERS
        for repetition in range(1, (run["repeat"] or run.either(3, 1)) + 1)
    ]


def comparisons(found):
    """What theory says of truthful sellers, beside what the markets showed."""

    def of(rule, sellers, measure):
        wanted = [row for row in found["rules"] if (row["rule"], row["sellers"]) == (rule, sellers)]
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


def style(line, number):
    """A line is named by its rule and its rounds."""
    rule, rounds = line
    return {**plain_style(line, number), "label": f"{rule}, {rounds} round{'' if rounds == 1 else 's'}"}


STUDY = Study(
    name="rules",
    about="auction rules: price paid, sellers' revenue and distance from the cheapest allocation, by rounds and load",
    cases=cases,
    measure=run_case,
    tables={
        "markets": rows_of(),
        "rules": Means(table="markets", by=("rule", "rounds", "load", "sellers"), of=MEASURES, spread=""),
    },
    columns={
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
        "cheapest": Column(
            "credits per core hour", "mean need in the cheapest acceptable allocation of as many requests"
        ),
        "distance": Column("%", "by which the sellers' need is above that of the cheapest acceptable allocation"),
    },
    figures={
        "rules.png": Figure(
            title="Auction rules over the machines' load, with Table 2's prices",
            size=(12, 9.5),
            draw=Curves(
                table="rules",
                x=Axis("load", "load of the machines"),
                y=(
                    Axis("price", "price paid (credits per core hour)"),
                    Axis("revenue", "sellers' revenue (credits)"),
                    Axis("distance", "above the cheapest allocation (%)"),
                ),
                panels=("sellers",),
                lines=("rule", "rounds"),
                style=style,
                title=lambda panel: f"{panel[1]} sellers",
            ),
            legend=4,
        )
    },
    comparisons=comparisons,
    shown=(Shown("rules", "rule rounds load sellers price gain distance"),),
    parameters={
        "sellers": f"those of Table 2 with its prices, of {CORES} cores",
        "requests": f"{REQUESTS} one after another, each {SLOT} cores for the same hour at {CAP} at most",
    },
    options={"repeat": None},
)
