"""What the embedded server answers to those who have not logged in (XEP-0445, XEP-0077)."""

import xml.etree.ElementTree as ElementTree

import pytest

from ramp.runtime.joining.account_tokens import AccountToken, token_digest
from ramp.servers.accounts import REFUSALS_MAX, Accounts, Registration

END = 1_000_000
STANZAS = "{urn:ietf:params:xml:ns:xmpp-stanzas}"


@pytest.fixture
def accounts(tmp_path):
    accounts = Accounts("localhost", tmp_path / "registered.json")
    accounts.give({"dora": AccountToken(token_digest("good"), END)})
    return accounts


@pytest.fixture
def clock():
    return [0]


@pytest.fixture
def client(accounts, clock):
    return Registration(accounts, "localhost", lambda: clock[0])


def asks(client, inner, kind="set"):
    """The condition with which a client is refused, `result` where it is not; and the answer."""
    answer, _ = client.answer(ElementTree.fromstring(f"<iq xmlns='jabber:client' type='{kind}' id='i'>{inner}</iq>"))
    found = ElementTree.fromstring(answer)
    assert found.get("id") == "i"
    error = found.find("error")
    if error is None:
        assert found.get("type") == "result"
        return "result", found
    assert found.get("type") == "error"
    return error[0].tag.removeprefix(STANZAS), found


def preauth(token):
    return f"<preauth xmlns='urn:xmpp:pars:0' token='{token}'/>"


def query(name="dora", password="hers", more=""):
    fields = f"<username>{name}</username><password>{password}</password>{more}"
    return f"<query xmlns='jabber:iq:register'>{fields}</query>"


def test_token_and_registration(client, accounts):
    assert asks(client, preauth("good"))[0] == "result"
    _, form = asks(client, "<query xmlns='jabber:iq:register'/>", "get")
    assert form.find("{jabber:iq:register}query/{jabber:iq:register}username").text == "dora"
    assert asks(client, query())[0] == "result"
    assert accounts.is_password_of("dora", "hers")
    assert asks(client, query(password="other"))[0] == "conflict"
    assert asks(client, preauth("good"))[0] == "item-not-found"
    assert accounts.is_password_of("dora", "hers")


def test_the_end_of_a_token_counts_when_it_is_shown(client, accounts, clock):
    """XEP-0445, section 4: it must only be checked at this point."""
    asks(client, preauth("good"))
    clock[0] = END + 1
    assert asks(Registration(accounts, "localhost", lambda: END + 1), preauth("good"))[0] == "item-not-found"
    assert asks(client, query())[0] == "result"


@pytest.mark.parametrize(
    ("inner", "condition"),
    [
        (query(), "not-allowed"),
        (preauth("wrong"), "item-not-found"),
        (preauth(""), "item-not-found"),
        ("<preauth xmlns='urn:xmpp:pars:0'/>", "item-not-found"),
        (preauth("g" * 100_000), "item-not-found"),
        ("<ping xmlns='urn:xmpp:ping'/>", "not-allowed"),
        ("", "not-allowed"),
    ],
)
def test_without_a_token_there_is_nothing(client, accounts, inner, condition):
    assert asks(client, inner)[0] == condition
    assert asks(client, query())[0] == "not-allowed"
    assert not accounts.exists("dora")


NAMES = ["bank", "DORA", "Dora", "\uff44ora", "dora\u00ad", " dora", "dora ", "dora@localhost", "dora/x", ""]


@pytest.mark.parametrize("name", NAMES)
def test_a_token_is_for_exactly_its_name(client, accounts, name):
    asks(client, preauth("good"))
    assert asks(client, query(name))[0] == "not-acceptable"
    assert not accounts.exists(name)
    assert asks(client, query())[0] == "result"


@pytest.mark.parametrize("password", ["", "p" * 1024, "\u20ac" * 342])
def test_passwords_that_are_none_are_refused(client, accounts, password):
    asks(client, preauth("good"))
    assert asks(client, query(password=password))[0] == "not-acceptable"
    assert not accounts.exists("dora")


def test_nobody_cancels_an_account(client, accounts):
    asks(client, preauth("good"))
    assert asks(client, query(more="<remove/>"))[0] == "not-acceptable"
    asks(client, query())
    assert accounts.is_password_of("dora", "hers")


def test_a_wrong_token_undoes_the_right_one(client):
    asks(client, preauth("good"))
    asks(client, preauth("wrong"))
    assert asks(client, query())[0] == "not-allowed"


def test_one_that_is_taken_back_in_between_is_refused(client, accounts):
    asks(client, preauth("good"))
    accounts.give({"dora": None})
    assert asks(client, query())[0] == "conflict"
    assert not accounts.exists("dora")


def test_who_guesses_is_hung_up(client):
    ends = []
    for number in range(REFUSALS_MAX):
        asked = f"<iq xmlns='jabber:client' type='set' id='i'>{preauth(f'guess-{number}')}</iq>"
        ends.append(client.answer(ElementTree.fromstring(asked))[1])
    assert ends == [False] * (REFUSALS_MAX - 1) + [True]


def test_a_full_disk_makes_no_account(client, accounts, tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    asks(client, preauth("good"))
    monkeypatch.setattr("ramp.servers.accounts.write_whole", full)
    assert asks(client, query())[0] == "internal-server-error"
    monkeypatch.undo()
    assert not accounts.exists("dora")
    assert asks(client, query())[0] == "result"
