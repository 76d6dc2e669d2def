"""Declaration of schedulers: those in `simulation.schedulers.policies` and those of other packages.

Declare a scheduler at the end of its file:

    SCHEDULER = scheduler(WindowFirstFit, about="First-fit over a window of the queue.", options=WindowOptions)

Other packages register the constant or the class as an entry point of the group `ramp.schedulers`, or users name its
place (`module:Name`, `FILE.py:Name`).
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, is_dataclass
from typing import Any, Final

from ramp.declarations import Sort
from ramp.errors import ConfigurationError, RampError
from ramp.options import first_paragraph, read_options
from simulation.schedulers.interface import Scheduler

FlatLoop = Callable[..., Any]
"""Start times of all jobs of a log on a flat machine: `simulation.schedulers.compiled` says how it is called."""
_METHODS: Final = ("submit", "released", "waiting", "decide")


@dataclass(frozen=True, slots=True)
class SchedulerDeclaration:
    """A scheduler with a name.

    Attributes:
        make: makes a scheduler with an empty queue; receives the options, if any.
        about: one line.
        options: the dataclass of its options; None = no options.
        compiled: its second version for whole logs on flat machines, or the place (`module:function`) of it.
        compiled_by_event: the same that decides after every single event, as the simulator pyss does.
    """

    make: Callable[..., Scheduler]
    about: str
    options: type[Any] | None = None
    compiled: str | FlatLoop | None = None
    compiled_by_event: str | FlatLoop | None = None

    def read(self, values: Mapping[str, Any], within: str = "") -> Any:
        """Read options into their dataclass; None if the scheduler has no options.

        Args:
            values: options by name; the others have their defaults.
            within: their table, for messages.

        Raises:
            ConfigurationError: an option is unknown or wrong.
        """
        if self.options is not None:
            return read_options(values, self.options, within=within)
        for name in values:
            listed = [(each.name, each.declaration) for each in SCHEDULERS.listed() if each.declaration]
            having = [other for other, its in listed if its.options and name in its.options.__dataclass_fields__]
            others = f"; available for {', '.join(having)}" if having else ""
            raise ConfigurationError(f"has no option {name!r}{others}", key=within or None)
        return None

    def new(self, options: Any) -> Scheduler:
        """Make a scheduler with an empty queue.

        Raises:
            ConfigurationError: it cannot be made, or lacks a scheduler's methods.
        """
        try:
            made = self.make() if self.options is None else self.make(options)
        except RampError:
            raise
        except Exception as error:
            raise ConfigurationError(f"cannot be made: {type(error).__name__}: {error}", key="scheduler") from error
        missing = [name for name in _METHODS if not callable(getattr(made, name, None))]
        if missing:
            raise ConfigurationError(
                f"{type(made).__name__} lacks the scheduler methods {', '.join(missing)}", key="scheduler"
            )
        return made


def scheduler(
    make: Callable[..., Scheduler],
    *,
    about: str = "",
    options: type | None = None,
    compiled: str | FlatLoop | None = None,
    compiled_by_event: str | FlatLoop | None = None,
) -> SchedulerDeclaration:
    """Declare a scheduler; arguments as of `SchedulerDeclaration`, `about` by default the docstring's first paragraph.

    Raises:
        ConfigurationError: `make` is not callable, or is a class that lacks a scheduler's methods.
    """
    if not callable(make):
        raise ConfigurationError("a scheduler must be a class or function that makes one", key="scheduler")
    missing = [name for name in _METHODS if isinstance(make, type) and not hasattr(make, name)]
    if missing:
        raise ConfigurationError(
            f"{getattr(make, '__name__', make)} lacks the scheduler methods {', '.join(missing)}", key="scheduler"
        )
    if options is not None and not is_dataclass(options):
        raise ConfigurationError("the options must be a dataclass", key="scheduler")
    return SchedulerDeclaration(make, about or first_paragraph(make), options, compiled, compiled_by_event)


def _adopt(given: Any) -> SchedulerDeclaration:
    return given if isinstance(given, SchedulerDeclaration) else scheduler(given)


SCHEDULERS: Final = Sort("scheduler", "simulation.schedulers.policies", "SCHEDULER", "ramp.schedulers", _adopt)
"""All schedulers."""


def make_scheduler(name: str, options: Mapping[str, Any] | None = None) -> Scheduler:
    """Make a scheduler with an empty queue.

    Args:
        name: of `SCHEDULERS`, or its place.
        options: by name; the others have their defaults.

    Raises:
        ConfigurationError: the scheduler or an option is unknown, or an option is wrong.
    """
    declaration = SCHEDULERS.find(name)
    return declaration.new(declaration.read(options or {}, name))


def flat_loop(declared: str | FlatLoop) -> FlatLoop:
    """Return the loop that a declaration names or holds."""
    if not isinstance(declared, str):
        return declared
    module, _, function = declared.partition(":")
    loop: FlatLoop = getattr(importlib.import_module(module), function)
    return loop
