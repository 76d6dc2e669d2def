"""Extension terms of RFQL for torus machines: `Geometry`, `ConnectionType`, `NodeUse` (schemas/torus.xsd)."""

from __future__ import annotations

from typing import Final

from ramp.model.request import TorusTerms
from ramp.rfql.xml import markup
from ramp.rfql.xml.namespaces import TORUS
from ramp.rfql.xml.parser import Element

GEOMETRY: Final = f"{{{TORUS}}}Geometry"
CONNECTION_TYPE: Final = f"{{{TORUS}}}ConnectionType"
NODE_USE: Final = f"{{{TORUS}}}NodeUse"
TAGS: Final = frozenset({GEOMETRY, CONNECTION_TYPE, NODE_USE})
ANY_GEOMETRY: Final = "any"


def write_terms(terms: TorusTerms) -> str:
    """The terms as extension elements, each with its namespace; at least `ConnectionType` is written."""
    parts = []
    if terms.geometry or not terms.rotate:
        extents = "x".join(map(str, terms.geometry)) or ANY_GEOMETRY
        rotate = "" if terms.rotate else ' rotate="false"'
        parts.append(f'<Geometry xmlns="{TORUS}"{rotate}>{extents}</Geometry>')
    parts.append(f'<ConnectionType xmlns="{TORUS}">{markup.escape_text(terms.connection)}</ConnectionType>')
    if terms.node_use:
        parts.append(f'<NodeUse xmlns="{TORUS}">{markup.escape_text(terms.node_use)}</NodeUse>')
    return "".join(parts)


def read_terms(elements: dict[str, Element]) -> TorusTerms | None:
    """Read the extension elements of a request that has passed the schema check.

    Args:
        elements: the request's extension elements by tag.

    Returns:
        The terms, or None where there is none of them.
    """
    if not TAGS & elements.keys():
        return None
    geometry: tuple[int, ...] = ()
    rotate = True
    if (element := elements.get(GEOMETRY)) is not None:
        text = element.text or ANY_GEOMETRY
        geometry = () if text == ANY_GEOMETRY else tuple(int(extent) for extent in text.split("x"))
        rotate = element.get("rotate", "true").strip() in {"true", "1"}
    connection = elements.get(CONNECTION_TYPE)
    node_use = elements.get(NODE_USE)
    return TorusTerms(
        geometry=geometry,
        rotate=rotate,
        connection="any" if connection is None else connection.text or "any",
        node_use="" if node_use is None else node_use.text or "",
    )
