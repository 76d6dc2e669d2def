"""Documents of a later minor version of the wire format: what this program does not know is passed over.

Only what belongs to the market's own namespace: the terms of a request never are, for whoever sells must be able to
meet each of them (paper section 5.2).
"""

from __future__ import annotations

import re
from typing import Any, Final

from ramp.model.offer import RefusalCode
from ramp.rfql.xml import schema
from ramp.rfql.xml.namespaces import MARKET
from ramp.rfql.xml.parser import Element

ROUNDS_MAX: Final = 8
"""Looks at one document: what stands inside an unknown element goes with it, so few are needed."""

_ATTRIBUTE: Final = re.compile(r"attribute '(?P<name>[^']*)'")


def pass_over_unknown(root: Element) -> None:
    """Take out of a document the attributes and elements that its schema does not have.

    A code of refusal that is not known becomes `other`. What is wrong besides stays, for the schema check to find.

    Args:
        root: the document's root element; it is changed.
    """
    compiled = schema.schema()
    for _ in range(ROUNDS_MAX):
        if compiled.validate(root):
            return
        log: Any = compiled.error_log
        found = [(entry, _elements(root, entry.path)) for entry in log]  # paths are those of before any change
        mended = [_mend(element, entry) for entry, elements in found for element in elements]
        if not any(mended):
            return


def _elements(root: Element, path: str | None) -> list[Element]:
    found: Any = root.getroottree().xpath(path) if path else []
    return [element for element in found if str(element.tag).startswith(f"{{{MARKET}}}")]


def _mend(element: Element, entry: Any) -> bool:
    """Take one finding away; False where it is none of a later version's."""
    named = _ATTRIBUTE.search(entry.message)
    name = named["name"] if named is not None else ""
    if entry.type_name == "SCHEMAV_CVC_COMPLEX_TYPE_3_2_1" and name in element.attrib:
        del element.attrib[name]
        return True
    if entry.type_name == "SCHEMAV_CVC_ENUMERATION_VALID" and name == "code" and "code" in element.attrib:
        element.set("code", RefusalCode.OTHER.value)
        return True
    parent = element.getparent()
    if entry.type_name == "SCHEMAV_ELEMENT_CONTENT" and parent is not None and "not expected" in entry.message:
        parent.remove(element)
        return True
    return False
