"""The server spreads the calls of a round (XEP-0033): on each kind of server, and with a rogue who misuses it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from xml.sax.saxutils import quoteattr

import pytest
import rogue
from ejabberd_cluster import is_installed, running_cluster
from swarm_market import Machine, Market, in_hours, own_id, unit, until, write_config

from ramp.servers.prosody import prosody_executable

pytestmark = pytest.mark.e2e

MACHINES = tuple(Machine(f"small{number}", 64, 20) for number in range(1, 7))
ROGUES = ("mallory", "witness", "bystander")
NAMESPACE = "http://jabber.org/protocol/address"
SERVICE = {"embedded": "localhost", "prosody": "localhost", "ejabberd": "multicast.localhost"}
ROUNDS = 4


@pytest.fixture(scope="module")
def cluster():
    """Two nodes of ejabberd, over which the agents are spread."""
    names = ("bank", "directory", "keeper", "alice", *ROGUES, *(machine.name for machine in MACHINES))
    with running_cluster(names) as made:
        yield made


@pytest.fixture(scope="module", params=["embedded", "prosody", "ejabberd"])
def kind(request):
    if request.param == "prosody" and prosody_executable() is None:
        pytest.skip("Prosody is not installed (apt-get install prosody)")
    if request.param == "ejabberd" and not is_installed():
        pytest.skip("ejabberd is not installed (apt-get install ejabberd)")
    return request.param


@pytest.fixture(scope="module")
def market(kind, request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("market")
    if kind == "ejabberd":
        cluster = request.getfixturevalue("cluster")
        server = {
            "addresses": [f"127.0.0.1:{node.port}" for node in cluster.nodes],
            "spread": True,
            "ca_file": str(cluster.certificate.ca_file),
            "passwords": str(cluster.folder / "passwords.json"),
        }
        options = {"kind": "external", "server": server}
    else:
        options = {"kind": kind, "accounts": ROGUES}
    config = write_config(
        folder / "swarm.toml", users={"alice": 1_000_000}, machines=MACHINES, per_process=6, **options
    )
    # bids that come down step by step, so that there is something to call for in every round
    config.write_text(re.sub(r"start_price = \d+", "start_price = 60", config.read_text()))
    market = Market(config, folder / "state", armed=True)
    try:
        market.up()
        market.wait_ready()
        yield market
    finally:
        market.end()


@pytest.fixture
async def rogues(market, kind, request):
    """`await rogues(name)` logs one in; all are gone after the test."""
    inside = []
    if kind == "ejabberd":
        made = request.getfixturevalue("cluster")
        accounts = json.loads((made.folder / "passwords.json").read_text())
        place = rogue.Door("127.0.0.1", made.nodes[0].port, made.certificate.ca_file, "localhost", accounts)
    else:
        place = rogue.door(market)

    async def let_in(name):
        inside.append(await rogue.connect(place, name))
        return inside[-1]

    yield let_in
    for one in inside:
        await one.close()


def counted(market):
    path = market.state.path / "steps" / "alice.json"
    with contextlib.suppress(FileNotFoundError, json.JSONDecodeError):  # it is just being written
        return json.loads(path.read_text())
    return None


def test_each_round_leaves_as_one_stanza(market, kind):
    """What a round saves is what the events of the auction say: one stanza, whatever the number of those called."""
    begin = in_hours(1)
    market.buy("alice", own_id("first"), [unit(1, 8, begin)], rounds=1)
    service = SERVICE[kind]
    until(lambda: (counted(market) or {}).get("service") == service, lambda: f"alice knows it: {counted(market)}")
    before = counted(market)
    request = own_id("spread")
    events = list(market.submit("alice", request, [unit(1, 8, begin)], rounds=ROUNDS))
    assert events[-1]["outcome"]["status"] == "committed", events[-1]
    called = [event["resources"] for event in events if event["event"] == "round_opened"]
    assert len(called) >= ROUNDS
    assert called[0] == len(MACHINES)
    saved = sum(number - 1 for number in called)
    # a call that is sent again is one message and one stanza, so a busy computer changes nothing here
    until(lambda: counted(market)["messages"] > before["messages"] + saved, "alice's last words are counted")
    after = counted(market)
    assert after["messages"] - after["stanzas"] == before["messages"] - before["stanzas"] + saved
    assert after["respread"] == 0
    resources = {f"{machine.name}@localhost" for machine in MACHINES}
    for each in events[-1]["outcome"]["rounds"]:
        assert {name for name in resources if name in json.dumps(each)} == resources  # everybody has been heard


def spreading(service, receivers, body, *, stanza_id="s1", source="", after="", inside=""):
    """A message that asks a service to spread it."""
    listed = "".join(f'<address type="bcc" jid={quoteattr(each)}/>' for each in receivers)
    claimed = f" from={quoteattr(source)}" if source else ""
    form = (
        '<x xmlns="jabber:x:data" type="form"><title>spade:x:metadata</title>'
        '<field var="performative" type="text-single"><value>inform</value></field></x>'
    )
    return (
        f'<message type="chat" to="{service}" id="{stanza_id}"{claimed}><addresses xmlns="{NAMESPACE}">{listed}{inside}'
        f"</addresses><body>{body}</body>{form}{after}</message>"
    )


async def answer_to(rogue, stanza_id):
    """The error stanza for a message (slixmpp tells of one with an echoed body twice)."""
    while (answer := await rogue.next()).stanza_id != stanza_id:
        pass
    return answer


async def test_a_rogue_reaches_only_whom_it_could_write_to_and_under_its_own_name(market, kind, rogues):
    service = SERVICE[kind]
    mallory, witness, bystander = [await rogues(name) for name in ROGUES]
    witness_at, bystander_at, ghost = "witness@localhost", "bystander@localhost", "ghost@localhost"
    again = [] if kind == "ejabberd" else [witness_at]  # which gives one who is named twice two copies
    mallory.write(spreading(service, [witness_at, ghost, *again], "once"))
    copy = await witness.next()
    assert (copy.sender_bare, copy.body, copy.stanza_type) == ("mallory@localhost", "once", "chat")
    bounced = await answer_to(mallory, "s1")
    assert (bounced.peer_bare, bounced.condition) == (ghost, "service-unavailable")

    too_many = [*(f"r{number}@localhost" for number in range(100)), witness_at]
    mallory.write(spreading(service, too_many, "x", stanza_id="many"))
    answer = await answer_to(mallory, "many")
    assert (answer.peer_bare, answer.condition) == (service, "not-acceptable")
    nested = f'<addresses xmlns="{NAMESPACE}"><address type="bcc" jid="{bystander_at}"/></addresses>'
    if kind != "ejabberd":  # which has ways of its own with these, and limits by access and number only
        for why, xml, condition in (
            ("foreign", spreading(service, [witness_at, "a@b.example"], "x", stanza_id="foreign"), "forbidden"),
            ("twice", spreading(service, [witness_at], "x", stanza_id="twice", after=nested), "bad-request"),
            ("inside", spreading(service, [witness_at], "x", stanza_id="inside", inside=nested),
             "feature-not-implemented"),
            ("itself", spreading(service, [service], "x", stanza_id="itself"), "jid-malformed"),
            ("big", spreading(service, [witness_at, bystander_at, *(f"r{n}@localhost" for n in range(40))],
                              "x" * 120_000, stanza_id="big"), "policy-violation"),
        ):  # fmt: skip
            mallory.write(xml)
            answer = await answer_to(mallory, why)
            assert (answer.peer_bare, answer.condition) == (service, condition)
        mallory.write(spreading(service, [witness_at], "x").replace('type="chat"', 'type="error"'))

    mallory.write(spreading(service, [witness_at, bystander_at], "forged", source="bank@localhost/agent"))
    ended = asyncio.create_task(mallory.ended.wait())
    came = asyncio.create_task(witness.next())
    async with asyncio.timeout(rogue.LIMIT_S):
        await asyncio.wait({ended, came}, return_when=asyncio.FIRST_COMPLETED)
    for task in (ended, came):
        task.cancel()
    if came.done() and not came.cancelled():  # a server may also put the true name there
        assert (came.result().sender_bare, came.result().body) == ("mallory@localhost", "forged")
        bystander_copy = await bystander.next()
        assert bystander_copy.sender_bare == "mallory@localhost"
    assert witness.inbox.empty()  # neither copies of what was refused, nor a second one of the first
    assert bystander.inbox.empty()
