"""What an agent still owes, as texts for people, before the supervisor ends it."""

from __future__ import annotations

from ramp.agents.party_agent import PartyAgent
from ramp.agents.roles import BankingAgent
from ramp.model.instant import Instant
from ramp.model.money import credits_text
from ramp.protocol.resource.party import ResourceParty
from ramp.protocol.resource.slots.kept_participants import FINAL
from ramp.protocol.transition_tables import ParticipantState
from ramp.protocol.user.party import UserParty


def standing_of(agent: PartyAgent, account: str, now: Instant) -> tuple[list[str], list[str]]:
    """Return an agent's open obligations, or the bank's state of an account, as texts for people."""
    if isinstance(agent, BankingAgent):
        return _account(agent, account)
    party = agent.host.party
    if isinstance(party, UserParty):
        return _bought(party, now), []
    if isinstance(party, ResourceParty):
        kept = slots_kept(party, now)
        return _counted(kept, "slot sold or held that is not over", "slots sold or held that are not over"), []
    return [], []


def slots_kept(party: ResourceParty, now: Instant) -> int:
    """Return how many slots a resource holds or has sold that are not over."""
    parts = party.participants.values()
    sold = sum(each.state is ParticipantState.SOLD and each.size[1] > now for each in parts)
    return sold + sum(each.state not in FINAL for each in parts)


def _bought(party: UserParty, now: Instant) -> list[str]:
    states = {each: party.agreement_state(each) for each in party.agreements}
    going_on = sum(purchase.outcome is None for purchase in party.purchases.values())
    kept = sum(state == "active" and party.changes.history.state(each).until > now for each, state in states.items())
    between = sum(state in ("settling", "cancelling") for state in states.values())
    return [
        *_counted(going_on, "open request", "open requests"),
        *_counted(kept, "slot bought that is not over", "slots bought that are not over"),
        *_counted(between, "purchase or refund under way", "purchases and refunds under way"),
    ]


def _counted(number: int, one: str, many: str) -> list[str]:
    return [f"{number} {one if number == 1 else many}"] if number else []


def _account(bank: BankingAgent, account: str) -> tuple[list[str], list[str]]:
    books = bank.host.ports.ledger
    assert books is not None, "a bank has a ledger"
    for balance in books.ledger.balances():
        if balance.account.account_id == account:
            found = [f"{credits_text(balance.reserved)} credits set aside"] if balance.reserved else []
            found += [f"{credits_text(-balance.posted)} credits owed to the bank"] if balance.posted < 0 else []
            return found, [f"its account keeps {credits_text(balance.posted)} credits"] if balance.posted > 0 else []
    return [], []
