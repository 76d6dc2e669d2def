"""Checks of `ramp doctor` for a Grid Engine: its setup must allow sales."""

from __future__ import annotations

from collections.abc import Sequence

from ramp.batch.gridengine.plugin import GridEngineOptions, open_system
from ramp.batch.inspecting import Comparing, Remark, reading
from ramp.model.instant import Instant
from ramp.options import read_options
from ramp.plugins.interface import PluginSettings


def read(settings: PluginSettings) -> Comparing:
    """See `ramp.batch.inspecting.Inspection`; also checks queue, parallel environment, rights and limits."""
    options = read_options(settings.options, GridEngineOptions, within=settings.resource)
    return reading(settings.resource, open_system(settings, options))


def remarks(settings: PluginSettings, now: Instant) -> Sequence[Remark]:
    """See `ramp.batch.inspecting.Inspection`; `read` raises whatever is wrong."""
    del now
    options = read_options(settings.options, GridEngineOptions, within=settings.resource)
    return [Remark("privilege", settings.resource, f"this account may reserve in {options.parallel_environment}")]
