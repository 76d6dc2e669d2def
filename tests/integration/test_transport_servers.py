"""The embedded server as a process, and agents that outlive it: kill -9, restart, cut lines, full outbox."""

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import psutil
import pytest

from ramp.errors import TransportError
from ramp.model.acl import EncodedMessage
from ramp.servers import process as server_process
from ramp.servers.embedded import EmbeddedServer
from ramp.servers.embedded_process import StreamParser
from ramp.servers.process import free_port, probe_problem
from ramp.xmpp import transport as outbox
from ramp.xmpp.link import LinkPolicy
from tests.integration.transport.transport_party import CFP, parties
from tests.waiting import LIMIT_S, is_alive, soon, until


@pytest.fixture
def server(tmp_path):
    with EmbeddedServer(tmp_path / "xmpp") as running:
        yield running


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """A server that nobody ends."""
    with EmbeddedServer(tmp_path_factory.mktemp("shared") / "xmpp") as running:
        yield running


async def test_agent_comes_back_after_its_line_was_cut(shared):
    async with parties(shared, "cut", "other") as (cut, other):
        cut.client.transport.abort()
        await soon(lambda: cut.story == ["up", "down", "up"])
        await other.send(EncodedMessage(str(cut.jid), "x", CFP, ""))
        assert await other.next_body() == "x"
        assert other.story == ["up"]


async def test_log_in_that_broke_half_way_does_not_spoil_the_next_one(shared, caplog):
    caplog.set_level("INFO", logger="ramp.xmpp.link")
    async with parties(shared, "halfway") as (agent,):
        agent.client["feature_mechanisms"].attempted_mechs.add("PLAIN")  # as slixmpp leaves it behind
        agent.client.transport.abort()
        await soon(lambda: agent.story == ["up", "down", "up"])
        assert "refused" not in caplog.text


async def test_full_line_holds_the_sender_until_it_drains_or_is_lost(shared):
    async with parties(shared, "pressed") as (agent,):
        for release in (agent.client.resume_writing, agent.client.transport.abort):
            agent.client.pause_writing()
            sending = asyncio.create_task(
                agent.send(EncodedMessage(str(agent.jid), "x", {"performative": "inform"}, ""))
            )
            await asyncio.sleep(0.05)
            assert not sending.done()
            release()
            assert await agent.next_body() == "x"
            await sending


@pytest.mark.slow
async def test_agent_notices_a_server_that_has_stopped_answering(server):
    policy = LinkPolicy(
        backoff_first_s=0.05, backoff_max_s=0.2, ping_interval_s=0.2, ping_limit_s=6.0, attempt_limit_s=10.0
    )
    async with parties(server, "watcher", policy=policy) as (watcher,):
        await asyncio.sleep(0.6)  # several probes of a server that does answer
        assert watcher.story == ["up"]
        os.kill(server.pid, signal.SIGSTOP)
        try:
            await soon(lambda: watcher.story == ["up", "down"])
        finally:
            os.kill(server.pid, signal.SIGCONT)
        await soon(lambda: watcher.is_connected)


def test_server_that_has_not_answered_its_launcher_ends_and_is_given_all_accounts_again(tmp_path):
    with EmbeddedServer(tmp_path / "xmpp") as server:
        server._channel.settimeout(0.1)
        os.kill(server.pid, signal.SIGSTOP)
        with pytest.raises(TransportError, match="accounts late: timed out"):
            server.ensure_accounts({"late": "secret"})
        os.kill(server.pid, signal.SIGCONT)
        until(lambda: server.pid is None)
        server.start()
        server.ensure_accounts({"next": "secret"})


@pytest.mark.slow
async def test_full_outbox_gives_up_the_oldest(server, caplog, monkeypatch):
    monkeypatch.setattr(outbox, "OUTBOX_MESSAGES_MAX", 3)
    async with parties(server, "writer", "reader") as (writer, reader):
        server.kill()
        await soon(lambda: not writer.is_connected)
        for number in range(5):
            await writer.send(EncodedMessage(str(reader.jid), f"{number}", {"performative": "inform"}, ""))
        assert caplog.text.count("outbox full: dropped the 1 oldest messages") == 2
        server.start()
        assert [await reader.next_body() for _ in range(3)] == ["2", "3", "4"]


@pytest.mark.slow
async def test_restart_keeps_port_authority_and_accounts(server):
    port, authority = server.port, server.ca_file.read_bytes()
    async with parties(server, "keeper") as (keeper,):
        await asyncio.to_thread(server.stop)
        await asyncio.to_thread(server.start)
        assert (server.port, server.ca_file.read_bytes()) == (port, authority)
        await soon(lambda: keeper.story == ["up", "down", "up"])


@pytest.mark.slow
def test_server_that_is_given_no_accounts_does_not_start(tmp_path):
    command = [sys.executable, "-m", "ramp.servers.embedded_process", "--port", str(free_port())]
    command += ["--certificates", str(tmp_path), "--state", str(tmp_path)]
    own, child = socket.socketpair()
    with own, child:
        own.sendall(b'["bank"]\n')
        done = subprocess.run(command, stdin=child, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "account" in done.stderr
    assert "Traceback" not in done.stderr


async def test_listens_on_loopback_only_and_on_one_port_only(shared):
    async with parties(shared, "somebody"):
        pass
    process = psutil.Process(shared.pid)
    listening = [
        (line.laddr.ip, line.laddr.port)
        for one in [process, *process.children(recursive=True)]
        for line in one.net_connections()
        if line.status == psutil.CONN_LISTEN
    ]
    assert listening == [("127.0.0.1", shared.port)]
    assert process.children() == []


def test_files_are_in_the_state_directory_and_private(shared):
    names = {path.name for path in shared.state_dir.iterdir()}
    assert {"tls", "embedded.log", "server.lock"} <= names
    assert shared.state_dir.stat().st_mode & 0o077 == 0


def test_two_servers_never_share_a_state_directory(shared, monkeypatch):
    monkeypatch.setattr(server_process, "STOP_LIMIT_S", 0.1)
    with pytest.raises(TransportError, match=f"process {shared.pid}.*uses"):
        EmbeddedServer(shared.state_dir).start()
    assert not probe_problem(shared.host, shared.port, shared.domain, LIMIT_S)


def test_port_that_is_taken_is_named(shared, tmp_path):
    with pytest.raises(TransportError, match=f"port {shared.port} of 127.0.0.1 is in use"):
        EmbeddedServer(tmp_path / "second", port=shared.port).start()


@pytest.mark.slow
def test_server_that_cannot_start_says_what_its_log_says(tmp_path, monkeypatch):
    state = tmp_path / "xmpp"
    state.mkdir()
    (state / "registered.json").write_text("no accounts")
    broken = EmbeddedServer(state, port=free_port())
    with pytest.raises(TransportError, match="accounts that were registered cannot be read"):
        broken.start()
    assert broken.pid is None


LAUNCHER = """
import sys, time
from dataclasses import replace
from pathlib import Path
from ramp.servers.embedded import EmbeddedServer
server = EmbeddedServer(Path(sys.argv[1]))
server.start()
print(server.pid, server.port, flush=True)
time.sleep(600)
"""


@pytest.mark.slow
def test_server_dies_with_its_launcher_and_the_next_one_starts(tmp_path):
    launcher = subprocess.Popen(
        [sys.executable, "-c", LAUNCHER, str(tmp_path / "xmpp")], stdout=subprocess.PIPE, text=True
    )
    try:
        pid, port = (int(word) for word in launcher.stdout.readline().split())
        assert not probe_problem("127.0.0.1", port, "localhost", LIMIT_S)
    finally:
        launcher.kill()
        launcher.communicate()
    with EmbeddedServer(tmp_path / "xmpp", port=port) as again:  # waits until the orphan is gone
        assert again.pid != pid
    until(lambda: not is_alive(pid))


def test_probe_tells_a_server_from_other_listeners():
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        assert probe_problem("127.0.0.1", other.getsockname()[1], "localhost", limit_s=0.1)
    assert probe_problem("127.0.0.1", free_port(), "localhost", limit_s=0.1)


@pytest.mark.parametrize(
    ("lengths", "cut"),
    [
        pytest.param([2_000] * 200, False, marks=pytest.mark.slow),
        ([300_000], True),
        pytest.param([2_000] * 99 + [300_000], True, marks=pytest.mark.slow),
    ],
)
def test_two_hundred_calls_in_one_read_are_no_long_stanza(lengths, cut):
    """Each stanza counts for itself, however many come together; one that is too long ends the connection."""
    stanzas: list[ElementTree.Element] = []
    stream = StreamParser(lambda: None, stanzas.append, lambda: None)
    header = "<stream:stream xmlns:stream='http://etherx.jabber.org/streams' xmlns='jabber:client'>"
    read = header + "".join(f"<message>{'x' * length}</message>" for length in lengths)
    with pytest.raises(ValueError, match="a stanza of more than") if cut else contextlib.nullcontext():
        stream.feed(read.encode())
    assert [len(each.text or "") for each in stanzas] == (lengths[:-1] if cut else lengths)


@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_stanzas_come_whole_however_the_stream_is_cut(size):
    opened, closed, stanzas = [], [], []
    stream = StreamParser(lambda: opened.append(True), stanzas.append, lambda: closed.append(True))
    text = (
        "<?xml version='1.0'?><s:stream xmlns:s='http://etherx.jabber.org/streams' xmlns='jabber:client'> \n"
        "<message to='a@b' xml:lang='en'><body>caf\u00e9 &lt;&amp;</body><x xmlns='urn:y'/>tail</message>\n"
        "<iq/></s:stream>"
    ).encode()
    for start in range(0, len(text), size):
        stream.feed(text[start : start + size])
    message, iq = stanzas
    assert (opened, closed, iq.tag) == ([True], [True], "{jabber:client}iq")
    assert message.attrib == {"to": "a@b", "{http://www.w3.org/XML/1998/namespace}lang": "en"}
    assert message.findtext("{jabber:client}body") == "caf\u00e9 <&"
    assert message.find("{urn:y}x").tail == "tail"
