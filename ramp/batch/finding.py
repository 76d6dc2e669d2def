"""Environment variables by which commands find the batch system of a resource."""

from __future__ import annotations

from collections.abc import Mapping

from ramp.options import read_options
from ramp.runtime.configuration.values import QUEUE_BOUND, ResourceConfig


def finding_variables(resource: ResourceConfig) -> Mapping[str, str]:
    """Return the variables for commands that act on a resource's system; `PATH` is a folder of them.

    Raises:
        ConfigurationError: an option of its plug-in is wrong.
    """
    system, options, within = resource.plugin, resource.options, resource.name
    held = system == QUEUE_BOUND
    if held:
        from ramp.batch.waiting.plugin import QueueBoundOptions  # many markets have neither of the systems

        queue = read_options(options, QueueBoundOptions, within=within)
        system, options, within = queue.system, queue.queue, f"{within}.queue"
    if system == "slurm":
        from ramp.batch.slurm.partition import cluster_variables
        from ramp.batch.slurm.plugin import ClusterOptions, SlurmOptions

        read = read_options(options, ClusterOptions if held else SlurmOptions, within=within)
        return cluster_variables(read.conf)  # as the plug-in looks for it
    if system == "gridengine":
        from ramp.batch.gridengine.held_jobs import GridEngineQueueOptions
        from ramp.batch.gridengine.plugin import GridEngineOptions, environment_of

        kind = GridEngineQueueOptions if held else GridEngineOptions
        return environment_of(read_options(options, kind, within=within), resource.name)
    return {}
