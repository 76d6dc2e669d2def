"""Read and write RFQL documents, requests for quotation (paper section 5.2; schemas/rfql.xsd).

Reading checks the schema, then the meaning, and reports all findings of a document at once. Dates and times without a
zone are UTC. `Intel`, which the original's samples use against their own schema, means x86_64, with a warning.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from lxml import etree

from ramp.errors import DocumentError
from ramp.model import instant
from ramp.model.instant import SECOND, Duration, Instant
from ramp.model.machine_terms import STATED_TERMS, extension_problem
from ramp.model.money import credits_decimal, parse_credits
from ramp.model.probable_start import request_problem
from ramp.model.request import (
    NUMBER_MAX,
    NodeDiskSpace,
    Nodes,
    RequestForQuotation,
    RequestUnit,
    TotalCores,
    TotalDiskSpace,
)
from ramp.model.sizes.moldable import moldable_problems
from ramp.rfql import extension_terms
from ramp.rfql.xml import markup, schema
from ramp.rfql.xml.namespaces import LIMITS, MOLDABLE, RFQ, SITES, START, TERMS, TORUS
from ramp.rfql.xml.parser import Element, parse_file

ROOT: Final = f"{{{RFQ}}}RequestForQuotation"
REQUEST: Final = f"{{{RFQ}}}Request"
MAX_COST: Final = f"{{{LIMITS}}}MaxCost"
_CREDITS: Final = re.compile(r"(0|[1-9][0-9]{0,11})(\.[0-9]{1,2})?")
_PREFIX: Final = f"{{{RFQ}}}"
_FURTHER: Final = tuple((term.name, term.element) for term in STATED_TERMS if term.is_extension)
_FURTHER_TAGS: Final = {f"{{{TERMS}}}{element}": element for _, element in _FURTHER}
_SITES: Final = f"{{{SITES}}}Sites"
_EXTENSIONS: Final = extension_terms.TORUS_TAGS | {
    extension_terms.START_PROBABILITY,
    extension_terms.CORE_RANGE,
    _SITES,
}

WALL_TIME_MAX_S: Final = instant.DURATION_END // SECOND - 1
"""Longest run in seconds; added to any start it stays within the calendar."""

ARCHITECTURE_ALIASES: Final = {"intel": "x86_64"}
"""Architecture names outside JSDL that are accepted with a warning, by their folded spelling."""


def load_request(path: Path | str) -> RequestForQuotation:
    """Read a request for quotation from a file.

    Raises:
        DocumentError: if the file cannot be read, or its document is invalid; names all findings.
    """
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise DocumentError(f"cannot be read: {error.strerror}", source=str(path)) from error
    return parse_request(data, str(path))


def parse_request(text: str | bytes, source: str | None = None) -> RequestForQuotation:
    """Read a request for quotation, with its warnings.

    Args:
        text: the document.
        source: its name in messages, such as a file's name.

    Raises:
        DocumentError: not well-formed XML, or forbidden constructs;
            or over the size limit;
            or against the schema (errors of meaning that could be found are included);
            or valid against the schema, but senseless.
    """
    root = parse_file(text, source)
    for element in root.iter():  # XML Schema allows white space around dates and numbers, libxml2 does not
        if len(element) == 0 and element.text and element.tag != f"{_PREFIX}OSVersion":
            element.text = element.text.strip()
    warnings = _replace_aliases(root)
    violations = schema.findings(root, "rfql")
    if root.tag != ROOT:
        violations = (f"line {root.sourceline}: wrong root element: got {root.tag}, expected {ROOT}",)
        raise schema.violation(violations, source)
    units, senseless = _read_units(root, least_price=1)
    max_cost, strange = _read_max_cost(root)
    senseless += strange
    if violations:
        told = {_place_of(line) for line in violations}
        extra = tuple(line for line in senseless if _place_of(line) not in told)
        raise schema.violation(tuple(sorted(violations + extra, key=_line_of)), source)
    request = RequestForQuotation(units=units, warnings=warnings, max_cost=max_cost)
    if not senseless and (problem := request_problem(request)):
        senseless = (f"StartProbability: {problem}",)
    if senseless:
        raise schema.violation(senseless, source)
    return request


def read_request(root: Element, source: str | None = None) -> RequestForQuotation:
    """Read the request of a message that has passed the schema check; an asking price may have fallen to zero.

    Raises:
        DocumentError: if its values make no sense.
    """
    units, senseless = _read_units(root, least_price=0)
    if senseless:
        raise schema.violation(senseless, source)
    return RequestForQuotation(units=units)


def read_unit(element: Element, number: int) -> RequestUnit:
    """Read one Request that has passed the schema check; `DocumentError` if its values make no sense."""
    reader = _UnitReader(number, least_price=0)
    unit = reader.read(element)
    if reader.violations or unit is None:
        raise schema.violation(tuple(reader.violations), None)
    return unit


def write_request(rfq: RequestForQuotation) -> str:
    """Write a request for quotation as an RFQL document.

    Raises:
        DocumentError: for units that are not numbered by position, or values that RFQL cannot carry.
    """
    numbers = [unit.number for unit in rfq.units]
    if not numbers or numbers != list(range(1, len(numbers) + 1)):
        raise DocumentError(f"wrong unit numbers: got {numbers}, expected 1, 2, 3 and so on")
    inside = "".join([write_unit(unit, root=False) for unit in rfq.units])
    limit = ""
    if rfq.max_cost is not None:
        limit = f'<MaxCost xmlns="{LIMITS}">{credits_decimal(rfq.max_cost)}</MaxCost>'
    return f'<RequestForQuotation xmlns="{RFQ}">{inside}{limit}</RequestForQuotation>'


def write_unit(unit: RequestUnit, *, root: bool) -> str:
    """Write one Request.

    Args:
        unit: its number is its position and is not written.
        root: whether to declare the namespace.

    Raises:
        DocumentError: for values that RFQL cannot carry.
    """
    end_date, end_time = markup.split_moment(unit.deadline)
    parts = [
        f'<Request xmlns="{RFQ}">' if root else "<Request>",
        f"<CPUHourCost>{unit.cpu_hour_cost}</CPUHourCost><EndDate>{end_date}</EndDate><EndTime>{end_time}</EndTime>",
    ]
    if unit.not_before is not None:
        start_date, start_time = markup.split_moment(unit.not_before)
        parts.append(f"<StartDate>{start_date}</StartDate><StartTime>{start_time}</StartTime>")
    wall_time = _whole_seconds(unit)
    for term in STATED_TERMS:
        if not term.is_extension and (value := getattr(unit, term.name)) is not None:
            parts.append(f"<{term.element}>{markup.escape_text(str(value))}</{term.element}>")
        if term.element == "CPUSpeed" and wall_time is not None:  # it is the next in the published schema
            parts.append(f"<WallTime>{wall_time}</WallTime>")
    if unit.disk is not None:
        name = "TotalDiskSpace" if isinstance(unit.disk, TotalDiskSpace) else "NodeDiskSpace"
        parts.append(f"<Disk><{name}>{unit.disk.gigabytes}</{name}></Disk>")
    parts.append(_write_cores(unit.cores))
    if unit.torus is not None:
        parts.append(extension_terms.write_torus(unit.torus))
    if unit.moldable is not None:
        parts.append(extension_terms.write_moldable(unit.moldable))
    if unit.start_probability is not None:
        parts.append(extension_terms.write_probability(unit.start_probability))
    if unit.sites is not None:
        parts.append(f'<Sites xmlns="{SITES}">{markup.escape_text(" ".join(unit.sites))}</Sites>')
    for name, element in _FURTHER:
        if (value := getattr(unit, name)) is not None:
            parts += (f'<{element} xmlns="{TERMS}">{markup.escape_text(str(value))}</{element}>',)
    parts.append("</Request>")
    return "".join(parts)


def _whole_seconds(unit: RequestUnit) -> int | None:
    if unit.wall_time is None:
        return None
    whole, rest = divmod(unit.wall_time, SECOND)
    if rest:
        raise DocumentError(f"unit {unit.number}: WallTime must be whole seconds: got {unit.wall_time / SECOND:g}")
    return whole


def _write_cores(cores: TotalCores | Nodes) -> str:
    if isinstance(cores, TotalCores):
        return f"<Cores><TotalCores>{cores.total}</TotalCores></Cores>"
    nodes = f"<NodeCount>{cores.count}</NodeCount><NodeCores>{cores.cores_per_node}</NodeCores>"
    return f"<Cores><Nodes>{nodes}</Nodes></Cores>"


def _replace_aliases(root: Element) -> tuple[str, ...]:
    warnings = []
    for element in root.iter(f"{_PREFIX}Architecture"):
        name = ARCHITECTURE_ALIASES.get((element.text or "").strip().casefold())
        if name is not None:
            warnings.append(
                f"line {element.sourceline}: Architecture: {element.text!r} is no JSDL name; read as {name!r}"
            )
            element.text = name
    return tuple(warnings)


def _read_units(root: Element, least_price: int) -> tuple[tuple[RequestUnit, ...], tuple[str, ...]]:
    units: list[RequestUnit] = []
    violations: list[str] = []
    for number, element in enumerate(root.iterchildren(REQUEST), start=1):
        reader = _UnitReader(number, least_price)
        unit = reader.read(element)
        violations += reader.violations
        if unit is not None:
            units.append(unit)
    return tuple(units), tuple(violations)


def _read_max_cost(root: Element) -> tuple[int | None, tuple[str, ...]]:
    """Return the maximum cost of a document, and the problems with it or with other extensions of the document."""
    amount: int | None = None
    violations: list[str] = []
    for element in root.iterchildren(tag=etree.Element):
        if element.tag == REQUEST or not str(element.tag).startswith("{") or str(element.tag).startswith(_PREFIX):
            continue
        if element.tag != MAX_COST:
            wrong = f"unknown extension, expected MaxCost of {LIMITS}"
            violations.append(f"line {element.sourceline}: {element.tag}: {wrong}")
        elif amount is not None:
            violations.append(f"line {element.sourceline}: MaxCost: given twice, expected once")
        elif _CREDITS.fullmatch(element.text or ""):
            amount = parse_credits(element.text or "")
            if amount == 0:
                violations.append(f"line {element.sourceline}: MaxCost: got 0, expected more than 0")
    return amount, tuple(violations)


def _line_of(violation: str) -> int:
    number = violation.removeprefix("line ").partition(":")[0]
    return int(number) if number.isdecimal() else 0


def _place_of(violation: str) -> tuple[str, ...]:
    """Return line and element, the first two parts of every finding."""
    return tuple(violation.split(": ")[:2])


def _is_date(date: str) -> bool:
    try:
        markup.join_moment(date, "00:00:00")
    except ValueError:
        return False
    return True


@dataclass(slots=True)
class _UnitReader:
    """Reads one Request and collects problems of meaning, as far as a document with schema errors allows."""

    number: int
    least_price: int
    violations: list[str] = field(default_factory=list)
    elements: dict[str, Element] = field(default_factory=dict)

    def read(self, request: Element) -> RequestUnit | None:
        """Return the unit, or None if its required terms cannot be read."""
        extensions = self._collect(request)
        price = self._whole("CPUHourCost", self.least_price)
        deadline = self._moment("End")
        not_before = self._moment("Start")
        wall_time_s = self._whole("WallTime", most=WALL_TIME_MAX_S)
        wall_time = None if wall_time_s is None else wall_time_s * SECOND
        cores = self._cores()
        disk = self._disk()
        stated: dict[str, Any] = {}
        for term in STATED_TERMS:
            if term.element in self.elements:
                stated[term.name] = self._whole(term.element) if term.measure else self._text(term.element)
        if deadline is not None and not_before is not None:
            self._check_window(not_before, deadline, None if extension_terms.CORE_RANGE in extensions else wall_time)
        if self.violations or price is None or deadline is None or cores is None:
            return None
        try:
            terms = extension_terms.read_torus(extensions) if extensions else None
            probability = extension_terms.read_probability(extensions) if extensions else None
        except ValueError:
            return None  # the schema check reports the reason
        sizes, sites = extensions.get(extension_terms.CORE_RANGE), extensions.get(_SITES)
        unit = RequestUnit(
            number=self.number,
            cpu_hour_cost=price,
            deadline=deadline,
            cores=cores,
            not_before=not_before,
            wall_time=wall_time,
            disk=disk,
            torus=terms,
            moldable=None if sizes is None else extension_terms.read_moldable(sizes),
            start_probability=probability,
            sites=None if sites is None else tuple(dict.fromkeys((sites.text or "").split())),
            **stated,
        )
        if problem := stated and extension_problem(unit):
            self._tell("GPUsPerNode" if problem.lower().startswith("gpu") else "ApplicationVersion", problem)
        for problem in moldable_problems(unit):
            self._tell("CoreRange", problem, sizes)
        return None if self.violations else unit

    def _collect(self, request: Element) -> dict[str, Element]:
        extensions: dict[str, Element] = {}
        for element in request.iterdescendants():
            tag = str(element.tag)
            name = _FURTHER_TAGS.get(tag, tag.removeprefix(_PREFIX))
            if name != tag:
                if name in self.elements:
                    self._tell(name, f"given twice in Request {self.number}, expected once", element)
                self.elements[name] = element
            elif tag in _EXTENSIONS:
                if tag in extensions:
                    self._tell(tag, f"given twice in Request {self.number}, expected once", element)
                extensions[tag] = element
            elif element.getparent() is request:
                # "A resource must be able to satisfy it before responding" (section 5.2): no resource can.
                known = f"Geometry, ConnectionType and NodeUse of {TORUS}, StartProbability of {START}, "
                known += f"CoreRange of {MOLDABLE}, Sites of {SITES}, {', '.join(_FURTHER_TAGS.values())} of {TERMS}"
                self._tell(tag, f"unknown extension, expected one of {known}", element)
        return extensions

    def _tell(self, name: str, what: str, element: Element | None = None) -> None:
        where = self.elements.get(name) if element is None else element
        line = "" if where is None else f"line {where.sourceline}: "
        self.violations.append(f"{line}{name}: {what}")

    def _text(self, name: str) -> str | None:
        element = self.elements.get(name)
        return None if element is None else element.text or ""

    def _whole(self, name: str, least: int = 1, most: int = NUMBER_MAX) -> int | None:
        text = self._text(name)
        if text is None:
            return None
        digits = text.strip()
        unsigned = digits.removeprefix("-").removeprefix("+")
        if not unsigned.isascii() or not unsigned.isdigit():
            return None  # the schema check reports the reason
        number = int(digits) if len(unsigned) <= len(str(NUMBER_MAX)) else None
        if number is None or number > most or number < least:
            shown = digits if len(digits) <= 24 else f"{digits[:24]}..."
            self._tell(name, f"got {shown}, expected a whole number from {least} to {most}")
            return None
        return number

    def _moment(self, which: str) -> Instant | None:
        date = self._text(f"{which}Date")
        time = self._text(f"{which}Time")
        if date is None:
            if time is not None and which == "Start":
                self._tell(
                    "StartTime",
                    f"got {markup.shown(time.strip())} without a StartDate; add a StartDate",
                )
            return None
        if time is None and which == "End":
            return None  # the schema check reports that it is missing
        try:
            return markup.join_moment(date, "00:00:00" if time is None else time)
        except ValueError as error:
            self._tell(f"{which}Time" if _is_date(date) else f"{which}Date", str(error))
            return None

    def _cores(self) -> TotalCores | Nodes | None:
        total = self._whole("TotalCores")
        if total is not None:
            return TotalCores(total)
        count = self._whole("NodeCount")
        cores_per_node = self._whole("NodeCores")
        return None if count is None or cores_per_node is None else Nodes(count, cores_per_node)

    def _disk(self) -> TotalDiskSpace | NodeDiskSpace | None:
        total = self._whole("TotalDiskSpace")
        if total is not None:
            return TotalDiskSpace(total)
        on_node = self._whole("NodeDiskSpace")
        return None if on_node is None else NodeDiskSpace(on_node)

    def _check_window(self, not_before: Instant, deadline: Instant, wall_time: Duration | None) -> None:
        if deadline <= not_before:
            self._tell(
                "EndDate",
                f"the end must be after the start: got end {instant.iso(deadline)}, start {instant.iso(not_before)}",
            )
        elif wall_time is not None and deadline - not_before < wall_time:
            self._tell(
                "WallTime",
                f"too long for the window from {instant.iso(not_before)} to {instant.iso(deadline)}: "
                f"got {wall_time // SECOND} s, expected at most {(deadline - not_before) // SECOND} s, or a later end",
            )
