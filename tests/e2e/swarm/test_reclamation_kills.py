"""kill -9 of the agent that sends it, at every message of a reclamation, just before and just after it leaves.

A reclamation is a seller's word to bank and buyer with nobody's consent but the agreement's, so all three are killed.
Afterwards all of them have the slot at its new size, and the buyer has the money for it once; or, where the bank's word
that it is noticed came too late to the seller, at the old one, and the seller may begin again.
"""

from __future__ import annotations

import contextlib
import io
from contextlib import redirect_stdout
from dataclasses import replace
from fractions import Fraction
from math import floor

import pytest
from kill_points import killed, points, requested
from swarm_books import Books
from swarm_market import own_id, unit, until

import ramp
from ramp.cli.main import main
from ramp.ledger.transfer import TransferKind
from ramp.ledger.validation import final_transfers
from ramp.model.instant import HOUR, SECOND
from ramp.model.request import ReclaimTerms
from ramp.runtime.clock import SystemClock
from ramp.runtime.ledger.store import LedgerStore

pytestmark = [pytest.mark.e2e, pytest.mark.full]

PRICE = 20
"""Of small1, in credits per core hour: it is the cheapest."""

RIGHT = ReclaimTerms(least=2, notice=SECOND, compensation=10)

RECLAIMED = [
    ("resource", "request ReclamationNotice", 1),
    ("bank", "agree ReclamationNoticed", 1),
    ("bank", "inform ReclamationNoticed", 1),
    ("resource", "inform ReclamationAnnounced", 1),
    ("user", "inform ReclamationHeard", 1),  # of the bank, or of the resource, whichever is the sooner
    ("user", "inform ReclamationHeard", 2),
    ("resource", "request ReclamationTaken", 1),
    ("bank", "agree ReclamationPosted", 1),
    ("bank", "inform ReclamationPosted", 1),
    ("resource", "inform Reclaimed", 1),
    ("user", "inform ReclamationHeard", 3),  # that it is posted
]
IN_MID_SLOT = [
    ("resource", "request ReclamationTaken", 1),
    ("bank", "agree ReclamationPosted", 1),
]
UNNOTICED = ("request ReclamationNotice", "agree ReclamationNoticed")
"""Killed there, seller or bank are perhaps up again too late for the notice, and the seller gives it up."""


@pytest.fixture(scope="module")
def market(module_market, kind):
    market = module_market(armed=True, kind=kind, users={"alice": 1_000_000})
    market.up()
    return market


def ordered(market, agreement_id):
    """Let small1 take four cores of a slot back; whoever is killed meanwhile cannot say what has come of it."""
    with contextlib.suppress(ramp.RampError):
        ramp.operate(market.state.path).reclaim("small1", agreement_id, cores=4)


def transferred(market, agreement_id):
    """What the bank has moved by reclamations of an agreement, or still has set aside for them: kinds, minor units."""
    with LedgerStore.open(market.state.ledger) as ledger:
        moved = [each for each in final_transfers(ledger.entries()) if each.agreement_id.startswith(f"{agreement_id}#")]
    return sorted((each.kind, each.amount) for each in moved if each.voided_at is None)


def verified(market, party, agreement_id):
    """The chain that a party's own documents make, once the last of them is written."""
    first = market.state.agreement(party, agreement_id)
    until(lambda: list(first.parent.glob(f"{agreement_id}.reclamation-*")), f"{party} knows that it is posted")
    said = io.StringIO()
    with redirect_stdout(said):
        files = sorted(map(str, first.parent.glob(f"{agreement_id}*.xml")))
        code = main(["verify", *files, "--state-dir", str(market.state.path)])
    assert code == 0, said.getvalue()
    return said.getvalue()


def taken_back(market, request_id, wanted, point):
    """Let four of eight cores be taken back, with a kill on the way, and see that all is right afterwards.

    Returns:
        The instant from which on they are gone, and the slot's start.
    """
    role, act, nth, when = point
    outcome = market.buy("alice", request_id, [replace(wanted, reclaim=RIGHT)])
    assert outcome["status"] == "committed", outcome
    agreement_id = outcome["units"][0]["agreement_id"]
    market.arm(role, act, when, nth)
    ordered(market, agreement_id)
    killed(market)

    def taken():
        (stands,) = requested(market, request_id)
        if not stands["reclamations"] and act in UNNOTICED:
            ordered(market, agreement_id)  # refused as long as the first one is open, or once it has been posted
        return stands["reclamations"]

    (reclamation,) = until(taken, lambda: f"the buyer knows that it is posted\n{market.logs()}")
    books = Books(market)
    books.come_right()
    (stands,) = requested(market, request_id)
    assert (stands["to_come"], len(stands["reclamations"])) == (None, 1)
    if act not in UNNOTICED:
        assert reclamation["number"] == 1
    offer, gone_at = stands["agreement"]["offer"], reclamation["effective_at"]
    left = Fraction(offer["end"] - max(gone_at, offer["start"]), HOUR)
    back = floor(4 * PRICE * 100 * left)  # minor units, rounded down
    extra = floor(4 * RIGHT.compensation * 100 * left + Fraction(1, 2))  # rounded as prices are
    assert (reclamation["cores"], reclamation["refund"], reclamation["compensation"]) == (4, back, extra)
    assert transferred(market, agreement_id) == [(TransferKind.COMPENSATION, extra), (TransferKind.REBATE, back)]
    assert books.sizes()[offer["offer_id"]] == 4
    for party in ("alice", "small1"):
        assert "and its 1 reclamation are one chain: 4 cores" in verified(market, party, agreement_id)
    return gone_at, offer["start"]


@points(RECLAIMED)
def test_cores_are_taken_back_and_paid_for_once(market, begin, role, act, nth, when):
    request_id = own_id("reclaimed", role, act, nth, when)
    gone_at, start = taken_back(market, request_id, unit(1, 8, begin), (role, act, nth, when))
    assert gone_at < start


@points(IN_MID_SLOT)
def test_of_a_slot_that_runs_only_what_is_left_is_paid_for(market, begin, role, act, nth, when):
    request_id = own_id("running", role, act, nth, when)
    soon = unit(1, 8, SystemClock().now() // SECOND * SECOND)
    soon = replace(soon, deadline=soon.deadline + HOUR)  # for a busy computer
    gone_at, start = taken_back(market, request_id, soon, (role, act, nth, when))
    assert start < gone_at
