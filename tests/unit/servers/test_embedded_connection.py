"""Clients of the embedded server that say nothing or read nothing."""

import ssl
from unittest.mock import Mock

import pytest

from ramp.servers import embedded_process
from ramp.servers.embedded_process import Connection
from ramp.servers.embedded_router import Router
from tests.waiting import soon


async def connected(unread=0):
    connection = Connection(Mock(), Router("localhost", bool), ssl.create_default_context())
    transport = Mock(get_write_buffer_size=lambda: unread, is_closing=lambda: False)
    connection.connection_made(transport)
    return connection, transport


async def test_client_that_never_logs_in_is_cut(monkeypatch):
    monkeypatch.setattr(embedded_process, "LOG_IN_LIMIT_S", 0)
    _, transport = await connected()
    transport.abort.assert_not_called()
    await soon(lambda: transport.abort.called)


@pytest.mark.parametrize(("most", "cut"), [(100, True), (101, False)])
async def test_client_that_reads_nothing_is_cut(monkeypatch, most, cut):
    monkeypatch.setattr(embedded_process, "UNREAD_BYTES_MAX", most)
    connection, transport = await connected(unread=101)
    connection.write(b"x")
    assert transport.abort.called is cut
