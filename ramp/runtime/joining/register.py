"""The keeper's secret register of invitations and their later history."""

from __future__ import annotations

import contextlib
import fcntl
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

from ramp.errors import ConfigurationError, WrongVersion, check_version
from ramp.file_versions import CachedFile, Version, version_of
from ramp.ledger.entry import AccountKind
from ramp.model.instant import Instant
from ramp.model.seal import Role
from ramp.options import read_options
from ramp.runtime.atomic_writes import make_folder, write_whole
from ramp.runtime.joining.account_tokens import AccountToken
from ramp.runtime.joining.invitations import Invitation, read_invitation

VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class Grant:
    """Certificates issued on an invitation, in PEM; `server_certificate` may be empty.

    `key_fingerprint` is that of their keys (`ramp.runtime.joining.requests.Requested`).
    """

    granted_at: Instant
    key_fingerprint: str
    certificate: str
    server_certificate: str


@dataclass(frozen=True, slots=True)
class Entry:
    """An invitation and its later history.

    Attributes:
        invitation: the invitation.
        made_at: time of its creation.
        deposit: initial credit of its bank account in minor units.
        credit_limit: overdraft of that account in minor units.
        grant: the issued certificates; None before enrolment.
        revoked_at: time of its revocation, or None.
        reason: reason of its revocation.
    """

    invitation: Invitation
    made_at: Instant
    deposit: int = 0
    credit_limit: int = 0
    grant: Grant | None = None
    revoked_at: Instant | None = None
    reason: str = ""

    @property
    def kind(self) -> AccountKind:
        """The kind of the party's bank account."""
        return AccountKind.USER if self.invitation.role is Role.USER else AccountKind.RESOURCE

    def state(self, now: Instant) -> str:
        """Return `open`, `enrolled`, `expired` or `revoked`."""
        if self.revoked_at is not None:
            return "revoked"
        if self.grant is not None:
            return "enrolled"
        return "expired" if now > self.invitation.ends_at else "open"


class Register:
    """The register's file, created with the first invitation."""

    def __init__(self, path: Path) -> None:
        self._file = CachedFile(path, _load)

    @property
    def version(self) -> Version | None:
        """The version of the file, which every change replaces; None without a file."""
        return version_of(self._file.path)

    def entries(self) -> dict[str, Entry]:
        """Return every invitation by id, in order of creation; the file is read again only after a change.

        Raises:
            ConfigurationError: the file is damaged.
            WrongVersion: the file has another version.
        """
        return dict(self._file.content() or {})

    def account_tokens(self, now: Instant) -> dict[str, AccountToken | None]:
        """Return tokens for registering invited accounts on the market's server, by local name.

        An expired token allows no registration but keeps its account. An enrolled party keeps its account after its
        revocation, to be informed of it. None closes the account of a name revoked before enrolment, because an
        impostor may have used the token.
        """
        found: dict[str, AccountToken | None] = {}
        for entry in self.entries().values():
            invitation, state = entry.invitation, entry.state(now)
            if not invitation.account_token_digest:  # of a time with an external server
                continue
            if state == "revoked" and entry.grant is not None and entry.revoked_at is not None:
                ends_at = min(invitation.ends_at, entry.revoked_at)
                found[invitation.account] = AccountToken(invitation.account_token_digest, ends_at)
            elif state in ("open", "enrolled"):
                found[invitation.account] = AccountToken(invitation.account_token_digest, invitation.ends_at)
            else:
                found[invitation.account] = None
        return found

    def is_promised(self, name: str, now: Instant) -> bool:
        """Return whether a full name was invited and may still enrol, or has."""
        return any(
            entry.invitation.name == name and entry.state(now) in ("open", "enrolled")
            for entry in self.entries().values()
        )

    def members(self) -> tuple[Entry, ...]:
        """Return the enrolled entries, also those revoked later: their accounts stay."""
        return tuple(entry for entry in self.entries().values() if entry.grant is not None)

    @contextlib.contextmanager
    def changing(self) -> Iterator[dict[str, Entry]]:
        """Change the register: entries put into the mapping are on disk when the block ends.

        Raises:
            ConfigurationError: the file is damaged.
        """
        path = self._file.path
        make_folder(path.parent)
        with path.with_name(f"{path.name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            before = self.entries()
            entries = dict(before)
            yield entries
            if entries != before:
                plain = {"version": VERSION, "invitations": [_plain(entry) for entry in entries.values()]}
                write_whole(path, (json.dumps(plain, indent=1) + "\n").encode(), private=True)


def revoked(entry: Entry, now: Instant, reason: str) -> Entry:
    """Return a revoked entry; an earlier revocation stays as it was."""
    return entry if entry.revoked_at is not None else replace(entry, revoked_at=now, reason=reason)


def _plain(entry: Entry) -> dict[str, Any]:
    return {**asdict(entry), "invitation": json.loads(entry.invitation.text())}


def _entry(plain: dict[str, Any]) -> Entry:
    invitation = read_invitation(json.dumps(plain["invitation"]))
    return read_options({**plain, "invitation": invitation}, Entry)


def _load(path: Path) -> dict[str, Entry]:
    try:
        plain = json.loads(path.read_text("utf-8"))
        check_version(path, "register of invitations", plain["version"], VERSION)
        found = [_entry(each) for each in plain["invitations"]]
    except WrongVersion:
        raise
    except (OSError, ValueError, KeyError, TypeError, ConfigurationError) as error:
        raise ConfigurationError(
            f"the register of invitations cannot be read: {error}; restore it from a "
            "backup: it lists all invited parties",
            path=path,
        ) from error
    return {entry.invitation.invitation_id: entry for entry in found}
