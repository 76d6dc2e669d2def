"""Requests for certificates and revocation lists (schemas/enrolment.xsd)."""

from __future__ import annotations

from typing import Final

from ramp.model import contents
from ramp.rfql.xml.record import INTEGER, SENTENCE, TEXT, Record

ENROLMENT_REQUEST: Final = Record(
    contents.EnrolmentRequest, {"invitation_id": TEXT, "request": TEXT, "proof": TEXT, "server_request": TEXT}
)
ENROLMENT_GRANTED: Final = Record(
    contents.EnrolmentGranted,
    {"invitation_id": TEXT, "certificate": TEXT, "server_certificate": TEXT, "revocations": TEXT},
)
ENROLMENT_DENIED: Final = Record(contents.EnrolmentDenied, {"invitation_id": TEXT, "code": TEXT, "detail": SENTENCE})
REVOCATION_QUERY: Final = Record(contents.RevocationQuery, {"query_id": TEXT, "number": INTEGER})
REVOCATION_NOTICE: Final = Record(
    contents.RevocationNotice, {"query_id": TEXT, "number": INTEGER, "revocations": TEXT, "reason": SENTENCE}
)
