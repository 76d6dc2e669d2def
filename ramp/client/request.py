"""A request for quotation as a program writes it: terms by keyword, times as people write them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, tzinfo
from pathlib import Path
from typing import Annotated, Final, Literal

from ramp.client.times import duration_of, moment_of, whole_seconds_up
from ramp.errors import ConfigurationError
from ramp.model.instant import HOUR, Duration, Instant, local_iso
from ramp.model.machine_terms import extension_problem
from ramp.model.probable_start import request_problem
from ramp.model.request import (
    NUMBER_MAX,
    MoldableTerms,
    NodeDiskSpace,
    Nodes,
    RequestForQuotation,
    RequestUnit,
    TorusTerms,
    TotalCores,
    TotalDiskSpace,
)
from ramp.model.sizes.moldable import moldable_problems
from ramp.model.sizes.speed_up import RIGHT as LAWS
from ramp.options import Bounds, Wanted, checked, read_argument
from ramp.runtime.clock import SystemClock

SLACK_LEAST: Final[Duration] = HOUR
"""So much later than its start a run may begin at least, where nothing else is said."""

_RANGE: Final = re.compile(r"([1-9][0-9]{0,9})(?:\.\.([1-9][0-9]{0,9}))?")
_SITE: Final = re.compile(r"(?:[a-z0-9](?:[a-z0-9._-]{0,62}[a-z0-9])?@)?[a-z0-9](?:[a-z0-9.-]{0,62}[a-z0-9])?")
_GEOMETRY: Final = re.compile(r"[1-9][0-9]{0,5}(x[1-9][0-9]{0,5}){1,7}")


@dataclass(frozen=True, slots=True)
class RequestTemplate:
    """One unit's terms, whose times may still be relative to when it is submitted; `ramp.request` makes one.

    Attributes:
        unit: the terms; its times are filled in by `at`.
        start: earliest start, a text or an aware datetime; None for as soon as possible.
        end: complete by then; None for start, wall time and slack.
        wall_time: length of the run in microseconds, None for the whole window.
        slack: how much later than its start the run may begin, in microseconds; None for the longer of the wall time
            and one hour. Without meaning where `end` is given.
    """

    unit: RequestUnit
    start: str | datetime | None = None
    end: str | datetime | None = None
    wall_time: Duration | None = None
    slack: Duration | None = None

    def at(self, now: Instant, zone: tzinfo | None = None) -> RequestForQuotation:
        """The request as it is when submitted at an instant; `zone` is that of times without one.

        Raises:
            ConfigurationError: if a time is invalid.
        """
        start = (
            None if self.start is None else whole_seconds_up(read_argument("start", moment_of, self.start, now, zone))
        )
        end = None if self.end is None else whole_seconds_up(read_argument("end", moment_of, self.end, now, zone))
        wall_time = None if self.wall_time is None else whole_seconds_up(self.wall_time)
        if end is None:
            assert wall_time is not None, "ramp.request sees to it"
            slack = max(wall_time, SLACK_LEAST) if self.slack is None else whole_seconds_up(self.slack)
            end = (whole_seconds_up(now) if start is None else start) + wall_time + slack
        if end <= now:
            told = f"the window of the request is over: it ends at {local_iso(end, zone)}"
            raise ConfigurationError(f"{told}, and it is {local_iso(now, zone)}; give a later start or end")
        return RequestForQuotation((replace(self.unit, not_before=start, deadline=end, wall_time=wall_time),))


Count = Annotated[int, Bounds(1, NUMBER_MAX)]
Probability = Annotated[float, Wanted("a number above 0 and at most 1", lambda given: 0 < given <= 1)]

Requestable = RequestTemplate | RequestForQuotation | Path
"""A template, a request with fixed times, or the file of one."""


@checked
def request(
    *,
    price: Count,
    cores: Count | str | tuple[Count, Count] | None = None,
    reference_cores: Count | None = None,
    speed_up: str | None = None,
    nodes: Count | None = None,
    node_cores: Count | None = None,
    wall_time: str | timedelta | None = None,
    start: str | datetime | None = None,
    end: str | datetime | None = None,
    slack: str | timedelta | None = None,
    operating_system: str | None = None,
    os_version: str | None = None,
    architecture: str | None = None,
    cpu_speed_mhz: Count | None = None,
    inter_node_bandwidth_mbps: Count | None = None,
    ram_per_core_mb: Count | None = None,
    gpus_per_node: Count | None = None,
    gpu_model: str | None = None,
    gpu_memory_mb: Count | None = None,
    application: str | None = None,
    application_version: str | None = None,
    disk_gb: Count | None = None,
    node_disk_gb: Count | None = None,
    geometry: str | Sequence[Count] | None = None,
    rotate: bool = True,
    connection: Literal["torus", "mesh", "any"] | None = None,
    node_use: Literal["coprocessor", "virtual"] | None = None,
    start_probability: Probability | None = None,
    sites: str | Sequence[str] | None = None,
) -> RequestTemplate:
    """A request for one unit; several given to `submit` together are bought together or not at all.

    Args:
        price: most to pay, whole credits per core-hour asked; machines that charge more cores keep to its total.
        cores: cores in all, wherever they are; or a range such as `"64..512"` or `(64, 512)`, of which the seller
            chooses: with other cores than `reference_cores` the run takes as long as `speed_up` says, and it never
            costs more than `reference_cores` for the wall time at `price`.
        reference_cores: with a range, the cores to which wall time and price belong (default: the least).
        speed_up: with a range, the run's speed-up law: `"amdahl:0.05"` (of its time with one core 5 % stay serial),
            `"downey:AVERAGE:SIGMA"`, or `"table:64=100,128=55"` (measured times).
        nodes: nodes, together with `node_cores`, in place of `cores`.
        node_cores: cores on each node.
        wall_time: length of the run, such as `"1h30min"` (default: the whole window from `start` to `end`).
        start: earliest start, such as `"tomorrow 08:00"`; in the zone of this computer if it names none
            (default: as soon as possible).
        end: complete by then (default: `start` + `wall_time` + `slack`).
        slack: how much later than `start` the run may begin (default: the longer of `wall_time` and one hour).
        operating_system: JSDL 1.0 name such as `"LINUX"`.
        os_version: its exact version.
        architecture: JSDL 1.0 name such as `"x86_64"`.
        cpu_speed_mhz: least clock rate in MHz.
        inter_node_bandwidth_mbps: least bandwidth between nodes in Mbit/s.
        ram_per_core_mb: least memory per core in MB.
        gpus_per_node: least number of GPUs on each of `nodes`, which the machine then sells as a whole.
        gpu_model: their model as the batch system names it, such as `"a100"`.
        gpu_memory_mb: least memory of each GPU in MB.
        application: name of an application that the seller has, such as `"NAMD"`.
        application_version: its version (default: any).
        disk_gb: disk space in all in GB.
        node_disk_gb: disk space on each node in GB, in place of `disk_gb`.
        geometry: extents on a torus machine, such as `"8x8x16"` or `(8, 8, 16)`.
        rotate: whether the extents may be taken in another order.
        connection: wiring on a torus machine: `"torus"`, `"mesh"` or `"any"`.
        node_use: Blue Gene's use of its nodes: `"coprocessor"` or `"virtual"`.
        start_probability: buy a job in a queue as well, if it starts early enough with at least this probability, such
            as .95 (default: only a slot that is reserved).
        sites: the sites at which it may run, such as `["west.example"]`: domains of resources' names, or such names; as
            one text, with blanks between them (default: any).

    Raises:
        ConfigurationError: if terms are missing or make no sense together; the rest is checked when it is submitted.
    """
    length, room = _times(wall_time, slack, start, end)
    least, most = _core_range(cores)
    unit = RequestUnit(
        number=1,
        cpu_hour_cost=price,
        deadline=0,
        cores=_cores(least if reference_cores is None else reference_cores, nodes, node_cores),
        operating_system=operating_system,
        os_version=os_version,
        architecture=architecture,
        cpu_speed_mhz=cpu_speed_mhz,
        inter_node_bandwidth_mbps=inter_node_bandwidth_mbps,
        ram_per_core_mb=ram_per_core_mb,
        gpus_per_node=gpus_per_node,
        gpu_model=gpu_model,
        gpu_memory_mb=gpu_memory_mb,
        application=application,
        application_version=application_version,
        disk=_disk(disk_gb, node_disk_gb),
        torus=_torus(geometry, rotate, connection, node_use),
        moldable=_moldable(least, most, reference_cores, speed_up),
        start_probability=start_probability,
        sites=named_sites(sites),
    )
    if problems := moldable_problems(replace(unit, wall_time=length)):
        raise ConfigurationError("; ".join(problems))
    if problem := extension_problem(unit):
        raise ConfigurationError(problem)
    return RequestTemplate(unit, start, end, length, room)


def named_sites(sites: str | Sequence[str] | None) -> tuple[str, ...] | None:
    """Return the sites of a request in lower case, each once; None if it names none."""
    named = tuple(dict.fromkeys(each.lower() for each in (sites.split() if isinstance(sites, str) else sites or ())))
    for site in named:
        if not _SITE.fullmatch(site):
            raise ConfigurationError(
                f"sites={site!r} is neither a site nor a seller, expected for example west.example or a@west.example"
            )
    return named or None


def combined(parts: Sequence[RequestForQuotation]) -> RequestForQuotation:
    """Combine requests into one with all their units in order, bought together or not at all."""
    units = (unit for part in parts for unit in part.units)
    limits = [part.max_cost for part in parts if part.units]
    given = [limit for limit in limits if limit is not None]
    if 0 < len(given) < len(limits):
        raise ConfigurationError(
            "only some of the requests have a MaxCost: give it in all of them or leave it out of all"
        )
    together = RequestForQuotation(
        tuple(replace(unit, number=number) for number, unit in enumerate(units, 1)),
        tuple(warning for part in parts for warning in part.warnings),
        sum(given) if given else None,
    )
    if problem := request_problem(together):
        raise ConfigurationError(problem)
    return together


def resolved(parts: Sequence[Requestable], now: Instant) -> RequestForQuotation:
    """Return the request to submit, with all times fixed."""
    from ramp.rfql.request_for_quotation import load_request

    if not parts:
        raise ConfigurationError("nothing to submit: give at least one request")
    found = []
    for part in parts:
        match part:
            case RequestTemplate():
                found.append(part.at(now))
            case RequestForQuotation():
                found.append(part)
            case _:
                found.append(load_request(part))
    return combined(found)


def document_of(request: RequestForQuotation) -> str:
    """Write a request as RFQL, and check it as its reader will."""
    from ramp.rfql.request_for_quotation import parse_request, write_request

    text = write_request(request)
    parse_request(text, "the new request")
    return text


def _times(
    wall_time: str | timedelta | None,
    slack: str | timedelta | None,
    start: str | datetime | None,
    end: str | datetime | None,
) -> tuple[Duration | None, Duration | None]:
    """Check the times of a request; return its wall time and slack."""
    length = None if wall_time is None else read_argument("wall_time", duration_of, wall_time, zero=False)
    room = None if slack is None else read_argument("slack", duration_of, slack)
    if end is None and length is None:
        raise ConfigurationError("no length of the run: give wall_time=, or end=, or both")
    for name, given in (("start", start), ("end", end)):
        if given is not None:
            read_argument(name, moment_of, given, SystemClock().now())
    return length, room


def _core_range(cores: int | str | tuple[int, int] | None) -> tuple[int | None, int | None]:
    """Return the minimum and maximum number of cores; the second is None if they are the same."""
    if cores is None or isinstance(cores, int):
        return cores, None
    text = cores if isinstance(cores, str) else "..".join(map(str, cores))
    found = _RANGE.fullmatch(text)
    if found is None:
        raise ConfigurationError(f"cannot read cores={text!r}: expected a number or a range, such as 64 or 64..512")
    least, most = int(found[1]), None if found[2] is None else int(found[2])
    if most is not None and most < least:
        raise ConfigurationError(f"invalid range cores={text!r}: it ends before it begins, expected {most}..{least}")
    return least, most


def _moldable(
    least: int | None, most: int | None, reference_cores: int | None, speed_up: str | None
) -> MoldableTerms | None:
    if least is None or most is None:
        for name, given in (("reference_cores", reference_cores), ("speed_up", speed_up)):
            if given is not None:
                raise ConfigurationError(f"{name}= needs a range of cores, such as cores='64..512'")
        return None
    if speed_up is None:
        raise ConfigurationError(f"a range of cores needs speed_up=: {LAWS}")
    return MoldableTerms(least, most, speed_up)


def _cores(cores: int | None, nodes: int | None, node_cores: int | None) -> TotalCores | Nodes:
    if cores is not None and nodes is None and node_cores is None:
        return TotalCores(cores)
    if cores is None and nodes is not None and node_cores is not None:
        return Nodes(nodes, node_cores)
    raise ConfigurationError("invalid number of cores: give either cores=, or both nodes= and node_cores=")


def _disk(total: int | None, on_node: int | None) -> TotalDiskSpace | NodeDiskSpace | None:
    if total is not None and on_node is not None:
        raise ConfigurationError("disk space is given twice: give either disk_gb= or node_disk_gb=")
    if total is not None:
        return TotalDiskSpace(total)
    return None if on_node is None else NodeDiskSpace(on_node)


def _torus(
    geometry: str | Sequence[int] | None, rotate: bool, connection: str | None, node_use: str | None
) -> TorusTerms | None:
    if geometry is None:
        if not rotate:
            raise ConfigurationError("rotate=False needs geometry=")
        if connection is None and node_use is None:
            return None
        extents: tuple[int, ...] = ()
    else:
        text = geometry if isinstance(geometry, str) else "x".join(str(extent) for extent in geometry)
        if not _GEOMETRY.fullmatch(text):
            raise ConfigurationError(f"cannot read geometry={text!r}: expected extents such as 8x8x16")
        extents = tuple(int(extent) for extent in text.split("x"))
    return TorusTerms(extents, rotate, connection or "any", node_use or "")
