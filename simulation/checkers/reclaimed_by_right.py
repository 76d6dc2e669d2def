"""Cores are taken back by right only: the minimum stays, notice was given, refund and compensation are paid.

Nothing of it is asked of the rules that buyer, seller and bank use: what is owed is computed here in fractions.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from ramp.ledger.evidence import EvidenceKind
from ramp.ledger.reclamations.reclamation import KnownReclamation
from ramp.ledger.transfer import TransferKind
from ramp.model.agreement import Agreement, Amendment, Reclamation
from ramp.model.contents import ReclamationNotice
from ramp.model.instant import HOUR
from simulation.checkers.core_prices import given_back
from simulation.checkers.observation import Checker, MarketView, agreed_long_ago


class ReclaimedByRight(Checker):
    """Looks at every reclamation that the bank has posted of what an honest user has bought."""

    name = "reclaimed_by_right"

    def at_end(self, view: MarketView) -> None:
        self.at_stop(view)

    def at_stop(self, view: MarketView) -> None:
        """Each one that is posted keeps to its agreement, and is paid."""
        for user in view.honest_users.values():
            for agreement in {**agreed_long_ago(view, user.name), **user.agreements}.values():
                for known in view.ledger.reclamations(agreement.agreement_id):
                    if known.is_posted:
                        self._check(view, agreement, known)

    def _check(self, view: MarketView, agreement: Agreement, known: KnownReclamation) -> None:
        name = f"reclamation {known.number} of {agreement.agreement_id}"
        right = agreement.request.reclaim
        if right is None:
            raise self._violated(f"{name} is posted; the agreement gives no right to one")
        if known.effective_at - known.noticed_at < right.notice:
            raise self._violated(f"{name} took effect {known.effective_at - known.noticed_at} us after its notice")
        if known.decided_at is None or known.decided_at < known.effective_at:
            raise self._violated(f"{name} was posted before its time")
        found = next(
            (each for each in _notices(view, agreement.agreement_id) if _body(each).number == known.number), None
        )
        if found is None:
            raise self._violated(f"{name} is posted without evidence of its notice")
        body, changes = _body(found), _changes(found)
        before = changes[-1].cores if changes else agreement.offer.cores
        if not right.least <= body.cores < before:
            raise self._violated(f"{name} leaves {body.cores} of {before} cores; at least {right.least} were agreed")
        worth, taken = given_back(agreement, changes, body)
        owed = int(worth)
        extra = int(Fraction(taken * 100 * right.compensation, HOUR) + Fraction(1, 2))
        for kind, amount in ((TransferKind.REBATE, owed), (TransferKind.COMPENSATION, extra)):
            paid = view.ledger.transfer(f"{agreement.agreement_id}#r{known.number}", kind)
            if (0 if paid is None or paid.posted_at is None else paid.amount) != amount:
                raise self._violated(f"{name}: {kind} of {paid}, owed are {amount} minor units")
            if paid is not None and (paid.debit_account, paid.credit_account) != (agreement.resource, agreement.user):
                raise self._violated(f"{name}: {kind} between others than its parties")


def _notices(view: MarketView, agreement_id: str) -> Iterator[ReclamationNotice]:
    """What was brought to the bank of an agreement's slot."""
    for evidence in view.ledger.evidence(agreement_id):
        if evidence.kind is EvidenceKind.RECLAMATION:
            content = view.opened(evidence.text).content
            if isinstance(content, ReclamationNotice):
                yield content


def _body(notice: ReclamationNotice) -> Reclamation:
    body = notice.reclamation.body
    assert isinstance(body, Reclamation)
    return body


def _changes(notice: ReclamationNotice) -> list[Amendment | Reclamation]:
    return [each.body for each in notice.changes if isinstance(each.body, Amendment | Reclamation)]
