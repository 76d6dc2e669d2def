"""The study of two hosts, and what it says where a computer cannot be two hosts."""

import contextlib
import os
from pathlib import Path

import pytest

from ramp.declarations import load_file
from ramp.errors import ConfigurationError
from ramp.runtime.configuration.file import load_config
from ramp.runtime.shipped_swarms import find_config
from simulation.experiments.market import network as market_network
from simulation.experiments.market.trading import Tally
from simulation.experiments.market.users import plans_of
from simulation.experiments.study import Found, Run
from simulation.experiments.trials.plan import Mode, table2_resources

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


GOLDEN = """\
ip netns add h1
ip netns add h2
ip -n h1 link set lo up
ip -n h2 link set lo up
ip link add e1 netns h1 type veth peer name e2 netns h2
ip -n h1 addr add 10.77.31.1/24 dev e1
ip -n h1 link set e1 up
ip -n h2 addr add 10.77.31.2/24 dev e2
ip -n h2 link set e2 up
"""
"""Written after the manual pages ip-netns(8), ip-link(8) and veth(4)."""


def test_hosts_are_made_by_these_commands() -> None:
    commands = two_hosts.joining_commands(("h1", "h2"), ("e1", "e2"))
    assert [" ".join(command) for command in commands] == GOLDEN.splitlines()


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


def test_a_relay_stands_in_front_of_each_server(monkeypatch) -> None:
    """What is made of namespaces, servers and agents is noted instead of being started."""
    made = []

    @contextlib.contextmanager
    def hosts(folder):
        domains = enumerate(two_hosts.DOMAINS, 1)
        yield tuple(two_hosts.Host(f"h{n}", f"10.0.0.{n}", domain, folder / "ca") for n, domain in domains)

    @contextlib.contextmanager
    def noted(what, *details):
        made.append((what, *details))
        yield None

    monkeypatch.setattr(two_hosts, "joined_hosts", hosts)
    server = lambda host, state, port, accounts: noted("server", port, set(accounts))  # noqa: E731
    monkeypatch.setattr(two_hosts, "_prosody", server)
    monkeypatch.setattr(two_hosts, "_relay", lambda host, latency, links, seed: noted("relay", latency, links))
    monkeypatch.setattr(two_hosts, "_group", lambda command, names, log: noted("agents", len(names)))
    monkeypatch.setattr(two_hosts, "_prepare_identities", lambda plan, *_: dict.fromkeys(names_of(plan), "x"))
    monkeypatch.setattr(two_hosts, "trade_in_turn", lambda *_: None)
    resources = table2_resources()[:15]
    links = market_network.deployments_of(resources)["bad network"]
    (plan,) = plans_of(1, 1, (3,), resources, links)
    two_hosts.run_over_hosts({0: plan}, Tally(3))
    mean = 5 * (17_000 + 20_000 + 20_000 + 16_000 + 4_000) // 5
    assert [each for each in made if each[0] == "relay"] == [("relay", mean, links)] * 2
    assert (links.jitter, links.loss) == (5_000, 0.01)
    servers = [each for each in made if each[0] == "server"]
    assert {each[1] for each in servers} == {5270}
    accounts = [each[2] for each in servers]  # every agent has one, on the server of its host
    assert [len(each) for each in accounts] == [2 + 3 + 10, 5]
    assert accounts[0] | accounts[1] == set(names_of(plan))
    assert [each[1] for each in made if each[0] == "agents"] == [2, 3, 10, 5]


def test_agents_have_the_domain_of_their_host() -> None:
    config = two_hosts.federated(load_config(find_config("table2")), {"curie1": "far.test"})
    assert config.address("curie1") == "curie1@far.test"
    assert config.address("curie2") == "curie2@localhost"
    assert config.address(config.bank) == "bank@localhost"
