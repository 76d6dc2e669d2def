"""The directory of services and the state of machines (schemas/directory.xsd)."""

from __future__ import annotations

from typing import Final

from ramp.model import contents
from ramp.rfql.xml.namespaces import MARKET
from ramp.rfql.xml.parser import Element
from ramp.rfql.xml.record import BOOLEAN, DURATION, INTEGER, TEXT, Record

REGISTRATION: Final = Record(contents.Registration, {"service": TEXT, "lease": DURATION, "number": INTEGER})
REGISTERED: Final = Record(contents.Registered, {"service": TEXT, "number": INTEGER})
DEREGISTRATION: Final = Record(contents.Deregistration, {"service": TEXT, "number": INTEGER})
DIRECTORY_QUERY: Final = Record(contents.DirectoryQuery, {"query_id": TEXT, "service": TEXT, "after": TEXT})
MACHINE_QUERY: Final = Record(contents.MachineQuery, {"query_id": TEXT, "horizon": DURATION})
MACHINE_STATUS: Final = Record(contents.MachineStatus, {"query_id": TEXT}, text="snapshot")

LISTING: Final = "DirectoryListing"
_AGENT: Final = f"{{{MARKET}}}Agent"


def write_listing(listing: contents.DirectoryListing) -> str:
    """Write the directory's answer, one element a name.

    Raises:
        MeaningViolation: for names that XML cannot carry.
    """
    agents = "".join([f'<Agent name="{TEXT.write(name)}"/>' for name in listing.names])
    head = (
        f'<{LISTING} xmlns="{MARKET}" queryId="{TEXT.write(listing.query_id)}" service="{TEXT.write(listing.service)}"'
    )
    if listing.more:
        head += ' more="true"'
    return f"{head}>{agents}</{LISTING}>" if agents else f"{head}/>"


def read_listing(element: Element) -> contents.DirectoryListing:
    """Read a listing that has passed the schema check."""
    return contents.DirectoryListing(
        query_id=element.get("queryId", ""),
        service=element.get("service", ""),
        names=tuple([child.get("name", "") for child in element.iterchildren(_AGENT)]),
        more=BOOLEAN.read(element.get("more", "false")),
    )
