"""What must be true of a market at rest, read from its files by nobody of its own: ledger, reservations, journals."""

from __future__ import annotations

from collections import Counter
from typing import Any

from swarm_market import Market, until

from ramp.ledger.account import ISSUING_ACCOUNT
from ramp.ledger.transfer import TransferKind
from ramp.model.agreement import CHANGE_MARK
from ramp.model.money import MINOR_UNITS_PER_CREDIT
from ramp.model.slot import Reservation
from ramp.runtime.clock import SystemClock
from ramp.runtime.configuration.file import load_config
from ramp.runtime.ledger.store import LedgerStore
from simulation.resource.reservation_book import ReservationBook


class Books:
    """Looks into a market's files.

    Args:
        market: the market; it may run or not.
    """

    def __init__(self, market: Market) -> None:
        self._market = market
        self.config = load_config(market.config)
        self._machines: dict[str, ReservationBook] = {}

    def reservations(self) -> dict[str, tuple[Reservation, ...]]:
        """Every machine's holds and reservations that stand now."""
        for path in self._market.state.reservations.glob("*.reservations.jsonl"):
            name = path.name.removesuffix(".reservations.jsonl")
            if name not in self._machines:
                self._machines[name] = ReservationBook("a test", name, path.parent)
        now = SystemClock().now()
        return {name: machine.live(now) for name, machine in self._machines.items()}

    def holds(self) -> list[str]:
        """Slots that are held but not bought."""
        return [each.reservation_id for live in self.reservations().values() for each in live if not each.firm]

    def firm(self) -> set[str]:
        """Offers whose slots are firmly reserved."""
        return {each.key for live in self.reservations().values() for each in live if each.firm}

    def sizes(self) -> dict[str, int]:
        """Cores of the slots that are firmly reserved, by their offers."""
        return {each.key: each.slot.cores for live in self.reservations().values() for each in live if each.firm}

    def balances(self) -> dict[str, int]:
        """What is posted on every account, by local name."""
        with LedgerStore.open(self.config.ledger_url or self._market.state.ledger) as ledger:
            return {balance.account.account_id.partition("@")[0]: balance.posted for balance in ledger.balances()}

    def paid(self) -> dict[str, int]:
        """Agreements that are paid and not refunded, with what was paid for them and for what was added."""
        with LedgerStore.open(self.config.ledger_url or self._market.state.ledger) as ledger:
            rows = ledger.snapshot()
        standing: Counter[str] = Counter()
        for each in rows.transfers:
            if (
                each.kind == TransferKind.PAYMENT
                and each.posted_at is not None
                and CHANGE_MARK not in each.agreement_id
            ):
                standing[each.agreement_id] += each.amount
        for change in rows.changes:
            standing[change.agreement_id] += change.amount
        return {agreement_id: amount for agreement_id, amount in standing.items() if amount}

    def agreements(self) -> list[dict[str, Any]]:
        """All users' agreements."""
        return [listed for user in self._market.users() for listed in self._market.agreements(user)]

    def findings(self) -> list[str]:
        """What is wrong with a market at rest; each a sentence."""
        with LedgerStore.open(self.config.ledger_url or self._market.state.ledger) as ledger:
            found = ledger.audit()
            found += [f"{order.order_id} is still reserved" for order in ledger.open_orders()]
            found += [f"{transfer.transfer_id} is still in escrow" for transfer in ledger.pending()]
        listed = self.agreements()
        active = [_as_it_stands(each) for each in listed if each["state"] == "active"]
        unsure = [each["agreement"]["agreement_id"] for each in listed if each["state"] in ("settling", "cancelling")]
        found += [f"{agreement_id} is still open" for agreement_id in unsure]
        paid = self.paid()
        costs = {agreement["agreement_id"]: agreement["cost"] for agreement in active}
        if paid != costs:
            found.append(f"paid is {paid}, the agreements that stand are {costs}")
        offers = {agreement["offer"]["offer_id"] for agreement in active}
        if self.firm() != offers:
            found.append(f"firmly reserved is {self.firm()}, sold is {offers}")
        found += [f"{reservation_id} is still held" for reservation_id in self.holds()]
        return found + self._wrong_requests() + self._wrong_balances(active)

    def _wrong_requests(self) -> list[str]:
        """All units of a request or none: unless some were given back, and then the rest stands."""
        found = []
        states: dict[str, list[str]] = {}
        for listed in self.agreements():
            states.setdefault(listed["agreement"]["request_id"], []).append(listed["state"])
        for user in self._market.users():
            for request in self._market.ask(user, {"verb": "list_requests"})["requests"]:
                request_id, outcome = request["request_id"], request["outcome"]
                paid = [state for state in states.get(request_id, []) if state != "void"]  # not of voided orders
                if outcome is None:
                    found.append(f"{request_id} has not ended: {request['stage']}")
                elif request["doubt"]:
                    found.append(f"{request_id} has ended, but {request['doubt']}")
                elif outcome["status"] == "committed" or (outcome["status"] == "failed" and outcome["units"]):
                    if len(paid) != request["units"] or set(paid) - {"active", "cancelled"}:
                        found.append(f"{request_id} is {outcome['status']}, but its agreements are {paid}")
                elif paid:
                    found.append(f"{request_id} is {outcome['status']}, but its agreements are {paid}")
        return found

    def _wrong_balances(self, active: list[dict[str, Any]]) -> list[str]:
        balances = self.balances()
        del balances[ISSUING_ACCOUNT]
        right = dict.fromkeys(balances, 0) | {user.name: user.deposit for user in self.config.users}
        for agreement in active:
            right[agreement["user"].partition("@")[0]] -= agreement["cost"]
            right[agreement["resource"].partition("@")[0]] += agreement["cost"]
        return [
            f"{name} has {balances[name]} minor units, expected {amount}"
            for name, amount in right.items()
            if balances[name] != amount
        ]

    def come_right(self) -> None:
        """Wait until nothing is wrong any more."""
        found: list[str] = []

        def right() -> bool:
            found[:] = self.findings()
            return not found

        until(right, lambda: "; ".join(found))


def _as_it_stands(listed: dict[str, Any]) -> dict[str, Any]:
    """An agreement that costs what was paid for it, and for what was added, less what has come back."""
    back = sum(each["refund"] - each.get("charge", 0) for each in listed["amendments"])
    return {**listed["agreement"], "cost": listed["agreement"]["cost"] - back}


def credits_of(amount: int) -> int:
    """Whole credits in minor units."""
    return amount * MINOR_UNITS_PER_CREDIT
