"""Checks of `ramp doctor` for a Slurm cluster: its conditions for sales, and its reservations."""

from __future__ import annotations

from collections.abc import Sequence

from ramp.batch.inspecting import Comparing, Remark, reading
from ramp.batch.slurm.conditions import conditions
from ramp.batch.slurm.finding import default_partition
from ramp.batch.slurm.plugin import SlurmOptions, open_system, runner_of
from ramp.errors import BatchSystemError
from ramp.model.instant import Instant
from ramp.options import read_options
from ramp.plugins.interface import PluginSettings


def read(settings: PluginSettings) -> Comparing:
    """See `ramp.batch.inspecting.Inspection`."""
    options = read_options(settings.options, SlurmOptions, within=settings.resource)
    return reading(settings.resource, open_system(settings, options))


def remarks(settings: PluginSettings, now: Instant) -> Sequence[Remark]:
    """See `ramp.batch.inspecting.Inspection`."""
    options = read_options(settings.options, SlurmOptions, within=settings.resource)
    run = runner_of(options)
    try:
        partition = options.partition or default_partition(run)
    except BatchSystemError as error:
        return [Remark("cluster", settings.resource, error.reason, "start slurmctld, or name a partition")]
    return conditions(settings.resource, options.wrapper, partition, run, now)
