"""Traces of `ramp simulate`: who had what of a machine at any second of a simulation. Pure.

A trace is one JSON object a line, a job or an advance reservation; of a job whose size changed it has the segments.
Files may come from anywhere, so every line is checked by itself: what makes no sense is left out and counted.
"""

from __future__ import annotations

import json
import math
import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from ramp.web.laboratory.folder import ResultsError
from ramp.web.machines.core_rows import Bar, Taken, lowest_bars
from ramp.web.machines.torus_map import DIGITS, Kind, MapReader, Place, TorusMap, cables_of, extents_of

TRACE_MAX: Final = 64 << 20
"""Bytes of a trace that is played; a log of 100 000 jobs on Blue Gene/L has some 40 million."""

STAYS_MAX: Final = 500_000
"""Jobs, reservations and segments of a trace that are kept."""

SECONDS_MAX: Final = 1e11
"""Moments beyond this are none of a log: more than three thousand years."""

COUNT_DIGITS: Final = 9
"""Digits of a number of processors."""

NAME_MAX: Final = 60
"""Characters of a reservation's name that are shown."""

EPOCH: Final = datetime(5000, 1, 1, tzinfo=UTC)
"""Second 0 of a log, where a picture needs a date; any would do that has `SECONDS_MAX` before and behind it."""

_COORDINATES: Final = re.compile(r"([a-z0-9._-]*?)\[?([0-9A-Z]+)(?:x([0-9A-Z]+))?[\],]?.*")


@dataclass(frozen=True, slots=True)
class Stay:
    """Units that are taken for a while: a job, a segment of one, or a reservation.

    Attributes:
        start_s: second of the log at which it begins.
        end_s: second at which it ends.
        submit_s: second at which the job was submitted; its start for a reservation.
        name: the job's number, or the reservation's name.
        kind: a job's or sold, as a reservation is.
        told: `nodes`, `connection` and `links` as the trace has them.
    """

    start_s: float
    end_s: float
    submit_s: float
    name: str
    kind: Kind
    told: Mapping[str, Any]

    @property
    def processors(self) -> int:
        """Processors that are taken, of a flat machine."""
        return int(self.told["nodes"])


@dataclass(frozen=True, slots=True)
class MachineShape:
    """A machine as `ramp smap MACHINE --json` describes it.

    Attributes:
        name: of the machine.
        extents: units along each dimension.
        wiring: of each dimension by name, the two coordinates that its cables join; empty for one without cables.
    """

    name: str
    extents: Place
    wiring: Mapping[str, Sequence[tuple[int, int]]]


@dataclass(frozen=True, slots=True)
class Trace:
    """A trace.

    Attributes:
        stays: by their beginning.
        begin_s: the first submission.
        end_s: the last end.
        jobs: how many jobs there are.
        left_out: lines that make no sense.
        is_flat: whether units have no places.
    """

    stays: tuple[Stay, ...]
    begin_s: float
    end_s: float
    jobs: int
    left_out: int
    is_flat: bool

    def at(self, second: float) -> tuple[Stay, ...]:
        """Who has units at a second."""
        begun = bisect_right(self.stays, second, key=lambda each: each.start_s)
        return tuple(each for each in self.stays[:begun] if second < each.end_s)

    def waiting(self, second: float) -> int:
        """How many jobs wait at a second."""
        begun = bisect_right(self.stays, second, key=lambda each: each.start_s)
        return len({each.name for each in self.stays[begun:] if each.kind is Kind.JOB and each.submit_s <= second})

    def between(self, begin_s: float, end_s: float) -> tuple[Stay, ...]:
        """Who has units at any time between two seconds."""
        begun = bisect_right(self.stays, end_s, key=lambda each: each.start_s)
        return tuple(each for each in self.stays[:begun] if begin_s < each.end_s)

    def most_processors(self) -> int:
        """The most processors that are taken at once, of a flat machine."""
        changes = [(each.start_s, each.processors) for each in self.stays]
        changes += [(each.end_s, -each.processors) for each in self.stays]
        most = now = 0
        for _, change in sorted(changes):  # at one moment what ends comes first
            now += change
            most = max(most, now)
        return most


def parse_trace(content: bytes, source: str) -> Trace:
    """Read a trace.

    Args:
        content: of the file.
        source: its name, for messages.

    Raises:
        ResultsError: if no line of it is one of a trace.
    """
    stays: list[Stay] = []
    jobs = left_out = 0
    for line in content.splitlines():
        if not line.strip():
            continue
        try:
            told = json.loads(line)
            found = list(_stays(told))
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
            left_out += 1
            continue
        jobs += found[0].kind is Kind.JOB
        stays += found
        if len(stays) > STAYS_MAX:
            raise ResultsError(f"{source} has more than the {STAYS_MAX} jobs that are played")
    if not stays:
        raise ResultsError(f"{source} is no trace; `ramp simulate ... --trace FILE` writes one")
    stays.sort(key=lambda each: (each.start_s, each.end_s, each.name))
    return Trace(
        tuple(stays),
        min(each.submit_s for each in stays),
        max(each.end_s for each in stays),
        jobs,
        left_out,
        all(_is_count(each.told["nodes"]) for each in stays),
    )


def _stays(told: Mapping[str, Any]) -> Iterator[Stay]:
    is_job = "reservation" not in told
    name = str(int(told["job_number"])) if is_job else str(told["reservation"])[:NAME_MAX]
    kind = Kind.JOB if is_job else Kind.SOLD
    submit = _second(told["submit_time"]) if is_job else None
    segments = told.get("segments") or [told]
    if not isinstance(segments, list):
        raise TypeError("segments are a list")
    for number, each in enumerate(segments):
        start, end = _second(each["start_time"]), _second(each["end_time"])
        if end < start:
            raise ValueError("ends before it begins")
        nodes = str(each["nodes"])
        if _is_count(nodes) and len(nodes) > COUNT_DIGITS:
            raise ValueError("more processors than any machine has")
        kept = {"nodes": nodes, "connection": each.get("connection"), "links": each.get("links")}
        # a reservation does not wait, and neither does a job that has begun
        yield Stay(start, end, start if submit is None or number else min(submit, start), name, kind, kept)


def _is_count(nodes: str) -> bool:
    """Whether nodes are a number of processors, as a flat machine's are, and no list."""
    return nodes.isascii() and nodes.isdigit()


def _second(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{value!r} is no number of seconds")
    second = float(value)
    if not math.isfinite(second) or abs(second) > SECONDS_MAX:
        raise ValueError(f"{value!r} is no second of a log")
    return second


def moment_of(second: float) -> datetime:
    """A second of a log as a date, which only tells seconds apart."""
    return EPOCH + timedelta(seconds=second)


def elapsed_text(second: float) -> str:
    """A second of a log for people: days and the time of day since its beginning, and the number itself."""
    days, rest = divmod(round(second), 86_400)
    return f"day {days} {rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}, second {round(second)}"


# -- machines with places ----------------------------------------------------------------------------------------------


def machine_shape(text: str | bytes) -> MachineShape:
    """What `ramp smap MACHINE --json` prints.

    Raises:
        ResultsError: if it is something else, or a machine that cannot be drawn.
    """
    try:
        told = json.loads(text)
        return MachineShape(str(told["machine"])[:NAME_MAX], extents_of(told["extents"]), cables_of(told.get("cables")))
    except (ValueError, KeyError, TypeError) as error:
        raise ResultsError(f"the machine cannot be drawn: {error}") from error


def drawn_at(trace: Trace, machine: MachineShape, second: float) -> TorusMap:
    """The machine at a second of a trace; entries that are none of this machine's are left out and counted."""
    reader = MapReader(machine.extents, machine.wiring)
    for each in trace.at(second):
        name = each.name if each.kind is Kind.JOB else f"reservation {each.name}"
        reader.read(
            {**each.told, "name": name}, "name", each.kind, {name: (moment_of(each.start_s), moment_of(each.end_s))}
        )
    return TorusMap(reader.padded, len(machine.extents), 1, tuple(reader.found), reader.left_out)


def likely_machine(trace: Trace, machines: Sequence[str]) -> str:
    """The name of the machine that a trace is most likely of, by the names and coordinates of its units.

    Args:
        trace: of a machine whose units have places.
        machines: names to choose from.

    Returns:
        One of them; empty where nothing speaks for any.
    """
    prefix, most = "", [0]
    for each in trace.stays:
        matched = _COORDINATES.fullmatch(str(each.told["nodes"]))
        if matched is None:
            continue
        prefix, last = matched[1], matched[3] or matched[2]
        digits = [DIGITS.index(digit) for digit in last]
        if len(digits) == len(most):
            most = [max(pair) for pair in zip(most, digits, strict=True)]
        elif len(digits) > len(most):
            most = digits
    if prefix in machines:
        return prefix
    told = "x".join(str(at + 1) for at in most)
    named = [name for name in machines if name.endswith(f"-{told}")]
    return next(iter(named or [name for name in machines if prefix and name.startswith(prefix)]), "")


# -- flat machines -----------------------------------------------------------------------------------------------------


def bars_between(trace: Trace, cores: int, begin_s: float, end_s: float, now_s: float) -> tuple[Bar, ...]:
    """Who has the processors of a flat machine between two seconds, as bars.

    Args:
        trace: of a flat machine.
        cores: processors of the machine.
        begin_s: where the picture begins.
        end_s: where it ends.
        now_s: the second that is played: what has ended by then, runs, waits, or has not been submitted.
    """
    taken = [
        Taken(each.name, _state(each, now_s), each.processors, moment_of(each.start_s), moment_of(each.end_s))
        for each in trace.between(begin_s, end_s)
    ]
    return lowest_bars(taken, cores, moment_of(begin_s), moment_of(end_s))


def _state(stay: Stay, now_s: float) -> str:
    if stay.kind is Kind.SOLD:
        return "reserved"
    if stay.end_s <= now_s:
        return "ended"
    if stay.start_s <= now_s:
        return "running"
    return "waiting" if stay.submit_s <= now_s else "not submitted yet"
