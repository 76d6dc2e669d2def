"""The first market that a user meets, with patient limits: a request for a torus is sold by a torus machine."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from swarm_market import PATIENT_TIMING, Market, in_hours, unit

from ramp.model.instant import HOUR
from ramp.model.request import TorusTerms
from ramp.runtime.configuration.file import load_config
from ramp.runtime.shipped_swarms import DEFAULT_SWARM, find_config
from simulation.machine_files import load_machine
from simulation.machines.hostlist import expand
from simulation.machines.view import RESERVED
from simulation.resource.live_map import view_of_snapshot

pytestmark = [pytest.mark.e2e, pytest.mark.full]

SHAPE = (8, 8, 16)
"""Nodes: two midplanes of Blue Gene/L, which has 8x8x8 nodes of two processors on each."""


@pytest.fixture(scope="module")
def market(tmp_path_factory):
    folder = tmp_path_factory.mktemp("quickstart")
    config = folder / "swarm.toml"
    timing = (f"{key} = {value}" for key, value in PATIENT_TIMING.items())
    config.write_text("\n".join((find_config(DEFAULT_SWARM).read_text("utf-8"), "[timing]", *timing, "")), "utf-8")
    market = Market(config, folder / "state")
    market.up()
    market.wait_ready()
    yield market
    market.end()


def test_a_torus_is_sold_by_a_torus_machine(market):
    config = load_config(market.config)
    flat = {config.address(each.name) for each in config.resources if not each.terms.torus}
    tori = {config.address(each.name) for each in config.resources if each.terms.torus}
    assert (len(flat), len(tori)) == (20, 4)
    wish = unit(1, 2048, in_hours(1))
    wish = replace(wish, deadline=wish.deadline + 10 * HOUR, torus=TorusTerms(SHAPE, connection="torus"))
    outcome = market.buy("alice", "request-torus", [wish])
    assert outcome["status"] == "committed", outcome
    first = outcome["rounds"][0]
    refused = {each["resource"]: each["refusal"]["code"] for each in first["refusals"]}
    assert {name for name, code in refused.items() if code == "torus_terms"} == flat
    assert {offer["resource"] for offer in first["offers"]} <= tori
    (bought,) = outcome["units"]
    seller = bought["offer"]["resource"]
    assert seller in tori
    assert "torus" in bought["offer"]["placement"]

    answered = market.ask("alice", {"verb": "machine", "resource": seller, "horizon": 12 * HOUR})
    snapshot = json.loads(answered["snapshot"])
    assert bought["reservation_id"] in {each["reservation_id"] for each in snapshot["reservations"] if each["firm"]}
    view = view_of_snapshot(load_machine(snapshot["map"]["machine"]), snapshot)
    (sold,) = [job for job in view.jobs if job.state == RESERVED]
    assert sold.name == bought["reservation_id"]
    assert len(expand(sold.hostlist)) == sold.size == 2
    coordinates = zip(*(name[-3:] for name in expand(sold.hostlist)), strict=True)
    assert sorted(len(set(values)) for values in coordinates) == [1, 1, 2], "two midplanes side by side, somehow turned"


def test_a_request_without_torus_terms_goes_to_all_of_them(market):
    outcome = market.buy("bob", "request-plain", [unit(1, 64, in_hours(2))], quote_only=True)
    (first, *_) = outcome["rounds"]
    asked = {each["resource"] for each in (*first["offers"], *first["refusals"])}
    assert len(asked) == 24
    assert "torus_terms" not in {each["refusal"]["code"] for each in first["refusals"]}
    offered = {each["resource"].partition("@")[0]: each["cores"] for each in first["offers"]}
    # all cores of a midplane are charged for, of a flat machine those that were asked for
    assert {offered[name] for name in ("bluegene1", "torus1") if name in offered} <= {1024}
    assert offered["thunder3"] == 64
