"""Machines from their descriptions (the tables of a TOML file), without touching the file system.

Every `kind` of machine has one builder here; `simulation.machine_files` reads the file and supplies link tables.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ramp.errors import ConfigurationError, MachineError
from simulation.machines.allocators import ALLOCATORS, find_allocator
from simulation.machines.box_policy import make_policy
from simulation.machines.flat import FlatMachine
from simulation.machines.grid import Grid
from simulation.machines.hostlist import expand_coordinates, is_prefix
from simulation.machines.interface import Machine, NodeState
from simulation.machines.names import DIGITS
from simulation.machines.tables import LinkTable, build_link_table
from simulation.machines.wiring import LineWiring, parse_wiring, ring_wiring

if TYPE_CHECKING:
    from simulation.machines.angara import AngaraMachine
    from simulation.machines.bluegene import BlueGene

DEFAULT_ALLOCATOR = "two-phase"
"""Allocator of a machine of cabled lines whose description names none."""
DEFAULT_BOX_ALLOCATOR = "find-systems-mss"
"""Allocator of an Angara torus whose description names none."""

TableSource = Callable[[LineWiring], LinkTable]
"""Gives the link table of a wiring: made anew, or from a cache."""

_CABLED_KEYS = {
    "name", "kind", "prefix", "allocator", "cnodes_per_midplane", "processors_per_midplane", "dimension",
    "drained", "down", "failed_links",
}  # fmt: skip
_DIMENSION_KEYS = {"name", "width", "cables", "ring", "pass_through"}
_FAILED_KEYS = {"dimension", "line", "labels"}
_FLAT_KEYS = {"name", "kind", "processors"}
_ANGARA_KEYS = {
    "name", "kind", "prefix", "extents", "dimension_names", "allocator", "allocator_options", "bypass", "drained",
    "down", "failed_links",
}  # fmt: skip
_FAILED_NODE_LINK_KEYS = {"node", "dimension"}


def build_machine(
    description: Mapping[str, Any],
    *,
    source: str,
    allocator: str | None = None,
    table_source: TableSource = build_link_table,
) -> Machine:
    """Make the machine that a description states.

    Args:
        description: the tables of the machine's file.
        source: the file's name, for messages.
        allocator: overrules the description's.
        table_source: where link tables come from.

    Raises:
        ConfigurationError: a key is missing, unknown or has a value that makes no machine.
    """
    kind = _take(description, "kind", str, source)
    if kind == "flat":
        _refuse_unknown(description, _FLAT_KEYS, source)
        if allocator is not None:
            raise ConfigurationError("a flat machine has no allocator to choose", path=source, key="allocator")
        processors = _take(description, "processors", int, source)
        try:
            return FlatMachine(processors, _take(description, "name", str, source))
        except MachineError as error:
            raise ConfigurationError(str(error), path=source, key="processors") from error
    if kind == "cabled-torus":
        return _build_cabled(description, source, allocator, table_source)
    if kind == "angara-torus":
        return _build_angara(description, source, allocator)
    raise ConfigurationError(
        f"{kind!r} is not a kind of machine; there are angara-torus, cabled-torus and flat", path=source, key="kind"
    )


def _build_angara(description: Mapping[str, Any], source: str, allocator: str | None) -> AngaraMachine:
    # brings the compiler along, as cabled machines do
    from simulation.machines.angara import AngaraMachine, TorusLayout
    from simulation.machines.ranked_boxes import RankedBoxes

    _refuse_unknown(description, _ANGARA_KEYS, source)
    extents = tuple(_take(description, "extents", list, source))
    if not extents or not all(type(extent) is int and 1 <= extent <= len(DIGITS) for extent in extents):
        limits = f"whole numbers from 1 to {len(DIGITS)}, one a dimension"
        raise ConfigurationError(f"extents {list(extents)}; wanted are {limits}", path=source, key="extents")
    names = tuple(_take(description, "dimension_names", list, source))
    if len(names) != len(extents) or len(set(names)) != len(names) or not all(isinstance(one, str) for one in names):
        raise ConfigurationError(
            f"{list(names)} are not {len(extents)} different names", path=source, key="dimension_names"
        )
    stated = _take(description, "allocator", str, source, default=DEFAULT_BOX_ALLOCATOR)
    # options belong to the allocator that the file states; another one comes with its own defaults
    options = _take(description, "allocator_options", dict, source, default={}) if allocator in {None, stated} else {}
    layout = TorusLayout(
        name=_take(description, "name", str, source),
        prefix=_prefix(description, source),
        dimension_names=names,
        extents=extents,
        bypass=_take(description, "bypass", bool, source, default=False),
    )
    policy = _allocator(allocator or stated, "choice", "an Angara torus")
    try:
        machine = AngaraMachine(layout, RankedBoxes(extents, make_policy(policy, options)))
    except MachineError as error:
        raise ConfigurationError(str(error), path=source) from error
    _set_nodes(machine, layout.prefix, description, source)
    for index, entry in enumerate(_take(description, "failed_links", list, source, default=[])):
        key = f"failed_links[{index}]"
        _refuse_unknown(entry, _FAILED_NODE_LINK_KEYS, source, key)
        dimension = _dimension(names, entry, source, key)
        node = _take(entry, "node", str, source, key)
        try:
            for coordinates in expand_coordinates(node, layout.prefix, len(extents)):
                machine.fail_link(machine.grid.unit(coordinates), dimension)
        except MachineError as error:
            raise ConfigurationError(str(error), path=source, key=f"{key}.node") from error
    return machine


def _allocator(name: str, mark: str, machine: str) -> Any:
    """The allocator class of a name, if it is one for such machines: those have the attribute `mark`."""
    suitable = [one for one in sorted(ALLOCATORS) if hasattr(find_allocator(one), mark)]
    if name not in suitable:
        what = f"allocator {name!r} is not for {machine}" if name in ALLOCATORS else f"no allocator {name!r}"
        raise MachineError(f"{what}; there are {', '.join(suitable)}")
    return find_allocator(name)


def _build_cabled(
    description: Mapping[str, Any], source: str, allocator: str | None, table_source: TableSource
) -> BlueGene:
    # brings the compiler along, which takes most of a second: not for flat machines
    from simulation.machines.bluegene import BlueGene, Layout

    _refuse_unknown(description, _CABLED_KEYS, source)
    dimensions = description.get("dimension")
    if not isinstance(dimensions, list) or not dimensions:
        raise ConfigurationError("at least one [[dimension]] is needed", path=source, key="dimension")
    names = []
    tables = []
    for index, dimension in enumerate(dimensions):
        key = f"dimension[{index}]"
        _refuse_unknown(dimension, _DIMENSION_KEYS, source, key)
        names.append(_take(dimension, "name", str, source, key))
        try:
            wiring = _wiring(dimension, source, key)
            if wiring.width > len(DIGITS):
                raise ConfigurationError(
                    f"a line of {wiring.width} midplanes; names have one digit a dimension, for at most {len(DIGITS)}",
                    path=source,
                    key=key,
                )
            tables.append(table_source(wiring))
        except MachineError as error:
            raise ConfigurationError(str(error), path=source, key=key) from error
    if len(set(names)) != len(names):
        raise ConfigurationError(f"dimensions {names} do not all have different names", path=source, key="dimension")
    layout = Layout(
        name=_take(description, "name", str, source),
        prefix=_prefix(description, source),
        dimension_names=tuple(names),
        tables=tuple(tables),
        cnodes=_count(description, "cnodes_per_midplane", source, default=512),
        processors=_count(description, "processors_per_midplane", source, default=1024),
    )
    chosen = allocator or _take(description, "allocator", str, source, default=DEFAULT_ALLOCATOR)
    machine = BlueGene(layout, _allocator(chosen, "member_sets", "a machine of cabled lines")())
    _apply_failures(machine, description, source)
    return machine


def _wiring(dimension: Mapping[str, Any], source: str, key: str) -> LineWiring:
    pass_through = _take(dimension, "pass_through", bool, source, key, default=True)
    if "ring" in dimension:
        if "cables" in dimension or "width" in dimension:
            raise ConfigurationError("a ring has neither `cables` nor `width`", path=source, key=key)
        ring = _take(dimension, "ring", list, source, key)
        if not ring or not all(type(switch) is int for switch in ring):
            raise ConfigurationError(f"{ring} is not a list of switch numbers", path=source, key=f"{key}.ring")
        return ring_wiring(ring, pass_through=pass_through)
    width = _take(dimension, "width", int, source, key)
    cables = _take(dimension, "cables", list, source, key)
    if not all(isinstance(cable, str) for cable in cables):
        raise ConfigurationError("cables are texts such as 1.4>0.3", path=source, key=f"{key}.cables")
    return parse_wiring(width, cables, pass_through=pass_through)


def _apply_failures(machine: BlueGene, description: Mapping[str, Any], source: str) -> None:
    """Take out of service what the description says: drained, down (hostlists) and failed_links."""
    _set_nodes(machine, machine.layout.prefix, description, source)
    for index, entry in enumerate(_take(description, "failed_links", list, source, default=[])):
        key = f"failed_links[{index}]"
        _refuse_unknown(entry, _FAILED_KEYS, source, key)
        dimension = _dimension(machine.layout.dimension_names, entry, source, key)
        try:
            machine.fail_links(
                dimension,
                _whole_numbers(entry, "line", source, key),
                _whole_numbers(entry, "labels", source, key),
            )
        except MachineError as error:
            raise ConfigurationError(str(error), path=source, key=key) from error


def _dimension(names: tuple[str, ...], entry: Mapping[str, Any], source: str, key: str) -> int:
    """Index of the dimension that an entry names."""
    name = _take(entry, "dimension", str, source, key)
    if name not in names:
        known = ", ".join(names)
        raise ConfigurationError(f"no dimension {name!r}; there are {known}", path=source, key=f"{key}.dimension")
    return names.index(name)


def _set_nodes(machine: Machine, prefix: str, description: Mapping[str, Any], source: str) -> None:
    """Drain and take down the units of the description's hostlists."""
    grid = Grid(machine.extents)
    for key, state in (("drained", NodeState.DRAINED), ("down", NodeState.DOWN)):
        text = _take(description, key, str, source, default="")
        if not text:
            continue
        try:
            units = 0
            for coordinates in expand_coordinates(text, prefix, len(machine.extents)):
                units |= 1 << grid.unit(coordinates)
            machine.set_node_state(units, state)
        except MachineError as error:
            raise ConfigurationError(str(error), path=source, key=key) from error


def _prefix(description: Mapping[str, Any], source: str) -> str:
    """What the units' names begin with; host lists could not be read back with other prefixes."""
    prefix: str = _take(description, "prefix", str, source)
    if not prefix or not is_prefix(prefix):
        raise ConfigurationError(
            f"{prefix!r} is no prefix; it has lower-case letters, digits, '.', '_' and '-'", path=source, key="prefix"
        )
    return prefix


def _count(table: Mapping[str, Any], name: str, source: str, default: int) -> int:
    count: int = _take(table, name, int, source, default=default)
    if count < 1:
        raise ConfigurationError(f"{count}; at least 1 is wanted", path=source, key=name)
    return count


def _whole_numbers(table: Mapping[str, Any], name: str, source: str, within: str) -> list[int]:
    numbers: list[int] = _take(table, name, list, source, within)
    if not all(type(number) is int for number in numbers):
        raise ConfigurationError(f"{numbers} is not a list of whole numbers", path=source, key=f"{within}.{name}")
    return numbers


def _take(
    table: Mapping[str, Any], name: str, expected: type, source: str, within: str = "", default: Any = None
) -> Any:
    key = f"{within}.{name}" if within else name
    value = table.get(name, default)
    if value is None:
        raise ConfigurationError("is missing", path=source, key=key)
    # bool is an int to Python, but not to people who write 'processors = true'
    if not isinstance(value, expected) or (expected is int and isinstance(value, bool)):
        raise ConfigurationError(f"{value!r} is not of type {expected.__name__}", path=source, key=key)
    return value


def _refuse_unknown(table: Any, known: set[str], source: str, within: str = "") -> None:
    if not isinstance(table, Mapping):
        raise ConfigurationError(f"{table!r} is not a table", path=source, key=within)
    for name in table:
        if name not in known:
            key = f"{within}.{name}" if within else name
            raise ConfigurationError(f"unknown key; known are {', '.join(sorted(known))}", path=source, key=key)
