"""Money is conserved: the ledger's own audit holds, and balances follow from deposits and standing agreements alone."""

from __future__ import annotations

from ramp.protocol.transition_tables import ParticipantState
from simulation.market.market_view import (
    Checker,
    MarketView,
    agreed_long_ago,
    given_back_long_ago,
    sold_long_ago,
    standing_payments,
)


class MoneyConserved(Checker):
    """Recomputes the balances of the honest from what they themselves have sold or agreed to."""

    name = "money_conserved"

    def at_end(self, view: MarketView) -> None:
        """Compare the ledger with deposits, with what resources have sold, and with what users have agreed to pay."""
        self.at_stop(view)
        paid = standing_payments(view)
        expected: dict[str, int] = {}
        for name, party in view.honest_resources.items():
            sold = [each.agreed for each in party.participants.values() if each.state is ParticipantState.SOLD]
            sold += sold_long_ago(view, name).values()
            back = given_back_long_ago(view, name)
            for each in party.participants.values():
                if each.state is ParticipantState.SOLD:
                    back[each.agreed.agreement_id] = party.sizes.given_back(each.offer.offer_id)
            expected[name] = view.deposits[name] + sum(each.cost - back.get(each.agreement_id, 0) for each in sold)
        for name, user in view.honest_users.items():
            agreed = {**agreed_long_ago(view, name), **user.agreements}
            back = given_back_long_ago(view, name)
            for agreement_id in user.agreements:
                back[agreement_id] = -sum(each.amount for each in user.changes.history.posted(agreement_id))
            expected[name] = view.deposits[name] - sum(
                agreement.cost - back.get(agreement_id, 0)
                for agreement_id, agreement in agreed.items()
                if agreement_id in paid
            )
        for balance in view.ledger.balances():
            account = balance.account.account_id
            if account in expected and balance.posted != expected[account]:
                raise self._violated(f"{account} has {balance.posted} minor units, should have {expected[account]}")

    def at_stop(self, view: MarketView) -> None:
        """The ledger's own audit."""
        problems = view.ledger.audit()
        if problems:
            raise self._violated("; ".join(problems))
