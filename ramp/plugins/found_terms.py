"""Static terms that nobody has to write down: a plug-in that can ask its machine for them says so.

A configuration's `[machines.NAME]` without `cores` is completed by what its plug-in finds (`tells_terms`). What stands
in the file is never overwritten. A market asks once, when it takes its file and keeps the answer
(`ramp.runtime.configuration_changes.overlay`): an agent that starts again while the machine is away begins with the
same terms as before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from ramp.entry_points import entry_points
from ramp.errors import ConfigurationError, RampError

Finder = Callable[[Mapping[str, Any], str], Mapping[str, Any]]
"""Options of a machine, and its name for messages, to what `[machines.NAME]` would say; raises a `RampError`."""

_GROUP: Final = "ramp.resource_plugins"
_Function = TypeVar("_Function", bound=Callable[..., Any])
_TOLD: Final[dict[Callable[..., Any], Finder]] = {}


def tells_terms(finder: Finder) -> Callable[[_Function], _Function]:
    """Say of a plug-in's entry point by which function its machine's static terms can be found."""

    def mark(function: _Function) -> _Function:
        _TOLD[function] = finder
        return function

    return mark


def found_terms(machines: Any) -> dict[str, dict[str, Any]]:
    """What can be found of the machines that state no `cores`, by their names; machines of other plug-ins are left out.

    Args:
        machines: the tables `[machines.NAME]` of a configuration, unchecked.

    Raises:
        ConfigurationError: a machine that should be asked cannot be.
    """
    found: dict[str, dict[str, Any]] = {}
    for name, machine in machines.items() if isinstance(machines, Mapping) else ():
        if not isinstance(machine, Mapping) or "cores" in machine:
            continue
        entry = next((each for each in entry_points(_GROUP) if each.name == machine.get("plugin")), None)
        finder = None if entry is None else _TOLD.get(entry.load())
        options = machine.get("options", {})
        if finder is None or not isinstance(options, Mapping):
            continue
        try:
            found[name] = dict(finder(options, name))
        except RampError as error:
            why = f"it is not stated, and cannot be found: {error}"
            raise ConfigurationError(why, key=f"machines.{name}.cores") from error
    return found


def completed(machines: Any, found: Mapping[str, Mapping[str, Any]]) -> Any:
    """The machines' tables with what was found of those that do not state it."""
    if not found or not isinstance(machines, Mapping):
        return machines
    return {
        name: {**found.get(name, {}), **machine} if isinstance(machine, Mapping) else machine
        for name, machine in machines.items()
    }


def with_found_terms(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """A configuration's tables with what can be found of its machines.

    Raises:
        ConfigurationError: see `found_terms`.
    """
    found = found_terms(data.get("machines"))
    return {**data, "machines": completed(data["machines"], found)} if found else data
