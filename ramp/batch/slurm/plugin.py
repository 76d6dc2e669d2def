"""The plug-in `slurm`: a partition of a Slurm cluster behind a Resource Agent."""

from __future__ import annotations

import getpass
import pwd
import re
import shutil
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Final

from ramp.batch.commands import CommandRunner
from ramp.batch.for_sale import ForSale
from ramp.batch.machine import SNAPSHOT_AGE_S, BatchMachine
from ramp.batch.slurm.system import NAME, SlurmSystem, check_cluster, node_shortage
from ramp.errors import BatchSystemError, ConfigurationError, PluginError
from ramp.options import Bounds, Wanted, read_options, takes
from ramp.plugins.interface import PluginSettings

_PARTITION: Final = Wanted("a partition's name", lambda text: re.fullmatch(r"[\w.-]+", text) is not None)


@dataclass(frozen=True, slots=True)
class SlurmOptions:
    """What the configuration says about a partition that is sold.

    Attributes:
        partition: its name.
        conf: path of the cluster's `slurm.conf`; empty for the one that Slurm's commands find by themselves.
        market_user: the local account that holds belong to until they are handed over; empty for the agent's own.
        wrapper: the command, word by word, that may change reservations (`["sudo", "-n", "/usr/local/sbin/...")`; empty
            where the agent may itself, as root or SlurmUser.
        spare_planned: whether jobs that Slurm plans to start keep their places in what is offered.
        snapshot_age_s: seconds for which one picture of the cluster serves all buyers.
        command_limit_s: seconds that one command may take.
        for_sale: what is for sale, and when.
    """

    partition: Annotated[str, _PARTITION]
    conf: str = ""
    market_user: str = ""
    wrapper: tuple[str, ...] = ()
    spare_planned: bool = True
    snapshot_age_s: Annotated[float, Bounds(0, 60)] = SNAPSHOT_AGE_S
    command_limit_s: Annotated[int, Bounds(1, 25)] = 15
    for_sale: ForSale = field(default_factory=ForSale)


@takes(SlurmOptions)
def open_plugin(settings: PluginSettings) -> BatchMachine:
    """The entry point `slurm` of the group `ramp.resource_plugins`.

    Raises:
        ConfigurationError: an option is wrong, or the cluster is not what the configuration says.
        PluginError: the cluster cannot be asked now.
    """
    options = read_options(settings.options, SlurmOptions, within=settings.resource)
    system = open_system(settings, options)
    machine = BatchMachine(
        system,
        settings.resource,
        settings.cores,
        options.for_sale,
        settings.state_dir,
        spare_planned=options.spare_planned,
        snapshot_age_s=options.snapshot_age_s,
    )
    machine.begin(time.time_ns() // 1000)
    return machine


def open_system(settings: PluginSettings, options: SlurmOptions) -> SlurmSystem:
    """The cluster that the options name, checked against the static terms; nothing of it is changed.

    Raises:
        ConfigurationError: an option is wrong, or the cluster is not what the configuration says.
        PluginError: the cluster cannot be asked now.
    """
    user = options.market_user or getpass.getuser()
    try:
        pwd.getpwnam(user)
    except KeyError:
        raise ConfigurationError(
            f"is {user!r}; an account of this computer is wanted", key=f"{settings.resource}.market_user"
        ) from None
    if options.conf and not Path(options.conf).is_file():
        raise ConfigurationError(f"{options.conf} is no file", key=f"{settings.resource}.conf")
    if shutil.which("scontrol") is None:
        raise ConfigurationError("there is no command scontrol; Slurm's commands are to be installed here")
    run = runner_of(options)
    system = SlurmSystem(run, options.partition, user, options.wrapper)
    try:
        wrong = check_cluster(run)
        if wrong:
            raise ConfigurationError(wrong, key=settings.resource)
        wrong = node_shortage(system.nodes(), settings.cores, settings.cores_per_node, options.partition)
    except BatchSystemError as error:
        raise PluginError(NAME, error.reason, transient=error.transient) from error
    if wrong:
        raise ConfigurationError(wrong, key=settings.resource)
    return system


def runner_of(options: SlurmOptions) -> CommandRunner:
    """What runs the commands of the cluster that the options name."""
    return CommandRunner({"SLURM_CONF": options.conf} if options.conf else {}, options.command_limit_s)
