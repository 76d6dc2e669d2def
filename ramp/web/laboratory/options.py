"""What the keeper may ask of a run, and how `ramp experiment run` is told; pure.

The values come from a browser and become arguments of a command. So each has its type, and a word begins with a letter
or digit and has no separator of paths: nobody names a file, a program's place (`FILE.py:Name`) or another option by it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from ramp.errors import ConfigurationError
from ramp.web.laboratory.folder import is_plain_name

SEED_MAX: Final = 2**31 - 1
COUNT_MAX: Final = 10_000

WORDS: Final = {
    "rule": "Auction rule",
    "pricing": "Price strategy",
    "swarm": "Market",
    "log": "Workload log",
}
"""Options of the command line whose values are names, with what the form calls them."""

MODES: Final = ("simulated", "xmpp")
"""Where markets of experiments are run."""

EXPERIMENTS_MAX: Final = 500

_WORD: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_LOG: Final = re.compile(_WORD.pattern + r"(:[0-9]{1,9})?")
"""A log may say of how many processors its machine is."""


@dataclass(frozen=True, slots=True)
class OfferedExperiment:
    """An experiment that can be run.

    Attributes:
        name: on the command line.
        about: one line.
        options: which of the options it knows that not all do.
    """

    name: str
    about: str
    options: frozenset[str]


def offered_experiments(text: str | bytes) -> tuple[OfferedExperiment, ...]:
    """What `ramp experiment list --json` prints.

    Raises:
        ConfigurationError: if it is something else.
    """
    try:
        told = json.loads(text)
    except ValueError as error:
        raise ConfigurationError(f"`ramp experiment list --json` printed no JSON: {error}") from error
    found = []
    for each in told if isinstance(told, list) else ():
        match each:
            case {"name": str(name), "about": str(about), "options": list(options)} if is_plain_name(name):
                found.append(OfferedExperiment(name, about, frozenset(map(str, options))))
    return tuple(found[:EXPERIMENTS_MAX])


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Options of a run, as the form has them; what is None or empty is left to the experiment.

    Attributes:
        quick: the small version.
        replace: whether earlier results of the experiment may go.
        seed: of all that is drawn.
        processes: how many at once.
        repeat: repetitions.
        mode: one of `MODES`, or empty.
        whole_logs: also over the whole logs.
        words: by the names of `WORDS`.
    """

    quick: bool = True
    replace: bool = False
    seed: int = 1
    processes: int | None = None
    repeat: int | None = None
    mode: str = ""
    whole_logs: bool = False
    words: Mapping[str, str] | None = None


def arguments(experiment: OfferedExperiment, options: RunOptions) -> list[str]:
    """Arguments of `ramp experiment run` but for the folder of results.

    Args:
        experiment: to be run.
        options: of the run; those that the experiment does not know must be empty.

    Raises:
        ConfigurationError: if a value is not what the option wants; names the option.
    """
    found = [experiment.name, "--seed", str(_whole("--seed", options.seed, 0, SEED_MAX))]
    if options.quick:
        found.append("--quick")
    if options.replace:
        found.append("--replace")
    if options.processes is not None:
        found += ["--processes", str(_whole("--processes", options.processes, 1, COUNT_MAX))]
    if options.repeat is not None:
        _know(experiment, "repeat", "--repeat")
        found += ["--repeat", str(_whole("--repeat", options.repeat, 1, COUNT_MAX))]
    if options.mode:
        if options.mode not in MODES:
            raise ConfigurationError(f"{options.mode!r}; right would be one of {', '.join(MODES)}", key="mode")
        _know(experiment, "mode", f"--{options.mode}")
        found.append(f"--{options.mode}")
    if options.whole_logs:
        _know(experiment, "whole_logs", "--whole-logs")
        found.append("--whole-logs")
    for name, value in (options.words or {}).items():
        if name not in WORDS:
            raise ConfigurationError("no option of the laboratory", key=name)
        if value:
            _know(experiment, name, f"--{name}")
            if (_LOG if name == "log" else _WORD).fullmatch(value) is None:
                raise ConfigurationError(
                    f"{value!r}; right would be a name of letters, digits, '.', '_' and '-'; files and places of "
                    "programs are for the command line",
                    key=f"--{name}",
                )
            found += [f"--{name}", value]
    return found


def _know(experiment: OfferedExperiment, option: str, told: str) -> None:
    if option not in experiment.options:
        raise ConfigurationError(f"the experiment {experiment.name} knows no such option", key=told)


def _whole(option: str, value: object, least: int, most: int) -> int:
    """A whole number; forms send them as floats."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if type(value) is not int or not least <= value <= most:
        raise ConfigurationError(f"{value!r}; right would be a whole number from {least} to {most}", key=option)
    return value
