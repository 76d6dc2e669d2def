"""How those who were invited get their certificates, and how everybody learns what has been revoked.

Certificates and lists are PEM, for their readers need nothing of the market's to look at them.
"""

from __future__ import annotations

from dataclasses import dataclass

from ramp.model.communicative_acts import Interaction, Performative, said
from ramp.model.seal import BY_ENROLMENT


@said(Performative.REQUEST, interaction=Interaction.REQUEST)
@dataclass(frozen=True, slots=True)
class EnrolmentRequest:
    """REQUEST to the enrolment office: a certificate for whoever was invited.

    Attributes:
        invitation_id: of the invitation.
        request: for the party's certificate (PKCS #10, DER in base64).
        proof: HMAC-SHA256 of the transcript under the invitation's secret, in hexadecimal
            (`ramp.runtime.joining.requests`): the one thing that it is believed for.
        server_request: for the certificate of the site's own server; empty where none is asked for.
    """

    invitation_id: str
    request: str
    proof: str
    server_request: str = ""


@said(Performative.INFORM, interaction=Interaction.REQUEST, by=BY_ENROLMENT)
@dataclass(frozen=True, slots=True)
class EnrolmentGranted:
    """INFORM by the enrolment office: what was issued, in PEM; the same for the same request.

    Attributes:
        invitation_id: of the invitation.
        certificate: the party's.
        server_certificate: the site's server's; empty where none was asked for.
        revocations: the revocation list of the time; empty where there is none.
    """

    invitation_id: str
    certificate: str
    server_certificate: str = ""
    revocations: str = ""


@said(Performative.REFUSE, interaction=Interaction.REQUEST, by=BY_ENROLMENT)
@dataclass(frozen=True, slots=True)
class EnrolmentDenied:
    """REFUSE by the enrolment office: nothing is issued, and why."""

    invitation_id: str
    code: str
    detail: str = ""


@said(Performative.QUERY_REF, interaction=Interaction.QUERY)
@dataclass(frozen=True, slots=True)
class RevocationQuery:
    """QUERY_REF to the enrolment office: is there a newer revocation list?

    Attributes:
        query_id: names the question.
        number: of the newest list that the asker has; 0 where it has none.
    """

    query_id: str
    number: int


@said(Performative.INFORM, interaction=Interaction.QUERY, by=BY_ENROLMENT)
@dataclass(frozen=True, slots=True)
class RevocationNotice:
    """INFORM by the enrolment office: the revocation list, asked for or because it has just changed.

    Attributes:
        query_id: as asked; the list's number where nobody has asked.
        number: of the newest list.
        revocations: that list, in PEM; empty where the asker has it.
        reason: why the receiver's own certificate was revoked, and when; empty where it was not.
    """

    query_id: str
    number: int
    revocations: str = ""
    reason: str = ""
