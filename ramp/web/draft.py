"""The form of a request: converts texts of fields to an RFQL document and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, tzinfo
from typing import Final

from ramp.client.request import combined, request
from ramp.errors import ConfigurationError
from ramp.model.instant import SECOND, Instant, iso
from ramp.model.machine_terms import STATED_TERMS
from ramp.model.money import credits_decimal, credits_of
from ramp.model.request import NodeDiskSpace, Nodes, RequestForQuotation, RequestUnit, TotalDiskSpace
from ramp.model.sizes.moldable import cost_cap
from ramp.options import read_argument
from ramp.protocol.events import Approval, AuctionOptions, Preference
from ramp.rfql.request_for_quotation import parse_request, write_request

ROUNDS_FIRST: Final = 3
"""Default number of bidding rounds."""

UNITS_MAX: Final = 32
"""Maximum number of units in a form; `ramp submit` takes more."""

DRAFTS_MAX: Final = 200
"""Maximum number of forms; the one that was unused for longest is forgotten."""


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a unit's form.

    Attributes:
        name: keyword of `ramp.request`.
        label: with its unit.
        hint: an example.
        whole: whether it holds a whole number.
        choices: name of the schema's type whose choices it offers, or the choices themselves.
    """

    name: str
    label: str
    hint: str = ""
    whole: bool = False
    choices: str | tuple[str, ...] = ""


MAIN: Final = (
    Field("cores", "Total cores", "64", whole=True),
    Field("nodes", "Nodes instead", "8", whole=True),
    Field("node_cores", "Cores per node", "8", whole=True),
    Field("price", "Maximum price (credits/core-hour)", "70", whole=True),
    Field("wall_time", "Run time", "1h30min"),
    Field("start", "Earliest start", "+5min, tomorrow 08:00"),
    Field("end", "Complete by", "+12h"),
)
_EXPERT: Final = (
    Field("operating_system", "Operating system", choices="OperatingSystemName"),
    Field("os_version", "Operating system version", "12"),
    Field("architecture", "Architecture", choices="ArchitectureName"),
    *(
        Field(
            term.name,
            f"Minimum {term.words} ({term.measure})" if term.measure else f"{term.words[0].upper()}{term.words[1:]}",
            term.hint,
            whole=bool(term.measure),
        )
        for term in STATED_TERMS[3:]  # the choices of the first ones are those of the schema
    ),
    Field("disk_gb", "Total disk space (GB)", "100", whole=True),
    Field("node_disk_gb", "Disk space per node (GB)", "10", whole=True),
    Field("speed_up", "Speed-up law for a range of cores", "amdahl:0.05"),
    Field("reference_cores", "Reference cores of the speed-up law", "64", whole=True),
    Field("start_probability", "Minimum start probability on a queue", "0.95"),
    Field("sites", "Only at these sites or sellers", "west.example curie1@west.example"),
    Field("geometry", "Shape on a torus", "8x8x16"),
    Field("connection", "Connection", choices=("torus", "mesh", "any")),
    Field("node_use", "Blue Gene node mode", choices=("coprocessor", "virtual")),
)
FIELDS: Final = {each.name: each for each in (*MAIN, *_EXPERT)}


GROUPS: Final = {
    "Machine": "operating_system os_version architecture cpu_speed_mhz inter_node_bandwidth_mbps ram_per_core_mb",
    "GPUs": "gpus_per_node gpu_model gpu_memory_mb",
    "Disk and application": "disk_gb node_disk_gb application application_version",
    "Number of cores that the seller chooses": "speed_up reference_cores",
    "Place and start": "sites start_probability",
    "Torus": "geometry connection node_use",
}
"""Names of the expert fields by the name of their group."""

PRESETS: Final[Mapping[str, Mapping[str, str]]] = {
    "Small": {"cores": "64", "wall_time": "1h"},
    "Node": {"nodes": "1", "node_cores": "8", "wall_time": "1h"},
    "Midplane": {"cores": "1024", "geometry": "8x8x8", "connection": "any", "wall_time": "30min"},
    "Torus": {"cores": "2048", "geometry": "8x8x16", "connection": "torus", "wall_time": "30min"},
}
"""Values of the fields of a size by its name; other sizes' fields are emptied."""


@dataclass(slots=True)
class UnitDraft:
    """One unit in the form: the texts of its fields, by name."""

    texts: dict[str, str] = field(default_factory=dict)
    rotate: bool = True

    def text(self, name: str) -> str:
        """Return the text of a field without blanks around it; empty for an empty field."""
        return self.texts.get(name, "").strip()

    def preset(self, name: str) -> None:
        """Fill in a size."""
        for given in PRESETS.values():
            for field_name in given:
                self.texts.pop(field_name, None)
        self.texts |= PRESETS[name]

    def at(self, now: Instant, zone: tzinfo) -> RequestForQuotation:
        """Return the unit as a document of its own, with absolute times; `zone` is that of texts without one.

        Raises:
            ConfigurationError: if a field is missing or invalid.
        """
        given: dict[str, object] = {}
        for name, each in FIELDS.items():
            text = self.text(name)
            if text:
                given[name] = _whole(text, each) if each.whole and ".." not in text else text
        if "start_probability" in given:
            given["start_probability"] = _probability(str(given["start_probability"]))
        if "price" not in given:
            raise ConfigurationError(f"{FIELDS['price'].label}: missing, for example 70")
        return request(**given, rotate=self.rotate).at(now, zone)  # type: ignore[arg-type]

    @classmethod
    def of(cls, unit: RequestUnit) -> UnitDraft:
        """Return the form of a unit."""
        torus = unit.torus
        values: dict[str, object] = {
            "price": unit.cpu_hour_cost,
            "wall_time": None if unit.wall_time is None else f"{unit.wall_time // SECOND}s",
            "start": None if unit.not_before is None else iso(unit.not_before),
            "end": iso(unit.deadline),
            **{term.name: getattr(unit, term.name) for term in STATED_TERMS},
            "geometry": None if torus is None or not torus.geometry else "x".join(str(each) for each in torus.geometry),
            "connection": None if torus is None else torus.connection,
            "node_use": None if torus is None else torus.node_use,
            "start_probability": unit.start_probability,
            "sites": " ".join(unit.sites or ()),
        }
        if isinstance(unit.cores, Nodes):
            values |= {"nodes": unit.cores.count, "node_cores": unit.cores.cores_per_node}
        else:
            values["cores"] = unit.cores.total
        if unit.moldable is not None:
            values["cores"] = f"{unit.moldable.least}..{unit.moldable.most}"
            values |= {"reference_cores": unit.cores.total, "speed_up": unit.moldable.law}
        if isinstance(unit.disk, TotalDiskSpace):
            values["disk_gb"] = unit.disk.gigabytes
        elif isinstance(unit.disk, NodeDiskSpace):
            values["node_disk_gb"] = unit.disk.gigabytes
        texts = {name: str(value) for name, value in values.items() if value not in (None, "")}
        return cls(texts, torus is None or torus.rotate)


@dataclass(slots=True)
class Draft:
    """A request in the form.

    Attributes:
        units: bought together or not at all.
        max_cost: maximum total cost in credits; empty for no limit except the units' prices.
        rounds: of bidding; None where the field is empty.
        prefer: ranking of offers.
        approval: purchases that need no approval.
        name: the user's own name for the request.
    """

    units: list[UnitDraft] = field(default_factory=lambda: [UnitDraft(dict(FIRST))])
    max_cost: str = ""
    rounds: float | None = ROUNDS_FIRST
    prefer: Preference = Preference.CHEAPEST
    approval: Approval = Approval.AUTO
    name: str = ""

    def options(self, max_cost: int | None, *, quote_only: bool) -> AuctionOptions:
        """Return the options of the auction."""
        return AuctionOptions(
            rounds=int(self.rounds or ROUNDS_FIRST),
            preference=self.prefer,
            approval=Approval.AUTO if quote_only else self.approval,
            quote_only=quote_only,
            max_cost=max_cost,
            name=self.name.strip(),
        )

    def document(self, now: Instant, zone: tzinfo = UTC) -> RequestForQuotation:
        """Return the document, checked as `ramp rfq validate` does.

        Raises:
            ConfigurationError: if a field is invalid; with the number of the unit.
            DocumentError: if the document would not be valid.
        """
        parts = []
        for number, unit in enumerate(self.units, 1):
            try:
                parts.append(unit.at(now, zone))
            except ConfigurationError as error:
                raise ConfigurationError(
                    f"unit {number}: {labelled(f'{error.key}={error.reason}' if error.key else error.reason)}"
                ) from error
        given = self.max_cost.strip()
        limit = read_argument("maximum total cost", credits_of, given) if given else None
        return parse_request(write_request(replace(combined(parts), max_cost=limit)), "the form")

    def text(self, now: Instant, zone: tzinfo = UTC) -> str:
        """Return the document as RFQL; errors as of `document`."""
        return write_request(self.document(now, zone))

    @classmethod
    def of(cls, document: RequestForQuotation) -> Draft:
        """Return the form for a document.

        Raises:
            ConfigurationError: if it has more units than a form holds.
        """
        if len(document.units) > UNITS_MAX:
            raise ConfigurationError(
                f"the form is limited to {UNITS_MAX} units, got {len(document.units)}; use `ramp submit`"
            )
        limit = "" if document.max_cost is None else credits_decimal(document.max_cost)
        return cls([UnitDraft.of(unit) for unit in document.units], limit)


FIRST: Final[Mapping[str, str]] = {
    "cores": "64",
    "price": "70",
    "wall_time": "1h",
    "start": "+10min",
    "end": "+12h",
}
"""Initial values of the form: a request that most markets can serve."""


def greatest_cost(document: RequestForQuotation, approval: Approval, now: Instant) -> int | None:
    """Return the maximum total cost of a purchase in minor units; None if best offers are bought without a limit."""
    if approval is Approval.BEST_OFFER:
        return document.max_cost
    total = sum(cost_cap(unit, max(unit.length_from(now), 0)) for unit in document.units)
    return total if document.max_cost is None else min(total, document.max_cost)


def labelled(reason: str) -> str:
    """Replace keywords in a message of `ramp.request` by the form's labels."""
    for name, each in FIELDS.items():
        reason = reason.replace(f"{name}=", f"{each.label}: ") if f" {name}=" in f" {reason}" else reason
    return reason


def _probability(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        each = FIELDS["start_probability"]
        raise ConfigurationError(f"{each.label}: expected a number such as {each.hint}, got {text}") from None


def _whole(text: str, each: Field) -> int:
    try:
        found = int(text.replace(" ", ""))
    except ValueError:
        found = 0
    if found < 1:
        raise ConfigurationError(f"{each.label}: expected a whole number of at least 1, got {text}")
    return found
