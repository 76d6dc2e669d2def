"""The embedded server's accounts: who may log in."""

import base64

import pytest

from ramp.errors import ConfigurationError
from ramp.runtime.joining.account_tokens import AccountToken, token_digest
from ramp.servers.accounts import Accounts, give
from ramp.servers.embedded import EmbeddedServer
from ramp.servers.prosody import ProsodyServer


@pytest.fixture
def given(tmp_path):
    return tmp_path / "accounts.json"


@pytest.fixture
def accounts(tmp_path, given):
    give(given, {"bank": "secret", "alice": "other"}, {})
    return Accounts("localhost", given, tmp_path / "registered.json")


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
        server.ensure_tokens({"bank": None, "bank@localhost/evil": None})
    assert server.accounts == server.tokens == {}


def test_only_the_owner_reads_passwords(accounts, given):
    assert given.stat().st_mode & 0o077 == 0


def test_what_is_given_again_counts(accounts, given):
    give(given, {"bank": "new"}, {"dora": AccountToken(token_digest("t"), 1000), "emil": None})
    assert accounts.log_in("PLAIN", plain("bank")) is None
    assert accounts.log_in("PLAIN", plain("bank", "new")) == "bank"
    assert accounts.log_in("PLAIN", plain("alice", "other")) is None
    assert accounts.name_for("t", 1000) == "dora"


@pytest.mark.parametrize(
    "text",
    [
        "nonsense",
        '["bank"]',
        '{"bank": 7}',
        '{"dora": {"digest": "00"}}',
    ],
)
def test_a_file_that_gives_no_accounts_is_refused(tmp_path, given, text):
    given.write_text(text)
    with pytest.raises(ConfigurationError, match="launcher's accounts cannot be read"):
        Accounts("localhost", given, tmp_path / "registered.json")


def test_of_a_name_the_last_word_holds(accounts, given):
    """A token closes an account that was given, a password one that was registered; who is inside is sent away."""
    closed = []
    accounts.closed = closed.append
    give(given, {"bank": "secret"}, {"alice": AccountToken(token_digest("t"), 1000)})
    assert accounts.log_in("PLAIN", plain("alice", "other")) is None
    assert not accounts.exists("alice")
    assert accounts.register("alice", "t", "her own")
    assert accounts.exists("alice")
    assert accounts.log_in("PLAIN", plain("alice", "her own")) == "alice"
    assert accounts.log_in("PLAIN", plain("alice", "other")) is None
    assert closed == ["alice"]
    give(given, {"bank": "other", "alice": "given"}, {})
    assert accounts.log_in("PLAIN", plain("alice", "her own")) is None
    assert accounts.log_in("PLAIN", plain("alice", "given")) == "alice"
    assert closed == ["alice", "alice"]
    give(given, {"alice": "given"}, {})
    accounts.look()
    assert closed == ["alice", "alice", "bank"]
