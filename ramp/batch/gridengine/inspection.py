"""Checks of `ramp doctor` for a Grid Engine: its conditions for sales, and its reservations."""

from __future__ import annotations

from collections.abc import Sequence

from ramp.batch.gridengine.plugin import GridEngineOptions, conditions, open_system
from ramp.batch.gridengine.system import GridEngine
from ramp.batch.inspecting import Comparing, Remark, reading
from ramp.model.instant import Instant
from ramp.options import read_options
from ramp.plugins.interface import PluginSettings


def read(settings: PluginSettings) -> Comparing:
    """See `ramp.batch.inspecting.Inspection`; also checks queue, parallel environment and limits."""
    return reading(settings.resource, _opened(settings))


def remarks(settings: PluginSettings, now: Instant) -> Sequence[Remark]:
    """See `ramp.batch.inspecting.Inspection`."""
    return conditions(settings.resource, _opened(settings), now)


def _opened(settings: PluginSettings) -> GridEngine:
    return open_system(settings, read_options(settings.options, GridEngineOptions, within=settings.resource))
