"""Sweeps: a simulation or an experiment at every combination of the parameters of a file, resumed where it was cut off.

Every point is on disk when it is done, and one table is written at the end.
"""

from __future__ import annotations

import csv
import hashlib
import inspect
import io
import itertools
import json
import math
import tempfile
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, Final

from ramp.errors import ConfigurationError, RampError, told
from ramp.options import nearest_name
from ramp.runtime.atomic_writes import write_whole
from simulation.experiments.discovery import find_experiment
from simulation.experiments.worker_processes import run_all
from simulation.simulated_run import simulate

POINTS_MAX: Final = 100_000
"""Most points of one sweep; more would be a slip of the pen."""

SIMULATE: Final = "simulate"
EXPERIMENT: Final = "experiment "
OF_EXPERIMENTS: Final = ("seed", "quick")
"""Parameters that every experiment has."""

_NOT_SWEPT: Final = frozenset({"watch"})
_SCALARS: Final = (bool, int, float, str)
_KEYS: Final = ("run", "fixed", "vary")


@dataclass(frozen=True, slots=True)
class Point:
    """One run of a sweep.

    Attributes:
        run: `simulate`, or `experiment NAME`.
        parameters: all of them by name; those of a table by their names with a dot (`scheduler_options.window`).
    """

    run: str
    parameters: Mapping[str, Any]

    @property
    def arguments(self) -> dict[str, Any]:
        """The parameters as the function takes them: tables as tables."""
        found: dict[str, Any] = {}
        for name, value in self.parameters.items():
            *tables, last = name.split(".")
            into = found
            for table in tables:
                into = into.setdefault(table, {})
            into[last] = value
        return found

    @property
    def key(self) -> str:
        """What is the same for the same run: of its parameters, the files that they name, and the program's version."""
        files = {
            name: hashlib.sha256(path.read_bytes()).hexdigest()
            for name, value in self.parameters.items()
            if isinstance(value, str) and (path := Path(value.partition(":")[0])).is_file()
        }
        said = [self.run, dict(sorted(self.parameters.items())), files, metadata.version("ramp-market")]
        return hashlib.sha256(json.dumps(said, sort_keys=True).encode("utf-8")).hexdigest()[:24]


@dataclass(frozen=True, slots=True)
class Sweep:
    """A sweep's file.

    Attributes:
        run: what is run at every point.
        varied: names of the parameters that differ, in the order of the file.
        points: in the order of the table, the last parameter changing first.
    """

    run: str
    varied: tuple[str, ...]
    points: tuple[Point, ...]


def read_sweep(path: Path) -> Sweep:
    """Read the file of a sweep.

    Args:
        path: TOML with `run`, a table `fixed` of parameters, and a table `vary` with a list of values for each.

    Raises:
        ConfigurationError: it cannot be read, or is wrong; names file, key and expected value.
    """
    try:
        data = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise ConfigurationError(f"cannot be read: {error.strerror}", path=path) from error
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigurationError(f"is not TOML: {error}", path=path) from error
    for key in data:
        if key not in _KEYS:
            raise ConfigurationError(f"is unknown{nearest_name(key, _KEYS)}", path=path, key=key)
    run = data.get("run")
    if not isinstance(run, str):
        raise ConfigurationError(f"is missing, expected '{SIMULATE}' or '{EXPERIMENT}NAME'", path=path, key="run")
    known = _parameters_of(run, path)
    fixed = _flat(data, "fixed", path)
    vary = _flat(data, "vary", path)
    for table, names in (("fixed", fixed), ("vary", vary)):
        for name in names:
            if name.partition(".")[0] not in known:
                reason = f"is not a parameter of {run}{nearest_name(name, known)}"
                raise ConfigurationError(reason, path=path, key=f"{table}.{name}")
    _check_values(fixed, vary, path)
    count = math.prod(len(values) for values in vary.values())
    if count > POINTS_MAX:
        raise ConfigurationError(f"too many points: got {count}, expected at most {POINTS_MAX}", path=path, key="vary")
    points = [Point(run, fixed | dict(zip(vary, values, strict=True))) for values in itertools.product(*vary.values())]
    return Sweep(run, tuple(vary), tuple(points))


def _parameters_of(run: str, path: Path) -> tuple[str, ...]:
    if run == SIMULATE:
        return tuple(name for name in inspect.signature(simulate).parameters if name not in _NOT_SWEPT)
    if not run.startswith(EXPERIMENT):
        raise ConfigurationError(f"got '{run}', expected '{SIMULATE}' or '{EXPERIMENT}NAME'", path=path, key="run")
    return (*OF_EXPERIMENTS, *sorted(find_experiment(run.removeprefix(EXPERIMENT)).options))


def _flat(data: Mapping[str, Any], table: str, path: Path) -> dict[str, Any]:
    found: dict[str, Any] = {}

    def take(values: Any, within: str) -> None:
        if not isinstance(values, Mapping):
            raise ConfigurationError(f"got {values!r}, expected a table", path=path, key=within)
        for name, value in values.items():
            place = f"{within}.{name}"
            if isinstance(value, Mapping):
                take(value, place)
            else:
                found[place.removeprefix(f"{table}.")] = value

    take(data.get(table, {}), table)
    return found


def _check_values(fixed: Mapping[str, Any], vary: Mapping[str, Any], path: Path) -> None:
    if not vary:
        raise ConfigurationError("is missing, expected a list of values for each parameter", path=path, key="vary")
    for name, value in fixed.items():
        if name in vary:
            raise ConfigurationError("is fixed and varies; leave one out", path=path, key=f"fixed.{name}")
        if not isinstance(value, (*_SCALARS, list)):
            raise ConfigurationError(f"got {value!r}, expected a value or a list", path=path, key=f"fixed.{name}")
    for name, values in vary.items():
        place = f"vary.{name}"
        if not isinstance(values, list) or not values:
            raise ConfigurationError(f"got {values!r}, expected a list of values", path=path, key=place)
        for index, value in enumerate(values):
            if not isinstance(value, _SCALARS):
                raise ConfigurationError(f"got {value!r}, expected one value", path=path, key=f"{place}[{index}]")
            if (type(value), value) in [(type(other), other) for other in values[:index]]:
                raise ConfigurationError(f"got {value!r} twice", path=path, key=f"{place}[{index}]")


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
