"""The directory, the state of machines (schemas/directory.xsd), and certificates (schemas/enrolment.xsd)."""

from __future__ import annotations

from typing import Final

from ramp.model import contents
from ramp.model.machine_terms.static_needs import StaticNeeds
from ramp.model.slot import StaticTerms
from ramp.rfql.xml.namespaces import MARKET
from ramp.rfql.xml.parser import Element
from ramp.rfql.xml.record import BOOLEAN, INTEGER, TEXT, Record

_PROPERTIES: Final = {
    "operating_system": TEXT,
    "os_version": TEXT,
    "architecture": TEXT,
    "cpu_speed_mhz": INTEGER,
    "inter_node_bandwidth_mbps": INTEGER,
    "ram_per_core_mb": INTEGER,
    "total_disk_space_gb": INTEGER,
    "node_disk_space_gb": INTEGER,
    "torus": BOOLEAN,
}
_TERMS: Final = Record(StaticTerms)
_NEEDS: Final = Record(StaticNeeds)

REGISTRATION: Final = Record(contents.Registration, children={"terms": _TERMS})
DIRECTORY_QUERY: Final = Record(contents.DirectoryQuery, children={"needs": _NEEDS})
MACHINE_STATUS: Final = Record(contents.MachineStatus, text="snapshot")


LISTING: Final = "DirectoryListing"
_AGENT: Final = f"{{{MARKET}}}Agent"
_UNFIT: Final = Record(contents.UnfitAgent, children={"terms": _TERMS})


def write_listing(listing: contents.DirectoryListing) -> str:
    """Write the directory's answer, one element per name, then the unfit ones.

    Raises:
        DocumentError: for names that XML cannot carry.
    """
    agents = "".join([f'<Agent name="{TEXT.write(name)}"/>' for name in listing.names])
    head = (
        f'<{LISTING} xmlns="{MARKET}" queryId="{TEXT.write(listing.query_id)}" service="{TEXT.write(listing.service)}"'
    )
    if listing.more:
        head += ' more="true"'
    agents += "".join([_UNFIT.write(each, root=False) for each in listing.unfit])
    return f"{head}>{agents}</{LISTING}>" if agents else f"{head}/>"


def read_listing(element: Element) -> contents.DirectoryListing:
    """Read a listing that has passed the schema check."""
    return contents.DirectoryListing(
        query_id=element.get("queryId", ""),
        service=element.get("service", ""),
        names=tuple([child.get("name", "") for child in element.iterchildren(_AGENT)]),
        more=BOOLEAN.read(element.get("more", "false")),
        unfit=tuple([_UNFIT.read(child) for child in element.iterchildren(_UNFIT.tag)]),
    )
