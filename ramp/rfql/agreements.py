"""The signable bodies, agreements and their changes, and their countersigned forms.

The schemas are agreement.xsd and change.xsd. `ramp.rfql.signing.signature` signs the bodies; they are read only from
the bytes that a signature covers. Documents that pass them on (`ramp.rfql.signing.passed_on`) contain them as escaped
text, byte for byte as signed.
"""

from __future__ import annotations

from typing import Any, Final

from ramp.errors import DocumentError
from ramp.model import instant
from ramp.model.agreement import TERMINAL, Agreement, ContractChange, Signable
from ramp.model.instant import Instant
from ramp.rfql.checks import CHECKS
from ramp.rfql.record import record_of
from ramp.rfql.signing.passed_on import Proofs
from ramp.rfql.xml.namespaces import MARKET
from ramp.rfql.xml.parser import Element

AGREEMENT: Final = f"{{{MARKET}}}Agreement"
CHANGE: Final = f"{{{MARKET}}}ContractChange"
COUNTERSIGNED: Final = {
    f"{{{MARKET}}}CountersignedAgreement": AGREEMENT,
    f"{{{MARKET}}}CountersignedContractChange": CHANGE,
}
"""Tag of each countersigned form, and of the signed body within it."""

SIGNABLE: Final = frozenset({AGREEMENT, CHANGE, *COUNTERSIGNED})
"""Tags of the roots of signed documents."""


def write_body(body: Signable) -> str:
    """Write a body without a signature.

    Raises:
        DocumentError: for values that the document cannot carry.
    """
    kind: type[Any] = type(body)
    return record_of(kind).write(body)


def kind_of(root: Element) -> str:
    """Return the kind of a signed document, in the words of `contents.Unverified`."""
    inner = COUNTERSIGNED.get(str(root.tag), root.tag)
    if inner == AGREEMENT:
        return "agreement"
    body = root if root.tag == inner else root.find(inner)
    return "cancellation" if body is not None and body.get("number") == str(TERMINAL) else "amendment"


def read_body(element: Element, proofs: Proofs) -> Signable:
    """Read a signable body from an element that has passed the schema check.

    Args:
        element: the body.
        proofs: checks the sealed messages that the body passes on.

    Raises:
        DocumentError: if its parts contradict one another;
            or if a passed-on message is invalid.
    """
    kind: type[Any] = Agreement if element.tag == AGREEMENT else ContractChange
    try:
        body: Signable = record_of(kind).read(element, proofs)
    except ValueError as error:
        raise DocumentError(str(error)) from error
    CHECKS[kind](body)
    return body


def wrap(inner: str, body: Signable, countersigned_at: Instant) -> str:
    """Put a user's signed document `inner`, unchanged, into the form that the resource signs at `countersigned_at`."""
    name = f"Countersigned{type(body).__name__}"
    return f'<{name} xmlns="{MARKET}" countersignedAt="{instant.iso(countersigned_at)}">{inner}</{name}>'
