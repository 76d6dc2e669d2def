"""The laboratory of one server: its folder of results, runs, traces and the machines that traces are of."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Final

from ramp.errors import ConfigurationError
from ramp.shipped_files import shipped_directory
from ramp.web.laboratory.command_line import printed
from ramp.web.laboratory.folder import ResultsError, ResultsFolder
from ramp.web.laboratory.runs import Runs
from ramp.web.laboratory.traces import TRACE_MAX, MachineShape, Trace, machine_shape, parse_trace

TRACES_MAX: Final = 4
"""Traces that are kept in memory, those that were looked at last."""


def machine_names() -> tuple[str, ...]:
    """Names of the machines that come with RAMP, sorted."""
    return tuple(sorted(path.stem for path in shipped_directory("agents_config/machines").glob("*.toml")))


@dataclass(slots=True)
class Laboratory:
    """The laboratory.

    Attributes:
        folder: where results and traces are.
        runs: what is run from the pages.
    """

    folder: ResultsFolder
    runs: Runs
    _traces: OrderedDict[str, tuple[tuple[int, int], Trace]] = field(default_factory=OrderedDict)
    _shapes: dict[str, MachineShape] = field(default_factory=dict)
    _reading: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def trace(self, name: str) -> Trace:
        """A trace of the folder, read again where its file is another one.

        Raises:
            ResultsError: if there is no such trace, or it is none.
        """
        async with self._reading:  # one at a time: each takes its memory
            stamp = self.folder.modified(name)
            kept = self._traces.pop(name, None)
            if kept is None or kept[0] != stamp:
                kept = stamp, await asyncio.to_thread(self._read, name)
            self._traces[name] = kept
            while len(self._traces) > TRACES_MAX:
                self._traces.popitem(last=False)
            return kept[1]

    async def shape(self, machine: str) -> MachineShape:
        """A machine that comes with RAMP, as `ramp smap` describes it.

        Raises:
            ConfigurationError: if there is none of that name, or no program that knows it.
            ResultsError: if it cannot be drawn.
        """
        if machine not in machine_names():
            raise ConfigurationError(
                f"no machine {machine!r} comes with RAMP; right would be one of {', '.join(machine_names())}"
            )
        if machine not in self._shapes:
            self._shapes[machine] = machine_shape(await printed(self.runs.command, "smap", machine, "--json"))
        return self._shapes[machine]

    def _read(self, name: str) -> Trace:
        if name not in self.folder.traces():
            raise ResultsError(f"there is no trace {name} among the results")
        return parse_trace(self.folder.read(name, TRACE_MAX), name)
