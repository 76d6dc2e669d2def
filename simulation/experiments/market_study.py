"""The frame of every market experiment: its options, how its plans are run, what its summary always says."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from simulation.experiments.discovery import Experiment, Progress
from simulation.experiments.market_backends import run_plans
from simulation.experiments.market_plan import SYNTHETIC_NOTE, MarketPlan, MarketResult, Mode
from simulation.experiments.market_tables import market_parameters
from simulation.experiments.result import Comparison, tell_comparison, write_summary


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
    """

    name: str
    out: Path
    quick: bool
    seed: int
    mode: Mode
    repeat: int | None
    processes: int | None
    on_progress: Progress | None

    def repetitions(self, full: int, quick: int = 1) -> int:
        """How many repetitions: those wanted, else the experiment's.

        Args:
            full: of the whole experiment.
            quick: of its small version.
        """
        return self.repeat or (quick if self.quick else full)

    def run(self, plans: Sequence[MarketPlan]) -> list[MarketResult]:
        """Results of plans, in their order.

        Args:
            plans: what to run.
        """
        return run_plans(self.mode, plans, processes=self.processes, on_progress=self.on_progress)

    def summary(
        self,
        plans: Sequence[MarketPlan],
        parameters: Mapping[str, Any],
        comparisons: Sequence[Comparison],
        findings: Mapping[str, Any],
    ) -> dict[str, Any]:
        """Write the summary; returns it.

        Args:
            plans: what was run.
            parameters: the experiment's own, beside those that all have.
            comparisons: the paper's numbers beside ours.
            findings: further results.
        """
        return write_summary(
            self.out,
            experiment=self.name,
            seed=self.seed,
            quick=self.quick,
            parameters={**market_parameters(self.mode, plans), **parameters},
            comparisons=comparisons,
            findings={**findings, "note": SYNTHETIC_NOTE},
        )


def market_experiment(
    name: str, about: str, run: Callable[[Study], dict[str, Any]], tell: Callable[[Mapping[str, Any]], list[str]]
) -> Experiment:
    """An experiment on markets, with the options that all of them take.

    Args:
        name: on the command line.
        about: one line.
        run: runs a study and returns its summary.
        tell: lines for people about a summary, without the comparison.
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
    ) -> dict[str, Any]:
        return run(Study(name, out, quick, seed, Mode(mode), repeat, processes, on_progress))

    def tell_all(summary: dict[str, Any]) -> list[str]:
        return [*tell(summary), summary["note"], "", *tell_comparison(summary)]

    return Experiment(name, about, run_study, tell_all, frozenset({"mode", "repeat"}))
