"""A sold box of a live Blue Gene/L changes its size over XMPP, as its buyer likes."""

from __future__ import annotations

import pytest
from swarm_books import Books
from swarm_market import PATIENT_TIMING, Machine, in_hours, own_id, unit

pytestmark = [pytest.mark.e2e, pytest.mark.full]

MIDPLANE = 1024
TORUS = Machine("bgl1", 64 * MIDPLANE, 1, plugin="modelled")


@pytest.fixture
def market(new_market):
    timing = {**PATIENT_TIMING, "amendment_notice_s": 2}
    market = new_market(users={"alice": 1_000_000}, machines=[TORUS], timing=timing)
    text = market.config.read_text()
    market.config.write_text(text.replace("{ load = 0.0 }", '{ load = 0, machine = "bgl-half" }'))
    market.up()
    market.wait_ready()
    return market


def test_planes_go_and_come(market):
    outcome = market.buy("alice", own_id("box"), [unit(1, 8 * MIDPLANE, in_hours(2))])
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
    assert "expected cores of whole planes of midplanes, 2048, 4096, 6144" in refused["detail"]  # of 1x2x4
    for midplanes in (4, 8, 2):
        answer = resized(midplanes * MIDPLANE)
        assert answer["done"], (answer["code"], answer["detail"])
        assert Books(market).sizes() == {offer_id: midplanes * MIDPLANE}
    Books(market).come_right()
