"""What must be true of a market at rest: what chaos runs check, and that money and units add up for each request."""

from collections.abc import Collection
from typing import Any

from ramp.errors import RampError
from ramp.ledger.entry import ISSUING_ACCOUNT
from ramp.model.money import MINOR_UNITS_PER_CREDIT
from ramp.model.slot import Reservation
from ramp.runtime.configuration.file import load_config
from ramp.runtime.ledger.store import LedgerStore
from tests.chaos import checks
from tests.e2e.swarm.swarm_market import Market
from tests.waiting import until


class Books:
    """Looks into a market's files.

    Args:
        market: the market; it may run or not.
    """

    def __init__(self, market: Market) -> None:
        self._market = market
        self.config = load_config(market.config)

    def reservations(self) -> dict[str, tuple[Reservation, ...]]:
        """Every machine's holds and reservations that stand now."""
        return checks.books_of(self._market.state)

    def reserved_elsewhere(self) -> Collection[str]:
        """Offers whose slots are reserved on systems that are not in these files."""
        return ()

    def sizes(self) -> dict[str, int]:
        """Cores of the slots that are firmly reserved, by their offers."""
        return {each.key: each.slot.cores for live in self.reservations().values() for each in live if each.firm}

    def balances(self) -> dict[str, int]:
        """What is posted on every account, by local name."""
        with LedgerStore.open(self.config.ledger or self._market.state.ledger) as ledger:
            return {balance.account.account_id.partition("@")[0]: balance.posted for balance in ledger.balances()}

    def agreements(self) -> list[dict[str, Any]]:
        """All users' agreements."""
        return [listed for user in self._market.users() for listed in self._market.agreements(user)]

    def findings(self) -> list[str]:
        """What is wrong with a market at rest; each a sentence."""
        try:
            found = checks.findings([(self.config, self._market.state)], self.reserved_elsewhere())
        except RampError as error:
            return [f"an agent does not answer: {error}"]
        listed = self.agreements()
        return [*(each for lines in found.values() for each in lines), *self._torn(listed), *self._wrong(listed)]

    def _torn(self, listed: list[dict[str, Any]]) -> list[str]:
        """All units of a request or none: unless some were given back, and then the rest stands."""
        found = []
        states: dict[str, list[str]] = {}
        for each in listed:
            if each["state"] != "void":  # not of voided orders
                states.setdefault(each["agreement"]["request_id"], []).append(each["state"])
        for user in self._market.users():
            for request in self._market.ask(user, {"verb": "list_requests"})["requests"]:
                outcome, paid = request["outcome"], states.get(request["request_id"], [])
                if outcome is None:
                    continue  # which is a finding already
                bought = outcome["status"] == "committed" or (outcome["status"] == "failed" and outcome["units"])
                whole = len(paid) == request["units"] and not set(paid) - {"active", "cancelled"}
                if not (whole if bought else not paid):
                    found.append(f"{request['request_id']} is {outcome['status']}, but its agreements are {paid}")
        return found

    def _wrong(self, listed: list[dict[str, Any]]) -> list[str]:
        """Balances that are not what deposits and active agreements, with what their changes cost, come to."""
        balances = self.balances()
        del balances[ISSUING_ACCOUNT]
        right = dict.fromkeys(balances, 0) | {user.name: user.deposit for user in self.config.users}
        for each in listed:
            if each["state"] == "active":
                cost = each["agreement"]["cost"] + sum(change["amount"] for change in each["amendments"])
                right[each["agreement"]["user"].partition("@")[0]] -= cost
                right[each["agreement"]["resource"].partition("@")[0]] += cost
        wrong = {name: amount for name, amount in right.items() if balances[name] != amount}
        return [f"{name} has {balances[name]} minor units, expected {amount}" for name, amount in wrong.items()]

    def come_right(self) -> None:
        """Wait until nothing is wrong any more."""
        until(lambda: not self.findings(), lambda: "; ".join(self.findings()))


def credits_of(amount: int) -> int:
    """Whole credits in minor units."""
    return amount * MINOR_UNITS_PER_CREDIT
