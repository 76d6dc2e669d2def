"""Strangers who want to be the bank, or anybody: no name but a canonical one, no account but those that were made."""

import asyncio

import pytest

from ramp.servers.prosody import ProsodyServer
from tests.e2e.attacks.rogue import LIMIT_S, logs_in, registers

pytestmark = [pytest.mark.e2e, pytest.mark.full]

NAMES = {
    "capitals": "BANK",
    "a capital": "Bank",
    "full width": "\uff42\uff41\uff4e\uff4b",
    "one full-width letter": "\uff42ank",
    "soft hyphen": "bank\u00ad",
    "with a domain and a resource": "bank@localhost/evil",
    "with a resource": "bank/evil",
    "leading space": " bank",
    "trailing space": "bank ",
    "decomposed": "cafe\u0301",
    "right-to-left override": "ban\u202ek",
    "left-to-right mark": "bank\u200e",
    "empty": "",
    "too long": "b" * 1024,
}
FRESH = {**NAMES, "canonical": "stranger"}


ACCOUNTS = {"bank": "of-bank", "mallory": "of-mallory", "victim": "of-victim", "caf\u00e9": "of-cafe"}


@pytest.fixture(scope="module")
def server(shared_server):
    shared_server.ensure_accounts(ACCOUNTS)
    return shared_server


async def test_nobody_makes_an_account_in_band(server):
    for name in FRESH.values():
        assert not await registers(server, name, "chosen"), name
        assert await logs_in(server, name, "chosen") is None, name


async def test_nobody_logs_in_under_a_name_that_is_not_canonical(server):
    for name in NAMES.values():
        for password in ("of-bank", "of-mallory", "of-cafe"):
            address = await logs_in(server, name, password)
            if address is None:
                continue
            # Prosody prepares what a client says: who has the bank's own password is then the bank, under its one name
            assert isinstance(server, ProsodyServer), name
            assert (address.partition("/")[0], password) in {
                ("bank@localhost", "of-bank"),
                ("caf\u00e9@localhost", "of-cafe"),
            }


@pytest.mark.parametrize(
    "claimed",
    ["bank@localhost", "bank@localhost/x", "BANK@localhost", "mallory@localhost/other", "localhost", "bank@@localhost"],
)
async def test_nobody_speaks_as_another(xmpp_server, rogues, claimed):
    server = xmpp_server  # of its own: a server keeps for later what a victim that has left was sent
    server.ensure_accounts(ACCOUNTS)
    victim = await rogues(server, "victim")
    mallory = await rogues(server, "mallory")
    await mallory.send("victim@localhost", "pay", sender=claimed)
    mallory.write(f"<presence from='{claimed}' to='{victim.address}'/>")
    mallory.write(f"<message from='{claimed}' to='victim@localhost' type='error'><body>pay</body></message>")
    await mallory.written()
    honest = await rogues(server, "mallory")  # the first session may have been ended
    await honest.send("victim@localhost", "last")
    senders = set()
    async with asyncio.timeout(LIMIT_S):
        while (message := await victim.next()) is not None:
            senders.add(message.peer)
            if getattr(message, "body", "") == "last":
                break
    assert senders == {"mallory@localhost"}


async def test_a_presence_reaches_the_account_that_it_names_and_no_pattern(embedded_server, rogues):
    embedded_server.ensure_accounts({"mallory": "of-mallory", "victim": "of-victim"})
    victim = await rogues(embedded_server, "victim")
    heard = []
    victim.client.add_event_handler("presence_subscribe", lambda stanza: heard.append(str(stanza["from"].bare)))
    mallory = await rogues(embedded_server, "mallory")
    mallory.write("<presence type='subscribe' to='.*@localhost'/>")
    await mallory.send("victim@localhost", "after it")
    assert (await victim.next()).body == "after it"
    assert heard == []
