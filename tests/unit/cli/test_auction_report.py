"""What is shown of an auction, and the object that `--json` prints."""

import io
from contextlib import closing
from dataclasses import replace

import pytest
from rich.console import Console

from ramp.cli.views.auction_view import LineView, LiveView
from ramp.cli.views.reports import outcome_object, print_outcome, reasons_text
from ramp.model.money import credits_decimal, credits_text
from ramp.model.offer import Refusal, RefusalCode
from ramp.protocol.outcome import BoughtUnit, RequestStatus, ResourceRefusal


def short(address):
    return address.removesuffix("@localhost")


def test_the_object_has_the_published_fields(script):
    event = script.ended()
    found = outcome_object(event.outcome, event.files, short)
    assert found["request_id"] == "request-1"
    assert found["status"] == "committed"
    assert found["duration_s"] == 1.5
    assert found["started_at"] == "2026-12-01T10:00:00Z"
    assert found["agreements"] == ["/tmp/agreement-1.xml"]
    (bought,) = found["units"]
    expected = {
        "unit": 1,
        "resource": "thunder1",
        "cpu_hour_cost": 30,
        "cost": "1920.00",  # 30 credits x 64 cores x 1 h
        "reservation_id": "thunder1-7",
        "agreement_id": "agreement-1",
        "start": "2026-12-01T10:00:00Z",
        "end": "2026-12-01T11:00:00Z",
        "cores": 64,
    }
    assert {key: bought[key] for key in expected} == expected
    assert found["cost"] == "1920.00"
    (only,) = found["rounds"]
    assert (only["round"], only["asked"], only["duration_s"]) == (1, {"1": 70}, 0.25)
    assert [(entry["resource"], entry["unit"], entry["cpu_hour_cost"]) for entry in only["offers"]] == [
        ("thunder1", 1, 30),
        ("ricc2", 1, 33),
    ]
    first = only["refusals"][1]
    assert (first["resource"], first["unit"], first["reason"]) == ("curie1", 1, "price_below_minimum")
    assert first["nearest"] == "80 credits/core-hour"


@pytest.mark.parametrize("status", [status for status in RequestStatus if status is not RequestStatus.COMMITTED])
def test_what_was_not_bought_has_cost_nothing(script, status):
    event = script.ended(status, "for a reason")
    found = outcome_object(event.outcome, event.files, short)
    assert (found["status"], found["reason"], found["agreements"]) == (status, "for a reason", [])
    assert {found[key] for key in ("cost", "charged", "returned")} == {"0.00"}


def test_refusals_are_counted_by_reason_the_most_frequent_first():
    assert reasons_text(["b", "a", "b", "c", "a", "b"]) == "3×b, 2×a, 1×c"
    assert reasons_text([]) == ""


def test_lines_tell_the_rounds_in_a_pipe(script, capsys):
    with closing(LineView(short)) as view:
        for event in (script.submitted, script.opened, script.closed, script.advanced, script.ended()):
            view.show(event)
    assert capsys.readouterr().out.splitlines() == [
        "request request-1",
        (
            "round 1, unit 1: asked 70 credits/core-hour, 2 offers, best 30 by thunder1, "
            "refused: 2×price_below_minimum, 1×cores_taken, 0.250 s"
        ),
        "unit 1: thunder1: agreed (thunder1-7)",
    ]


@pytest.fixture
def drawn(monkeypatch):
    """Shows events at a terminal of some columns; returns the last picture."""

    def draw(width, *events):
        screen = io.StringIO()
        terminal = Console(file=screen, force_terminal=True, width=width, highlight=False, color_system=None)
        monkeypatch.setattr("ramp.cli.views.auction_view.console", lambda error: terminal)
        with closing(LiveView(short)) as view:
            for event in events:
                view.show(event)
        return screen.getvalue().rpartition("Bidding")[2]

    return draw


def test_the_table_tells_the_rounds_on_a_terminal(script, drawn):
    last = drawn(120, script.submitted, script.opened, script.closed, script.advanced)
    for text in (
        "credits/core-hour",
        "70",
        "30 by thunder1",
        "2×price_below_minimum",
        "0.250 s",
        "agreed (thunder1-7)",
    ):
        assert text in last
    assert "waiting" not in last
    assert "buying" not in last


def test_the_table_keeps_every_column_on_a_narrow_terminal(script, drawn):
    rows = drawn(60, script.submitted, script.opened, script.closed).splitlines()
    assert ["1", "1", "70", "2", "30", "by", "thunder1", "3", "0.250", "s"] in [row.split() for row in rows]


def test_no_offers_is_explained_with_what_would_pass(script, capsys):
    event = script.ended(RequestStatus.NO_OFFERS, "no offer meets the request for unit 1")
    print_outcome(event.outcome, event.files, short)
    text = capsys.readouterr().out
    assert "no offers" in text
    assert "curie1: 80 credits/core-hour (too cheap); curie2: 85 credits/core-hour" in text
    assert "atlas1: 2026-12-02T00:00:00Z" in text


def test_sellers_that_name_no_value_say_why_instead(script, capsys):
    event = script.ended(RequestStatus.NO_OFFERS, "no offer meets the request for unit 1")
    why = "no local account for carol here"
    refused = [
        ResourceRefusal(f"curie{number}@localhost", Refusal(1, RefusalCode.NO_ACCOUNT, detail=why))
        for number in range(1, 6)
    ]
    outcome = replace(event.outcome, rounds=(replace(script.record, refusals=tuple(refused)),))
    print_outcome(outcome, {}, short)
    said = " ".join(capsys.readouterr().out.split())
    assert "curie1, curie2, curie3 and 2 more: no local account for carol here" in said


def test_only_what_was_paid_is_called_paid_and_the_code_of_a_failed_rule_is_told(script, capsys):
    event = script.ended(RequestStatus.FAILED, "the auction rule Div failed: next_asks: ZeroDivisionError")
    best = BoughtUnit(1, script.record.offers[0], script.record.offers[0].cores)
    outcome = replace(event.outcome, units=(best,), code="rule_raised")
    print_outcome(outcome, {}, short)
    said = capsys.readouterr().out
    assert "Best offers, not bought" in said
    assert "aid, but failed" not in said
    assert said.splitlines()[0].endswith("ZeroDivisionError (rule_raised)")
    paid = replace(best, agreement_id="agreement-1", reservation_id="thunder1-7", transfer_id="transfer-1")
    print_outcome(replace(outcome, units=(paid,), code=""), {}, short)
    assert "Paid, but failed" in capsys.readouterr().out


@pytest.mark.parametrize(("paid", "price"), [(64 * 3300, "33"), (64 * 3300 + 10, "33.00"), (64 * 3333, "33.33")])
def test_a_price_paid_that_is_not_the_offered_one_is_shown_beside_it(script, capsys, paid, price):
    """64 cores for an hour are offered at 30; by the rule the next offer's cost is paid."""
    offer = script.record.offers[0]
    unit = BoughtUnit(1, offer, offer.cores, "agreement-1", "thunder1-7", "transfer-1", paid=paid)
    event = script.ended()
    outcome = replace(event.outcome, units=(unit,), rule="second-price")
    (shown,) = outcome_object(outcome, {}, short)["units"]
    assert (shown["price_offered"], shown["price_paid"], shown["cpu_hour_cost"]) == (30, price.removesuffix(".00"), 30)
    assert (shown["cost"], shown["offered"]) == (credits_decimal(paid), "1920.00")
    print_outcome(outcome, {}, short)
    text = capsys.readouterr().out
    assert "Price offered  Price paid" in text
    assert f"{price.removesuffix('.00')}  {credits_text(paid)}" in text
    print_outcome(replace(outcome, units=(replace(unit, paid=None),)), {}, short)
    assert "Price paid" not in capsys.readouterr().out


def test_people_see_ids_whole_and_units_on_numbers(script, capsys):
    event = script.ended()
    print_outcome(event.outcome, event.files, short)
    text = capsys.readouterr().out
    for part in ("request-1", "thunder1-7", "/tmp/agreement-1.xml", "1 920.00 credits", "1.500 s", "credits/core-hour"):
        assert part in text


def test_a_start_that_is_only_probable_is_told_with_its_refund(script, capsys):
    event = script.ended(RequestStatus.QUOTED)
    (unit,) = event.outcome.units
    for offer, told in ((unit.offer, False), (replace(unit.offer, start_probability=0.975, if_late="whole"), True)):
        print_outcome(replace(event.outcome, units=(replace(unit, offer=offer),)), {}, short)
        said = " ".join(capsys.readouterr().out.split())
        assert ("with probability 0.975; refund of a late start: whole" in said) is told


def test_cores_charged_beyond_what_was_asked_are_told(script, capsys):
    event = script.ended(RequestStatus.QUOTED)
    (unit,) = event.outcome.units
    for asked, told in ((unit.offer.cores, False), (unit.offer.cores - 1, True)):
        outcome = replace(event.outcome, units=(replace(unit, cores_asked=asked),))
        print_outcome(outcome, {}, short)
        out = capsys.readouterr().out
        assert (f"{unit.offer.cores} ({asked} asked)" in out) is told
        assert (f"{unit.offer.cores} cores are charged for the {asked} that were asked for" in out) is told
        assert outcome_object(outcome, {}, short)["units"][0]["cores_asked"] == asked
