"""Traces that `ramp simulate --trace` writes: JSON lines.

The first names the machine; each other one is of a job, an advance reservation, or units out of service.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import accumulate
from pathlib import Path
from typing import Any, Final, NamedTuple

from ramp.errors import DocumentError
from ramp.web.machines.core_rows import Bar, Taken, lowest_bars
from ramp.web.machines.torus_map import Kind, MapReader, TorusMap, cables_of, extents_of

TRACE_SUFFIX: Final = ".jsonl"

TRACE_VERSION: Final = 1


class Stay(NamedTuple):
    """Units that a job, a segment of one, or a reservation occupies, with times in seconds of the log.

    A reservation or later segment counts as submitted at its start. `told` has `nodes`, `connection` and `links`.
    """

    submit_s: float
    start_s: float
    end_s: float
    name: str
    kind: Kind
    told: Mapping[str, Any]

    @property
    def processors(self) -> int:
        return int(self.told["nodes"])


def read_trace(folder: Path, name: str) -> tuple[str, Sequence[Stay]]:
    """Return the machine that a trace names, and what occupied its units.

    Args:
        folder: of all results.
        name: of the file, which may come from a browser.

    Raises:
        DocumentError: if there is no such trace, or a line is not one of a trace.
    """
    path = folder / name
    if path not in folder.glob(f"*{TRACE_SUFFIX}"):
        raise DocumentError(f"no trace {name}; `ramp simulate ... --trace FILE` writes one")
    machine, stays = "", list[Stay]()
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, start=1):
            try:
                told = json.loads(line)
                if number == 1:
                    machine = str(told["machine"])
                    if told["trace"] != TRACE_VERSION:
                        raise ValueError  # noqa: TRY301
                elif "out" not in told:
                    stays += _stays(told)
            except (ValueError, KeyError, TypeError) as error:
                raise DocumentError(f"line {number} is not a line of a trace", source=path.name) from error
    if not stays:
        raise DocumentError("the trace is empty", source=path.name)
    return machine, stays


def _stays(told: Mapping[str, Any]) -> Iterator[Stay]:
    is_job = "reservation" not in told
    name = f"{told['job_number']}" if is_job else f"reservation {told['reservation']}"
    kind = Kind.JOB if is_job else Kind.SOLD
    for number, each in enumerate(told.get("segments", [told])):
        start = each["start_time"]
        yield Stay(told["submit_time"] if is_job and number == 0 else start, start, each["end_time"], name, kind, each)


def moment_of(second: float) -> datetime:
    """A second of the log as a date, for pictures."""
    return datetime.fromtimestamp(second, UTC)


def elapsed_text(second: float) -> str:
    """A second of the log in words."""
    days, rest = divmod(round(second), 86_400)
    return f"day {days} {rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}, second {round(second)}"


def waiting_at(stays: Sequence[Stay], second: float) -> int:
    """Number of jobs in the queue."""
    return sum(each.submit_s <= second < each.start_s for each in stays)


def most_processors(stays: Sequence[Stay]) -> int:
    """Largest number of processors of a flat machine in use at once."""
    changes = [(each.start_s, each.processors) for each in stays]
    changes += [(each.end_s, -each.processors) for each in stays]
    return max(accumulate(change for _, change in sorted(changes)))


def drawn_at(stays: Sequence[Stay], machine: Mapping[str, Any], second: float) -> TorusMap:
    """A machine, as `ramp smap MACHINE --json` describes it, at a second; units of another machine are only counted."""
    extents = extents_of(machine["extents"])
    reader = MapReader(extents, cables_of(machine["cables"]))
    for each in stays:
        if each.start_s <= second < each.end_s:
            times = {each.name: (moment_of(each.start_s), moment_of(each.end_s))}
            reader.read({**each.told, "name": each.name}, "name", each.kind, times)
    return TorusMap(reader.padded, len(extents), tuple(reader.found), reader.left_out)


def bars_around(stays: Sequence[Stay], cores: int, second: float, span_s: float) -> tuple[Bar, ...]:
    """The occupation of a flat machine of `cores` processors during `span_s` seconds before and after a second."""
    taken = sorted(
        (
            Taken(each.name, _state(each, second), each.processors, moment_of(each.start_s), moment_of(each.end_s))
            for each in stays
            if each.start_s < second + span_s and second - span_s < each.end_s
        ),
        key=lambda each: each.start,
    )
    return lowest_bars(taken, cores, moment_of(second - span_s), moment_of(second + span_s))


def _state(stay: Stay, second: float) -> str:
    if stay.kind is Kind.SOLD:
        return "reserved"
    if stay.end_s <= second:
        return "ended"
    if stay.start_s <= second:
        return "running"
    return "waiting" if stay.submit_s <= second else "not submitted yet"
