"""An experiment of one's own, with a picture: does it pay to ask for many rounds of bidding?

ramp experiment run examples/own_experiment.py:EXPERIMENT --out results --quick
"""

from pathlib import Path
from typing import Any

import ramp
import simulation
from simulation.experiments.discovery import Experiment, Progress
from simulation.experiments.result import Column, write_rows, write_summary
from simulation.plots.style import new_figure, save_figure

COLUMNS = {"rounds": Column("", "of bidding"), "price": Column("credits per core hour", "mean over the requests")}


def run(out: Path, *, quick: bool, seed: int, processes: int | None, on_progress: Progress | None) -> dict[str, Any]:
    """Sell the same requests with more and more rounds."""
    wanted = [ramp.request(cores=cores, wall_time="1h", price=70) for cores in (16, 64, 256)]
    rows = []
    for rounds in range(1, 6 if quick else 11):
        study = simulation.market(*wanted, rounds=rounds, quote_only=True, seed=seed)
        prices = study.units["price_paid"]
        rows.append({"rounds": rounds, "price": round(float(prices.mean()), 2)})
    write_rows(out / "prices.csv", rows)
    figure = new_figure(6, 4, "Price paid against rounds of bidding", quick=quick)
    axes = figure.subplots()
    axes.plot([row["rounds"] for row in rows], [row["price"] for row in rows], "o-")
    axes.set(xlabel="rounds", ylabel="credits per core hour", ylim=(0, None))
    save_figure(figure, out / "prices.png")
    findings = {"first": rows[0], "last": rows[-1]}
    return write_summary(out, experiment="own-rounds", seed=seed, quick=quick, parameters={"market": "table2"},
        comparisons=[], findings=findings, columns=COLUMNS)  # fmt: skip


EXPERIMENT = Experiment("own-rounds", "price against rounds", run, lambda found: [f"{found['first']} {found['last']}"])
