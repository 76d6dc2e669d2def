"""kill -9 of the agent that sends it, at every message of a purchase and of a change, just before and just after it
leaves.

The points come one after another in one market, each with a window of its own on the machines, so that whatever one
point leaves behind is found by it or by the next. What follows an order that is refused or void, or several sellers at
once, is tried in the scripts of tests/protocol and in simulated markets.
"""

import itertools

import pytest

from tests.e2e.swarm.swarm_books import Books
from tests.e2e.swarm.swarm_market import own_id, unit, until

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
IN_EVERY_RUN = {
    (("user", "confirm Commitment", 1), "after"),
    (("resource", "request Agreement", 1), "before"),
    (("bank", "agree PaymentMade", 1), "before"),
    (("directory", "inform DirectoryListing", 1), "before"),
}
UNDECIDED = {
    "query-ref DirectoryQuery",
    "cfp CallForProposals",
    "accept-proposal Acceptance",
    "request PaymentOrder",
}
"""What a user sends before its decision: killed there, it presumes abort, and has the bank void its order."""


def points(messages):
    """A test for every message, with the agent that sends it killed before that and after it."""
    return pytest.mark.parametrize(
        ("role", "act", "nth", "when"),
        [
            pytest.param(
                *message,
                when,
                id="-".join(map(str, (*message, when))),
                marks=[] if (message, when) in IN_EVERY_RUN else pytest.mark.full,
            )
            for message, when in itertools.product(messages, ("before", "after"))
        ],
    )


@pytest.fixture(scope="module")
def market(module_market, kind):
    market = module_market(armed=True, kind=kind, users={"alice": 1_000_000})
    market.up()
    return market


def killed(market):
    """Wait until the trap has struck and whoever walked into it is up again."""
    name = until(market.victim, lambda: f"somebody walks into the trap\n{market.logs()}")
    until(lambda: market.agent(name)["state"] == "ready", f"{name} is up again")


def bought(market, request_id, *units):
    outcome = market.buy("alice", request_id, units)
    assert outcome["status"] == "committed", outcome
    return [each["agreement_id"] for each in outcome["units"]]


def agreements(market):
    return {each["agreement"]["agreement_id"]: each for each in market.agreements("alice")}


@points(BOUGHT)
def test_a_purchase_ends_with_all_units_or_none(market, begin, role, act, nth, when):
    market.arm(role, act, when, nth)
    outcome = market.buy("alice", own_id(role, act, nth, when), [unit(1, 8, begin), unit(2, 100, begin)])
    killed(market)
    interrupted = role == "user" and act in UNDECIDED
    assert outcome["status"] == ("failed" if interrupted else "committed"), outcome["reason"]
    Books(market).come_right()


@points(GIVEN_BACK)
def test_a_cancellation_is_carried_out(market, begin, role, act, nth, when):
    kept, given_back = bought(market, own_id("back", role, act, nth, when), unit(1, 8, begin), unit(2, 100, begin))
    market.arm(role, act, when, nth)
    market.ask("alice", {"verb": "agreement_cancelled", "agreement_id": given_back, "reason": ""})
    killed(market)
    Books(market).come_right()
    states = {key: each["state"] for key, each in agreements(market).items()}
    assert (states[given_back], states[kept]) == ("cancelled", "active")


@points(GROWN)
def test_a_slot_has_its_old_size_or_the_new_one(market, begin, role, act, nth, when):
    (agreement_id,) = bought(market, own_id("grown", role, act, nth, when), unit(1, 8, begin))
    market.arm(role, act, when, nth)
    market.ask("alice", {"verb": "agreement_resized", "agreement_id": agreement_id, "cores": 16})
    killed(market)
    until(lambda: not agreements(market)[agreement_id]["doubt"], "nothing of it is open any more")
    books = Books(market)
    books.come_right()
    found = agreements(market)[agreement_id]
    made = [each["cores"] for each in found["amendments"]]
    # a price is no promise that outlives its seller
    forgotten = (role, act) == ("resource", "propose ChangePriced") and not made
    assert made == ([] if forgotten else [16])
    assert books.sizes()[found["agreement"]["offer"]["offer_id"]] == (8 if forgotten else 16)
