"""The two ways of running market plans behind one function."""

from __future__ import annotations

from collections.abc import Sequence

from simulation.experiments.discovery import Progress
from simulation.experiments.market_plan import MarketPlan, MarketResult, Mode
from simulation.experiments.market_simulated import run_simulated
from simulation.experiments.result import run_all


def run_plans(
    mode: Mode, plans: Sequence[MarketPlan], *, processes: int | None, on_progress: Progress | None
) -> list[MarketResult]:
    """Run plans and return their results, in their order.

    Args:
        mode: in virtual time, or over XMPP; markets over XMPP run one after another, to have the machine to themselves.
        plans: what to run.
        processes: processes of the simulator; None = one a core.
        on_progress: told how many of how many plans are done.
    """
    if mode is Mode.SIMULATED:
        return run_all(run_simulated, plans, processes=processes, on_progress=on_progress)
    from simulation.experiments.market_xmpp import run_over_xmpp  # what it needs would slow every other command down

    return run_all(run_over_xmpp, plans, processes=1, on_progress=on_progress)
