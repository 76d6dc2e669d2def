"""The life of a block: how long Blue Gene's control system takes to make, boot and free the midplanes of a job.

States are those of Slurm and its paper (M. Jette and others, 2004): a job's block is configured and booted, is busy
while the job runs, and is deallocated. A free block is defined but not booted; a ready one is booted, without a job.

An administrator lists blocks in Slurm's `bluegene.conf`; source: bluegene.conf(5) and the Blue Gene guide of Slurm.
Names are case-insensitive, `#` begins a comment. In the layouts STATIC (default) and OVERLAP jobs get only listed
blocks, and one of the whole machine that Slurm adds.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Final

import numpy as np

from ramp.errors import ConfigurationError, MachineError
from simulation.machines.bluegene.cable_policy import CablePolicy
from simulation.machines.bluegene.catalogue import Catalogue, ListedBlock
from simulation.machines.bluegene.link_sets import LinkTable
from simulation.machines.grid import Grid
from simulation.machines.hostlist import expand_coordinates
from simulation.machines.interface import Connection

if TYPE_CHECKING:
    from simulation.machines.bluegene.machine import BlueGene

BLOCK_PREFIX = "RMP"
"""What the names of blocks begin with, as Slurm's do."""


class BlockState(enum.StrEnum):
    """State of a block, as Slurm writes it."""

    FREE = "FREE"
    CONFIGURING = "CONFIG"
    BOOTING = "BOOTING"
    READY = "READY"
    BUSY = "BUSY"
    DEALLOCATING = "DEALLOC"
    ERROR = "ERROR"


@dataclass(frozen=True, slots=True)
class BlockTimes:
    """Times of a block's life, in seconds.

    Attributes:
        boot: number of midplanes and boot time of blocks of up to that many, ascending; larger blocks take the last.
        configure_s: before a block boots.
        deallocate_s: from the end of its job until its midplanes are free.
    """

    boot: tuple[tuple[int, int], ...] = ()
    configure_s: int = 0
    deallocate_s: int = 0

    def boot_s(self, midplanes: int) -> int:
        """Return the boot time of a block."""
        return next((time for size, time in self.boot if midplanes <= size), self.boot[-1][1] if self.boot else 0)

    def around_s(self, midplanes: int) -> int:
        """Return the time for which a block holds its midplanes besides the run of its job."""
        return self.configure_s + self.boot_s(midplanes) + self.deallocate_s


class BootedBlocks:
    """Listed blocks that are booted, each until one that shares midplanes or cables boots or a midplane of it fails.

    Args:
        machine: lists its blocks.

    Attributes:
        names: of the booted blocks.
        freed: when other blocks began to be freed, microseconds, by their names.
    """

    def __init__(self, machine: BlueGene) -> None:
        masks = {each.name: machine.catalogue.mask(each.members, each.links) for each in machine.layout.blocks}
        self._units = {each.name: machine.grid.bits(each.members) for each in machine.layout.blocks}
        self._rivals = {
            name: {other for other in masks if other != name and (masks[other] & mask).any()}
            for name, mask in masks.items()
        }
        self.names: set[str] = set()
        self.freed: dict[str, int] = {}

    def boot(self, name: str, now: int) -> int | None:
        """Boot a block now, in microseconds; return when the last of the blocks in its way began to be freed."""
        rivals = self._rivals.get(name, set())
        self.freed |= dict.fromkeys(self.names & rivals, now)
        self.names = self.names - rivals | {name}
        return max((self.freed[each] for each in rivals & self.freed.keys()), default=None)

    def fail(self, units: int) -> None:
        """Note that the midplanes of a bit set fail."""
        self.names = {name for name in self.names if not self._units[name] & units}


_NOT_NEEDED: Final = re.compile(
    r"(alt)?(blrts|linux|mloader|ramdisk|cnload|ioload)image|groups|numpsets|ionodespermp|bridgeapi(logfile|verbose)"
    r"|nodecardnodecnt"
)
_BLOCK_KEYS: Final = ("bps", "mps", "nodes")


class LayoutMode(enum.StrEnum):
    """How blocks come about."""

    STATIC = "STATIC"
    """Listed blocks that share nothing."""
    OVERLAP = "OVERLAP"
    """Listed blocks; those that share midplanes or cables exclude one another while jobs hold them."""
    DYNAMIC = "DYNAMIC"
    """A block is made for each job."""


@dataclass(frozen=True, slots=True)
class _Line:
    number: int
    members: tuple[tuple[int, ...], ...]
    connection: Connection
    text: str


def listed_blocks(
    text: str, source: str, prefix: str, tables: Sequence[LinkTable], midplane_nodes: int
) -> tuple[ListedBlock, ...]:
    """Read the blocks of a machine; none where the layout is dynamic.

    Args:
        text: of the file.
        source: its name, for messages.
        prefix: of the midplanes' names.
        tables: the link table of each dimension.
        midplane_nodes: compute nodes of a midplane.

    Raises:
        ConfigurationError: a line cannot be used, or blocks of a static layout overlap.
    """
    mode, lines, grid = LayoutMode.STATIC, [], Grid(tuple(table.wiring.width for table in tables))
    for number, written in enumerate(text.splitlines(), 1):
        where = f"{source}: line {number}"
        values: dict[str, str] = {}
        for word in written.partition("#")[0].split():
            key, equals, value = word.partition("=")
            if not equals or not value:
                raise ConfigurationError(f"{where}: got {word!r}, expected KEY=VALUE")
            values[key.lower()] = value
        block = next((key for key in _BLOCK_KEYS if key in values), None)
        if block is not None:
            lines.append(_line(where, number, block, values, prefix, grid))
            continue
        for key, value in values.items():
            if key == "layoutmode":
                if value.upper() not in list(LayoutMode):
                    raise ConfigurationError(f"{where}: LayoutMode: got {value!r}, expected {', '.join(LayoutMode)}")
                mode = LayoutMode(value.upper())
            elif key in {"basepartitionnodecnt", "midplanenodecnt"}:
                if value != str(midplane_nodes):
                    raise ConfigurationError(f"{where}: {key}: got {value!r}, expected {midplane_nodes}")
            elif not _NOT_NEEDED.fullmatch(key):
                raise ConfigurationError(
                    f"{where}: got the key {key!r}, expected LayoutMode, BasePartitionNodeCnt or a line BPs=HOSTLIST"
                )
    return () if mode is LayoutMode.DYNAMIC else _cabled(lines, mode, source, grid, tables)


def _line(where: str, number: int, key: str, values: Mapping[str, str], prefix: str, grid: Grid) -> _Line:
    unknown = sorted(values.keys() - {key, "type"})
    kind = values.get("type", "TORUS").upper()
    if kind not in {"TORUS", "MESH"}:
        raise ConfigurationError(f"{where}: Type: got {values['type']!r}, expected TORUS or MESH (no smaller blocks)")
    if unknown:
        raise ConfigurationError(f"{where}: got the key {unknown[0]!r}, expected {key} and Type")
    text = values[key]
    try:
        cells = expand_coordinates(text if text.startswith(prefix) else prefix + text, prefix, len(grid.extents))
        members = tuple(tuple(sorted(set(axis))) for axis in zip(*cells, strict=True))
        for cell in cells:
            grid.unit(cell)
    except MachineError as error:
        raise ConfigurationError(f"{where}: {error}; expected midplanes of the machine") from error
    if prod(map(len, members)) != len(cells):
        raise ConfigurationError(f"{where}: got {text!r}, expected one box of midplanes")
    return _Line(number, members, Connection(kind.lower()), text)


def _cabled(
    lines: list[_Line], mode: LayoutMode, source: str, grid: Grid, tables: Sequence[LinkTable]
) -> tuple[ListedBlock, ...]:
    """Give each block its cables: the smallest sets, in a static layout those that no earlier block has."""
    whole = tuple(tuple(range(extent)) for extent in grid.extents)
    joined = [
        connection
        for connection in (Connection.TORUS, Connection.MESH)
        if all(table.link_sets(axis, connection) for table, axis in zip(tables, whole, strict=True))
    ]
    if joined and all(line.members != whole for line in lines):
        lines = [*lines, _Line(0, whole, joined[0], "the whole machine")]
    catalogue = Catalogue(grid, tables, CablePolicy())
    none: tuple[tuple[int, ...], ...] = ((),) * len(tables)
    busy = np.zeros(catalogue.state_words, np.uint64)
    found: list[ListedBlock] = []
    for line in lines:
        shares = mode is LayoutMode.OVERLAP or line.members == whole
        where = f"{source}: line {line.number}"
        taken = busy if not shares else np.zeros_like(busy)
        if (catalogue.mask(line.members, none) & taken).any():
            raise ConfigurationError(
                f"{where}: got {line.text}, which overlaps an earlier block; expected other midplanes, or "
                "LayoutMode=OVERLAP"
            )
        links: list[tuple[int, ...]] = []
        for dimension, table in enumerate(tables):
            for labels in table.link_sets(line.members[dimension], line.connection):
                asked = (*none[:dimension], labels, *none[dimension + 1 :])
                if not (catalogue.mask(line.members, asked) & taken).any():
                    links.append(labels)
                    break
            else:
                raise ConfigurationError(
                    f"{where}: got {line.text} Type={str(line.connection).upper()}, for which no cables are left; "
                    "expected another Type, or LayoutMode=OVERLAP"
                )
        if not shares:
            busy |= catalogue.mask(line.members, tuple(links))
        found.append(ListedBlock(f"{BLOCK_PREFIX}{len(found):03}", line.members, line.connection, tuple(links)))
    return tuple(found)
