"""What was paid comes back at most once, and whole: after a cancellation, or where its resource has failed.

What amendments have given back of it before is no part of what comes back then, and what was paid for what they have
added is. A seller's account has no other income and no other expenses, so that nobody gains more than was deposited.
"""

from __future__ import annotations

from collections import Counter

from ramp.ledger.entry import AccountKind
from ramp.model.contents import TransferKind
from simulation.market.market_view import Checker, MarketView, addition_of, posted_transfers


class RefundedOnce(Checker):
    """Looks at every refund that the bank has posted."""

    name = "refunded_once"

    def at_stop(self, view: MarketView) -> None:
        """Each refund reverses what is left of one payment between the same two, and no other refund does."""
        paid: dict[str, tuple[str, str, int]] = {}
        refunded: set[str] = set()
        for transfer in posted_transfers(view):
            terms = (transfer.debit_account, transfer.credit_account, transfer.amount)
            added_to = addition_of(view, transfer)
            if added_to:
                user, resource, amount = paid.get(added_to, ("", "", 0))
                if terms[:2] != (user, resource) or added_to in refunded:
                    raise self._violated(f"{transfer.agreement_id} adds to what nobody has paid, or that is refunded")
                paid[added_to] = user, resource, amount + transfer.amount
            elif transfer.kind == TransferKind.PAYMENT:
                paid[transfer.agreement_id] = terms
            elif transfer.kind == TransferKind.REFUND:
                user, resource, left = paid.get(transfer.agreement_id, ("", "", 0))
                if transfer.agreement_id in refunded:
                    raise self._violated(f"{transfer.transfer_id} was posted after all was refunded")
                if terms[:2] != (resource, user) or (transfer.is_end and transfer.amount != left):
                    raise self._violated(f"{transfer.transfer_id} was refunded otherwise than it was paid")
                if transfer.is_end:
                    refunded.add(transfer.agreement_id)
                paid[transfer.agreement_id] = user, resource, left - transfer.amount
        self._nobody_gains(view, list(paid.values()))

    def _nobody_gains(self, view: MarketView, kept: list[tuple[str, str, int]]) -> None:
        """Sellers have what they were paid less what they returned; buyers have no more than was deposited.

        Args:
            view: the market.
            kept: user, resource and what is left of its payments, of every agreement, liars' too.
        """
        income: Counter[str] = Counter()
        for _, resource, left in kept:
            income[resource] += left
        for balance in view.ledger.balances():
            name, kind = balance.account.account_id, balance.account.kind
            if kind is AccountKind.RESOURCE and balance.posted != income[name]:
                raise self._violated(f"{name} has {balance.posted} minor units, and was paid {income[name]} for good")
            if kind is AccountKind.USER and balance.posted > view.deposits.get(name, 0):
                raise self._violated(f"{name} has {balance.posted} minor units, more than was deposited")
