"""Units that fail or are drained during a run: drawn from a seed, or read from a file.

The file has the trace's lines of outages, so that a trace serves as one: the failures of another run happen again.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ramp.client.times import duration_of
from ramp.errors import ConfigurationError, DocumentError, MachineError
from ramp.model.instant import SECOND
from simulation.machines.bluegene.blocks import BootedBlocks
from simulation.machines.interface import GridMachine, Machine, NodeState, Placement, has_cables, has_places, units_out
from simulation.machines.view import units_named

FAILURES_FORM: Final = "MTBF:REPAIR (mean times of a unit, as in 30d:4h), or a file with the trace's lines of outages"
FAILURES_MAX: Final = 20_000
"""Failures drawn for a run: with more, its jobs would hardly ever end."""
_DRAWN: Final = re.compile(r"[0-9.]+[a-z]+:[0-9.]+[a-z]+")


@dataclass(frozen=True, slots=True, eq=False)
class Outage:
    """Units out of service for a time.

    Attributes:
        units: bit set.
        state: DOWN: their jobs are requeued; DRAINED: their jobs run on, but no other job starts there.
        begin: microseconds.
        end: microseconds; None where they do not come back.
        reason: in words.
    """

    units: int
    state: NodeState
    begin: int
    end: int | None
    reason: str = ""


class Service:
    """Which units of a machine are out of service as outages come and go.

    Args:
        machine: changed.
        outages: by begin.
        boots: listed blocks take time to boot.

    Attributes:
        whole: a machine without outages, which decides what fits at all.
        following: the outage that begins next; None after the last.
        lasting: outages that have begun and not ended.
        begun: all that have begun.
    """

    def __init__(self, machine: Machine, outages: Iterable[Outage], *, boots: bool = False) -> None:
        self._machine = machine
        self._layout = machine.layout if boots and has_cables(machine) else None
        self._booted = BootedBlocks(machine) if boots and has_cables(machine) else None
        self._to_come = iter(outages)
        self.following = next(self._to_come, None)
        self.whole = machine if self.following is None else machine.copy()
        self.lasting: list[Outage] = []
        self.begun: list[Outage] = []

    def begin(self, outage: Outage, *, awaits_more: bool) -> None:
        """Note that an outage begins.

        Args:
            outage: the outage.
            awaits_more: whether another one may follow; jobs are left.
        """
        self.lasting.append(outage)
        self.begun.append(outage)
        if self._booted is not None and outage.state is NodeState.DOWN:
            self._booted.fail(outage.units)
        self.following = next(self._to_come, None) if awaits_more else None

    def spared(self, placement: Placement, now: int) -> int:
        """Boot the listed block of a placement now; return what that takes less than the longest boot, microseconds."""
        layout, blocks = self._layout, self._booted
        if layout is None or layout.block_times is None or blocks is None:
            return 0
        times, needed = layout.block_times, 0
        if placement.block not in blocks.names:
            freed = blocks.boot(placement.block, now)
            left = 0 if freed is None else freed + times.deallocate_s * SECOND - now
            needed = max(left, 0) + (times.configure_s + times.boot_s(placement.size)) * SECOND
        return layout.around_s(placement.size) * SECOND - needed

    def bring_up_to_date(self, changed: int) -> None:
        """Set the states of units: those of a bit set, which an outage gave back, and all that are out."""
        drained = down = 0
        for each in self.lasting:
            if each.state is NodeState.DOWN:
                down |= each.units
            else:
                drained |= each.units
        always = units_out(self.whole)
        for units, state in (
            (changed & ~(drained | down), NodeState.IDLE),
            (drained & ~down, NodeState.DRAINED),
            (down, NodeState.DOWN),
        ):
            self._machine.set_node_state(units & ~always, state)


def outages_of(text: str, machine: Machine, *, first: int, seed: int) -> Iterator[Outage]:
    """Return the outages that a text says, by begin.

    Args:
        text: as `FAILURES_FORM` says.
        machine: the machine.
        first: begin of the run, microseconds; drawn failures come later.
        seed: of the draws.

    Raises:
        ConfigurationError: the text says no outages, or the machine's units have no names.
        DocumentError: a line of the file is wrong.
    """
    if not has_places(machine):
        raise ConfigurationError(f"needs a machine whose units have names, got {machine.name}", key="failures")
    if _DRAWN.fullmatch(text) is not None:
        try:
            mean, repair = (duration_of(each, zero=False) for each in text.split(":"))
        except ValueError as error:
            raise ConfigurationError(str(error), key="failures") from error
        return drawn_failures(machine, mean, repair, first, seed)
    try:
        lines = Path(text).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"got {text!r}, expected {FAILURES_FORM}: {error}", key="failures") from error
    return iter(_read(lines, machine, text))


def drawn_failures(machine: GridMachine, mean: int, repair: int, first: int, seed: int) -> Iterator[Outage]:
    """Draw failures of single units, exponential between failures and to repair, for as long as they are asked for.

    Args:
        machine: the machine.
        mean: time between the failures of a unit, microseconds.
        repair: mean time to repair, microseconds.
        first: begin, microseconds.
        seed: of the draws.

    Raises:
        MachineError: more than `FAILURES_MAX` are asked for.
    """
    draws = random.Random(f"{seed}/failures")
    back = [first] * machine.grid.size
    now = float(first)
    for _ in range(FAILURES_MAX):
        now += draws.expovariate(len(back) / mean)
        unit, length = draws.randrange(len(back)), draws.expovariate(1 / repair)
        begin = int(now)
        if back[unit] <= begin:  # what is down fails no second time
            back[unit] = begin + max(int(length), 1)
            yield Outage(1 << unit, NodeState.DOWN, begin, back[unit], "failed")
    raise MachineError(
        f"{machine.name}: jobs still wait after {FAILURES_MAX:,} failures; units fail too often for them"
    )


def _read(lines: Sequence[str], machine: GridMachine, source: str) -> list[Outage]:
    found = []
    for number, line in enumerate(lines, start=1):
        try:
            told = json.loads(line)
            if "out" in told:
                begin, end = told["start_time"], told.get("end_time")
                if not (begin >= 0 and (end is None or end > begin)):
                    raise ValueError(f"end_time must be later than start_time, got {begin} and {end}")  # noqa: TRY301
                state = {str(each): each for each in (NodeState.DOWN, NodeState.DRAINED)}[told["out"]]
                times = round(begin * SECOND), end and round(end * SECOND)
                units = units_named(machine, told["nodes"])
                found.append(Outage(units, state, *times, str(told.get("reason", ""))))
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError, MachineError) as error:
            expected = '{"out": "down" or "drain", "nodes": HOSTLIST, "start_time": SECOND, "end_time": SECOND or null}'
            raise DocumentError(f"line {number}: {error}; expected {expected}", source=source) from error
    return sorted(found, key=lambda each: each.begin)
