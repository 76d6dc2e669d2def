"""The authority and a site's keys as guests of a host; they answer questions of `ramp.protocol.enrolment` at once."""

from __future__ import annotations

from collections.abc import Callable

from ramp.errors import ConfigurationError, DocumentError, EnrolmentRefused
from ramp.model.contents import RequestRefused
from ramp.model.instant import Duration, Instant, iso
from ramp.protocol.enrolment.authority import (
    AskAuthority,
    AuthorityAnswer,
    JudgeRequest,
    KeepRevocations,
    ReadRevocations,
    RequestJudged,
    RevocationsKept,
    RevocationsRead,
)
from ramp.runtime.joining.authority import Authority
from ramp.runtime.keys.store import KeyStore


class OfficeAuthority:
    """The market's authority for its enrolment office.

    Args:
        authority: issues certificates.
        keys: keys of the market.
        lifetime: validity of a revocation list.
        complain: called with problems that prevent an answer.
    """

    def __init__(
        self, authority: Authority, keys: KeyStore, lifetime: Duration, complain: Callable[[str], None]
    ) -> None:
        self._authority = authority
        self._keys = keys
        self._lifetime = lifetime
        self._complain = complain

    def ask(self, question: AskAuthority, now: Instant) -> AuthorityAnswer | None:
        """Answer; refuse a request with a problem, and answer a question for a missing list with none."""
        match question:
            case JudgeRequest(call_id, request):
                try:
                    return RequestJudged(call_id, self._authority.issue(request, now))
                except EnrolmentRefused as error:
                    return RequestJudged(call_id, RequestRefused(request.invitation_id, error.code, error.detail))
                except ConfigurationError as error:
                    self._complain(str(error))
                    denied = RequestRefused(
                        request.invitation_id, "not_now", "the enrolment office cannot issue certificates now"
                    )
                    return RequestJudged(call_id, denied)
            case ReadRevocations():
                return self._read(now)
        return None

    def _read(self, now: Instant) -> RevocationsRead:
        try:
            members = tuple(entry.invitation.name for entry in self._authority.register.members())
            signed = self._keys.sign_revocations(now, self._lifetime)
            lines = self._keys.revocations()
        except ConfigurationError as error:
            self._complain(str(error))
            return RevocationsRead(0, "")
        current = {name: self._keys.certificate_on_file(name) for name in members}
        revoked = {name for name, found in current.items() if found is not None and self._keys.is_revoked(found)}
        reasons = {
            line.name: f"revoked at {iso(line.revoked_at)}{f': {line.reason}' if line.reason else ''}"
            for line in lines
            if line.name in revoked
        }
        return RevocationsRead(signed.number, signed.pem, members, reasons)


class SiteRevocations:
    """Stores the market's revocation list beside the keys of a site."""

    def __init__(self, keys: KeyStore) -> None:
        self._keys = keys

    def ask(self, question: AskAuthority, now: Instant) -> AuthorityAnswer | None:
        """Keep a list if the market's authority has signed it and it is newer than the current one."""
        if not isinstance(question, KeepRevocations):
            return None
        try:
            kept = self._keys.keep_signed_list(question.revocations)
        except (DocumentError, ConfigurationError) as error:
            return RevocationsKept(0, 0, str(error))
        return RevocationsKept(kept.number, kept.expires_at)
