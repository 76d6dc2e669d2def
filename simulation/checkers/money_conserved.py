"""Money is conserved: the ledger's own audit holds, and balances follow from deposits and standing agreements alone."""

from __future__ import annotations

from ramp.protocol.tables import ParticipantState
from simulation.checkers.observation import Checker, MarketView


class MoneyConserved(Checker):
    """Recomputes every balance without looking at the ledger's transfers."""

    name = "money_conserved"

    def at_end(self, view: MarketView) -> None:
        """Compare the ledger with what was deposited and what the resources say they have sold."""
        problems = view.ledger.audit()
        if problems:
            raise self._violated("; ".join(problems))
        expected = dict(view.deposits)
        for name, party in view.resources.items():
            for participant in party.participants.values():
                if participant.state is ParticipantState.SOLD:
                    cost = participant.agreed.cost
                    expected[participant.user] = expected.get(participant.user, 0) - cost
                    expected[name] = expected.get(name, 0) + cost
        for balance in view.ledger.balances():
            account = balance.account.account_id
            if account in expected and balance.posted != expected[account]:
                raise self._violated(f"{account} has {balance.posted} minor units, should have {expected[account]}")
