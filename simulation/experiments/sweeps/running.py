"""Running a sweep into a folder: every point on disk when it is done, one table at the end."""

from __future__ import annotations

import csv
import io
import json
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from ramp.errors import ConfigurationError, RampError, told
from ramp.runtime.atomic_writes import write_whole
from simulation.experiments.discovery import find_experiment
from simulation.experiments.sweeps.plan import EXPERIMENT, SIMULATE, Point, Sweep
from simulation.experiments.worker_processes import run_all
from simulation.simulated_run import simulate

Rows = list[dict[str, Any]]

_OF_THIS_COMPUTER: Final = ("wall_s", "jobs_per_s")
"""Measures of a run that tell of the computer and not of what was simulated; they are not in the table."""


def run_point(point: Point) -> tuple[Rows, str]:
    """Run a point in this process.

    Returns:
        The rows of the table without the parameters, one of a simulation and one a comparison of an experiment; and
        why there is no row, or an empty string. One point's failure does not stop the others.
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


POINTS: Final = "points"
TABLE_CSV: Final = "sweep.csv"
TABLE_JSON: Final = "sweep.json"


@dataclass(frozen=True, slots=True)
class SweepResult:
    """What a sweep came to.

    Attributes:
        rows: the table: the parameters that vary, then what was measured.
        failures: why a point has no rows, by its parameters in words.
        resumed: how many points were on disk already.
    """

    rows: tuple[Mapping[str, Any], ...]
    failures: Mapping[str, str]
    resumed: int


def run_sweep(
    sweep: Sweep, out: Path, *, processes: int | None, on_progress: Callable[[int, int], None] | None
) -> SweepResult:
    """Run the points that are not on disk yet, and write the table of all.

    A point is in a file of its own, `points/KEY.json`, written whole or not at all as soon as it is done; so whatever
    ends the program costs the points that were under way. The key is made of all that decides the result: what is run,
    its parameters, the contents of files that they name, and the version of the program. Failed points leave no file.

    Args:
        sweep: what to run.
        out: folder of the results; made if it is not there.
        processes: of this computer; None = one a core.
        on_progress: told how many of all points are done.

    Raises:
        ConfigurationError: the folder cannot be written.
    """
    keys = [point.key for point in sweep.points]
    known = {key: rows for key in keys if (rows := _kept(_file(out, key), key)) is not None}
    missing = [index for index, key in enumerate(keys) if key not in known]
    resumed = len(keys) - len(missing)
    problems: dict[str, str] = {}

    def keep(number: int, answer: tuple[Rows, str]) -> None:
        rows, problem = answer
        index = missing[number]
        key = keys[index]
        if problem:
            problems[_words(sweep, index)] = problem
            return
        known[key] = rows
        text = json.dumps({"key": key, "parameters": dict(sweep.points[index].parameters), "rows": rows}, indent=1)
        _write(_file(out, key), text + "\n")

    def advance(done: int, _: int) -> None:
        if on_progress is not None:
            on_progress(resumed + done, len(keys))

    run_all(run_point, [sweep.points[index] for index in missing], processes=processes, on_progress=advance,
            on_answer=keep)  # fmt: skip
    table = tuple(
        {**{name: point.parameters[name] for name in sweep.varied}, **row}
        for point, key in zip(sweep.points, keys, strict=True)
        for row in known.get(key, ())
    )
    _write(out / TABLE_CSV, _as_csv(table, sweep.varied))
    _write(out / TABLE_JSON, json.dumps(table, indent=1) + "\n")
    return SweepResult(table, problems, resumed)


def _file(out: Path, key: str) -> Path:
    return out / POINTS / f"{key}.json"


def _kept(path: Path, key: str) -> Rows | None:
    """Return the rows of a point that is on disk; a damaged file counts as missing."""
    try:
        found = json.loads(path.read_text("utf-8"))
        rows = found["rows"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    if found.get("key") != key or not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        return None
    return rows


def _words(sweep: Sweep, index: int) -> str:
    parameters = sweep.points[index].parameters
    return ", ".join(f"{name}={parameters[name]}" for name in sweep.varied)


def _as_csv(rows: tuple[Mapping[str, Any], ...], varied: tuple[str, ...]) -> str:
    names = dict.fromkeys([*varied, *(name for row in rows for name in row)])
    text = io.StringIO(newline="")
    table = csv.DictWriter(text, list(names), lineterminator="\n")
    table.writeheader()
    table.writerows(rows)
    return text.getvalue()


def _write(path: Path, text: str) -> None:
    try:
        write_whole(path, text.encode("utf-8"), private=False)
    except OSError as error:
        raise ConfigurationError(f"cannot be written: {error.strerror}", path=path, key="--out") from error
