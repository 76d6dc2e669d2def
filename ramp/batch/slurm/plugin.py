"""The plug-in `slurm`: a partition of a Slurm cluster behind a Resource Agent."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any, Final

from ramp.batch.commands import CommandRunner, ask, check_installed, market_account
from ramp.batch.for_sale import ForSale
from ramp.batch.inspecting import Comparing, Remark, reading
from ramp.batch.machine import SNAPSHOT_AGE_S
from ramp.batch.node_lists import expand
from ramp.batch.places import open_torus
from ramp.batch.resizable_machine import ResizableBatchMachine
from ramp.batch.slurm.conditions import conditions
from ramp.batch.slurm.partition import ALL, CONF_VARIABLE, Choice, default_partition, found_conf, static_terms
from ramp.batch.slurm.system import SlurmSystem, settings_question
from ramp.batch.slurm.topology import placed_options
from ramp.errors import ConfigurationError
from ramp.model.instant import Instant
from ramp.options import Bounds, Wanted, read_options, takes
from ramp.plugins.interface import PluginSettings

_PARTITION: Final = Wanted("a partition's name", lambda text: re.fullmatch(r"[\w.-]*", text) is not None)


def _is_node_list(text: str) -> bool:
    try:
        return text == "" or bool(expand(text))
    except ValueError:
        return False


_NODES: Final = Wanted("a list of nodes such as c[1-8],d3", _is_node_list)


@dataclass(frozen=True, slots=True)
class ClusterOptions:
    """Configuration of a partition, and how Slurm's commands find it.

    Attributes:
        partition: its name; empty for the cluster's default one.
        conf: path of the cluster's `slurm.conf`; empty for that of SLURM_CONF in the agent's environment, else the
            one that Slurm's commands find by themselves.
        command_limit_s: seconds that one command may take.
    """

    partition: Annotated[str, _PARTITION] = ""
    conf: str = ""
    command_limit_s: Annotated[int, Bounds(1, 25)] = 15


@dataclass(frozen=True, slots=True)
class SlurmOptions(ClusterOptions):
    """Configuration of a partition that is sold.

    Attributes:
        market_user: the local account that holds belong to until they are handed over; empty for the agent's own.
        wrapper: the command, word by word, that may change reservations (`["sudo", "-n", "/usr/local/sbin/...")`; empty
            if the agent may itself, as root or SlurmUser.
        spare_planned: whether jobs that Slurm plans to start keep their places in offers.
        snapshot_age_s: seconds for which one picture of the cluster serves all buyers.
        nodes: nodes that are for sale, as a list in Slurm's form (`"c[1-8],d3"`); empty for all of the partition.
        features: features that each of them must have.
        gpus: whether nodes with GPUs are for sale. Requests with terms about GPUs get them; the jobs of others have
            none (`--gres=none`).
        for_sale: the part that is for sale, and when.
        torus: for nodes in a torus: its `extents`, the source of `coordinates` (`order`, `names`, `table`; or `slurm`,
            then `ramp.batch.slurm.topology` asks for them and the extents), and the `allocator` with its
            `allocator_options`; requests with terms for tori get boxes of it.
    """

    market_user: str = ""
    wrapper: tuple[str, ...] = ()
    spare_planned: bool = True
    snapshot_age_s: Annotated[float, Bounds(0, 60)] = SNAPSHOT_AGE_S
    nodes: Annotated[str, _NODES] = ""
    features: tuple[str, ...] = ()
    gpus: bool = False
    for_sale: ForSale = field(default_factory=ForSale)
    torus: Mapping[str, Any] = field(default_factory=dict)

    @property
    def choice(self) -> Choice:
        return Choice(frozenset(expand(self.nodes)), frozenset(self.features), self.gpus)

    def found_terms(self) -> dict[str, Any]:
        """Return the static terms of the partition; see `ramp.plugins.found_terms`.

        Raises:
            ConfigurationError: there is no cluster.
            BatchSystemError: the cluster cannot be asked.
        """
        run = runner_of(self)
        found = static_terms(run, self.partition or default_partition(run), self.choice)
        return {**found, "torus": True} if self.torus else found


@takes(SlurmOptions)
def open_plugin(settings: PluginSettings) -> ResizableBatchMachine:
    """Open the partition of the options (entry point `slurm` of the group `ramp.resource_plugins`).

    Raises:
        ConfigurationError: an option is wrong, or the cluster contradicts the configuration.
        PluginError: the cluster cannot be asked now.
    """
    options = read_options(settings.options, SlurmOptions, within=settings.resource)
    system = open_system(settings, options)
    nodes = system.nodes().nodes if options.torus else ()
    torus = placed_options(options.torus, nodes, system.run, f"{settings.resource}.torus")
    places = open_torus(torus, nodes, settings.resource)
    machine = ResizableBatchMachine(
        system,
        settings,
        options.for_sale,
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
    user = market_account(options.market_user, settings.resource)
    system = open_partition(settings, options, user, options.wrapper, options.choice)
    select = ask(settings_question(), system.run).get("SelectType", "")
    if select not in {"select/cons_tres", "select/cons_res"}:
        wrong = f"SelectType is {select or 'unknown'}; reservations of cores need select/cons_tres"
        raise ConfigurationError(wrong, key=settings.resource)
    return system


def open_partition(
    settings: PluginSettings,
    options: ClusterOptions,
    market_user: str = "",
    wrapper: tuple[str, ...] = (),
    choice: Choice = ALL,
) -> SlurmSystem:
    """Open a partition and check it against the static terms; the arguments are those of `SlurmSystem`.

    Raises:
        ConfigurationError: Slurm's commands are missing, or the cluster contradicts the configuration.
        BatchSystemError: the cluster cannot be asked now.
    """
    check_installed(("scontrol", "sbatch"), {}, "Slurm", settings.resource)
    try:
        run = runner_of(options)
    except ConfigurationError as error:
        raise ConfigurationError(error.reason, key=f"{settings.resource}.{error.key or 'conf'}") from error
    system = SlurmSystem(run, options.partition or default_partition(run), market_user, wrapper, choice)
    nodes, partition = system.nodes().nodes, system.partition
    all_cores, largest = sum(node.cores for node in nodes), max(node.cores for node in nodes)
    if settings.cores != all_cores:
        raise ConfigurationError(
            f"cores is {settings.cores}; partition {partition} has {all_cores} cores on {len(nodes)} nodes",
            key=settings.resource,
        )
    if settings.cores_per_node > largest:
        raise ConfigurationError(
            f"cores_per_node is {settings.cores_per_node}; the largest node of partition {partition} has {largest} "
            "cores",
            key=settings.resource,
        )
    return system


def runner_of(options: ClusterOptions) -> CommandRunner:
    """Return the runner for commands of the cluster that the options name.

    Raises:
        ConfigurationError: there is no `slurm.conf`.
    """
    conf = found_conf(options.conf)
    return CommandRunner({CONF_VARIABLE: conf} if conf else {}, options.command_limit_s)


def inspect(settings: PluginSettings, now: Instant) -> tuple[Sequence[Remark], Callable[[], Comparing]]:
    """See `ramp.batch.inspecting.Inspection`."""
    options = read_options(settings.options, SlurmOptions, within=settings.resource)
    found = conditions(settings.resource, options.wrapper, options.partition, runner_of(options), now)
    return found, lambda: reading(settings.resource, open_system(settings, options))
