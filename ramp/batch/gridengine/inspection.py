"""What `ramp doctor` looks at on a Grid Engine: that it is set up so that its slots can be sold."""

from __future__ import annotations

from collections.abc import Sequence

from ramp.batch.gridengine.plugin import GridEngineOptions, open_system
from ramp.batch.inspecting import Comparing, Remark, reading
from ramp.model.instant import Instant
from ramp.options import read_options
from ramp.plugins.interface import PluginSettings


def read(settings: PluginSettings) -> Comparing:
    """See `ramp.batch.inspecting.Inspection`; queue, parallel environment, rights and limits are checked on the way."""
    options = read_options(settings.options, GridEngineOptions, within=settings.resource)
    return reading(settings.resource, open_system(settings, options))


def remarks(settings: PluginSettings, now: Instant) -> Sequence[Remark]:
    """See `ramp.batch.inspecting.Inspection`: what there is to say, `read` raises."""
    del now
    options = read_options(settings.options, GridEngineOptions, within=settings.resource)
    return [Remark("privilege", settings.resource, f"this account may reserve in {options.parallel_environment}")]
