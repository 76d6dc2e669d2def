"""Clients of the embedded server that say nothing or read nothing."""

import ssl

import pytest

from ramp.servers import embedded_process
from ramp.servers.accounts import Accounts
from ramp.servers.embedded_process import Connection
from ramp.servers.embedded_router import Router
from tests.waiting import soon


class Transport:
    unread = 0
    aborted = False

    def write(self, data):
        self.unread += len(data)

    def get_write_buffer_size(self):
        return self.unread

    def get_extra_info(self, _):
        return "127.0.0.1", 40_000

    def abort(self):
        self.aborted = True

    def is_closing(self):
        return self.aborted


@pytest.fixture
def connection(tmp_path):
    accounts = Accounts("localhost", tmp_path / "registered.json")
    return Connection(accounts, Router("localhost", accounts.exists), ssl.create_default_context())


async def test_client_that_never_logs_in_is_cut(connection, monkeypatch):
    monkeypatch.setattr(embedded_process, "LOG_IN_LIMIT_S", 0)
    transport = Transport()
    connection.connection_made(transport)
    assert not transport.aborted
    await soon(lambda: transport.aborted)


async def test_client_that_reads_nothing_is_cut(connection, monkeypatch):
    monkeypatch.setattr(embedded_process, "UNREAD_BYTES_MAX", 100)
    transport = Transport()
    connection.connection_made(transport)
    for size, aborted in [(60, False), (40, False), (1, True)]:
        connection.write(b"x" * size)
        assert transport.aborted is aborted
