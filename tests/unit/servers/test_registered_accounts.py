"""Accounts that were registered with tokens: one name, once, until the end; on disk before anything is answered."""

import hashlib
import json

import pytest

from ramp.errors import ConfigurationError, WrongVersion
from ramp.runtime.joining.account_tokens import AccountToken, token_digest
from ramp.servers.accounts import Accounts

END = 1_000_000


@pytest.fixture
def path(tmp_path):
    return tmp_path / "server" / "registered.json"


@pytest.fixture
def accounts(path):
    return again(path, dora="good", emil="better")


def again(path, **tokens):
    """The accounts after a restart of the server, with what its launcher gives it then."""
    accounts = Accounts("localhost", path)
    accounts.give({name: AccountToken(token_digest(token), END) for name, token in tokens.items()})
    return accounts


def test_a_token_is_for_one_name_until_its_end(accounts):
    assert accounts.name_for("good", END) == "dora"
    assert accounts.name_for("better", 0) == "emil"
    for token, now in (("good", END + 1), ("goo", 0), ("", 0), (token_digest("good"), 0), ("GOOD", 0), ("\udcff", 0)):
        assert accounts.name_for(token, now) is None


def test_it_registers_no_other_name(accounts):
    assert not accounts.register("emil", "good", "x")
    assert not accounts.register("bank", "good", "x")
    assert not any(accounts.exists(name) for name in ("dora", "emil", "bank"))


def test_registration_is_open_while_a_token_may_be_used(accounts):
    assert accounts.is_open(END)
    assert not accounts.is_open(END + 1)
    accounts.register("dora", "good", "x")
    assert accounts.is_open(END)
    accounts.register("emil", "better", "x")
    assert not accounts.is_open(END)


def test_a_restart_keeps_what_was_registered_and_what_is_used(accounts, path):
    accounts.register("dora", "good", "hers")
    later = again(path, dora="good", emil="better")
    assert later.is_password_of("dora", "hers")
    assert later.name_for("good", 0) is None
    assert later.name_for("better", 0) == "emil"


def test_where_the_file_is_lost_a_token_makes_the_account_again(accounts, path):
    accounts.register("dora", "good", "hers")
    path.unlink()
    later = again(path, dora="good")
    assert later.name_for("good", END + 1) is None
    assert later.name_for("good", END) == "dora"
    assert later.register("dora", "good", "hers")
    assert later.is_password_of("dora", "hers")


def test_neither_token_nor_password_is_on_disk(accounts, path):
    accounts.register("dora", "good", "secret of hers")
    text = path.read_text("utf-8")
    assert "good" not in text
    assert "secret of hers" not in text
    assert path.stat().st_mode & 0o077 == 0
    kept = json.loads(text)["accounts"]["dora"]
    assert kept["token_digest"] == hashlib.sha256(b"good").hexdigest()
    salt = bytes.fromhex(kept["salt"])  # RFC 8018, by the standard library
    assert kept["password_digest"] == hashlib.pbkdf2_hmac("sha256", b"secret of hers", salt, kept["iterations"]).hex()
    accounts.register("emil", "better", "secret of hers")  # salted anew
    assert json.loads(path.read_text("utf-8"))["accounts"]["emil"]["password_digest"] != kept["password_digest"]


def test_an_account_lives_as_long_as_its_token_is_the_one_given(accounts, path):
    accounts.register("dora", "good", "hers")
    accounts.give({"dora": AccountToken(token_digest("good"), 0)})  # it has ended, and the account stays
    assert accounts.is_password_of("dora", "hers")
    accounts.give({"dora": AccountToken(token_digest("newer"), END)})
    assert not accounts.exists("dora")
    assert not accounts.is_password_of("dora", "hers")
    assert accounts.register("dora", "newer", "again")
    accounts.give({"dora": None})
    assert not accounts.exists("dora")
    assert accounts.name_for("newer", 0) is None
    assert not again(path, dora="newer").exists("dora")


def test_nobody_logs_in_to_an_account_that_the_launcher_does_not_know(accounts, path):
    accounts.register("dora", "good", "hers")
    assert not again(path).is_password_of("dora", "hers")
    assert not again(path).exists("dora")


def test_a_file_of_another_version_is_refused(path):
    path.parent.mkdir()
    path.write_text('{"version": 2, "accounts": {}}')
    with pytest.raises(WrongVersion, match="wrong version of this list of registered accounts: got 2, expected 1"):
        Accounts("localhost", path)


@pytest.mark.parametrize("damage", ["", "[]", '{"version": 1}', '{"version": 1, "accounts": {"dora": {}}}'])
def test_a_damaged_file_is_told(path, damage):
    path.parent.mkdir()
    path.write_text(damage)
    with pytest.raises(ConfigurationError, match="accounts that were registered"):
        Accounts("localhost", path)
