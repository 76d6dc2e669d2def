"""Check a file offline, for `ramp verify`: signers, times, roles, and every check made.

A file holds a document that people keep (an agreement, an amendment or a cancellation with its XML signatures) or a
sealed message. Both outlive certificates, which must be valid at the time of signing; one that has expired since is a
warning.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lxml import etree

from ramp.errors import CertificateExpired, DocumentError, SignatureInvalid
from ramp.model import contents, instant, money
from ramp.model.acl import Message
from ramp.model.agreement import Agreement, ContractChange
from ramp.model.instant import Instant
from ramp.model.price_paid import how_priced, price_problem
from ramp.model.shortcoming import shortcomings
from ramp.model.sizes.amended import SlotState, after, change_problem, first_state, state_digest
from ramp.rfql import documents
from ramp.rfql.signing import certificates, seals
from ramp.rfql.signing.certificates import Trust
from ramp.rfql.signing.notary import PublicNotary, Verified, VerifiedSignature
from ramp.rfql.xml.markup import read_instant, shown
from ramp.rfql.xml.parser import Element, check_size, parse_wire


@dataclass(frozen=True, slots=True)
class FileReport:
    """The result of checking a file.

    Attributes:
        path: the file.
        kind: `agreement`, `amendment`, `cancellation` or `sealed message`, as the file says.
        agreement: the signed content, if it is an agreement and the signatures hold.
        change: the same of an amendment or a cancellation.
        message: the same of a sealed message.
        signatures: those that hold, innermost (the user's) first.
        passed: a sentence for every check that has passed, in order.
        failure: the first failed check; may be empty.
        warnings: remarks about a valid file.
    """

    path: str
    kind: str
    passed: tuple[str, ...]
    failure: str = ""
    agreement: Agreement | None = None
    change: ContractChange | None = None
    message: Message | None = None
    signatures: tuple[VerifiedSignature, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        """Whether every check has passed."""
        return not self.failure

    @property
    def amendment(self) -> ContractChange | None:
        """The change, if it leaves something of the slot."""
        return None if self.change is None or self.change.is_terminal else self.change

    @property
    def cancellation(self) -> ContractChange | None:
        """The change, if it ends the agreement."""
        return None if self.change is None or not self.change.is_terminal else self.change

    def as_dict(self) -> dict[str, Any]:
        """Return the report for `--json`."""
        return {
            "path": self.path,
            "kind": self.kind,
            "holds": self.holds,
            "failure": self.failure,
            "passed": list(self.passed),
            "warnings": list(self.warnings),
            "signatures": [
                {
                    "signer": signature.signer,
                    "role": signature.role.value,
                    "signed_at": instant.iso(signature.signed_at),
                    "certificate": certificates.serial_text(signature.certificate),
                    "fingerprint": certificates.fingerprint(signature.certificate),
                    "valid_from": instant.iso(certificates.valid_from(signature.certificate)),
                    "valid_until": instant.iso(certificates.valid_until(signature.certificate)),
                }
                for signature in self.signatures
            ],
            "agreement": None if self.agreement is None else _agreement_dict(self.agreement),
            "cancellation": None if self.cancellation is None else _cancellation_dict(self.cancellation),
            "amendment": None if self.amendment is None else _amendment_dict(self.amendment),
            "message": None if self.message is None else _message_dict(self.message),
        }


def _named(record: object, *names: str) -> dict[str, Any]:
    return {name: getattr(record, name) for name in names}


def _agreement_dict(agreement: Agreement) -> dict[str, Any]:
    return {
        **_named(agreement, "agreement_id", "request_id", "order_id"),
        "unit": agreement.request.number,
        **_named(agreement, "units_total", "user", "resource", "bank", "reservation_id"),
        "start": instant.iso(agreement.offer.start),
        "end": instant.iso(agreement.offer.end),
        **_named(agreement.offer, "cores", "cpu_hour_cost"),
        "digest": state_digest(agreement),
        "cost": money.credits_decimal(agreement.cost),
        "offered": money.credits_decimal(agreement.offer.cost),
        "rule": None if agreement.price is None else agreement.price.rule,
        "issued_at": instant.iso(agreement.issued_at),
    }


def _cancellation_dict(cancellation: ContractChange) -> dict[str, Any]:
    return {
        **_named(cancellation, "agreement_id", "offer_id", "user", "resource", "reason"),
        "issued_at": instant.iso(cancellation.issued_at),
    }


def _amendment_dict(amendment: ContractChange) -> dict[str, Any]:
    added = {"charge": money.credits_decimal(amendment.charge), **_named(amendment, "cpu_hour_cost", "order_id")}
    return {
        **_named(amendment, "agreement_id", "number", "previous"),
        "digest": state_digest(amendment),
        **_named(amendment, "user", "resource", "bank", "cores"),
        "until": instant.iso(amendment.until),
        "effective_at": instant.iso(amendment.effective_at),
        "refund": money.credits_decimal(amendment.refund),
        **(added if amendment.grows else {}),
        "issued_at": instant.iso(amendment.issued_at),
    }


def _message_dict(message: Message) -> dict[str, Any]:
    assert message.seal is not None, "it was opened"
    return {
        "performative": message.performative.value,
        "content": type(message.content).__name__,
        "sender": message.sender,
        "role": message.seal.role.value,
        **_named(message, "receiver", "conversation_id", "reply_with", "in_reply_to"),
        "signed_at": instant.iso(message.seal.signed_at),
        "document": sealed_document(message),
    }


def sealed_document(message: Message) -> str:
    """Return the document of an opened message, as it was sent."""
    assert message.seal is not None, "it was opened"
    return seals.parse(message.seal.text).body


def verify_file(path: Path | str, trust: Trust, now: Instant) -> FileReport:
    """Check an agreement, an amendment, a cancellation or a sealed message in a file offline.

    Args:
        path: the file.
        trust: the certificates to trust; a revoked one fails whenever it signed, because a thief of its key can write
            any date.
        now: the present, for warnings about certificates that have expired since.

    Raises:
        DocumentError: if the file cannot be read, or holds another kind of text; faults of its document are in the
            report.
    """
    text = _read(path)
    if seals.looks_sealed(text):
        return _verify_sealed(str(path), text, trust, now)
    if text.lstrip().startswith("<"):
        return _verify_signed(str(path), text, trust, now)
    raise DocumentError(
        f"neither a signed document nor a sealed message: got {shown(text.partition(chr(10))[0][:40])}, "
        "expected an agreement, an amendment or a cancellation in XML, or the line "
        f"{seals.FIRST_LINE!r}",
        source=str(path),
    )


def _read(path: Path | str) -> str:
    try:
        with Path(path).open("rb") as file:
            data = file.read(seals.TEXT_BYTES_MAX + 1)
        return check_size(data, str(path), seals.TEXT_BYTES_MAX).decode()
    except OSError as error:
        raise DocumentError(f"cannot be read: {error.strerror}", source=str(path)) from error
    except UnicodeDecodeError as error:
        raise DocumentError(f"not text in UTF-8: {error.reason}", source=str(path)) from error


def _reason(error: DocumentError) -> str:
    return "; ".join((error.reason, *error.violations))


def _expired_since(signatures: tuple[VerifiedSignature, ...], now: Instant) -> tuple[str, ...]:
    return tuple(
        f"certificate of {signature.signer} has expired since, at "
        f"{instant.iso(certificates.valid_until(signature.certificate))}"
        for signature in signatures
        if certificates.valid_until(signature.certificate) < now
    )


# Sealed messages


def _verify_sealed(path: str, text: str, trust: Trust, now: Instant) -> FileReport:
    kind = "sealed message"
    passed: list[str] = []
    try:
        sealed = seals.parse(text)
        signed_at = sealed.moment()
        if signed_at > now:
            raise CertificateExpired(f"signed at {sealed.signed_at}, which is in the future")
        message = PublicNotary(trust, passed).open(text, signed_at)
        if isinstance(message.content, contents.Unverified):
            raise SignatureInvalid(f"a passed-on document is invalid: {message.content.detail}")
        party = trust.check(sealed.certificate_bytes(), signed_at)
    except DocumentError as error:
        return FileReport(path, kind, tuple(passed), _reason(error))
    passed.append(f"certificate held when it was sealed, {sealed.signed_at}")
    signatures = (VerifiedSignature(party.name, party.role, party.certificate, signed_at),)
    warnings = _expired_since(signatures, now)
    return FileReport(path, kind, tuple(passed), message=message, signatures=signatures, warnings=warnings)


# Signed documents


def _verify_signed(path: str, document: str, trust: Trust, now: Instant) -> FileReport:
    passed: list[str] = []
    kind = ""
    try:
        root = parse_wire(document)
        kind = _kind_of(root, path)
        claimed = _claimed_time(root, kind)
        verified = PublicNotary(trust, passed).verified(document, claimed)
        _check_time(verified, claimed, passed)
        return _report(path, kind, verified, now, passed)
    except DocumentError as error:
        if error.source == path:
            raise
        return FileReport(path, kind, tuple(passed), _reason(error))


def _kind_of(root: Element, path: str) -> str:
    if root.tag not in documents.SIGNABLE:
        raise DocumentError(
            f"unsigned kind of document: got {etree.QName(root).localname}, expected an agreement, an amendment "
            "or a cancellation, or a sealed message",
            source=path,
        )
    return documents.kind_of(root)


def _claimed_time(root: Element, kind: str) -> Instant:
    """Return when the document says it was issued; `_check_time` compares it with the signed time."""
    inner = documents.COUNTERSIGNED.get(str(root.tag))
    body = root if inner is None else root.find(inner)
    text = "" if body is None else body.get("issuedAt", "")
    try:
        return read_instant(text)
    except ValueError as error:
        raise DocumentError(f"invalid {kind}: issuedAt: got {shown(text)}, expected a time in UTC") from error


def _check_time(verified: Verified, claimed: Instant, passed: list[str]) -> None:
    if verified.body.issued_at != claimed:
        raise SignatureInvalid("the time of issue is not the signed one")
    if len(verified.signatures) == 2:
        passed.append("signed by both parties")
    last = verified.signatures[-1]
    certificates.check_validity(last.certificate, last.signed_at)
    moments = " and ".join(dict.fromkeys(instant.iso(signature.signed_at) for signature in verified.signatures))
    passed.append(f"certificates held when it was signed, {moments}")


def _report(path: str, kind: str, verified: Verified, now: Instant, passed: list[str]) -> FileReport:
    body, signatures = verified.body, verified.signatures
    warnings = _expired_since(signatures, now)
    if len(signatures) != 2:
        if isinstance(body, Agreement) or not body.is_terminal:
            raise SignatureInvalid(f"signed by {body.user} only; the resource's signature is missing")
        warnings += (f"{body.resource} has not countersigned it",)
    if isinstance(body, ContractChange):
        return FileReport(path, kind, tuple(passed), change=body, signatures=signatures, warnings=warnings)
    if problem := price_problem(body):
        raise DocumentError(f"the price paid is not the one owed: {problem}")
    if body.price is not None:
        passed.append(how_priced(body))
    if body.offer.in_queue:
        said = f"a job that had to start by {instant.iso(body.offer.start)}, promised with probability"
        passed.append(f"{said} {body.offer.start_probability:g}; refund of a late start: {body.offer.if_late}")
    # a best offer, which the user has approved
    unmet = tuple(f"the offer does not meet the request: {text}" for text in shortcomings(body.request, body.offer))
    return FileReport(path, kind, tuple(passed), agreement=body, signatures=signatures, warnings=(*warnings, *unmet))


# An agreement and its amendments as an unbroken chain (`ramp.model.sizes.amended`)


@dataclass(frozen=True, slots=True)
class Chain:
    """One agreement and the amendments of it that were given.

    Attributes:
        agreement: the purchase.
        states: of the slot after the agreement and after each of them that fits.
        failure: the amendment that does not fit the state before it, and why; empty if all do.
    """

    agreement: Agreement
    amendments: tuple[ContractChange, ...]
    states: tuple[SlotState, ...]
    failure: str = ""

    @property
    def given_back(self) -> int:
        """Return the total refund of the amendments that fit, in minor units."""
        return sum(each.refund for each in self._fitting)

    @property
    def charged(self) -> int:
        """Return the total charge of the amendments that fit, in minor units."""
        return sum(each.charge for each in self._fitting)

    @property
    def _fitting(self) -> tuple[ContractChange, ...]:
        return self.amendments[: len(self.states) - 1]


def chains_of(reports: Sequence[FileReport]) -> tuple[Chain, ...]:
    """Return a chain for each agreement with amendments among the valid reports."""
    holding = [each for each in reports if each.holds]
    shown = [each.amendment for each in holding if each.amendment is not None]
    found: list[Chain] = []
    for report in holding:
        agreement = report.agreement
        if agreement is None:
            continue
        named = {each.number: each for each in shown if each.agreement_id == agreement.agreement_id}
        if named:
            found.append(chain_of(agreement, [named[number] for number in sorted(named)]))
    return tuple(found)


def chain_of(agreement: Agreement, amendments: Sequence[ContractChange]) -> Chain:
    """Follow an agreement through its amendments, ordered by number, as far as each fits the state before it."""
    states = [first_state(agreement)]
    for amendment in amendments:
        problem = change_problem(agreement, states[-1], amendment)
        if problem is not None:
            code, detail = problem
            failure = f"amendment {amendment.number} does not follow: {code}: {detail}"
            return Chain(agreement, tuple(amendments), tuple(states), failure)
        states.append(after(states[-1], amendment))
    return Chain(agreement, tuple(amendments), tuple(states))
