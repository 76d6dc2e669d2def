"""Environment variables by which commands find the batch system of a resource."""

from __future__ import annotations

import os
from collections.abc import Mapping

from ramp.options import read_options
from ramp.runtime.configuration.values import QUEUE_BOUND, ResourceConfig


def finding_variables(resource: ResourceConfig) -> Mapping[str, str]:
    """Return the variables for commands that act on a resource's system; `PATH` is a folder of them.

    Args:
        resource: as configured; plug-ins without a batch system need no variables.

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
        from ramp.batch.slurm.finding import CONF_VARIABLE
        from ramp.batch.slurm.held_jobs import SlurmQueueOptions
        from ramp.batch.slurm.plugin import SlurmOptions

        kind: type[SlurmOptions | SlurmQueueOptions] = SlurmQueueOptions if held else SlurmOptions
        conf = read_options(options, kind, within=within).conf
        conf = conf or os.environ.get(CONF_VARIABLE, "")  # as the plug-in looks for it
        return {CONF_VARIABLE: conf} if conf else {}
    if system == "gridengine":
        from ramp.batch.gridengine.held_jobs import GridEngineQueueOptions, variables_of
        from ramp.batch.gridengine.plugin import GridEngineOptions, environment_of

        if held:
            found = read_options(options, GridEngineQueueOptions, within=within)
            variables, commands = variables_of(found, resource.name), found.commands
        else:
            reserved = read_options(options, GridEngineOptions, within=within)
            variables, commands = environment_of(reserved, resource.name), reserved.commands
        return {**variables, "PATH": commands} if commands else variables
    return {}
