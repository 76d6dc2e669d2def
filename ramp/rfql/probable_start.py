"""Extension term of RFQL for machines that cannot reserve: `StartProbability` (schemas/start.xsd)."""

from __future__ import annotations

from typing import Final

from ramp.rfql.xml.namespaces import START
from ramp.rfql.xml.parser import Element

START_PROBABILITY: Final = f"{{{START}}}StartProbability"


def write_term(probability: float) -> str:
    """The term as an extension element with its namespace.

    Args:
        probability: above 0 and at most 1; what lies beyond the sixth digit is not said.
    """
    digits = f"{probability:.6f}".rstrip("0").rstrip(".")
    return f'<StartProbability xmlns="{START}">{digits}</StartProbability>'


def read_term(elements: dict[str, Element]) -> float | None:
    """Read the term of a request that has passed the schema check; None where it is not given.

    Args:
        elements: the request's extension elements by tag.

    Raises:
        ValueError: if it is no number, of which the schema check tells.
    """
    element = elements.get(START_PROBABILITY)
    return None if element is None else float(element.text or "")
