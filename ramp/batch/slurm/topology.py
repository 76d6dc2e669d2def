"""Places of Slurm's nodes, by Slurm's own description of its network: `scontrol show topology`, `show config`, names.

scontrol(1), topology.conf(5), topology.yaml(5), the Topology Guide. Plug-ins of four kinds give places:

- `topology/block` (since 23.11): a row is a block, in the order of their indexes; aggregated ones are unions of these.
- `topology/tree`: a row is a leaf switch, in the order of its listing.
- `topology/torus3d` (since 26.05): nodes fill the torus with x fastest, then y, then z.
- `topology/3d_torus` (22.05 and before): lists nothing; the last three characters of a name are x, y and z, a digit in
  base 36 each.

With `topology.yaml` the configuration still names `topology/flat` (seen in 25.11), so the listing has priority.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from ramp.batch.commands import Question, Runner, ask
from ramp.batch.node_lists import expand
from ramp.batch.slurm.system import settings_question
from ramp.batch.system import Node
from ramp.errors import CommandFailed, ConfigurationError

COORDINATES: Final = "coordinates"
ASKED: Final = "slurm"
"""Value of the option `torus.coordinates` that means: ask Slurm."""

_NAMED: Final = "topology/3d_torus"
_DIMENSIONS: Final = 3
_NO_TOPOLOGY: Final = "No topology information available"
_FIELD: Final = re.compile(r"(\w+)=(\S+)")
_DIMS: Final = re.compile(r"(\d{1,5})x(\d{1,5})x(\d{1,5})")


def placed_options(options: Mapping[str, Any], nodes: Sequence[Node], run: Runner, key: str) -> Mapping[str, Any]:
    """Complete a site's table `torus` by Slurm's places, if the table says that Slurm is to be asked.

    Args:
        options: the site's table.
        nodes: those that are for sale, in the system's order.
        run: runs Slurm's commands.
        key: of the table, for messages.

    Returns:
        The table for `ramp.batch.places`: extents, and the coordinates of each node.

    Raises:
        ConfigurationError: Slurm's places are no grid of these nodes, or the site states other extents.
        BatchSystemError: the cluster cannot be asked.
    """
    if options.get(COORDINATES) != ASKED:
        return options
    names = [node.name for node in nodes]
    try:
        places = _places(names, run)
        extents = [max(along) + 1 for along in zip(*places.values(), strict=True)]
    except _NoGrid as wrong:
        told = f'is "{ASKED}", but {wrong}; set coordinates = "table" and list the nodes in rows'
        raise ConfigurationError(told, key=f"{key}.{COORDINATES}") from wrong
    stated = options.get("extents", extents)
    if stated != extents:
        raise ConfigurationError(f"got {stated!r}, expected {extents} (from Slurm's topology)", key=f"{key}.extents")
    rows = {name: list(place) for name, place in places.items()}
    return {**options, "extents": extents, COORDINATES: "table", "rows": rows}


class _NoGrid(Exception):
    """Slurm's places are no grid of the nodes; the text says why, as the end of a sentence."""


def _places(names: Sequence[str], run: Runner) -> dict[str, tuple[int, ...]]:
    try:
        lines = ask(Question(("scontrol", "show", "topology"), parse_topology), run)
    except CommandFailed as failed:
        if _NO_TOPOLOGY not in failed.said:
            raise
        lines = ()
    for kind, places in (("TorusName", _in_tori), ("BlockName", _in_rows), ("SwitchName", _in_rows)):
        listed = [line for line in lines if kind in line]
        if listed:
            return places(listed, names)
    plugin = ask(settings_question(), run).get("TopologyPlugin", "unknown")
    if plugin != _NAMED:
        raise _NoGrid(f"scontrol shows no topology (TopologyPlugin is {plugin})")
    return _in_names(names)


def parse_topology(text: str) -> tuple[Mapping[str, str], ...]:
    """Read `scontrol show topology`: the fields of each line that names nodes; empty without a topology.

    Raises:
        ValueError: if a line has no fields.
    """
    lines = []
    for line in text.splitlines():
        fields = dict(_FIELD.findall(line))
        if not fields and line.strip() and _NO_TOPOLOGY not in line:
            raise ValueError(f"{line[:120]!r} has no fields")
        if "Nodes" in fields:
            lines.append(fields)
    return tuple(lines)


def _in_rows(lines: Iterable[Mapping[str, str]], names: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """Return a row for each block or leaf switch with nodes for sale, in Slurm's order."""
    for_sale = set(names)
    leaves = [line for line in lines if "Switches" not in line]
    if all("BlockIndex" in line for line in leaves):
        leaves.sort(key=lambda line: _number(line["BlockIndex"]))
    rows = [[name for name in _expanded(line["Nodes"]) if name in for_sale] for line in leaves]
    rows = [row for row in rows if row]
    lengths = {len(row) for row in rows}
    if len(lengths) > 1:
        shown = ", ".join(f"{line.get('BlockName') or line['SwitchName']}" for line in leaves[:3])
        raise _NoGrid(f"{shown}, ... have {min(lengths)} to {max(lengths)} nodes for sale, and not as many each")
    return _of_all(((name, (row, column)) for row, each in enumerate(rows) for column, name in enumerate(each)), names)


def _in_tori(lines: Sequence[Mapping[str, str]], names: Sequence[str]) -> dict[str, tuple[int, ...]]:
    for_sale = set(names)
    ours = [line for line in lines if "Dims" in line and for_sale & set(_expanded(line["Nodes"]))]
    if len(ours) != 1:
        raise _NoGrid(f"the nodes are in {len(ours)} tori")
    match = _DIMS.fullmatch(ours[0]["Dims"])
    if match is None:
        raise _NoGrid(f"invalid dimensions: {ours[0]['Dims'][:40]!r}")
    x, y, z = (int(each) for each in match.groups())
    listed = _expanded(ours[0]["Nodes"])
    if len(listed) != x * y * z:
        raise _NoGrid(f"{x}x{y}x{z} are {x * y * z} places for {len(listed)} nodes")
    return _of_all(((name, (at % x, at // x % y, at // (x * y))) for at, name in enumerate(listed)), names)


def _in_names(names: Sequence[str]) -> dict[str, tuple[int, ...]]:
    found = {}
    for name in names:
        try:
            found[name] = tuple(int(digit, 36) for digit in name[-_DIMENSIONS:])
        except ValueError as error:
            raise _NoGrid(f"{name} does not end with {_DIMENSIONS} coordinates") from error
    return found


def _of_all(places: Iterable[tuple[str, tuple[int, ...]]], names: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """Return the place of each node, requiring exactly one."""
    found: dict[str, tuple[int, ...]] = {}
    for name, place in places:
        if name in found:
            raise _NoGrid(f"{name} is listed twice")
        found[name] = place
    missing = [name for name in names if name not in found]
    if missing:
        raise _NoGrid(f"{len(missing)} nodes are not listed, {missing[0]} among them")
    return found


def _expanded(text: str) -> tuple[str, ...]:
    try:
        return expand(text)
    except ValueError as error:
        raise _NoGrid(str(error)) from error


def _number(text: str) -> int:
    if not text.isdecimal():
        raise _NoGrid(f"invalid block index: {text[:40]!r}")
    return int(text)
