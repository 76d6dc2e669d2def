"""The frame of every market experiment: its options, how its plans are run, what its summary always says."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from simulation.experiments.comparison import Comparison, tell_comparison
from simulation.experiments.discovery import Experiment, Progress
from simulation.experiments.market.statistics import market_parameters
from simulation.experiments.result import Column, Columns, write_summary
from simulation.experiments.trials.own_market import OPTIONS, OwnMarket
from simulation.experiments.trials.plan import STAND_IN_NOTE, MarketPlan, MarketResult, Mode, stand_ins
from simulation.experiments.trials.simulated import run_simulated
from simulation.experiments.worker_processes import run_all

MARKET_COLUMNS: Final[Columns] = {
    "repetition": Column("", "number of the market; each opens with machines of another age"),
    "users": Column("users", "who ask at the same moment"),
    "resources": Column("resources", "in the market"),
    "resource": Column("", "name of the seller"),
    "workload": Column("", "real log, stand-in (synthetic in place of a missing log) or generated"),
    "cores": Column("cores", "asked for"),
    "start_in_min": Column("min", "from the submission to the start asked for"),
    "status": Column("", "how the request ended; committed: bought, quoted: nothing was to be bought"),
    "winner": Column("", "resource that sold it; empty: nobody"),
    "winners": Column("", "resources that sold it in any repetition"),
    "sold": Column("requests", "that were bought, or quoted where that was all that was wanted"),
    "of": Column("requests", "that were made"),
    "round_s": Column("s", "from the calls until the last answer, mean"),
    "round_s_sd": Column("s", "its standard deviation"),
    "duration_s": Column("s", "from the submission to the end of the purchase"),
    "cpu_ms_per_auction": Column("ms", "CPU time of all processes over auctions"),
    "foreign_cores": Column("cores", "that others on this machine kept busy meanwhile; 0 in virtual time"),
}
"""Of columns that mean the same in all experiments on markets."""


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


@dataclass(frozen=True, slots=True)
class Study:
    """One run of a market experiment.

    Attributes:
        name: of the experiment.
        out: existing directory for its files.
        quick: whether it shall be small.
        seed: of all that is drawn.
        mode: how plans are run.
        repeat: repetitions wanted; None = the experiment's own.
        processes: of the simulator; None = one a core.
        on_progress: told about progress.
        own: what is run instead of the paper's market.
    """

    name: str
    out: Path
    quick: bool
    seed: int
    mode: Mode
    repeat: int | None
    processes: int | None
    on_progress: Progress | None
    own: OwnMarket = OwnMarket()  # noqa: RUF009 -- it is frozen

    def repetitions(self, full: int, quick: int = 1) -> int:
        """How many repetitions: those wanted, else the experiment's."""
        return self.repeat or (quick if self.quick else full)

    def run(self, plans: Sequence[MarketPlan]) -> list[MarketResult]:
        """Results of plans, in their order."""
        return run_plans(self.mode, plans, processes=self.processes, on_progress=self.on_progress)

    def footnote(self, plans: Sequence[MarketPlan]) -> str:
        """What pictures say of workloads; empty where all are real."""
        found = stand_ins(plans[0].resources)
        return f"{found}: synthetic workloads in place of logs that are not on this machine." if found else ""

    def summary(
        self,
        plans: Sequence[MarketPlan],
        parameters: Mapping[str, Any],
        comparisons: Sequence[Comparison],
        findings: Mapping[str, Any],
        columns: Columns,
    ) -> dict[str, Any]:
        """Write the summary; returns it."""
        return write_summary(
            self.out,
            experiment=self.name,
            seed=self.seed,
            quick=self.quick,
            parameters={**market_parameters(self.mode, plans), **parameters},
            comparisons=comparisons,
            findings={**findings, "note": STAND_IN_NOTE},
            columns={**MARKET_COLUMNS, **columns},
            stand_ins=stand_ins(plans[0].resources),
        )


def market_experiment(
    name: str,
    about: str,
    run: Callable[[Study], dict[str, Any]],
    tell: Callable[[Mapping[str, Any]], list[str]],
    *,
    own: bool = False,
) -> Experiment:
    """Declare an experiment on markets, with the options that all of them take.

    With `own` it also takes another rule, price strategy, requests and machines.
    """

    def run_study(
        out: Path,
        *,
        quick: bool,
        seed: int,
        processes: int | None,
        on_progress: Progress | None,
        mode: str = Mode.SIMULATED,
        repeat: int | None = None,
        **chosen: str,
    ) -> dict[str, Any]:
        return run(Study(name, out, quick, seed, Mode(mode), repeat, processes, on_progress, OwnMarket(**chosen)))

    def tell_all(summary: dict[str, Any]) -> list[str]:
        return [*tell(summary), summary["note"], "", *tell_comparison(summary)]

    further = frozenset({"mode", "repeat"}) | (OPTIONS if own else frozenset())
    return Experiment(name, about, run_study, tell_all, further)
