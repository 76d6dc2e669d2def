"""Running one point of a sweep: rows for the table, or why there are none."""

from __future__ import annotations

import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from ramp.errors import RampError, told
from simulation.experiments.discovery import find_experiment
from simulation.experiments.sweeps.plan import EXPERIMENT, SIMULATE, Point
from simulation.simulated_run import simulate

Rows = list[dict[str, Any]]

_OF_THIS_COMPUTER: Final = ("wall_s", "jobs_per_s")
"""Measures of a run that tell of the computer and not of what was simulated; they are not in the table."""


def run_point(point: Point) -> tuple[Rows, str]:
    """Run it, in this process.

    Args:
        point: what to run.

    Returns:
        The rows of the table without the parameters, one of a simulation and one a comparison of an experiment; and
        why there are none, or an empty string. One point's failure is not the others'.
    """
    try:
        return (_simulated(point) if point.run == SIMULATE else _studied(point)), ""
    except RampError as error:
        return [], str(error)
    except Exception as error:  # a parameter of a wrong type, or a bug: whatever it is, it is this point's
        return [], told(error)


def _simulated(point: Point) -> Rows:
    run = simulate(**point.arguments)
    metrics = asdict(run.metrics) | ({} if run.malleable is None else run.malleable.measures)
    return [{name: value for name, value in metrics.items() if name not in _OF_THIS_COMPUTER}]


def _studied(point: Point) -> Rows:
    experiment = find_experiment(point.run.removeprefix(EXPERIMENT))
    arguments = {"quick": False, "seed": 1} | point.arguments
    with tempfile.TemporaryDirectory(prefix="ramp-sweep-") as folder:
        summary = experiment.run(Path(folder), processes=1, on_progress=None, **arguments)
    return [dict(row) for row in summary["comparison"]]
