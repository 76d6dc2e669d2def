"""`ramp resources` in a market of several sites."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from ramp.client.access import RunningMarket
from ramp.client.market import Market
from ramp.client.results import Resource, short_name
from ramp.runtime.state_folder import StateFolder

NAMES = ("west1@localhost", "south1@south.example", "south2@south.example")


@pytest.fixture
def resources(monkeypatch, ramp):
    """Runs `ramp resources` where a directory has answered who sells."""
    found = tuple(Resource(short_name(name, "localhost"), name) for name in NAMES)
    market = Market(RunningMarket(StateFolder(Path("nowhere")), "alice", "localhost"))
    monkeypatch.setattr("ramp.cli.verbs.machines.open_market", lambda state, user: market)
    monkeypatch.setattr("ramp.cli.verbs.machines.ask", lambda market, dialogue, doing: found)

    def run(*options):
        return ramp("resources", *options).out

    return run


def test_each_is_shown_with_its_site(resources):
    found = json.loads(resources("--brief", "--json"))
    assert [(each["address"], each["site"]) for each in found] == [
        ("west1@localhost", "localhost"),
        ("south1@south.example", "south.example"),
        ("south2@south.example", "south.example"),
    ]


def test_only_those_of_a_site(resources, monkeypatch):
    assert [each["address"] for each in json.loads(resources("--brief", "--json", "--site", "South.example"))] == [
        "south1@south.example",
        "south2@south.example",
    ]
    monkeypatch.setattr(Market, "machines", lambda self, resources: resources)
    assert resources("--site", "north.example") == "No resource of north.example is registered\n"


def test_where_there_are_several_sites_the_table_has_a_column(resources, monkeypatch):
    monkeypatch.setattr(Market, "machines", lambda self, resources: resources)
    head, first, *_ = resources().splitlines()
    assert head.split()[:2] == ["Resource", "Site"]
    assert first.split()[:2] == ["west1", "localhost"]


def test_a_machine_that_sells_nothing_is_shown_with_the_cause(resources, monkeypatch):
    def machines(self, resources):
        return (replace(resources[0], problem="plug-in: sudo does not let ramp run the wrapper"), *resources[1:])

    monkeypatch.setattr(Market, "machines", machines)
    first, second, _ = json.loads(resources("--json"))
    assert (first["not_selling"], second["not_selling"]) == ("plug-in: sudo does not let ramp run the wrapper", None)
    lines = " ".join(resources().split())
    assert "not selling: plug-in: sudo does not let ramp run the wrapper" in lines
    assert "(no answer)" in lines
