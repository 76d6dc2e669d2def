"""Where a market cannot be spread over hosts, the reason is told and one host is measured."""

from __future__ import annotations

import os

from ramp.runtime.config_file import load_config
from simulation.experiments import market_hosts, market_network
from simulation.experiments.market_hosted_group import federated
from simulation.experiments.market_plan import swarms_directory


def test_without_root_there_are_no_namespaces(monkeypatch) -> None:
    monkeypatch.setattr(market_hosts.shutil, "which", lambda program: program)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert market_hosts.reason_against() == "network namespaces need root"


def test_a_missing_program_is_named(monkeypatch) -> None:
    monkeypatch.setattr(market_hosts.shutil, "which", lambda program: None if program == "prosody" else program)
    assert market_hosts.reason_against() == "prosody is not installed"


def test_one_host_alone_is_still_compared() -> None:
    row = {"users": 1, "response_s": 0.01, "response_s_sd": 0.0, "round_s": 0.02}
    table = [row, {**row, "users": 10, "response_s": 0.1, "round_s": 0.2}]
    compared = market_network._comparisons({"one host": table})
    assert any("R²" in each.what for each in compared)
    slope = next(each for each in compared if each.what == "response time for one more user")
    assert abs(slope.ours - 10.0) < 1e-6  # 90 ms over 9 users


def test_netem_is_told_in_its_own_words() -> None:
    arguments = market_hosts._netem(15_400, 1_000, 0.01)
    assert arguments == ["netem", "limit", "100000", "delay", "15400us", "1000us", "loss", "1%"]


def test_agents_have_the_domain_of_their_host() -> None:
    config = federated(load_config(swarms_directory() / "table2.toml"), {"curie1": "far.test"})
    assert config.address("curie1") == "curie1@far.test"
    assert config.address("curie2") == "curie2@localhost"
    assert config.address(config.bank) == "bank@localhost"
