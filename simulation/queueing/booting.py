"""Listed blocks over a run: one that is still booted from an earlier job serves the next job at once.

A waiting job is planned with the longest boot that it may need (`ShapedJobs.in_blocks`); one that starts has the time
that its block takes: none where that is booted, else freeing blocks in its way, configuring and booting. Blocks stay
booted at a job's end.
"""

from __future__ import annotations

from dataclasses import replace

from simulation.kernel import MICROSECONDS_PER_SECOND
from simulation.machines.bluegene.blocks import BootedBlocks
from simulation.machines.bluegene.machine import BlueGene
from simulation.machines.interface import Machine, Placement, has_cables
from simulation.schedulers.interface import Job


class Booting:
    """How long jobs wait for their blocks.

    Args:
        machine: lists its blocks, which take time to boot.

    Attributes:
        blocks: those that are booted.
    """

    def __init__(self, machine: BlueGene) -> None:
        self._layout = machine.layout
        self.blocks = BootedBlocks(machine)
        self._begun: dict[int, tuple[Job, int]] = {}

    def boot(self, placement: Placement, now: int) -> int:
        """Boot the block of a placement now; return how long that takes, microseconds."""
        block, times = self._layout.block_of(placement), self._layout.block_times
        if block is None or times is None or block.name in self.blocks.names:
            return 0
        freed = self.blocks.boot(block.name, now)
        left = 0 if freed is None else max(int(freed) + times.deallocate_s * MICROSECONDS_PER_SECOND - now, 0)
        return left + (times.configure_s + times.boot_s(placement.size)) * MICROSECONDS_PER_SECOND

    def started(self, job: Job, placement: Placement, now: int) -> Job:
        """Return a job that starts now with the times that its block takes, not the longest ones."""
        startup = self.boot(placement, now)
        self._begun[job.job_number] = job, startup
        spare = self._layout.around_s(job.request.size) * MICROSECONDS_PER_SECOND - startup
        return replace(job, run_time=job.run_time - spare, requested_time=job.requested_time - spare)

    def ended(self, number: int) -> tuple[Job, int]:
        """Return a job as it was submitted, and how long its block took to boot, microseconds."""
        return self._begun.pop(number)


def booting_of(machine: Machine) -> Booting | None:
    """Return the booting of a machine's listed blocks; None where it lists none or they take no time."""
    boots = has_cables(machine) and machine.layout.blocks and machine.layout.block_times
    return Booting(machine) if boots and has_cables(machine) else None
