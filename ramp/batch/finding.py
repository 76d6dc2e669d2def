"""Environment variables by which commands find the batch system of a resource."""

from __future__ import annotations

import os
from collections.abc import Mapping

from ramp.options import read_options
from ramp.runtime.config import QUEUE_BOUND, ResourceConfig


def finding_variables(resource: ResourceConfig) -> Mapping[str, str]:
    """Return the variables for commands that act on a resource's system; `PATH` is a folder of them.

    Args:
        resource: as configured; plug-ins without a batch system need no variables.

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
