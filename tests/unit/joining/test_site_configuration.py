"""Configurations of several sites: what they say, and what is wrong in them."""

from pathlib import Path

import pytest

from ramp.agents.preparing import grouped
from ramp.cli.main import main
from ramp.errors import ConfigurationError
from ramp.model.seal import Role
from ramp.runtime.joining.membership import check_configuration, install, not_enrolled, request_of, site_text
from ramp.runtime.state_folder import StateFolder
from tests.tiny_market import config_of
from tests.unit.joining.inviting_market import NOW, Market

SITE = """
[market]
domain = "south.example"
[site]
market = "west.example"
[server]
addresses = ["xmpp.south.example:5222"]
[machines.m]
cores = 64
[[resources]]
name = "curie"
machine = "m"
start_price = 50
minimum_price = 20
"""


def test_a_site_has_no_bank_of_its_own_and_addresses_the_markets() -> None:
    config = config_of(SITE)
    assert config.roles() == {"curie": Role.RESOURCE}
    assert grouped(config) == {"resources-1": ["curie"]}
    assert config.address("curie") == "curie@south.example"
    assert config.market_address(config.bank) == "bank@west.example"
    assert config.federates
    assert config.signed_offers  # across sites, unless the file says otherwise
    assert not config_of(SITE.replace("[site]", "signed_offers = false\n[site]")).signed_offers


def test_a_site_may_have_users_only(tmp_path: Path) -> None:
    users = SITE[: SITE.index("[machines.m]")] + '[[users]]\nname = "ann"\n'
    config = config_of(users)
    assert grouped(config) == {"users": ["ann"]}
    (tmp_path / "site.toml").write_text(users)
    assert main(["config", "--check", str(tmp_path / "site.toml")]) == 0
    with pytest.raises(ConfigurationError, match="expected at least one"):
        config_of(SITE[: SITE.index("[machines.m]")])


def test_the_directories_of_the_market_are_all_asked() -> None:
    config = config_of(SITE.replace('market = "west.example"', 'market = "west.example"\ndirectories = 2'))
    assert [config.market_address(name) for name in config.directory_names] == [
        "directory@west.example",
        "directory-2@west.example",
    ]


@pytest.mark.parametrize(
    ("change", "wrong"),
    [
        (("[site]", '[site]\ncolour = "red"'), "site.colour: unknown"),
        (('market = "west.example"', ""), "site.market: is missing"),
        (('domain = "south.example"', 'domain = "south.example"\nbank = "b"'), "market.bank: got 'b',"),
        (('addresses = ["xmpp.south.example:5222"]', 'kind = "embedded"'), "the embedded server reaches no other site"),
        (("[server]", '[federation]\nlisten = "here"\n[server]'), "federation.listen: got 'here',"),
        (("[server]", "[federation]\n[server]"), "server.kind: got 'external',"),
        (("[server]", "[federation]\nserver_port = 70000\n[server]"), "federation.server_port: got 70000,"),
        (
            ("[server]", '[federation.peers]\n"west.example" = "west:5269"\n[server]'),
            "federation.peers.west.example: got 'west:5269',",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_wrong_is_named(change: tuple[str, str], wrong: str) -> None:
    assert change[0] in SITE
    with pytest.raises(ConfigurationError) as refused:
        config_of(SITE.replace(change[0], change[1], 1))
    assert wrong in str(refused.value)


def test_a_configuration_fits_its_invitation(market: Market) -> None:
    invitation = market.invite()
    check_configuration(config_of(SITE), invitation)
    for written, other, told in (
        ("south.example", "north.example", "market.domain: got 'north.example', expected 'south.example'"),
        ('market = "west.example"', 'market = "east.example"', "site.market: got 'east.example',"),
        ('"curie"', '"cray"', "resources: 'curie', named in the invitation, is missing"),
        ("[site]", "signed_offers = false\n[site]", "market.signed_offers: got False, expected True"),
    ):
        with pytest.raises(ConfigurationError) as refused:
            check_configuration(config_of(SITE.replace(written, other)), invitation)
        assert told in str(refused.value)
    market_only = SITE.replace('[site]\nmarket = "west.example"\n', "") + '[[users]]\nname = "ann"\n'
    with pytest.raises(ConfigurationError, match="not the configuration of a joined site"):
        check_configuration(config_of(market_only), invitation)


def test_a_site_starts_when_all_have_joined(market: Market, site: StateFolder) -> None:
    config = config_of(SITE)
    assert not_enrolled(config, site) == ["curie@south.example"]
    invitation = market.invite()
    install(site, invitation, market.authority.issue(request_of(site, invitation, NOW), NOW), NOW)
    assert not_enrolled(config, site) == []


def test_a_guest_of_the_markets_server_needs_no_configuration(market: Market, site: StateFolder) -> None:
    invitations = [market.invite(f"{name}@west.example", Role.USER) for name in ("dora", "emil")]
    for each in invitations:
        install(site, each, market.authority.issue(request_of(site, each, NOW), NOW), NOW)
    config = config_of(site_text(invitations, site))
    for each in invitations:
        check_configuration(config, each)
    assert config.server.addresses == (("192.0.2.1", 5222),)
