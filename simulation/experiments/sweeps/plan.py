"""The plan of a sweep: its file, read and checked, and its points."""

from __future__ import annotations

import hashlib
import inspect
import itertools
import json
import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, Final

from ramp.errors import ConfigurationError
from ramp.options import nearest_name
from simulation.experiments.discovery import find_experiment
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
