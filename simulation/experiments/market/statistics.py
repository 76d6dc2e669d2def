"""What the market experiments share: ages of machines, parameters in words, statistics of a few numbers."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, pstdev
from typing import Any, Final

import numpy as np

from ramp.model.instant import HOUR, MINUTE, SECOND, Duration
from simulation.experiments.trials.plan import STAND_IN, MarketPlan, Mode, workload_of
from simulation.market.random_streams import stream

OLDEST_HOURS: Final = 72
"""Machines have been running for up to so long when a market opens; the paper's left theirs running between tests."""

TIMING_NOTES: Final = {
    Mode.SIMULATED: "virtual time: messages and bids take the mean service times of trials.stations.Costs",
    Mode.XMPP: "wall time on one machine; what else ran on it makes every time an upper bound",
}


def drawn_ages(seed: int, count: int) -> list[Duration]:
    """How long the machines of each repetition have been running, in whole minutes."""
    random = stream(seed, "ages")
    return [random.randrange(OLDEST_HOURS * HOUR // MINUTE) * MINUTE for _ in range(count)]


def market_parameters(mode: str, plans: Sequence[MarketPlan]) -> dict[str, Any]:
    """Parameters that every market experiment states."""
    first = plans[0]
    return {
        "mode": str(mode),
        "times": TIMING_NOTES[Mode(mode)],
        "resources": [each.name for each in first.resources[:20]],
        "number_of_resources": max(len(plan.resources) for plan in plans),
        "stand_ins": [each.name for each in first.resources[:20] if workload_of(each) == STAND_IN],
        "prices": "Table 2; strategy ramp (exact quotient, 4 rounds expected)",
        "ages_hours": [round(plan.age / HOUR, 3) for plan in plans[:10]],
        "spacing_s": [
            (later.at - earlier.at) / SECOND
            for earlier, later in zip(first.submissions, first.submissions[1:2], strict=False)
        ],
    }


def mean_and_deviation(values: Sequence[float], digits: int = 4) -> tuple[float, float]:
    """Mean and standard deviation, rounded; zeros for no values."""
    if not values:
        return 0.0, 0.0
    return round(fmean(values), digits), round(pstdev(values), digits)


def straight_line(points: Sequence[tuple[float, float]]) -> tuple[float, float, float]:
    """Slope, intercept and coefficient of determination of the least-squares line."""
    x, y = np.array(points, dtype=float).T
    slope, intercept = np.polyfit(x, y, 1)
    residual = float(((y - slope * x - intercept) ** 2).sum())
    total = float(((y - y.mean()) ** 2).sum())
    return float(slope), float(intercept), 1 - residual / total if total else 1.0
