"""The embedded server's accounts: who may log in."""

import asyncio
import base64
import socket
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from ramp.errors import ConfigurationError
from ramp.runtime.joining.account_tokens import AccountToken, token_digest
from ramp.servers.accounts import DONE, Accounts, take_accounts
from ramp.servers.embedded import EmbeddedServer
from ramp.servers.prosody import ProsodyServer


@pytest.fixture
def accounts(tmp_path):
    accounts = Accounts("localhost", tmp_path / "registered.json")
    accounts.give({"bank": "secret", "alice": "other"})
    return accounts


def plain(name, password="secret", acting_as=""):
    return base64.b64encode(f"{acting_as}\0{name}\0{password}".encode()).decode()


def test_who_has_the_password_is_let_in(accounts):
    assert accounts.log_in("PLAIN", plain("bank")) == "bank"
    assert accounts.log_in("PLAIN", plain("bank", acting_as="bank@localhost")) == "bank"


@pytest.mark.parametrize(
    ("mechanism", "response"),
    [
        ("PLAIN", plain("bank", "other")),
        ("PLAIN", plain("nobody")),
        ("PLAIN", plain("BANK")),
        ("PLAIN", plain("\uff42ank")),
        ("PLAIN", plain("bank\u00ad")),
        ("PLAIN", plain("bank@localhost/evil")),
        ("PLAIN", plain("bank@localhost")),
        ("PLAIN", plain("alice", "other", acting_as="bank@localhost")),
        ("PLAIN", plain("")),
        ("PLAIN", plain("bank", "")),
        ("PLAIN", ""),
        ("PLAIN", None),
        ("PLAIN", "no base64!"),
        ("PLAIN", base64.b64encode(b"bank\0secret").decode()),
        ("PLAIN", base64.b64encode(b"\0bank\0secret\0more").decode()),
        ("PLAIN", base64.b64encode(b"\0bank\xff\0secret").decode()),
        ("SCRAM-SHA-1", plain("bank")),
        ("EXTERNAL", ""),
        (None, plain("bank")),
    ],
)
def test_nobody_else_is(accounts, mechanism, response):
    assert accounts.log_in(mechanism, response) is None


@pytest.mark.parametrize("kind", [EmbeddedServer, ProsodyServer])
def test_a_launcher_makes_no_account_of_a_bad_name(kind, tmp_path):
    server = kind(tmp_path)
    with pytest.raises(ConfigurationError, match="invalid account name"):
        server.ensure_accounts({"bank": "chosen", "BANK": "chosen"})
    with pytest.raises(ConfigurationError, match="invalid account name"):
        server.ensure_accounts({"bank": None, "bank@localhost/evil": None})
    assert server.accounts == {}


def test_passwords_are_not_kept(accounts):
    assert b"secret" not in b"".join(accounts._digests.values())


def take(accounts, *lines):
    """Give lines of accounts as the launcher does, and return the answers."""

    async def taken(channel):
        await (await take_accounts(accounts, channel))

    own, child = socket.socketpair()
    with own:
        own.sendall("".join(f"{line}\n" for line in lines).encode())
        own.shutdown(socket.SHUT_WR)
        asyncio.run(taken(child.detach()))
        return own.recv(100_000).decode()


@pytest.mark.parametrize(
    "line",
    ["nonsense", '["bank"]', '{"bank": 7}', '{"a": {"digest": "00"}}', '{"a": {"digest": "00", "ends_at": "x"}}'],
)
def test_a_line_that_gives_no_accounts_is_refused(accounts, line):
    with pytest.raises(ConfigurationError, match="account"):
        take(accounts, line)
    assert accounts.log_in("PLAIN", plain("bank")) == "bank"


def test_a_line_gives_passwords_and_tokens(accounts):
    token = f'{{"digest": "{token_digest("t")}", "ends_at": 1000}}'
    answer = take(accounts, "{}", '{"bank": 7}', f'{{"alice": "new", "dora": {token}, "bank": null}}')
    first, wrong, last = answer.splitlines()
    assert (first, last) == ("ok", "ok")
    assert "expected a JSON object" in wrong
    assert accounts.log_in("PLAIN", plain("alice", "new")) == "alice"
    assert accounts.log_in("PLAIN", plain("alice", "other")) is None
    assert accounts.log_in("PLAIN", plain("bank")) is None
    assert accounts.name_for("t", 1000) == "dora"


def test_of_a_name_the_last_word_holds(accounts):
    """A token closes an account that was given, a password one that was registered; who is inside is sent away."""
    closed = []
    accounts.closed = closed.append
    accounts.give({"alice": AccountToken(token_digest("t"), 1000)})
    assert accounts.log_in("PLAIN", plain("alice", "other")) is None
    assert not accounts.exists("alice")
    assert accounts.register("alice", "t", "her own")
    assert accounts.exists("alice")
    assert accounts.log_in("PLAIN", plain("alice", "her own")) == "alice"
    assert accounts.log_in("PLAIN", plain("alice", "other")) is None
    assert closed == ["alice"]
    accounts.give({"alice": "given"})
    assert accounts.log_in("PLAIN", plain("alice", "her own")) is None
    assert accounts.log_in("PLAIN", plain("alice", "given")) == "alice"
    assert closed == ["alice", "alice"]


def test_callers_take_turns_on_the_channel(tmp_path):
    launcher = EmbeddedServer(tmp_path)
    launcher._one_at_a_time = threading.Lock()
    launcher._channel, server = socket.socketpair()
    with ThreadPoolExecutor(50) as callers:
        given = [callers.submit(launcher._give, {f"user{number}": None}) for number in range(50)]
        for _ in given:
            assert server.recv(4096).count(b"\n") == 1
            server.sendall(DONE)
    assert {each.result() for each in given} == {None}
    server.close()
