"""Machines of cabled lines: Blue Gene/L and the plain torus it is compared with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

from ramp.errors import ConfigurationError, MachineError
from ramp.options import Bounds, Wanted
from simulation.machines.allocator_declaration import make_policy
from simulation.machines.bluegene.blocks import BlockTimes
from simulation.machines.bluegene.cable_policy import CablePolicy
from simulation.machines.bluegene.link_sets import LineWiring, build_link_table, parse_wiring, ring_wiring
from simulation.machines.description import BuildOptions, Prefix, dimension_index, machine_kind, set_nodes
from simulation.machines.hostlist import DIGITS, expand_coordinates

if TYPE_CHECKING:
    from simulation.machines.bluegene.machine import BlueGene


@dataclass(frozen=True, slots=True)
class Dimension:
    """One dimension of such a machine: a ring, or a width and the cables of a line.

    Attributes:
        name: of the dimension.
        ring: numbers of the switches in the order in which the cables join them.
        width: midplanes of a line, where it is no ring.
        cables: of a line, where it is no ring: switch.port>switch.port.
        pass_through: switches pass foreign traffic through.
    """

    name: str
    ring: Annotated[tuple[int, ...], Wanted("a list of switch numbers", bool)] | None = None
    width: int | None = None
    cables: tuple[str, ...] | None = None
    pass_through: bool = True

    def __post_init__(self) -> None:
        width = self.wiring().width
        if width > len(DIGITS):
            raise MachineError(f"a line must have at most {len(DIGITS)} midplanes, got {width}")

    def wiring(self) -> LineWiring:
        """Return the cables of a line.

        Raises:
            MachineError: they form no line.
        """
        if self.ring is not None:
            if self.width is not None or self.cables is not None:
                raise MachineError("`ring` excludes `cables` and `width`; remove them")
            return ring_wiring(self.ring, pass_through=self.pass_through)
        if self.width is None or self.cables is None:
            raise MachineError("missing wiring; give `ring`, or `width` and `cables`")
        return parse_wiring(self.width, self.cables, pass_through=self.pass_through)


@dataclass(frozen=True, slots=True)
class FailedCables:
    """Cables of one line that are out of service.

    Attributes:
        dimension: in which the line runs.
        line: its coordinates in the other dimensions.
        labels: of the cables.
    """

    dimension: str
    line: tuple[int, ...]
    labels: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class BootTime:
    """Boot time of blocks of up to some size.

    Attributes:
        midplanes: largest number of midplanes.
        seconds: boot time.
    """

    midplanes: Annotated[int, Bounds(1)]
    seconds: Annotated[int, Bounds(0)]


@dataclass(frozen=True, slots=True)
class SlurmPartition:
    """A partition (queue) of Slurm.

    Attributes:
        name: of the partition.
        nodes: host list of its midplanes.
    """

    name: str
    nodes: str


@dataclass(frozen=True, slots=True)
class CabledDescription:
    """The file of a machine of cabled lines.

    Attributes:
        name: of the machine.
        prefix: what a midplane's name begins with.
        dimension: its dimensions, one table each.
        allocator: where jobs are placed.
        allocator_options: of that allocator.
        cnodes_per_midplane: compute nodes of a midplane.
        processors_per_midplane: processors of a midplane.
        drained: host list of midplanes that get no new jobs.
        down: host list of midplanes that have failed.
        failed_links: cables that have failed.
        boot: boot times of blocks by size; none by default.
        slurm_partitions: Slurm's partitions; one of all midplanes by default.
        bluegene_conf: file with Slurm's list of blocks, beside this one; blocks are made for each job by default.
        configure_s: seconds before a block boots.
        deallocate_s: seconds from the end of a job until its midplanes are free.
    """

    name: str
    prefix: Prefix
    dimension: Annotated[tuple[Dimension, ...], Wanted("at least one [[dimension]]", bool)]
    allocator: str = "two-phase"
    allocator_options: Mapping[str, Any] = field(default_factory=dict)
    cnodes_per_midplane: Annotated[int, Bounds(1)] = 512
    processors_per_midplane: Annotated[int, Bounds(1)] = 1024
    drained: str = ""
    down: str = ""
    failed_links: tuple[FailedCables, ...] = ()
    boot: tuple[BootTime, ...] = ()
    slurm_partitions: tuple[SlurmPartition, ...] = ()
    bluegene_conf: str = ""
    configure_s: Annotated[int, Bounds(0)] = 0
    deallocate_s: Annotated[int, Bounds(0)] = 0

    def __post_init__(self) -> None:
        names = [one.name for one in self.dimension]
        if len(set(names)) != len(names):
            raise ConfigurationError(f"dimensions must have different names, got {', '.join(names)}", key="dimension")


def build(description: CabledDescription, options: BuildOptions) -> BlueGene:
    """Make the machine.

    Raises:
        ConfigurationError: there is no such allocator, midplane or cable.
    """
    # only here: other machines do without
    from simulation.machines.bluegene.blocks import listed_blocks
    from simulation.machines.bluegene.machine import BlueGene, Layout

    boot = sorted((one.midplanes, one.seconds) for one in description.boot)
    times = BlockTimes(tuple(boot), description.configure_s, description.deallocate_s)
    tables = tuple(build_link_table(one.wiring()) for one in description.dimension)
    listed = description.bluegene_conf
    blocks = (
        listed_blocks(options.read_file(listed), listed, description.prefix, tables, description.cnodes_per_midplane)
        if listed
        else ()
    )
    if blocks and (options.allocator or options.allocator_options or description.allocator_options):
        raise ConfigurationError(
            f"{listed} lists the blocks of jobs; remove the allocator and its options", key="allocator"
        )
    layout = Layout(
        name=description.name,
        prefix=description.prefix,
        dimension_names=tuple(one.name for one in description.dimension),
        tables=tables,
        blocks=blocks,
        cnodes=description.cnodes_per_midplane,
        processors=description.processors_per_midplane,
        slurm_partitions=tuple((one.name, one.nodes) for one in description.slurm_partitions),
        block_times=times if times.boot or times.configure_s or times.deallocate_s else None,
    )
    chosen, its_options = options.allocator_of(description.allocator, description.allocator_options)
    machine = BlueGene(layout, make_policy(chosen, its_options, CablePolicy))
    set_nodes(machine, drained=description.drained, down=description.down)
    for index, partition in enumerate(description.slurm_partitions):
        try:
            expand_coordinates(partition.nodes, description.prefix, len(layout.extents))
        except MachineError as error:
            raise ConfigurationError(str(error), key=f"slurm_partitions[{index}].nodes") from error
    for index, failed in enumerate(description.failed_links):
        key = f"failed_links[{index}]"
        dimension = dimension_index(layout.dimension_names, failed.dimension, key)
        try:
            machine.fail_links(dimension, failed.line, failed.labels)
        except MachineError as error:
            raise ConfigurationError(str(error), key=key) from error
    return machine


KIND = machine_kind(CabledDescription, build, about="Midplanes on cabled lines, as of Blue Gene/L.")
