"""Certificates for invited parties, and revocation lists for all.

Certificates and lists are PEM, so that ordinary tools can read them.
"""

from __future__ import annotations

from dataclasses import dataclass

from ramp.model.communicative_acts import Content, Interaction, Performative, said
from ramp.model.seal import BY_ENROLMENT


@said(Performative.REQUEST, interaction=Interaction.REQUEST)
@dataclass(frozen=True, slots=True)
class EnrolmentRequest(Content):
    """REQUEST to the enrolment office: a certificate for an invited party.

    Attributes:
        invitation_id: of the invitation.
        request: for the party's certificate (PKCS #10, DER in base64).
        proof: HMAC-SHA256 of the transcript under the invitation's secret, in hexadecimal
            (`ramp.runtime.joining.requests`); the only proof of the sender's right.
        server_request: for the certificate of the site's own server; may be empty.
    """

    invitation_id: str
    request: str
    proof: str
    server_request: str = ""


@said(Performative.INFORM, interaction=Interaction.REQUEST, by=BY_ENROLMENT)
@dataclass(frozen=True, slots=True)
class EnrolmentGranted(Content):
    """INFORM by the enrolment office: the issued certificates, in PEM; the same for the same request.

    Attributes:
        invitation_id: of the invitation.
        certificate: the party's.
        server_certificate: the site's server's; empty if not requested.
        revocations: the current revocation list; empty before the first.
    """

    invitation_id: str
    certificate: str
    server_certificate: str = ""
    revocations: str = ""


@said(Performative.QUERY_REF, interaction=Interaction.QUERY)
@dataclass(frozen=True, slots=True)
class RevocationQuery(Content):
    """QUERY_REF to the enrolment office: is there a newer revocation list?

    Attributes:
        query_id: names the question.
        number: of the sender's newest list; 0 without one.
    """

    query_id: str
    number: int


@said(Performative.INFORM, interaction=Interaction.QUERY, by=BY_ENROLMENT)
@dataclass(frozen=True, slots=True)
class RevocationNotice(Content):
    """INFORM by the enrolment office: the revocation list, asked for or because it has just changed.

    Attributes:
        query_id: as asked; the list's number in an unrequested notice.
        number: of the newest list.
        revocations: that list, in PEM; empty if the receiver has this one.
        reason: why the receiver's own certificate was revoked, and when; empty if it was not.
    """

    query_id: str
    number: int
    revocations: str = ""
    reason: str = ""
