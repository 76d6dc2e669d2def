"""Accounts in band are for who has their token: rogues without one, with a wrong, used, ended or withdrawn one, for
another name, or with very many.

What a token is good for comes from docs/joining.md and XEP-0445: one name, one registration, until its end.
"""

import asyncio

import pytest

from ramp.errors import TransportError
from ramp.model.instant import DAY, SECOND
from ramp.runtime.clock import SystemClock
from ramp.runtime.joining.account_tokens import AccountToken, draw_token, token_digest
from ramp.xmpp.registering import register_account
from tests import waiting
from tests.e2e.attacks.rogue import LIMIT_S, Entrance, connect, logs_in
from tests.e2e.attacks.test_names import NAMES

pytestmark = [pytest.mark.e2e, pytest.mark.full]

GUESSES = 300


@pytest.fixture(scope="module")
def server(shared_server):
    shared_server.ensure_accounts({"bank": "of-bank", "mallory": "of-mallory"})
    return shared_server


def until(seconds=DAY):
    return SystemClock().now() + seconds


@pytest.fixture
def promised(server):
    """`promised("dora")`: the token that a name is promised to."""

    def give(name, ends_at=None):
        token = draw_token()
        server.ensure_accounts({name: AccountToken(token_digest(token), until() if ends_at is None else ends_at)})
        return token

    return give


@pytest.fixture
async def entrance(server):
    """`await entrance()`: a line on which nobody has logged in."""
    opened = []

    async def open_one():
        opened.append(await Entrance.open(server))
        return opened[-1]

    yield open_one
    for each in opened:
        await each.close()


async def registers(entrance, token, name, password):
    """Show a token and register on a line of its own."""
    client = await entrance()
    assert await client.show(token) == "result"
    assert await client.register(name, password)


async def test_the_invited_registers_and_keeps_the_account_over_a_restart(server, promised, entrance):
    token = promised("ann")
    client = await entrance()
    assert "urn:xmpp:ibr-token:0" in client.features
    assert "iq-register" not in client.features
    assert await client.show(token) == "result"
    assert await client.register("ann", "her own")
    assert (await client.log_in("ann", "her own")).startswith("ann@localhost/")
    server.stop()
    server.start()  # by this thread, with which it ends
    assert await logs_in(server, "ann", "her own")
    assert await logs_in(server, "ann", "of-bank") is None
    again = await entrance()
    assert await again.show(token) == "item-not-found"  # used, also after the restart


async def test_a_token_registers_exactly_its_name(server, promised, entrance):
    token = promised("carla")
    for name in ("carla", "bank", "mallory", "stranger", "Carla", "carla@localhost", *NAMES.values()):
        for shown in (name != "carla", False):  # nobody registers without a token
            client = await entrance()
            assert not shown or await client.show(token) == "result"
            assert not await client.register(name, "chosen"), name
        assert await logs_in(server, name, "chosen") is None, name
    await registers(entrance, token, "carla", "her own")
    assert await logs_in(server, "bank", "of-bank")


async def test_tokens_that_are_none_any_more(server, promised, entrance):
    """Unknown, ended, replaced, withdrawn and used ones; each is refused, and the account is as it was."""
    ended = promised("dan", ends_at=until(-SECOND))
    replaced = promised("eva")
    current = promised("eva")
    withdrawn = promised("fay")
    server.ensure_accounts({"fay": None})
    used = promised("gus")
    await registers(entrance, used, "gus", "his own")
    for token in (
        "",
        "x",
        draw_token(),
        token_digest(current),
        current[:-1],
        "t" * 10_000,
        ended,
        replaced,
        withdrawn,
        used,
    ):
        client = await entrance()
        assert await client.show(token) == "item-not-found"
        for name in ("dan", "eva", "fay", "gus"):
            await client.register(name, "chosen")
            assert await logs_in(server, name, "chosen") is None
    assert await logs_in(server, "gus", "his own")


async def test_a_token_that_is_withdrawn_in_between_registers_nothing(server, promised, entrance):
    token = promised("ida")
    client = await entrance()
    assert await client.show(token) == "result"
    server.ensure_accounts({"ida": None})
    assert not await client.register("ida", "chosen")
    assert await logs_in(server, "ida", "chosen") is None


async def test_an_account_that_is_closed_is_left_at_once(server, promised, entrance):
    """Somebody came first: the keeper withdraws the name, and who is signed in to it is sent away."""
    await registers(entrance, promised("jan"), "jan", "stolen")
    inside = await connect(server, "jan", "stolen")
    rightful = promised("jan")
    async with asyncio.timeout(LIMIT_S):
        await inside.ended.wait()
    await inside.close()
    assert await logs_in(server, "jan", "stolen") is None
    await registers(entrance, rightful, "jan", "his own")
    assert await logs_in(server, "jan", "his own")
    assert await logs_in(server, "jan", "stolen") is None


async def test_a_lost_answer_costs_nothing(server, promised):
    """The line breaks after the registration was sent; done again with the same password, the account is ours."""
    token = promised("kim")
    client = await Entrance.open(server)
    assert await client.show(token) == "result"
    fields = "<username>kim</username><password>of kim</password>"
    await client.say(f"<iq type='set' id='r'><query xmlns='jabber:iq:register'>{fields}</query></iq>")
    await client.close()
    await asyncio.to_thread(
        waiting.until,
        lambda: "registered the account kim" in server.log_file.read_text(errors="replace"),
        "it is registered",
    )
    servers = ((server.host, server.port),)
    for _ in range(2):
        await register_account("kim@localhost", "of kim", token, servers, server.ca_file)
    with pytest.raises(TransportError, match="the account kim@localhost cannot be registered"):
        await register_account("kim@localhost", "of a thief", token, servers, server.ca_file, 0.0)
    assert await logs_in(server, "kim", "of kim")


async def test_a_server_that_is_not_the_pinned_one_is_told_nothing(server, promised, tmp_path):
    from ramp.servers.certificate import ensure_server_certificate

    token = promised("lea")
    other = ensure_server_certificate(tmp_path, "localhost").ca_file
    with pytest.raises(TransportError, match="certificate that is not trusted"):
        await register_account("lea@localhost", "of lea", token, ((server.host, server.port),), other, 0.0)
    assert await logs_in(server, "lea", "of lea") is None


async def test_a_flood_of_guesses_is_cut_off_and_leaves_no_trace(server, promised, entrance):
    token = promised("max")
    before = server.log_file.stat().st_size
    kept = {path: path.read_bytes() for path in server.state_dir.rglob("*") if path.is_file() and path.suffix != ".log"}
    guesses = hung_up = 0
    while guesses < GUESSES:
        client = await Entrance.open(server)
        said = [await client.show(draw_token()) for _ in range(5)]
        assert set(said) <= {"item-not-found", ""}
        hung_up += said[-1] == ""
        guesses += len([each for each in said if each])
        await client.close()
    assert hung_up == guesses / 3  # after three of them, each time
    assert server.log_file.stat().st_size - before < 2_000
    assert kept == {
        path: path.read_bytes() for path in server.state_dir.rglob("*") if path.is_file() and path.suffix != ".log"
    }
    await registers(entrance, token, "max", "his own")
    assert await logs_in(server, "max", "his own")
