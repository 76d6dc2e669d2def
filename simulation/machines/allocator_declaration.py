"""Declaration of allocators: those in `simulation.machines.allocators` and those of other packages.

Declare an allocator at the end of its file; its options are the fields of its class:

    ALLOCATOR = allocator(TorusDistance, about="Compact boxes by the distances that packets really travel.")

Other packages register the constant or the class as an entry point of the group `ramp.allocators`, or users name its
place (`module:Name`, `FILE.py:Name`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from ramp.declarations import Sort
from ramp.errors import ConfigurationError
from ramp.options import first_paragraph, read_options
from simulation.machines.bluegene.cable_policy import CablePolicy
from simulation.machines.boxes.policy import BoxPolicy

Policy = BoxPolicy | CablePolicy
_Policy = TypeVar("_Policy", BoxPolicy, CablePolicy)


@dataclass(frozen=True, slots=True)
class AllocatorDeclaration:
    """An allocator with a name.

    Attributes:
        make: its class, a dataclass whose fields are its options.
        about: one line.
    """

    make: type[Policy]
    about: str


def allocator(make: type[Policy], *, about: str = "") -> AllocatorDeclaration:
    """Declare an allocator.

    Args:
        make: derived from `BoxPolicy`, for a torus of boxes, or from `CablePolicy`, for a machine of cabled lines.
        about: one line; by default the first paragraph of the docstring.

    Raises:
        ConfigurationError: the class is derived from neither.
    """
    if not (isinstance(make, type) and issubclass(make, Policy)):
        raise ConfigurationError(
            f"invalid allocator: got {getattr(make, '__name__', type(make).__name__)}, "
            "expected a class derived from BoxPolicy or CablePolicy",
            key="allocator",
        )
    return AllocatorDeclaration(make, about or first_paragraph(make))


def _adopt(given: Any) -> AllocatorDeclaration:
    return given if isinstance(given, AllocatorDeclaration) else allocator(given)


ALLOCATORS: Final = Sort("allocator", "simulation.machines.allocators", "ALLOCATOR", "ramp.allocators", _adopt)
"""All allocators."""


def make_policy(name: str, options: Mapping[str, Any], wanted: type[_Policy]) -> _Policy:
    """Make an allocator with options.

    Args:
        name: of `ALLOCATORS`, or its place.
        options: by name; the others have their defaults.
        wanted: required base class.

    Raises:
        ConfigurationError: no allocator of this name suits these machines, or an option is unknown or wrong.
    """
    made = ALLOCATORS.find(name).make
    if not issubclass(made, wanted):
        listed = [
            each for each in ALLOCATORS.listed() if each.declaration and issubclass(each.declaration.make, wanted)
        ]
        suitable = ", ".join(each.name for each in listed)
        raise ConfigurationError(
            f"allocator {name!r} does not suit this machine; choose one of {suitable}", key="allocator"
        )
    return read_options(options, made, within="allocator_options")
