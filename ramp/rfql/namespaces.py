"""XML namespaces of the documents and where their schemas lie."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final

import ramp

RFQ: Final = "http://www.realitygrid.org/AHE/RFQ"
"""RFQL, as published."""

TORUS: Final = "urn:ramp:torus:1"
"""Extension terms for torus machines."""

MARKET: Final = "urn:ramp:market:1"
"""Every other document of the market."""

SIGNATURE: Final = "http://www.w3.org/2000/09/xmldsig#"
"""W3C XML Signature."""


@cache
def schemas_dir() -> Path:
    """Folder of the schemas: inside the installed package, or beside it in a checkout.

    Raises:
        FileNotFoundError: if neither place has them (a broken installation).
    """
    package = Path(ramp.__file__).resolve().parent
    for folder in (package / "_data" / "schemas", package.parent / "schemas"):
        if (folder / "market.xsd").is_file():
            return folder
    raise FileNotFoundError(f"no schemas beside {package}: the installation is incomplete")
