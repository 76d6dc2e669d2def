"""`ramp invite` and `ramp join` with account tokens: who is invited makes the account at the market's server."""

import asyncio
import os
import signal

import pytest

from ramp.cli.main import main
from ramp.runtime.joining.invitations import read_invitation
from tests.e2e.attacks.rogue import door, logs_in
from tests.e2e.swarm.swarm_market import until

pytestmark = [pytest.mark.e2e, pytest.mark.full]


@pytest.fixture(scope="module")
def market(module_market, kind):
    market = module_market(kind=kind, users={"alice": 1_000_000}, per_process=4)
    with market.config.open("a") as file:
        file.write("[enrolment]\n")
    market.up()
    market.wait_ready()
    return market


@pytest.fixture
def ramp(market, capsys):
    """Runs a verb of the market's keeper; what it prints."""

    def run(*arguments):
        capsys.readouterr()
        assert main([*arguments, "--state-dir", str(market.state.path)]) == 0
        return capsys.readouterr().out

    return run


def test_the_invited_makes_an_account_that_only_she_knows(market, ramp, site, at_site):
    """She joins, and is there again after her agents, and the market's server, have been started again."""
    line = ramp("invite", "--role", "user", "nora@localhost", "--deposit", "5000", "--token").strip()
    invitation = read_invitation(line)
    code, told = at_site("join", line)
    assert code == 0, told
    assert "5 000" in at_site("balance")[1], told
    password = site.passwords([])["nora"]
    assert asyncio.run(logs_in(door(market), "nora", password))
    for kept in [path.read_bytes() for path in market.state.path.rglob("*") if path.is_file()]:
        assert password.encode() not in kept
        assert invitation.account_token.encode() not in kept
    assert at_site("join", line)[0] == 0, "joining again is how a certificate is renewed"
    assert at_site("down")[0] == 0
    server = market.status()["server"]["pid"]
    os.kill(server, signal.SIGKILL)
    until(lambda: market.status()["server"]["pid"] not in (server, None), "the server is started again")
    assert at_site("up", str(site.path / "site.toml"), "--detach")[0] == 0
    assert "5 000" in at_site("balance")[1]


def test_one_that_is_revoked_makes_none(market, ramp, site, at_site):
    line = ramp("invite", "--role", "user", "otto@localhost", "--token").strip()
    ramp("invite", "revoke", "otto@localhost")
    code, told = at_site("join", line)
    assert code == 1
    assert "the account otto@localhost cannot be registered" in told
    assert asyncio.run(logs_in(door(market), "otto", site.passwords([])["otto"])) is None


def test_who_came_first_with_a_stolen_invitation_is_out_once_it_is_revoked(market, ramp, site, at_site):
    from ramp.agents.joining.applying import register
    from ramp.runtime.joining.membership import market_account

    stolen = read_invitation(ramp("invite", "--role", "user", "petra@localhost", "--token"))
    register(market_account(stolen), "of a thief", stolen.account_token)
    assert at_site("join", stolen.token())[0] == 1
    ramp("invite", "revoke", "petra@localhost", "--reason", "stolen")
    until(lambda: asyncio.run(logs_in(door(market), "petra", "of a thief")) is None, "the thief is out")
    line = ramp("invite", "--role", "user", "petra@localhost", "--token").strip()
    assert at_site("join", line, "--no-start")[0] == 0
    assert asyncio.run(logs_in(door(market), "petra", site.passwords([])["petra"]))
    assert asyncio.run(logs_in(door(market), "petra", "of a thief")) is None


def test_an_invitation_without_its_token_is_told(market, ramp, at_site):
    invitation = read_invitation(ramp("invite", "--role", "user", "rosa@localhost", "--token"))
    code, told = at_site("join", invitation.without_token().token())
    assert code == 2
    assert "has no account token" in told


def test_an_invited_name_is_given_to_nobody_else(market, ramp, capsys):
    ramp("invite", "--role", "user", "sven@localhost", "--token")
    assert main(["user", "add", "sven", "--state-dir", str(market.state.path)]) == 2
    assert "sven@localhost has an invitation" in " ".join(capsys.readouterr().err.split())
    ramp("invite", "revoke", "sven@localhost")
