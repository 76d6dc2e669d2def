"""A study of one's own: does it pay to ask for many rounds of bidding?

ramp experiment run examples/own_experiment.py:STUDY --out results --quick
"""

import ramp
import simulation
from simulation.experiments.figures import Axis, Curves, Figure
from simulation.experiments.result import Column
from simulation.experiments.study import Shown, Study


def cases(run):
    """More and more rounds."""
    return [(rounds, run.seed) for rounds in range(1, run.either(11, 6))]


def price_paid(case):
    """Sell three requests on Table 2's machines, and take the mean of the prices."""
    rounds, seed = case
    wanted = [ramp.request(cores=cores, wall_time="1h", price=70) for cores in (16, 64, 256)]
    market = simulation.market(*wanted, rounds=rounds, quote_only=True, seed=seed)
    return {"rounds": rounds, "price": round(float(market.units["price_paid"].mean()), 2)}


STUDY = Study(
    name="own-rounds",
    about="price against rounds of bidding",
    cases=cases,
    measure=price_paid,
    columns={"rounds": Column("", "of bidding"), "price": Column("credits per core hour", "mean over the requests")},
    figures={"prices.png": Figure(title="Price paid against rounds of bidding", size=(6, 4), draw=Curves(
        table="runs", x=Axis("rounds", "rounds"), y=[Axis("price", "credits per core hour")]))},
    shown=[Shown("runs", "rounds price")],
)  # fmt: skip
