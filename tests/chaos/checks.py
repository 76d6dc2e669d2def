"""What must be true of a market at rest after a chaos run, read from its files and asked of its users."""

from collections import Counter
from collections.abc import Collection, Sequence
from typing import Final

from ramp.client.connecting import connect
from ramp.ledger.entry import Order
from ramp.model.agreement import CHANGE_MARK
from ramp.model.contents import OrderState, TransferKind
from ramp.model.slot import Reservation
from ramp.runtime.clock import SystemClock
from ramp.runtime.configuration.values import SwarmConfig
from ramp.runtime.ledger.store import LedgerStore
from ramp.runtime.state_folder import StateFolder
from simulation.resource.reservation_book import ReservationBook

CONSERVED: Final = "money is conserved"
SETTLED: Final = "every order is posted or void"
HELD: Final = "every paid unit is held"
ONCE: Final = "no unit is held or paid twice"
ROOM: Final = "no machine is oversold"
KNOWN: Final = "users know what they bought"
ENDED: Final = "every request ends"

BOOK: Final = ".reservations.jsonl"
"""How the file of a machine's book ends."""


def findings(sites: Sequence[tuple[SwarmConfig, StateFolder]], elsewhere: Collection[str] = ()) -> dict[str, list[str]]:
    """What is wrong, by check; each finding is a sentence.

    Args:
        sites: configuration and state folder of the market, and of a second site.
        elsewhere: offers whose slots are reserved on systems that keep no book in a state folder.

    Raises:
        RampError: if an agent does not answer.
    """
    found, paid = of_files(sites, elsewhere)
    known, unended = _known(sites)
    unknown = [f"{each} is paid, and its buyer does not know it" for each in sorted(paid - known)]
    unpaid = [f"{each} is active for its buyer, and not paid" for each in sorted(known - paid)]
    return found | {KNOWN: unknown + unpaid, ENDED: unended}


def of_files(
    sites: Sequence[tuple[SwarmConfig, StateFolder]], elsewhere: Collection[str] = ()
) -> tuple[dict[str, list[str]], set[str]]:
    """What is wrong in books of reservations and the first site's ledger, by check, and which agreements are paid."""
    config, state = sites[0]
    books = {name: live for _, each in sites for name, live in books_of(each).items()}
    held = [each for live in books.values() for each in live]
    with LedgerStore.open(config.ledger or state.ledger) as ledger:
        audit = ledger.audit()
        total = sum(balance.posted for balance in ledger.balances())
        unsettled = [f"{order.order_id} is still reserved" for order in ledger.open_orders()]
        paid = _paid(ledger)
    if total:
        audit.append(f"all balances together are {total} minor units; right would be 0")
    firm = Counter([each.key for each in held if each.firm] + list(elsewhere))
    sold = Counter(offer_id for _, offer_id in paid)
    twice = [f"offer {key} is reserved {count} times" for key, count in firm.items() if count > 1]
    twice += [f"offer {key} is paid {count} times" for key, count in sold.items() if count > 1]
    twice += [f"offer {key} is reserved and not paid" for key in sorted(firm.keys() - sold.keys())]
    twice += [f"{each.reservation_id} is still held, and not sold" for each in held if not each.firm]
    cores = {resource.name: resource.terms.cores for each, _ in sites for resource in each.resources}
    most = {name: most_at_once(live) for name, live in books.items()}
    found = {
        CONSERVED: audit,
        SETTLED: unsettled,
        HELD: [f"offer {key} is paid and not reserved" for key in sorted(sold.keys() - firm.keys())],
        ONCE: twice,
        ROOM: [
            f"{name} has {cores[name]} cores, of which {taken} are sold at one time"
            for name, taken in most.items()
            if taken > cores[name]
        ],
    }
    return found, {agreement_id for agreement_id, _ in paid}


def books_of(state: StateFolder) -> dict[str, tuple[Reservation, ...]]:
    """Holds and reservations that stand now, by resource."""
    now = SystemClock().now()
    files = sorted(state.reservations.glob(f"*{BOOK}"))
    names = [path.name.removesuffix(BOOK) for path in files]
    return {name: ReservationBook("chaos", name, state.reservations).live(now) for name in names}


def _paid(ledger: LedgerStore) -> list[tuple[str, str]]:
    """Agreement and offer of every unit that is paid and not refunded."""
    found: list[tuple[str, str]] = []
    for order in _orders(ledger):
        if order.state is OrderState.POSTED:
            found += [
                (line.agreement_id, line.offer_id)
                for line in order.lines
                if CHANGE_MARK not in line.agreement_id  # what was added to a unit is not another one
                and ledger.transfer(line.agreement_id, TransferKind.REFUND) is None
            ]
    return found


def _orders(ledger: LedgerStore) -> list[Order]:
    """Every order that has had a payment."""
    ids: dict[str, None] = {}
    after: int | None = 0
    while after is not None:
        page = ledger.overview(None, None, after=after, limit=500)
        ids |= dict.fromkeys(trade.order_id for trade in page.trades if trade.order_id)
        after = page.next_after
    return [order for order in map(ledger.order, ids) if order is not None]


def most_at_once(live: Sequence[Reservation]) -> int:
    """The greatest number of cores that are taken at one time."""
    changes = [(each.slot.start, each.slot.cores) for each in live]
    changes += [(each.slot.end, -each.slot.cores) for each in live]
    taken = most = 0
    for _, change in sorted(changes):  # at one instant what ends comes first
        taken += change
        most = max(most, taken)
    return most


def _known(sites: Sequence[tuple[SwarmConfig, StateFolder]]) -> tuple[set[str], list[str]]:
    """Agreements that are active for their users, and what has not ended."""
    known: set[str] = set()
    unended: list[str] = []
    for state, user in ((state, user) for config, state in sites for user in config.users):
        with connect(state.path, user=user.name) as market:
            for each in market.reservations(everything=True):
                if each.state == "active":
                    known.add(each.agreement_id)
                elif each.state in ("settling", "cancelling"):
                    unended.append(f"{each.agreement_id} of {user.name} is still {each.state}")
            for standing in market.requests():
                if standing.outcome is None:
                    unended.append(f"{standing.request_id} of {user.name} has not ended: {standing.stage}")
                elif standing.doubt:
                    unended.append(f"{standing.request_id} of {user.name} has ended, but {standing.doubt}")
    return known, unended
