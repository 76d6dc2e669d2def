"""kill -9 of the agent that sends it, at every message of the protocol, just before and just after it leaves.

One market for each kind of server; the points come one after another, each with a window of its own on the machines,
so that whatever one point leaves behind is found by it or by the next. Machines with fixed prices make the winners
known: unit 1 goes to small1, unit 2 (too big for a small machine) to big1.
"""

from __future__ import annotations

import signal

import pytest
from kill_points import killed, points, requested
from swarm_books import Books
from swarm_market import PATIENT_TIMING, in_hours, own_id, unit, until

from ramp.ledger.orders.order import OrderState
from ramp.runtime.ledger.store import LedgerStore

pytestmark = pytest.mark.e2e

# role, what it sends, which time
BOUGHT = [
    ("user", "query-ref DirectoryQuery", 1),
    ("directory", "inform DirectoryListing", 1),
    ("resource", "subscribe Registration", 1),  # a heartbeat, at any moment of the purchase or after it
    ("user", "cfp CallForProposals", 1),
    ("user", "cfp CallForProposals", 6),  # in the second round
    ("resource", "propose Proposal", 1),
    ("user", "accept-proposal Acceptance", 1),
    ("user", "accept-proposal Acceptance", 2),
    ("resource", "agree HoldGranted", 1),
    ("user", "reject-proposal Rejection", 1),
    ("user", "request PaymentOrder", 1),
    ("bank", "agree FundsReserved", 1),
    ("user", "confirm Commitment", 1),
    ("user", "confirm Commitment", 2),
    ("resource", "confirm Confirmed", 1),
    ("resource", "request Agreement", 1),
    ("bank", "agree PaymentMade", 1),
    ("bank", "agree PaymentMade", 2),
    ("resource", "inform Settled", 1),
]
UNPAID = [
    ("bank", "refuse OrderRefused", 1),
    ("user", "cancel HoldCancelled", 1),
    ("user", "cancel HoldCancelled", 2),
    ("resource", "inform HoldCancelled", 1),
    ("user", "reject-proposal Rejection", 1),
]
VOIDED = [
    ("user", "cancel HoldCancelled", 1),
    ("user", "request OrderWithdrawal", 1),
    ("bank", "inform OrderVoided", 1),
    ("resource", "inform HoldCancelled", 1),
]
UNHELD = [
    ("resource", "refuse Proposal", 1),
    ("resource", "refuse HoldRefused", 1),
    ("user", "cancel HoldCancelled", 1),
    ("resource", "inform HoldCancelled", 1),
]
GIVEN_BACK = [
    ("user", "cancel ContractChange", 1),
    ("resource", "request ContractChange", 1),
    ("bank", "agree ChangePosted", 1),
    ("bank", "inform ChangePosted", 1),
]
GROWN = [
    ("user", "cfp ChangeCall", 1),
    ("resource", "propose ChangePriced", 1),
    ("user", "request ContractChange", 1),
    ("resource", "agree ChangeAgreed", 1),
    ("user", "request PaymentOrder", 1),
    ("bank", "agree FundsReserved", 1),
    ("user", "confirm ChangeAgreed", 1),
    ("resource", "request ContractChange", 1),
    ("bank", "agree ChangePosted", 1),
    ("resource", "inform ChangeDone", 1),
]
GROWN_TOGETHER = [
    ("resource", "propose ChangePriced", 1),
    ("resource", "agree ChangeAgreed", 1),
    ("bank", "agree FundsReserved", 1),
    ("user", "confirm ChangeAgreed", 1),  # one of the sellers may begin, the other knows nothing of it
    ("resource", "request ContractChange", 1),
    ("bank", "agree ChangePosted", 1),
    ("bank", "agree ChangePosted", 2),
    ("resource", "inform ChangeDone", 1),
]
UNDECIDED = {
    "query-ref DirectoryQuery",
    "cfp CallForProposals",
    "accept-proposal Acceptance",
    "request PaymentOrder",
}
"""What a user sends before its decision: killed there, it presumes abort, and has the bank void its order."""


USERS = {"alice": 1_000_000, "poor": 1_000}


@pytest.fixture(scope="module")
def market(module_market, kind):
    market = module_market(armed=True, kind=kind, users=USERS)
    market.up()
    return market


@pytest.fixture(scope="module")
def hasty_market(module_market, kind):
    """One whose holds soon end: by that a resource lets go what a user was killed before it could let go."""
    timing = {**PATIENT_TIMING, "hold_time_s": 25, "agreement_validity_s": 40}
    market = module_market(armed=True, kind=kind, users=USERS, timing=timing)
    market.up()
    return market


@pytest.fixture
def soon(hasty_market, hours):
    """A window of its own on the machines of `hasty_market`, where everybody is up."""
    hasty_market.wait_ready()
    return in_hours(next(hours))


@points(
    BOUGHT,
    (("user", "confirm Commitment", 1), "after"),
    (("resource", "request Agreement", 1), "before"),
    (("bank", "agree PaymentMade", 1), "before"),
    (("directory", "inform DirectoryListing", 1), "before"),
)
def test_a_purchase_ends_with_all_units_or_none(market, begin, role, act, nth, when):
    request_id = own_id(role, act, nth, when)
    market.arm(role, act, when, nth)
    outcome = market.buy("alice", request_id, [unit(1, 8, begin), unit(2, 100, begin)])
    killed(market)
    interrupted = role == "user" and act in UNDECIDED
    assert outcome["status"] == ("failed" if interrupted else "committed"), outcome["reason"]
    Books(market).come_right()


@points([("directory", "inform Registered", 1)])
def test_whoever_comes_back_is_listed_whatever_becomes_of_the_answer(market, begin, role, act, nth, when):
    """Only a resource that is new to the directory is answered, so one leaves in good order and is started again."""
    market.arm(role, act, when, nth)
    market.kill("small2", signal.SIGTERM)
    request_id = own_id(role, act, nth, when)
    outcome = market.buy("alice", request_id, [unit(1, 8, begin), unit(2, 100, begin)])
    killed(market)
    assert outcome["status"] == "committed", outcome["reason"]
    Books(market).come_right()
    market.wait_ready()


@points(UNPAID)
def test_what_the_bank_refuses_is_let_go(hasty_market, soon, role, act, nth, when):
    market = hasty_market
    request_id = own_id("unpaid", role, act, nth, when)
    market.arm(role, act, when, nth)
    outcome = market.buy("poor", request_id, [unit(1, 8, soon), unit(2, 200, soon)])
    killed(market)
    assert outcome["status"] == "failed", outcome
    Books(market).come_right()


@points(VOIDED)
def test_what_is_void_stays_void(hasty_market, soon, role, act, nth, when):
    """The user is killed after its order has left, and voids it when it is back; then the second blow falls."""
    market = hasty_market
    request_id = own_id("void", role, act, nth, when)
    market.arm("user", "request PaymentOrder", "after")
    with market.submitted("alice", request_id, [unit(1, 8, soon), unit(2, 100, soon)]):
        until(market.victim, "the user walks into the first trap")
    market.arm(role, act, when, nth)
    killed(market)
    outcome = market.outcome("alice", request_id)
    assert outcome["status"] == "failed", outcome
    books = Books(market)
    books.come_right()
    with LedgerStore.open(market.state.ledger) as ledger:
        orders = {each["agreement"]["order_id"] for each in requested(market, request_id)}
        assert [ledger.order(order_id).state for order_id in orders] == [OrderState.VOIDED]


@points(UNHELD)
def test_what_nobody_holds_is_let_go(hasty_market, soon, role, act, nth, when):
    market = hasty_market
    request_id = own_id("unheld", role, act, nth, when)
    market.arm(role, act, when, nth)
    whole = [unit(number, 200, soon) for number in (1, 2, 3)]  # each fits on a big machine, but only one a machine
    outcome = market.buy("alice", request_id, whole)
    killed(market)
    assert outcome["status"] == ("failed" if role == "user" else "withdrawn"), outcome
    Books(market).come_right()


@points(GIVEN_BACK)
def test_a_cancellation_is_carried_out(market, begin, role, act, nth, when):
    request_id = own_id("back", role, act, nth, when)
    outcome = market.buy("alice", request_id, [unit(1, 8, begin), unit(2, 100, begin)])
    assert outcome["status"] == "committed", outcome
    agreement_id = outcome["units"][1]["agreement_id"]
    market.arm(role, act, when, nth)
    market.ask("alice", {"verb": "agreement_cancelled", "agreement_id": agreement_id, "reason": ""})
    killed(market)
    Books(market).come_right()
    states = {each["agreement"]["agreement_id"]: each["state"] for each in market.agreements("alice")}
    assert states[agreement_id] == "cancelled"
    assert states[outcome["units"][0]["agreement_id"]] == "active"


def sizes_at_rest(market, request_id):
    """The cores of slots as amendments have made them, and as the machines have them, once nothing is open any more."""
    until(lambda: not any(each["doubt"] for each in requested(market, request_id)), "nothing of it is open any more")
    books = Books(market)
    books.come_right()
    stand = requested(market, request_id)
    made = [[each["cores"] for each in one["amendments"]] for one in stand]
    return made, [books.sizes()[one["agreement"]["offer"]["offer_id"]] for one in stand]


FORGOTTEN = ("resource", "propose ChangePriced")
"""A price is no promise that outlives its seller."""


@points(GROWN)
def test_a_slot_has_its_old_size_or_the_new_one(market, begin, role, act, nth, when):
    request_id = own_id("grown", role, act, nth, when)
    outcome = market.buy("alice", request_id, [unit(1, 8, begin)])
    assert outcome["status"] == "committed", outcome
    agreement_id = outcome["units"][0]["agreement_id"]
    market.arm(role, act, when, nth)
    market.ask("alice", {"verb": "agreement_resized", "agreement_id": agreement_id, "cores": 16})
    killed(market)
    grown, old = ([[16]], [16]), ([[]], [8])
    assert sizes_at_rest(market, request_id) in ((grown, old) if (role, act) == FORGOTTEN else (grown,))


@points(GROWN_TOGETHER)
def test_slots_of_several_sellers_grow_by_one_order_all_or_none(market, begin, role, act, nth, when):
    request_id = own_id("together", role, act, nth, when)
    outcome = market.buy("alice", request_id, [unit(1, 40, begin), unit(2, 40, begin)])
    assert outcome["status"] == "committed", outcome
    assert len({each["offer"]["resource"] for each in outcome["units"]}) == 2
    first, second = (each["agreement_id"] for each in outcome["units"])
    market.arm(role, act, when, nth)
    market.ask("alice", {"verb": "agreement_resized", "agreement_id": first, "together": [second], "cores": 48})
    killed(market)
    grown, old = ([[48], [48]], [48, 48]), ([[], []], [40, 40])
    assert sizes_at_rest(market, request_id) in ((grown, old) if (role, act) == FORGOTTEN else (grown,))
