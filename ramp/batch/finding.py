"""By what variables the commands of a batch system find the system that a resource fronts."""

from __future__ import annotations

import os
from collections.abc import Mapping

from ramp.options import read_options
from ramp.runtime.configuration.values import QUEUE_BOUND, ResourceConfig


def finding_variables(resource: ResourceConfig) -> Mapping[str, str]:
    """Variables for commands that act on a resource's system as others than its plug-in; `PATH` is a folder of them.

    Args:
        resource: as configured; a plug-in that is not of a batch system needs none.

    Raises:
        ConfigurationError: an option of its plug-in is wrong.
    """
    if resource.plugin == QUEUE_BOUND:
        return _of_queue(resource)
    if resource.plugin == "slurm":
        from ramp.batch.slurm.finding import CONF_VARIABLE
        from ramp.batch.slurm.plugin import SlurmOptions  # many markets have neither of the two

        conf = read_options(resource.options, SlurmOptions, within=resource.name).conf
        conf = conf or os.environ.get(CONF_VARIABLE, "")  # as the plug-in looks for it
        return {CONF_VARIABLE: conf} if conf else {}
    if resource.plugin == "gridengine":
        from ramp.batch.gridengine.plugin import GridEngineOptions, environment_of

        options = read_options(resource.options, GridEngineOptions, within=resource.name)
        folder = {"PATH": options.commands} if options.commands else {}
        return {**environment_of(options, resource.name), **folder}
    return {}


def _of_queue(resource: ResourceConfig) -> Mapping[str, str]:
    """Of a queue that is not reserved, as its plug-in finds it."""
    from ramp.batch.waiting.plugin import QueueBoundOptions

    options = read_options(resource.options, QueueBoundOptions, within=resource.name)
    within = f"{resource.name}.queue"
    if options.system == "slurm":
        from ramp.batch.slurm.finding import CONF_VARIABLE
        from ramp.batch.slurm.held_jobs import SlurmQueueOptions

        conf = read_options(options.queue, SlurmQueueOptions, within=within).conf or os.environ.get(CONF_VARIABLE, "")
        return {CONF_VARIABLE: conf} if conf else {}
    if options.system == "gridengine":
        from ramp.batch.gridengine.held_jobs import GridEngineQueueOptions, variables_of

        found = read_options(options.queue, GridEngineQueueOptions, within=within)
        folder = {"PATH": found.commands} if found.commands else {}
        return {**variables_of(found, resource.name), **folder}
    return {}
