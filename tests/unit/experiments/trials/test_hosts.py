"""The study of two hosts, and what it says where a computer cannot be two hosts."""

import os
from pathlib import Path

import pytest

from ramp.declarations import load_file
from ramp.errors import ConfigurationError
from ramp.runtime.configuration.file import load_config
from ramp.runtime.shipped_swarms import find_config
from simulation.experiments.market import network as market_network
from simulation.experiments.study import Found, Run
from simulation.experiments.trials.plan import Mode

two_hosts = load_file(Path(__file__).parents[4] / "examples" / "studies" / "two_hosts.py")


def test_without_root_there_are_no_namespaces(monkeypatch) -> None:
    monkeypatch.setattr(two_hosts.shutil, "which", lambda program: program)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert two_hosts.reason_against() == "network namespaces need root"


def test_a_missing_program_is_named(monkeypatch) -> None:
    monkeypatch.setattr(two_hosts.shutil, "which", lambda program: None if program == "prosody" else program)
    assert two_hosts.reason_against() == "prosody is not installed"


def test_one_host_alone_is_still_compared() -> None:
    row = {"users": 1, "response_s": 0.01, "response_s_sd": 0.0, "round_s": 0.02}
    table = [row, {**row, "users": 10, "response_s": 0.1, "round_s": 0.2}]
    rows = [{"deployment": "one host", **row} for row in table]
    compared = market_network._comparisons(Found(Run(True, 1, {"mode": Mode.XMPP}), {}, tables={"figure13": rows}))
    assert any("R²" in each.what for each in compared)
    slope = next(each for each in compared if each.what == "response time, one more user")
    assert abs(slope.ours - 10.0) < 1e-6  # 90 ms over 9 users


def test_a_computer_that_cannot_be_two_hosts_is_refused_with_the_reason(monkeypatch) -> None:
    monkeypatch.setattr(two_hosts, "reason_against", lambda: "prosody is not installed")
    with pytest.raises(ConfigurationError, match="prosody is not installed"):
        two_hosts.STUDY.cases(Run(True, 1, two_hosts.STUDY.options))
    with pytest.raises(ConfigurationError, match="--xmpp"):
        two_hosts.STUDY.cases(Run(True, 1, {**two_hosts.STUDY.options, "mode": Mode.SIMULATED}))


def test_one_host_and_two_have_the_same_servers(monkeypatch) -> None:
    monkeypatch.setattr(two_hosts, "reason_against", lambda: "")
    cases = two_hosts.STUDY.cases(Run(True, 1, two_hosts.STUDY.options))
    assert list(cases) == ["one host", "two hosts", "bad network"]
    assert {plan.server for plans in cases.values() for plan in plans} == {"prosody"}
    assert {plan.links is None for plan in cases["one host"]} == {True}


def names_of(plan) -> list[str]:
    return ["bank", "directory", *(each.name for each in plan.resources), *(f"user{n + 1}" for n in range(plan.users))]


def test_agents_have_the_domain_of_their_host() -> None:
    config = two_hosts.federated(load_config(find_config("table2")), {"curie1": "far.test"})
    assert config.address("curie1") == "curie1@far.test"
    assert config.address("curie2") == "curie2@localhost"
    assert config.address(config.bank) == "bank@localhost"
