"""Extension terms of RFQL: places in a torus, a size that the seller chooses, and the probability of a start in time.

Elements `Geometry`, `ConnectionType`, `NodeUse` (schemas/torus.xsd), `CoreRange` (schemas/moldable.xsd) and
`StartProbability` (schemas/start.xsd).
"""

from __future__ import annotations

from typing import Final

from ramp.model.request import MoldableTerms, TorusTerms
from ramp.rfql.xml import markup
from ramp.rfql.xml.namespaces import MOLDABLE, START, TORUS
from ramp.rfql.xml.parser import Element

GEOMETRY: Final = f"{{{TORUS}}}Geometry"
CONNECTION_TYPE: Final = f"{{{TORUS}}}ConnectionType"
NODE_USE: Final = f"{{{TORUS}}}NodeUse"
TORUS_TAGS: Final = frozenset({GEOMETRY, CONNECTION_TYPE, NODE_USE})
ANY_GEOMETRY: Final = "any"
CORE_RANGE: Final = f"{{{MOLDABLE}}}CoreRange"
DIGITS_END: Final = 100
"""Numbers of cores are shorter than this; longer ones cost time to read."""
START_PROBABILITY: Final = f"{{{START}}}StartProbability"


def write_torus(terms: TorusTerms) -> str:
    """Write the terms as extension elements with their namespace, at least `ConnectionType`."""
    parts = []
    if terms.geometry or not terms.rotate:
        extents = "x".join(map(str, terms.geometry)) or ANY_GEOMETRY
        rotate = "" if terms.rotate else ' rotate="false"'
        parts.append(f'<Geometry xmlns="{TORUS}"{rotate}>{extents}</Geometry>')
    parts.append(f'<ConnectionType xmlns="{TORUS}">{markup.escape_text(terms.connection)}</ConnectionType>')
    if terms.node_use:
        parts.append(f'<NodeUse xmlns="{TORUS}">{markup.escape_text(terms.node_use)}</NodeUse>')
    return "".join(parts)


def read_torus(elements: dict[str, Element]) -> TorusTerms | None:
    """Read the terms from the extension elements of a valid request; None without any of them."""
    if not TORUS_TAGS & elements.keys():
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


def write_moldable(terms: MoldableTerms) -> str:
    """Write the terms as an extension element with its namespace."""
    law = markup.escape_attribute(terms.law)
    return f'<CoreRange xmlns="{MOLDABLE}" least="{terms.least}" most="{terms.most}" speedUp="{law}"/>'


def read_moldable(element: Element) -> MoldableTerms | None:
    """Read the extension element; None if it violates the schema, whose check reports the reason."""
    least, most, law = (element.get(name, "").strip().removeprefix("+") for name in ("least", "most", "speedUp"))
    if not law or not all(
        number.isascii() and number.isdigit() and len(number) < DIGITS_END for number in (least, most)
    ):
        return None
    return MoldableTerms(int(least), int(most), law)


def write_probability(probability: float) -> str:
    """Write the term, above 0 and at most 1, with six digits as an extension element with its namespace."""
    digits = f"{probability:.6f}".rstrip("0").rstrip(".")
    return f'<StartProbability xmlns="{START}">{digits}</StartProbability>'


def read_probability(elements: dict[str, Element]) -> float | None:
    """Read the term of a valid request; None without it.

    Raises:
        ValueError: if it is no number; the schema check reports that.
    """
    element = elements.get(START_PROBABILITY)
    return None if element is None else float(element.text or "")
