"""The life of a block: how long Blue Gene's control system takes to make, boot and free the midplanes of a job.

States are those of Slurm and its paper (M. Jette and others, 2004): a job's block is configured and booted, is busy
while the job runs, and is deallocated. A free block is defined but not booted; a ready one is booted, without a job.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING

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
