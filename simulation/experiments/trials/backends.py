"""The ways of running market plans behind one function."""

from __future__ import annotations

from collections.abc import Sequence

from simulation.experiments.discovery import Progress
from simulation.experiments.trials.plan import MarketPlan, MarketResult, Mode
from simulation.experiments.trials.simulated import run_simulated
from simulation.experiments.worker_processes import run_all


def run_plans(
    mode: Mode, plans: Sequence[MarketPlan], *, processes: int | None, on_progress: Progress | None
) -> list[MarketResult]:
    """Run plans and return their results, in their order.

    Args:
        mode: in virtual time, or over XMPP; over XMPP they run one after another, to have the machine to themselves, in
            as few launched markets as possible. There a plan with links gets two hosts.
        plans: what to run.
        processes: processes of the simulator; None = one a core.
        on_progress: told how many of how many plans are done; over XMPP, of how many requests.

    Raises:
        TransportError: if a market over XMPP does not come up, or an agent ends in the middle.
    """
    if mode is Mode.SIMULATED:
        return run_all(run_simulated, plans, processes=processes, on_progress=on_progress)
    # only here, for what they need would slow every other command down
    from simulation.experiments.market.trading import Tally, sharing
    from simulation.experiments.trials.hosts import run_over_hosts
    from simulation.experiments.trials.xmpp import run_over_xmpp

    tally = Tally(sum(len(plan.submissions) for plan in plans), on_progress)
    tally.begun()
    for numbers in sharing(plans):
        run = run_over_xmpp if plans[numbers[0]].links is None else run_over_hosts
        run({number: plans[number] for number in numbers}, tally)
    return [tally.results[number] for number in range(len(plans))]
