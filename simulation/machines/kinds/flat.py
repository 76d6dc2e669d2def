"""Flat machines: processors without places."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from ramp.errors import ConfigurationError
from ramp.options import Bounds
from simulation.machines.description import BuildOptions, machine_kind
from simulation.machines.flat import FlatMachine


@dataclass(frozen=True, slots=True)
class FlatDescription:
    """The file of a flat machine.

    Attributes:
        name: of the machine.
        processors: how many.
    """

    name: str
    processors: Annotated[int, Bounds(1)]


def build(description: FlatDescription, options: BuildOptions) -> FlatMachine:
    """Make the machine.

    Raises:
        ConfigurationError: an allocator is given.
    """
    if options.allocator is not None or options.allocator_options:
        raise ConfigurationError("a flat machine has no allocator; remove this option", key="allocator")
    return FlatMachine(description.processors, description.name)


KIND = machine_kind(FlatDescription, build, about="Processors without places; whatever is free fits.")
