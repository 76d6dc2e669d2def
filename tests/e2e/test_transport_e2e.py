"""The transport between processes, on the embedded server and on Prosody."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from ramp.rfql.encoded_message import EncodedMessage
from ramp.xmpp.link import LinkPolicy
from ramp.xmpp.settings import TransportSettings
from ramp.xmpp.transport import MarketAgent
from tests.e2e.waiting import LIMIT_S

pytestmark = pytest.mark.e2e

ECHO = Path(__file__).with_name("echo_agents.py")
ROOT = Path(__file__).parents[2]
CFP = {"performative": "cfp", "ontology": "ComputeMarket"}
POLICY = LinkPolicy(backoff_first_s=0.1, backoff_max_s=1.0)


@pytest.fixture
def spawn():
    """Starts Python programs as processes of their own and ends them after the test.

    `spawn(path, *arguments)` waits for the program's first line of output ("ready").
    """
    processes = []

    def start(program: Path, *arguments: str) -> subprocess.Popen[str]:
        path = os.pathsep.join(part for part in (str(ROOT), os.environ.get("PYTHONPATH", "")) if part)
        process = subprocess.Popen(
            [sys.executable, str(program), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": path},
        )
        processes.append(process)
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.strip() == "ready", f"{program.name} said {line!r} and ended with {process.poll()}"
        return process

    yield start
    for process in processes:
        process.kill()
        process.communicate()


class User(MarketAgent):
    """Keeps what arrives."""

    def __init__(self, name, server, password="secret", **options):
        settings = TransportSettings(
            servers=((server.host, server.port),), ca_file=server.ca_file, policy=POLICY, **options
        )
        super().__init__(f"{name}@localhost", password, settings)
        self.inbox = asyncio.Queue()
        self.bounces = asyncio.Queue()

    async def on_message(self, message):
        self.inbox.put_nowait((message.peer, message.metadata, message.thread, message.body))

    def on_bounce(self, message, condition):
        self.bounces.put_nowait((message, condition))

    async def next(self):
        async with asyncio.timeout(LIMIT_S):
            return await self.inbox.get()


@contextlib.asynccontextmanager
async def users(server, *names, **options):
    await asyncio.to_thread(server.ensure_accounts, dict.fromkeys(names, "secret"))
    agents = [User(name, server, **options) for name in names]
    await asyncio.gather(*(agent.start() for agent in agents))
    try:
        yield agents
    finally:
        await asyncio.gather(*(agent.stop() for agent in agents))


async def echoing(spawn, server, *names):
    """A process of agents that answer; returns it."""
    await asyncio.to_thread(server.ensure_accounts, dict.fromkeys(names, "secret"))
    return await asyncio.to_thread(spawn, ECHO, f"{server.host}:{server.port}", str(server.ca_file), *names)


async def until(condition):
    async with asyncio.timeout(LIMIT_S):
        while not condition():
            await asyncio.sleep(0.01)


async def test_calls_of_five_users_reach_twenty_resources_and_come_back(xmpp_server, spawn):
    names = [f"ral{number}" for number in range(20)]
    await echoing(spawn, xmpp_server, *names[:10])
    await echoing(spawn, xmpp_server, *names[10:])
    bodies = ["<cfp/>", "<cfp>\r\n\U0001f600 ]]></cfp>", "<unit>same</unit>" * 3000, "<" * 20_000, "&amp;\t'\""]
    async with users(xmpp_server, *(f"user{number}" for number in range(5))) as asking:
        for user, body in zip(asking, bodies, strict=True):
            for name in names:
                await user.send(EncodedMessage(f"{name}@localhost", body, CFP, f"c-{user.name}"))
        for user, body in zip(asking, bodies, strict=True):
            answers = [await user.next() for _ in names]
            assert {sender for sender, *_ in answers} == {f"{name}@localhost" for name in names}
            assert {(thread, text) for _, _, thread, text in answers} == {(f"c-{user.name}", body)}


async def test_server_killed_in_mid_traffic_costs_time_and_no_answer(xmpp_server, spawn):
    """Numbered requests, sent again until answered, as the protocol does it."""
    await echoing(spawn, xmpp_server, "ral")
    async with users(xmpp_server, "user") as (user,):
        unanswered = {f"{number}" for number in range(150)}

        async def take():
            while unanswered:
                unanswered.discard((await user.next())[3])

        taking = asyncio.create_task(take())
        for number in range(150):
            if number == 50:
                xmpp_server.kill()
            if number == 100:
                xmpp_server.start()
            await user.send(EncodedMessage("ral@localhost", f"{number}", CFP, "c"))
            await asyncio.sleep(0)
        async with asyncio.timeout(LIMIT_S):
            while unanswered:
                await asyncio.wait({taking}, timeout=1.0)
                for number in sorted(unanswered):
                    await user.send(EncodedMessage("ral@localhost", number, CFP, "c"))
        await taking
        assert user.counters.disconnects == 1
        assert user.counters.sessions == 2


async def test_session_cut_in_mid_traffic_resumes_without_loss(prosody_server, spawn):
    """No request is sent twice by the test: stream management alone must carry all of them over two cuts."""
    await echoing(spawn, prosody_server, "ral")
    async with users(prosody_server, "user") as (user,):
        for number in range(200):
            if number in (60, 130):
                await user.wait_connected()
                user.client.transport.abort()
            await user.send(EncodedMessage("ral@localhost", f"{number}", CFP, "c"))
            await asyncio.sleep(0)
        missing = {f"{number}" for number in range(200)}
        while missing:  # at least once: what was not confirmed comes twice
            missing.discard((await user.next())[3])
        assert user.counters.resumed >= 2


@pytest.mark.full
@pytest.mark.parametrize("part", ["<message type='chat'>", "<message type='chat'><bo"], ids=["deaf", "broken"])
async def test_session_cut_in_the_middle_of_a_stanza_hears_again(prosody_server, part):
    """Prosody 0.12 reads a resumed session on from where the old line ended, and so takes it for nonsense."""
    async with users(prosody_server, "cut", "peer") as (cut, peer):
        assert await cut.drain()
        cut.client.send_raw(part)
        await cut.client.writable()
        await peer.send(EncodedMessage(str(peer.jid), "the server has read it", {"performative": "inform"}, ""))
        await peer.next()
        cut.client.transport.abort()
        await until(lambda: not cut.is_connected)
        await cut.send(EncodedMessage(str(peer.jid), "from the cut one", {"performative": "inform"}, ""))
        await peer.send(EncodedMessage(str(cut.jid), "to the cut one", {"performative": "inform"}, ""))
        assert (await peer.next())[3] == "from the cut one"
        assert (await cut.next())[3] == "to the cut one"
        assert cut.counters.sessions == 2


@pytest.mark.full
async def test_what_the_server_never_confirmed_is_sent_again_to_its_successor(prosody_server):
    """The line is dead but not yet noticed when messages are written; then the server loses its sessions too."""
    async with users(prosody_server, "writer", "reader") as (writer, reader):
        assert await writer.drain()
        psutil.Process(prosody_server.pid).suspend()
        for number in range(10):
            await writer.send(EncodedMessage(str(reader.jid), f"{number}", {"performative": "inform"}, ""))
        assert writer.client.unacknowledged()
        prosody_server.kill()
        await until(lambda: not writer.is_connected)
        await writer.send(EncodedMessage(str(reader.jid), "10", {"performative": "inform"}, ""))
        prosody_server.start()
        assert [(await reader.next())[3] for _ in range(11)] == [f"{number}" for number in range(11)]
        assert writer.counters.sessions == 2


@pytest.mark.full
async def test_foreign_domain_and_unknown_account_bounce(xmpp_server):
    async with users(xmpp_server, "user", federation=True) as (user,):
        for to in ("someone@unknown.invalid", "ghost@localhost"):
            await user.send(EncodedMessage(to, "x", CFP, "c"))
            async with asyncio.timeout(LIMIT_S):
                message, condition = await user.bounces.get()
            assert message.peer == to
            assert condition in ("remote-server-not-found", "service-unavailable", "not-allowed")
        await user.send(EncodedMessage(str(user.jid), "alive", CFP, ""))
        assert (await user.next())[3] == "alive"


def test_servers_listen_on_loopback_only(xmpp_server):
    process = psutil.Process(xmpp_server.pid)
    listening = {
        (line.laddr.ip, line.laddr.port)
        for one in [process, *process.children(recursive=True)]
        for line in one.net_connections()
        if line.status == psutil.CONN_LISTEN
    }
    assert listening == {("127.0.0.1", xmpp_server.port)}


def test_nothing_is_said_before_encryption(xmpp_server):
    """The server demands STARTTLS: no log-in mechanism is offered in the clear (RFC 6120, 5.3.1)."""
    with socket.create_connection((xmpp_server.host, xmpp_server.port), timeout=LIMIT_S) as line:
        line.sendall(
            b"<stream:stream to='localhost' xmlns='jabber:client' "
            b"xmlns:stream='http://etherx.jabber.org/streams' version='1.0'>"
        )
        received = b""
        while b"starttls" not in received:
            received += line.recv(4096)
        assert b"mechanism" not in received
        assert b"register" not in received
