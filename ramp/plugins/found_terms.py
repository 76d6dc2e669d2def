"""Look up the static terms of machines whose configuration does not state them.

If a table `[machines.NAME]` lacks `cores`, its plug-in adds the terms that it finds: those that the method
`found_terms` of its options returns. Terms in the file are never overwritten. A market asks once, when it reads its
file, and keeps the answer (`ramp.runtime.configuration_changes.overlay`), so that agents can restart while the machine
is away.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ramp.entry_points import entry_points_by_name
from ramp.errors import ConfigurationError, RampError
from ramp.options import options_of, read_options

_GROUP: Final = "ramp.resource_plugins"


def found_terms(machines: Any) -> dict[str, dict[str, Any]]:
    """Return the terms found for machines without `cores`, by their names; machines of other plug-ins are left out.

    Args:
        machines: the tables `[machines.NAME]` of a configuration, unchecked.

    Raises:
        ConfigurationError: a machine cannot be asked.
    """
    found: dict[str, dict[str, Any]] = {}
    for name, machine in machines.items() if isinstance(machines, Mapping) else ():
        if not isinstance(machine, Mapping) or "cores" in machine:
            continue
        entry = entry_points_by_name(_GROUP).get(str(machine.get("plugin")))
        kind = None if entry is None else options_of(entry.load())
        options = machine.get("options", {})
        if kind is None or not hasattr(kind, "found_terms") or not isinstance(options, Mapping):
            continue
        try:
            found[name] = read_options(options, kind, within=f"machines.{name}.options").found_terms()
        except RampError as error:
            why = f"it is not stated, and cannot be found: {error}"
            raise ConfigurationError(why, key=f"machines.{name}.cores") from error
    return found


def completed(machines: Any, found: Mapping[str, Mapping[str, Any]]) -> Any:
    """Return the machines' tables completed by the terms found."""
    if not found or not isinstance(machines, Mapping):
        return machines
    return {
        name: {**found.get(name, {}), **machine} if isinstance(machine, Mapping) else machine
        for name, machine in machines.items()
    }


def with_found_terms(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """Complete a configuration's tables by the terms found for its machines.

    Raises:
        ConfigurationError: see `found_terms`.
    """
    found = found_terms(data.get("machines"))
    return {**data, "machines": completed(data["machines"], found)} if found else data
