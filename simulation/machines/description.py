"""Build machines from descriptions (the tables of a TOML file) without reading files.

Every `kind` of machine is declared in its own file in `simulation.machines.kinds`, or by another package (entry point
group `ramp.machines`): a dataclass of what its file says, and a function that builds it.
`simulation.machine_files` reads the file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, is_dataclass
from typing import Annotated, Any, Final

from ramp.declarations import Sort
from ramp.errors import ConfigurationError, MachineError
from ramp.options import Wanted, nearest_name, path_of, read_options, wrong_options
from simulation.machines.hostlist import expand_units, is_prefix
from simulation.machines.interface import GridMachine, Machine, NodeState

Prefix = Annotated[
    str, Wanted("a prefix of lower-case letters, digits, '.', '_' and '-'", lambda text: bool(text) and is_prefix(text))
]
"""What units' names begin with; host lists could not be read back with other ones."""


def _no_file(name: str) -> str:
    raise ConfigurationError(f"got the file {name!r}, but this description is read without files")


@dataclass(frozen=True, slots=True)
class BuildOptions:
    """Options for building a machine beside its description.

    Attributes:
        allocator: replaces the description's allocator; None keeps it.
        allocator_options: each option replaces the description's.
        read_file: returns the text of a file that the description names.
    """

    allocator: str | None = None
    allocator_options: Mapping[str, Any] = field(default_factory=dict)
    read_file: Callable[[str], str] = _no_file

    def allocator_of(self, stated: str, options: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
        """Return the allocator and its options; a file's options belong to the allocator that the file names."""
        if self.allocator in {None, stated}:
            return stated, {**options, **self.allocator_options}
        return self.allocator or stated, self.allocator_options


@dataclass(frozen=True, slots=True)
class MachineKind:
    """A kind of machine that a description can name.

    Attributes:
        description: the dataclass of all keys of its file but `kind`.
        build: makes the machine that a description states.
        about: one line.
    """

    description: type
    build: Callable[[Any, BuildOptions], Machine]
    about: str


def machine_kind(description: type, build: Callable[[Any, BuildOptions], Machine], *, about: str = "") -> MachineKind:
    """Declare a kind of machine; arguments as of `MachineKind`.

    Raises:
        ConfigurationError: the description is not a dataclass, or `build` is not callable.
    """
    if not is_dataclass(description) or not callable(build):
        raise ConfigurationError(
            "a kind of machine needs a dataclass and a function that builds the machine", key="kind"
        )
    return MachineKind(description, build, about)


def _adopt(given: Any) -> MachineKind:
    if not isinstance(given, MachineKind):
        raise ConfigurationError("invalid kind of machine; declare it with `machine_kind`", key="kind")
    return given


KINDS: Final = Sort("kind of machine", "simulation.machines.kinds", "KIND", "ramp.machines", _adopt)
"""All kinds of machines."""


def build_machine(
    description: Mapping[str, Any],
    *,
    source: str,
    text: str = "",
    options: BuildOptions | None = None,
) -> Machine:
    """Make the machine that a description states.

    Args:
        description: the tables of the machine's file.
        source: the file's name, for messages.
        text: the file's text, for line numbers in messages.
        options: options beside the description.

    Raises:
        ConfigurationError: a key is missing or unknown, or has an invalid value.
    """
    kind = description.get("kind")
    if not isinstance(kind, str):
        words = "is missing" if kind is None else f"must be text, got {kind!r}"
        raise wrong_options([(("kind",), words)], source=source, text=text)
    keys = {key: value for key, value in description.items() if key != "kind"}
    try:
        declared = KINDS.find(kind)
        return declared.build(
            read_options(keys, declared.description, source=source, text=text), options or BuildOptions()
        )
    except ConfigurationError as error:
        given = options is not None and options.allocator is not None and (error.key or "").startswith("allocator")
        if error.path is not None or given:  # what was given is not the file's mistake
            raise
        key = "kind" if error.key == KINDS.noun else error.key or ""
        raise wrong_options([(path_of(key), error.reason)], source=source, text=text) from error
    except MachineError as error:
        raise ConfigurationError(str(error), path=source) from error


def dimension_index(names: tuple[str, ...], name: str, key: str) -> int:
    """Return the index of the dimension that an entry names.

    Args:
        names: of the machine's dimensions.
        name: of the dimension.
        key: of the entry, for messages.

    Raises:
        ConfigurationError: the dimension does not exist.
    """
    if name not in names:
        raise ConfigurationError(f"unknown dimension {name!r}{nearest_name(name, names)}", key=f"{key}.dimension")
    return names.index(name)


def set_nodes(machine: GridMachine, *, drained: str, down: str) -> None:
    """Set the units of a description's host lists to drained and down.

    Args:
        machine: changed.
        drained: host list.
        down: host list.

    Raises:
        ConfigurationError: a host list names an unknown unit.
    """
    for key, text, state in (("drained", drained, NodeState.DRAINED), ("down", down, NodeState.DOWN)):
        try:
            machine.set_node_state(expand_units(text, machine.prefix, machine.grid), state)
        except MachineError as error:
            raise ConfigurationError(str(error), key=key) from error
