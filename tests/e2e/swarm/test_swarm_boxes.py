"""A sold box of a live Blue Gene/L changes its size over XMPP: as its buyer likes, and as its seller may."""

from __future__ import annotations

from dataclasses import replace

import pytest
from swarm_books import Books
from swarm_market import PATIENT_TIMING, Machine, in_hours, own_id, unit, until

import ramp
from ramp.model.instant import SECOND
from ramp.model.request import ReclaimTerms

pytestmark = pytest.mark.e2e

MIDPLANE = 1024
TORUS = Machine("bgl1", 64 * MIDPLANE, 1, plugin="modelled")
RIGHT = ReclaimTerms(least=2 * MIDPLANE, notice=SECOND, compensation=1)


@pytest.fixture
def market(new_market):
    timing = {**PATIENT_TIMING, "amendment_notice_s": 2}
    market = new_market(users={"alice": 1_000_000}, machines=[TORUS], timing=timing)
    text = market.config.read_text()
    text = text.replace("{ load = 0.0 }", '{ load = 0, machine = "bgl-half" }')
    # it pays on top more than it has earned by then
    market.config.write_text(text.replace('machine = "bgl1"\n', 'machine = "bgl1"\ncredit_limit = 100000\n'))
    market.up()
    market.wait_ready()
    return market


def test_planes_go_come_and_are_taken_back(market):
    wanted = replace(unit(1, 8 * MIDPLANE, in_hours(2)), reclaim=RIGHT)
    outcome = market.buy("alice", own_id("box"), [wanted])
    assert outcome["status"] == "committed", outcome
    (bought,) = outcome["units"]
    agreement_id, offer_id = bought["agreement_id"], bought["offer"]["offer_id"]

    def resized(cores):
        while True:
            answer = market.ask("alice", {"verb": "resize", "agreement_id": agreement_id, "cores": cores})["outcome"]
            if answer["code"] not in ("too_late", "expired"):  # of a busy computer
                return answer

    refused = resized(5 * MIDPLANE)
    assert (refused["done"], refused["code"]) == (False, "slot_taken")
    assert "right would be whole planes of midplanes, 2048, 4096, 6144" in refused["detail"]  # of 1x2x4
    for midplanes in (4, 8):
        assert resized(midplanes * MIDPLANE)["done"]
        assert Books(market).sizes() == {offer_id: midplanes * MIDPLANE}
    ramp.operate(market.state.path).reclaim("bgl1", agreement_id, cores=6 * MIDPLANE)
    until(lambda: market.agreements("alice")[0]["reclamations"], "the seller has taken six midplanes back")
    books = Books(market)
    books.come_right()
    assert books.sizes() == {offer_id: 2 * MIDPLANE}
