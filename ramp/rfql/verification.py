"""Offline check of an agreement's file, for `ramp verify`: who signed what, when, at which cost, and every check made.

An agreement outlives certificates, so they must have held when it was signed; one that has expired since is a warning.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cryptography import x509

from ramp.errors import DocumentError, MeaningViolation, SignatureInvalid
from ramp.model import instant, money
from ramp.model.agreement import Agreement
from ramp.model.instant import Instant
from ramp.model.offer import Offer
from ramp.model.request import RequestUnit
from ramp.rfql import agreements, certificates
from ramp.rfql.notary import Verified, VerifiedSignature, verify_document
from ramp.rfql.parser import DOCUMENT_BYTES_MAX, check_size, parse_wire
from ramp.rfql.trust import Trust, no_pin, none_revoked


@dataclass(frozen=True, slots=True)
class AgreementReport:
    """What the check of an agreement's file has found.

    Attributes:
        path: the file.
        agreement: what the signatures cover, or None where they do not hold.
        signatures: those that hold, innermost (the user's) first.
        passed: a sentence for every check that has passed, in order.
        failure: the first check that has not passed, or empty.
        warnings: what is worth knowing though nothing is wrong.
    """

    path: str
    agreement: Agreement | None
    signatures: tuple[VerifiedSignature, ...]
    passed: tuple[str, ...]
    failure: str
    warnings: tuple[str, ...]

    @property
    def holds(self) -> bool:
        """Whether every check has passed."""
        return not self.failure

    def as_dict(self) -> dict[str, Any]:
        """The report for `--json`."""
        agreement = self.agreement
        return {
            "path": self.path,
            "holds": self.holds,
            "failure": self.failure,
            "passed": list(self.passed),
            "warnings": list(self.warnings),
            "signatures": [
                {
                    "signer": signature.signer,
                    "signed_at": instant.iso(signature.signed_at),
                    "certificate": certificates.serial_text(signature.certificate),
                    "fingerprint": certificates.fingerprint(signature.certificate),
                    "valid_from": instant.iso(certificates.valid_from(signature.certificate)),
                    "valid_until": instant.iso(certificates.valid_until(signature.certificate)),
                }
                for signature in self.signatures
            ],
            "agreement": None
            if agreement is None
            else {
                "agreement_id": agreement.agreement_id,
                "request_id": agreement.request_id,
                "unit": agreement.request.number,
                "units_total": agreement.units_total,
                "user": agreement.user,
                "resource": agreement.resource,
                "bank": agreement.bank,
                "reservation_id": agreement.reservation_id,
                "start": instant.iso(agreement.offer.start),
                "end": instant.iso(agreement.offer.end),
                "cores": agreement.offer.cores,
                "cpu_hour_cost": agreement.offer.cpu_hour_cost,
                "cost": money.credits_text(agreement.cost),
                "issued_at": instant.iso(agreement.issued_at),
            },
        }


def verify_agreement_file(
    path: Path | str,
    ca_certificates: Sequence[x509.Certificate],
    now: Instant,
    *,
    pins: Callable[[str], x509.Certificate | None] = no_pin,
    revoked: Callable[[x509.Certificate], bool] = none_revoked,
) -> AgreementReport:
    """Check an agreement's file without asking anybody.

    Args:
        path: the file.
        ca_certificates: the market's CAs.
        now: the present, for warnings about certificates that have expired since.
        pins: certificate on file for a party, or None.
        revoked: whether a certificate has been revoked; one that has been fails, whenever it signed, because whoever
            holds a stolen key can write any date.

    Raises:
        DocumentError: if the file cannot be read at all; what is wrong with its document is in the report.
    """
    document = _read(path)
    passed: list[str] = []
    try:
        verified = verify_document(document, Trust(ca_certificates, pins, revoked), _claimed_time(document), passed)
        agreement = _check_agreement(verified, _claimed_time(document), passed)
    except DocumentError as error:
        failure = "; ".join((error.reason, *error.violations))
        return AgreementReport(str(path), None, (), tuple(passed), failure, ())
    warnings = tuple(
        f"certificate of {signature.signer} has expired since, at "
        f"{instant.iso(certificates.valid_until(signature.certificate))}"
        for signature in verified.signatures
        if certificates.valid_until(signature.certificate) < now
    ) + unmet_terms(agreement.request, agreement.offer)
    return AgreementReport(str(path), agreement, verified.signatures, tuple(passed), "", warnings)


def _read(path: Path | str) -> str:
    try:
        with Path(path).open("rb") as file:
            data = file.read(DOCUMENT_BYTES_MAX + 1)
        return check_size(data, str(path)).decode()
    except OSError as error:
        raise DocumentError(f"cannot be read: {error.strerror}", source=str(path)) from error
    except UnicodeDecodeError as error:
        raise DocumentError(f"not text in UTF-8: {error.reason}", source=str(path)) from error


def _claimed_time(document: str) -> Instant:
    """When the agreement says it was issued; `_check_agreement` holds it against what is signed."""
    root = parse_wire(document)
    body = root if root.tag == agreements.AGREEMENT else root.find(agreements.AGREEMENT)
    text = "" if body is None else body.get("issuedAt", "")
    try:
        return instant.from_iso(text)
    except ValueError as error:
        raise MeaningViolation(f"no agreement: issuedAt is {text!r}; right would be a moment in UTC") from error


def _check_agreement(verified: Verified, claimed: Instant, passed: list[str]) -> Agreement:
    body = verified.body
    if not isinstance(body, Agreement):
        raise MeaningViolation(f"the file holds a {type(body).__name__}; right would be an agreement")
    if len(verified.signatures) != 2:
        raise SignatureInvalid(f"signed by {body.user} only; right would be the resource's signature as well")
    passed.append("signed by both parties")
    if body.issued_at != claimed:
        raise SignatureInvalid("the time of issue is not the signed one")
    last = verified.signatures[-1]
    certificates.check_validity(last.certificate, last.signed_at)
    passed.append(
        f"certificates held when it was signed, {instant.iso(body.issued_at)} and {instant.iso(last.signed_at)}"
    )
    return body


def unmet_terms(request: RequestUnit, offer: Offer) -> tuple[str, ...]:
    """Terms of the request that the offer does not meet (after a user's approval of a best offer), as sentences."""
    deadline = instant.iso(request.deadline)
    checks = [
        (
            offer.cpu_hour_cost > request.cpu_hour_cost,
            f"price {offer.cpu_hour_cost} is above the {request.cpu_hour_cost} asked for",
        ),
        (offer.end > request.deadline, f"slot ends at {instant.iso(offer.end)}, after the deadline {deadline}"),
        (offer.cores < request.cores.total, f"{offer.cores} cores of the {request.cores.total} asked for"),
    ]
    if request.not_before is not None:
        start = instant.iso(request.not_before)
        checks.append((offer.start < request.not_before, f"slot starts at {instant.iso(offer.start)}, before {start}"))
    return tuple(f"the offer does not meet the request: {text}" for unmet, text in checks if unmet)
