"""What there is several of: how a file says so, what agents it makes, and what stands by in the headline."""

from dataclasses import replace

import pytest

from ramp.agents.building import transport_settings
from ramp.agents.preparing import grouped
from ramp.control.headline import Health, headline
from ramp.control.status import AgentStatus, ServerStatus, SwarmStatus
from ramp.errors import ConfigurationError
from ramp.model.instant import SECOND
from ramp.model.seal import Role
from ramp.runtime.configuration.values import SwarmConfig
from tests.tiny_market import config_of, tiny_market

MARKET = tiny_market({"alice": 0}, prices={"m1": (30, 10)})


def read(tables: str = "") -> SwarmConfig:
    return config_of(f"{tables}\n{MARKET}")


def test_there_is_one_of_each_where_nothing_is_said() -> None:
    config = read()
    assert config.directory_names == ("directory",)
    assert config.bank_names == ("bank",)
    assert config.agents() == config.roles()


def test_further_ones_have_processes_of_their_own() -> None:
    tables = (
        '[market]\ndirectories = 3\nbank = "house"\nledger = "postgresql://ramp@db/ramp"\n'
        "[bank]\nstandby = true\nlease_s = 7"
    )
    config = read(tables)
    assert config.banks.lease == 7 * SECOND
    assert grouped(config) == {
        "market": ["directory", "house", "keeper"],
        "users": ["alice"],
        "directory-2": ["directory-2"],
        "directory-3": ["directory-3"],
        "house-2": ["house-2"],
        "resources-1": ["m1"],
    }
    alone = grouped(replace(config, resources_per_process=1))
    assert alone.keys() == {"directory", "directory-2", "directory-3", "house", "house-2", "keeper", "alice", "m1"}


def test_few_users_are_in_the_process_of_the_bank() -> None:
    config = read()
    (alice,) = config.users
    users = tuple(replace(alice, name=f"user{each}") for each in range(5))
    few = [each.name for each in users[:4]]
    assert grouped(replace(config, users=users[:4]))["market"] == ["directory", "bank", "keeper", *few]
    assert grouped(replace(config, users=users))["users"] == [each.name for each in users]


def test_no_more_than_fifty_users_share_a_process() -> None:
    config = read()
    (alice,) = config.users
    for number, lots in ((50, [50]), (51, [50, 1]), (120, [50, 50, 20])):
        users = tuple(replace(alice, name=f"user{each}") for each in range(number))
        groups = {name: found for name, found in grouped(replace(config, users=users)).items() if "user" in name}
        assert [len(found) for found in groups.values()] == lots
        assert list(groups) == ["users", "users-2", "users-3"][: len(lots)]
        assert [name for found in groups.values() for name in found] == [each.name for each in users]


def test_the_bank_that_stands_by_has_no_name_and_so_no_key_of_its_own() -> None:
    tables = '[market]\nledger = "postgresql+psycopg://ramp@db/ramp"\n[bank]\nstandby = true'
    config = read(tables)
    assert "bank-2" not in config.roles()
    assert config.agents()["bank-2"] is Role.BANK


@pytest.mark.parametrize(
    ("tables", "told"),
    [
        ("[market]\ndirectories = 0", "market.directories: got 0, expected a whole number from 1"),
        ("[market]\ndirectories = 10", "market.directories: got 10, expected a whole number from 1 to 9"),
        ("[bank]\nstandby = true", "bank.standby: got true, expected false, or market.ledger"),
        ('[market]\nledger = "sqlite:///x"\n[bank]\nstandby = true', "bank.standby: got true,"),
        ("[bank]\nlease_s = 1", "bank.lease_s: got 1, expected a number of seconds from 2"),
        ("[bank]\nstand_by = true", "bank.stand_by: unknown; did you mean 'standby'?"),
        ("[server]\nspread = true", "server.spread: got true, expected false, or addresses of several"),
        ('[server]\naddresses = ["a:5222"]\nspread = true', "server.spread: got true,"),
        ('[server]\naddresses = ["a"]', "server.addresses[0]: got 'a', expected an address such as"),
        ('[market]\ndirectories = 2\nkeeper = "directory-2"', "name: 'directory-2' is used 2 times"),
    ],
)
def test_what_is_wrong_is_told(tables: str, told: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        read(tables)
    assert told in str(refused.value)


def test_a_market_whose_second_bank_stands_by_is_up() -> None:
    def agent(name: str, state: str, *, is_up: bool) -> AgentStatus:
        return AgentStatus(name, "bank", 1, state, "", 0, "", is_up=is_up)

    def health(*agents: AgentStatus) -> Health:
        return headline(SwarmStatus("up", "", 1, "", ServerStatus("embedded", "", 1, 1), agents)).health

    bank, standby = agent("bank", "ready", is_up=True), agent("bank-2", "standby", is_up=False)
    assert health(bank, standby) is Health.UP
    assert health(replace(bank, state="failed", is_up=False), standby) is Health.DEGRADED


def test_agents_begin_with_different_servers_of_a_cluster_and_know_all() -> None:
    tables = '[server]\naddresses = ["a.example:5222", "b.example:5223"]\nspread = true'
    config = read(tables)
    assert config.server.spread
    settings = transport_settings(config, "", 0, None)
    a, b = ("a.example", 5222), ("b.example", 5223)
    assert [settings.beginning_at(number).servers for number in (0, 1, 7)] == [(a, b), (b, a), (b, a)]
