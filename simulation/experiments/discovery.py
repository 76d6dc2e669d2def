"""Experiments by name.

An experiment is a module somewhere in `simulation.experiments` with a constant `EXPERIMENTS`: a tuple of `Experiment`.
Adding a study means adding such a file; nothing else lists it. Another package brings an `Experiment` by an entry point
of the group `ramp.experiments`, under the name that it has itself, and one of your own is named by
its file, `FILE.py:NAME`.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

import simulation.experiments
from ramp.declarations import Sort
from ramp.errors import ConfigurationError
from simulation.experiments.study import Study

Progress = Callable[[int, int], None]
"""Told how many of how many simulations are done."""


class RunExperiment(Protocol):
    """Runs a study and writes its files."""

    def __call__(
        self, out: Path, *, quick: bool, seed: int, processes: int | None, on_progress: Progress | None
    ) -> dict[str, Any]:
        """Run the study.

        Args:
            out: existing empty directory for CSV, PNG, `columns.md` and `summary.json`.
            quick: a small version, in under a minute.
            seed: of all that is drawn.
            processes: processes to use; None = one a core.
            on_progress: told about progress.

        Returns:
            The contents of `summary.json`.
        """
        ...


@dataclass(frozen=True, slots=True)
class Experiment:
    """A study that `ramp experiment run` knows.

    Attributes:
        name: on the command line.
        about: one line.
        run: runs it.
        tell: lines for people about a summary that `run` returned.
        further: options of the command line that `run` takes besides those of `RunExperiment`: `mode` (`simulated` or
            `xmpp`), `repeat`, `whole_logs`, `rule`, `pricing`, `requests`, `swarm`, `log`.
    """

    name: str
    about: str
    run: RunExperiment
    tell: Callable[[dict[str, Any]], list[str]]
    further: frozenset[str] = frozenset()


def _adopt(given: Any) -> Experiment:
    if not isinstance(given, Experiment | Study):
        raise ConfigurationError(f"got {given!r}, expected an Experiment", key="experiment")
    return given


GUESTS: Final = Sort("experiment", "", "", "ramp.experiments", _adopt)
"""Experiments of other packages."""


def shipped_experiments() -> dict[str, Experiment]:
    """Experiments by name, from every module in `simulation.experiments` that declares some."""
    found: dict[str, Experiment] = {}
    prefix = f"{simulation.experiments.__name__}."
    for module_info in pkgutil.walk_packages(simulation.experiments.__path__, prefix):
        module = importlib.import_module(module_info.name)
        for experiment in getattr(module, "EXPERIMENTS", ()):
            assert experiment.name not in found, f"two experiments are called {experiment.name}"
            found[experiment.name] = experiment
    return dict(sorted(found.items()))


def all_experiments() -> dict[str, Experiment]:
    """All experiments by name; guests that cannot be loaded are left out (`ramp plugins list` says why)."""
    guests = {one.name: one.declaration for one in GUESTS.listed() if one.declaration is not None}
    return dict(sorted({**guests, **shipped_experiments()}.items()))


def experiment_names() -> list[str]:
    """Names of all experiments that can be loaded, sorted."""
    return list(all_experiments())


def find_experiment(name: str) -> Experiment:
    """Return the experiment of that name, or at a place `module:Name` or `FILE.py:Name`.

    Raises:
        ConfigurationError: it does not exist or cannot be loaded; names the known ones.
    """
    experiments = shipped_experiments()
    if name not in experiments and (":" in name or name in GUESTS.names()):
        return GUESTS.find(name)
    if name not in experiments:
        raise ConfigurationError(f"no experiment {name!r}; there are {', '.join(experiments)}", key="experiment")
    return experiments[name]
