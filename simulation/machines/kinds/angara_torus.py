"""Tori of nodes whose jobs never share a link: Angara."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

from ramp.errors import ConfigurationError, MachineError
from ramp.options import Bounds, Wanted
from simulation.machines.allocator_declaration import make_policy
from simulation.machines.boxes.policy import BoxPolicy
from simulation.machines.description import BuildOptions, Prefix, dimension_index, machine_kind, set_nodes
from simulation.machines.hostlist import DIGITS, expand_coordinates

if TYPE_CHECKING:
    from simulation.machines.angara import AngaraMachine


@dataclass(frozen=True, slots=True)
class FailedNodeLink:
    """The cable from a node to its neighbour upwards, out of service.

    Attributes:
        node: its name, or several as a host list.
        dimension: in which the cable runs.
    """

    node: str
    dimension: str


@dataclass(frozen=True, slots=True)
class AngaraDescription:
    """The file of an Angara torus.

    Attributes:
        name: of the machine.
        prefix: what a node's name begins with.
        extents: nodes in each dimension.
        dimension_names: one a dimension.
        allocator: where jobs are placed.
        allocator_options: of that allocator.
        bypass: boxes with failed nodes or links may serve jobs where routes lead around them.
        drained: host list of nodes that get no new jobs.
        down: host list of nodes that have failed.
        failed_links: links that have failed.
    """

    name: str
    prefix: Prefix
    extents: Annotated[
        tuple[Annotated[int, Bounds(1, len(DIGITS))], ...], Wanted("one number for each dimension", bool)
    ]
    dimension_names: tuple[str, ...]
    allocator: str = "find-systems-mss"
    allocator_options: Mapping[str, Any] = field(default_factory=dict)
    bypass: bool = False
    drained: str = ""
    down: str = ""
    failed_links: tuple[FailedNodeLink, ...] = ()

    def __post_init__(self) -> None:
        names, count = self.dimension_names, len(self.extents)
        if len(names) != count or len(set(names)) != count:
            raise ConfigurationError(f"expected {count} different names, got {', '.join(names)}", key="dimension_names")


def build(description: AngaraDescription, options: BuildOptions) -> AngaraMachine:
    """Make the machine.

    Raises:
        ConfigurationError: there is no such allocator, node or link.
        MachineError: the allocator cannot serve such a machine.
    """
    # only here: other machines do without
    from simulation.machines.angara import AngaraMachine, TorusLayout
    from simulation.machines.boxes.ranked import RankedBoxes

    layout = TorusLayout(
        name=description.name,
        prefix=description.prefix,
        dimension_names=description.dimension_names,
        extents=description.extents,
        bypass=description.bypass,
    )
    chosen, its_options = options.allocator_of(description.allocator, description.allocator_options)
    machine = AngaraMachine(layout, RankedBoxes(description.extents, make_policy(chosen, its_options, BoxPolicy)))
    set_nodes(machine, drained=description.drained, down=description.down)
    for index, failed in enumerate(description.failed_links):
        key = f"failed_links[{index}]"
        dimension = dimension_index(layout.dimension_names, failed.dimension, key)
        try:
            for coordinates in expand_coordinates(failed.node, layout.prefix, len(layout.extents)):
                machine.fail_link(machine.grid.unit(coordinates), dimension)
        except MachineError as error:
            raise ConfigurationError(str(error), key=f"{key}.node") from error
    return machine


KIND = machine_kind(AngaraDescription, build, about="Nodes in boxes that keep their traffic to themselves.")
