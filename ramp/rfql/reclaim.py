"""Extension term of RFQL by which the seller may take cores back: `Reclaimable` (schemas/reclaim.xsd)."""

from __future__ import annotations

from typing import Final

from ramp.errors import MeaningViolation
from ramp.model.instant import SECOND
from ramp.model.request import ReclaimTerms
from ramp.rfql.xml.namespaces import RECLAIM
from ramp.rfql.xml.parser import Element

RECLAIMABLE: Final = f"{{{RECLAIM}}}Reclaimable"
DIGITS_END: Final = 100
"""Far beyond every number that the schema allows; longer ones cost time to read."""


def write_terms(terms: ReclaimTerms) -> str:
    """The terms as an extension element with its namespace.

    Raises:
        MeaningViolation: if the notice is not of whole seconds.
    """
    whole, rest = divmod(terms.notice, SECOND)
    if rest:
        raise MeaningViolation(f"Reclaimable: a notice of {terms.notice} us; RFQL carries whole seconds")
    paid = f' compensation="{terms.compensation}"' if terms.compensation else ""
    return f'<Reclaimable xmlns="{RECLAIM}" least="{terms.least}" notice="{whole}"{paid}/>'


def read_terms(element: Element) -> ReclaimTerms | None:
    """Read the extension element; None where it is against the schema, whose check tells why."""
    names = ("least", "notice", "compensation")
    least, notice, paid = (element.get(name, "0").strip().removeprefix("+") for name in names)
    numbers = (least, notice, paid)
    if not all(each.isascii() and each.isdigit() and len(each) < DIGITS_END for each in numbers):
        return None
    return ReclaimTerms(int(least), int(notice) * SECOND, int(paid))
