"""Experiments by name.

An experiment is a `Study`, declared in a module somewhere in `simulation.experiments` with a constant `EXPERIMENTS`: a
tuple of studies. Adding a study means adding such a file; nothing else lists it. Another package brings a `Study` by an
entry point of the group `ramp.experiments`, under its own name, and one of yours is named by its file,
`FILE.py:NAME`.
"""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any, Final

import simulation.experiments
from ramp.declarations import Sort
from ramp.errors import ConfigurationError
from simulation.experiments.study import Study


def _adopt(given: Any) -> Study:
    if not isinstance(given, Study):
        raise ConfigurationError(f"got {given!r}, expected a Study", key="experiment")
    return given


GUESTS: Final = Sort("experiment", "", "", "ramp.experiments", _adopt)
"""Experiments of other packages."""


def shipped_experiments() -> dict[str, Study]:
    """Experiments by name, from every module in `simulation.experiments` that declares some."""
    found: dict[str, Study] = {}
    prefix = f"{simulation.experiments.__name__}."
    for module_info in pkgutil.walk_packages(simulation.experiments.__path__, prefix):
        module = importlib.import_module(module_info.name)
        for experiment in getattr(module, "EXPERIMENTS", ()):
            assert experiment.name not in found, f"two experiments are called {experiment.name}"
            found[experiment.name] = experiment
    return dict(sorted(found.items()))


def all_experiments() -> dict[str, Study]:
    """All experiments by name; guests that cannot be loaded are left out (`ramp plugins list` says why)."""
    guests = {one.name: one.declaration for one in GUESTS.listed() if one.declaration is not None}
    return dict(sorted({**guests, **shipped_experiments()}.items()))


def experiment_names() -> list[str]:
    """Names of all experiments that can be loaded, sorted."""
    return list(all_experiments())


def find_experiment(name: str) -> Study:
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
