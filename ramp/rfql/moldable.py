"""Extension term of RFQL that leaves a unit's size to the seller: `CoreRange` (schemas/moldable.xsd)."""

from __future__ import annotations

from typing import Final

from ramp.model.request import MoldableTerms
from ramp.rfql.xml import markup
from ramp.rfql.xml.namespaces import MOLDABLE
from ramp.rfql.xml.parser import Element

CORE_RANGE: Final = f"{{{MOLDABLE}}}CoreRange"
DIGITS_END: Final = 100
"""Far beyond every number of cores that the schema allows; longer ones cost time to read."""


def write_terms(terms: MoldableTerms) -> str:
    """The terms as an extension element with its namespace."""
    law = markup.escape_attribute(terms.law)
    return f'<CoreRange xmlns="{MOLDABLE}" least="{terms.least}" most="{terms.most}" speedUp="{law}"/>'


def read_terms(element: Element) -> MoldableTerms | None:
    """Read the extension element; None where it is against the schema, whose check tells why."""
    least, most, law = (element.get(name, "").strip().removeprefix("+") for name in ("least", "most", "speedUp"))
    if not law or not all(
        number.isascii() and number.isdigit() and len(number) < DIGITS_END for number in (least, most)
    ):
        return None
    return MoldableTerms(int(least), int(most), law)
