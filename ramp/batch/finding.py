"""By what variables the commands of a batch system find the system that a resource fronts."""

from __future__ import annotations

import os
from collections.abc import Mapping

from ramp.options import read_options
from ramp.runtime.config import ResourceConfig


def finding_variables(resource: ResourceConfig) -> Mapping[str, str]:
    """Variables for commands that act on a resource's system as others than its plug-in; `PATH` is a folder of them.

    Args:
        resource: as configured; a plug-in that is not of a batch system needs none.

    Raises:
        ConfigurationError: an option of its plug-in is wrong.
    """
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
