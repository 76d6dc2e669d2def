"""XML namespaces of the documents, and the folder of their schemas."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from ramp.shipped_files import shipped_directory

RFQ: Final = "http://www.realitygrid.org/AHE/RFQ"
"""RFQL, as published."""

TORUS: Final = "urn:ramp:torus:1"
"""Extension terms for torus machines."""

START: Final = "urn:ramp:start:1"
"""Extension term for machines that cannot reserve."""

LIMITS: Final = "urn:ramp:limits:1"
"""Extension of RFQL: maximum cost of a whole document."""

MOLDABLE: Final = "urn:ramp:moldable:1"
"""Extension of RFQL: units whose size the seller chooses."""

SITES: Final = "urn:ramp:sites:1"
"""Extension of RFQL: units for certain sites only."""

TERMS: Final = "urn:ramp:terms:1"
"""Extension of RFQL: static terms that the published schema lacks (`ramp.model.machine_terms`)."""

MARKET: Final = "urn:ramp:market:1"
"""Every other document of the market."""

SIGNATURE: Final = "http://www.w3.org/2000/09/xmldsig#"
"""W3C XML Signature."""


def schemas_dir() -> Path:
    """Folder of the schemas; see `shipped_directory`."""
    return shipped_directory("schemas")
