"""Opens a resource's plug-in and price strategy, external ones in separate processes."""

from __future__ import annotations

import os
from importlib.metadata import EntryPoint
from pathlib import Path

from ramp.agents.guests.isolated import GuestPorts, IsolatedGuest
from ramp.agents.guests.messages import Opening
from ramp.agents.guests.process import MARK, environment_of
from ramp.errors import PluginError, StateDamaged
from ramp.model.instant import Instant
from ramp.plugins.interface import PluginSettings
from ramp.protocol import effects as fx
from ramp.runtime.configuration.values import (
    PLUGIN_GROUP,
    PRICING_GROUP,
    ResourceConfig,
    entry_point,
    has_own_process,
    open_plugin,
    plugin_settings,
    pricing_strategy,
)
from ramp.runtime.guests.health import GuestHealth
from ramp.runtime.guests.questions import GuardedGuest
from ramp.runtime.host import Guest
from ramp.runtime.sqlite_file import FROM_BACKUP

UNKNOWN_YET = "live"
"""Source of a machine whose plug-in is not open yet; the resource makes no offers before."""


def open_machine(
    resource: ResourceConfig, started_at: Instant, reservations: Path, ports: GuestPorts
) -> tuple[Guest[fx.AskMachine], str]:
    """Open a resource's plug-in, or prepare its process, and return it with the source of the machine's queue.

    Raises:
        ConfigurationError: the plug-in does not exist, or one in this process refuses its options.
        PluginError: a plug-in in this process cannot be opened now.
        StateDamaged: a plug-in in this process can never be opened.
    """
    health = GuestHealth("plug-in", ports.watch)
    entry = entry_point(PLUGIN_GROUP, resource.plugin)
    if has_own_process(entry, resource.isolation):
        settings = plugin_settings(resource, started_at, reservations.absolute())
        return _isolated(entry, settings, health, ports), UNKNOWN_YET
    try:
        plugin = open_plugin(resource, started_at, reservations)
    except PluginError as error:
        if error.transient:
            raise
        raise StateDamaged(reservations, error.reason, FROM_BACKUP) from error
    return GuardedGuest(plugin, health), plugin.source


def open_pricing(resource: ResourceConfig, ports: GuestPorts) -> Guest[fx.PriceSlots]:
    """Open a resource's price strategy, or prepare its process; `ConfigurationError` if the name is unknown."""
    health = GuestHealth("price strategy", ports.watch)
    entry = entry_point(PRICING_GROUP, resource.pricing)
    if has_own_process(entry, resource.isolation):
        return _isolated(entry, None, health, ports)
    return GuardedGuest(pricing_strategy(resource.pricing), health)


def _isolated(
    entry: EntryPoint, settings: PluginSettings | None, health: GuestHealth, ports: GuestPorts
) -> IsolatedGuest:
    return IsolatedGuest(
        Opening(entry.group, entry.name, entry.value, settings),
        {**environment_of(os.environ, ports.limits.environment), MARK: f"{ports.owner} {health.guest}"},
        health,
        ports,
    )
