"""`Records`: what the rules of the ledger need of any storage."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from ramp.ledger.account import Balance
from ramp.ledger.entry import Entry, Refusal
from ramp.ledger.transfer import Transfer, TransferKind
from ramp.model.instant import Instant


class Records(Protocol):
    """What rules read and write, within one indivisible unit of work of some storage."""

    def balances(self, account_ids: Iterable[str] | None = None) -> dict[str, Balance]:
        """Balances of those accounts that exist (None: of all), kept from changing until the unit of work ends."""
        ...

    def transfer(self, agreement_id: str, kind: TransferKind) -> Transfer | None:
        """The transfer with this idempotency key, or None."""
        ...

    def pending(self, account_id: str | None = None) -> Sequence[Transfer]:
        """Pending transfers, in order of entry, that touch an account (None: all)."""
        ...

    def posted(self, account_id: str, since: Instant | None, until: Instant | None) -> Sequence[Transfer]:
        """Posted transfers of an account from `since` to `until` (both included), by time, then order of posting."""
        ...

    def posted_before(self, account_id: str, since: Instant) -> int:
        """Sum of what was posted to an account before an instant, in minor units."""
        ...

    def refusal(self, agreement_id: str) -> Refusal | None:
        """The refusal on file for an agreement, or None."""
        ...

    def entries(self) -> Sequence[Entry]:
        """All entries in order."""
        ...

    def append(self, entry: Entry) -> None:
        """Append an entry and apply its balance changes."""
        ...

    def certificate(self, account_id: str) -> str | None:
        """The PEM certificate on file for an account, or None."""
        ...

    def put_certificate(self, account_id: str, pem: str) -> None:
        """Put a certificate on file in place of an older one."""
        ...

    def add_nonce(self, signer: str, nonce: str, expires_at: Instant) -> bool:
        """Remember a nonce; False if it is remembered already."""
        ...

    def forget_nonces(self, now: Instant) -> None:
        """Forget nonces that have expired."""
        ...
