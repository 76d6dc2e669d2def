"""The terms of requests in the schema, for programs that draw a form of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Final

from lxml import etree

from ramp.rfql.xml.namespaces import schemas_dir

_XS: Final = {"xs": "http://www.w3.org/2001/XMLSchema"}


@dataclass(frozen=True, slots=True)
class SchemaTerm:
    """One element of a request that holds a value.

    Attributes:
        name: of the element.
        kind: its type, such as `integer`, `date` or `ArchitectureName`.
        optional: whether it, or an element around it, may be left out.
        choices: the allowed values; empty for any of its type.
    """

    name: str
    kind: str
    optional: bool
    choices: tuple[str, ...] = ()


@cache
def schema_terms() -> tuple[SchemaTerm, ...]:
    """Return the terms of one `Request` of `schemas/rfql.xsd`, in its order, including nested ones."""
    root = etree.parse(schemas_dir() / "rfql.xsd").getroot()
    enumerations = {
        str(each.get("name")): tuple(str(value.get("value")) for value in each.iterfind(".//xs:enumeration", _XS))
        for each in root.iterfind("xs:simpleType", _XS)
    }
    (request,) = (each for each in root.iterfind("xs:element", _XS) if each.get("name") == "Request")
    found = []
    for element in request.iterfind(".//xs:element", _XS):
        kind = str(element.get("type", "")).removeprefix("xs:")
        if kind:
            around = [element, *element.iterancestors(f"{{{_XS['xs']}}}element")]
            optional = any(each.get("minOccurs") == "0" for each in around) or _is_choice(element)
            found.append(SchemaTerm(str(element.get("name")), kind, optional, enumerations.get(kind, ())))
    return tuple(found)


def _is_choice(element: etree._Element) -> bool:
    return next(element.iterancestors(f"{{{_XS['xs']}}}choice"), None) is not None
