"""Cores that a seller takes back by right, through agents over XMPP: from `ramp rfq new` to the verified chain."""

import time
from pathlib import Path

import pytest
from tiny_market import LIMIT_S, balance

pytestmark = pytest.mark.slow  # a market of five processes


def test_a_right_is_sold_used_once_and_verified(ramp, request_file):
    """Of eight cores two stay for sure; four are taken before the slot begins, so half of the price comes back."""
    path = request_file(8, reclaimable_to="2", reclaim_notice="4s", reclaim_compensation="10")
    code, bought, _ = ramp("submit", path, "--json", "--rounds", "1")
    assert (code, bought["status"]) == (0, "committed"), bought
    (unit,) = bought["units"]
    (agreement_id,) = [each["agreement_id"] for each in bought["units"]]
    before = balance(ramp)
    code, shown, _ = ramp("show", agreement_id, "--json")
    assert shown["reclaimable"] == {"least": 2, "notice_s": 4, "compensation": 10}

    code, _, said = ramp("resource", "reclaim", unit["resource"], shown["reservation_id"], "--cores", "7")
    assert (code, "below_minimum" in said) == (1, True), said
    code, _, said = ramp("resource", "reclaim", unit["resource"], shown["reservation_id"], "--cores", "4", "--json")
    assert code == 0, said
    end = time.monotonic() + LIMIT_S
    while time.monotonic() < end:
        code, shown, said = ramp("show", agreement_id, "--json")
        assert code == 0, said
        if shown["reclamations"]:
            break
    (taken,) = shown["reclamations"]
    assert (shown["cores"], taken["cores"], shown["reclamation_to_come"]) == (4, 4, None)
    assert (taken["refund"], taken["compensation"]) == (unit["cost"] / 2, 40.0)  # 4 cores for an hour at 10
    assert round(balance(ramp) - before, 2) == taken["refund"] + taken["compensation"]

    files = sorted(Path(bought["agreements"][0]).parent.glob(f"{agreement_id}*.xml"))
    code, verified, _ = ramp("verify", *files, "--json")
    assert code == 0, verified
    (chain,) = verified["chains"]
    assert (chain["holds"], chain["reclamations"], chain["cores"], chain["by_right"]) == (True, [1], 4, [])
    word = Path(bought["agreements"][0]).parent / f"{agreement_id}.reclamation-1.paid.txt"
    code, verified, _ = ramp("verify", *files, word, "--json")
    assert (code, verified["chains"][0]["by_right"]) == (0, [1])
    assert "resource reclaim" in str(ramp("changes", "--json")[1])


def test_new_keys_of_buyer_and_seller_do_not_end_a_right(ramp, request_file):
    """What both signed with their old keys the bank has on record, and knows again."""
    path = request_file(8, reclaimable_to="2", reclaim_notice="4s", reclaim_compensation="10")
    code, bought, _ = ramp("submit", path, "--json", "--rounds", "1")
    assert (code, bought["status"]) == (0, "committed"), bought
    (unit,) = bought["units"]
    for name in ("alice", unit["resource"]):
        code, _, said = ramp("keys", "renew", name, "--new-key")
        assert code == 0, said
    code, shown, said = ramp("show", unit["agreement_id"], "--json")
    assert code == 0, said
    code, _, said = ramp("resource", "reclaim", unit["resource"], shown["reservation_id"], "--cores", "4", "--json")
    assert code == 0, said
    end = time.monotonic() + LIMIT_S
    while time.monotonic() < end and not shown["reclamations"]:
        code, shown, said = ramp("show", unit["agreement_id"], "--json")
        assert code == 0, said
    assert (shown["cores"], len(shown["reclamations"])) == (4, 1)
