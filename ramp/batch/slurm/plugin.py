"""The plug-in `slurm`: a partition of a Slurm cluster behind a Resource Agent."""

from __future__ import annotations

import getpass
import pwd
import re
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any, Final

from ramp.batch.commands import CommandRunner
from ramp.batch.for_sale import ForSale
from ramp.batch.machine import SNAPSHOT_AGE_S
from ramp.batch.node_lists import expand
from ramp.batch.places import open_torus
from ramp.batch.resizable_machine import ResizableBatchMachine
from ramp.batch.slurm.conditions import conditions
from ramp.batch.slurm.finding import CONF_VARIABLE, default_partition, found_conf, static_terms
from ramp.batch.slurm.nodes import Choice
from ramp.batch.slurm.system import NAME, SlurmSystem, check_cluster, node_shortage
from ramp.batch.slurm.topology import placed_options
from ramp.errors import BatchSystemError, ConfigurationError, PluginError
from ramp.options import Bounds, Wanted, read_options, takes
from ramp.plugins.found_terms import tells_terms
from ramp.plugins.interface import PluginSettings

_PARTITION: Final = Wanted("a partition's name", lambda text: re.fullmatch(r"[\w.-]*", text) is not None)


def _is_node_list(text: str) -> bool:
    try:
        return text == "" or bool(expand(text))
    except ValueError:
        return False


_NODES: Final = Wanted("a list of nodes such as c[1-8],d3", _is_node_list)


@dataclass(frozen=True, slots=True)
class SlurmOptions:
    """Configuration of a partition that is sold.

    Attributes:
        partition: its name; empty for the cluster's default one.
        conf: path of the cluster's `slurm.conf`; empty for that of SLURM_CONF in the agent's environment, else the
            one that Slurm's commands find by themselves.
        market_user: the local account that holds belong to until they are handed over; empty for the agent's own.
        wrapper: the command, word by word, that may change reservations (`["sudo", "-n", "/usr/local/sbin/...")`; empty
            if the agent may itself, as root or SlurmUser.
        spare_planned: whether jobs that Slurm plans to start keep their places in offers.
        snapshot_age_s: seconds for which one picture of the cluster serves all buyers.
        command_limit_s: seconds that one command may take.
        nodes: nodes that are for sale, as a list in Slurm's form (`"c[1-8],d3"`); empty for all of the partition.
        features: features that each of them must have.
        gpus: whether nodes with GPUs are for sale, for the price of their cores.
        for_sale: the part that is for sale, and when.
        torus: for nodes in a torus: its `extents`, the source of `coordinates` (`order`, `names`, `table`; or `slurm`,
            then `ramp.batch.slurm.topology` asks for them and the extents), and the `allocator` with its
            `allocator_options`; requests with terms for tori get boxes of it.
    """

    partition: Annotated[str, _PARTITION] = ""
    conf: str = ""
    market_user: str = ""
    wrapper: tuple[str, ...] = ()
    spare_planned: bool = True
    snapshot_age_s: Annotated[float, Bounds(0, 60)] = SNAPSHOT_AGE_S
    command_limit_s: Annotated[int, Bounds(1, 25)] = 15
    nodes: Annotated[str, _NODES] = ""
    features: tuple[str, ...] = ()
    gpus: bool = False
    for_sale: ForSale = field(default_factory=ForSale)
    torus: Mapping[str, Any] = field(default_factory=dict)

    @property
    def choice(self) -> Choice:
        return Choice(frozenset(expand(self.nodes)), frozenset(self.features), self.gpus)


def terms_of(options: Mapping[str, Any], machine: str) -> dict[str, Any]:
    """Return the static terms of the partition that a machine's options name; see `ramp.plugins.found_terms`.

    Raises:
        ConfigurationError: an option is wrong, or there is no cluster.
        BatchSystemError: the cluster cannot be asked.
    """
    read = read_options(options, SlurmOptions, within=f"machines.{machine}.options")
    run = runner_of(read)
    found = static_terms(run, read.partition or default_partition(run), read.choice)
    return {**found, "torus": True} if read.torus else found


@tells_terms(terms_of)
@takes(SlurmOptions)
def open_plugin(settings: PluginSettings) -> ResizableBatchMachine:
    """Open the partition of the options (entry point `slurm` of the group `ramp.resource_plugins`).

    Raises:
        ConfigurationError: an option is wrong, or the cluster contradicts the configuration.
        PluginError: the cluster cannot be asked now.
    """
    options = read_options(settings.options, SlurmOptions, within=settings.resource)
    system = open_system(settings, options)
    try:
        nodes = system.nodes().nodes if options.torus else ()
        torus = placed_options(options.torus, nodes, system.run, f"{settings.resource}.torus")
        places = open_torus(torus, nodes, settings.resource)
    except BatchSystemError as error:
        raise PluginError(NAME, error.reason, transient=error.transient) from error
    machine = ResizableBatchMachine(
        system,
        settings.resource,
        settings.cores,
        options.for_sale,
        settings.state_dir,
        spare_planned=options.spare_planned,
        snapshot_age_s=options.snapshot_age_s,
        places=places,
        conditions=partial(conditions, settings.resource, options.wrapper, system.partition, system.run),
    )
    machine.begin(time.time_ns() // 1000)
    return machine


def open_system(settings: PluginSettings, options: SlurmOptions) -> SlurmSystem:
    """Open the cluster of the options and check it against the static terms, without changing it.

    Raises:
        ConfigurationError: an option is wrong, or the cluster contradicts the configuration.
        PluginError: the cluster cannot be asked now.
    """
    user = options.market_user or getpass.getuser()
    try:
        pwd.getpwnam(user)
    except KeyError:
        raise ConfigurationError(
            f"got {user!r}, expected an account of this computer", key=f"{settings.resource}.market_user"
        ) from None
    if shutil.which("scontrol") is None:
        raise ConfigurationError("command scontrol not found; install Slurm's commands on this computer")
    try:
        run = runner_of(options)
    except ConfigurationError as error:
        raise ConfigurationError(error.reason, key=f"{settings.resource}.{error.key or 'conf'}") from error
    try:
        partition = options.partition or default_partition(run)
        system = SlurmSystem(run, partition, user, options.wrapper, options.choice)
        wrong = check_cluster(run)
        if wrong:
            raise ConfigurationError(wrong, key=settings.resource)
        wrong = node_shortage(system.nodes(), settings.cores, settings.cores_per_node, partition)
    except BatchSystemError as error:
        raise PluginError(NAME, error.reason, transient=error.transient) from error
    if wrong:
        raise ConfigurationError(wrong, key=settings.resource)
    return system


def runner_of(options: SlurmOptions) -> CommandRunner:
    """Return the runner for commands of the cluster that the options name.

    Raises:
        ConfigurationError: there is no `slurm.conf`.
    """
    conf = found_conf(options.conf)
    return CommandRunner({CONF_VARIABLE: conf} if conf else {}, options.command_limit_s)
