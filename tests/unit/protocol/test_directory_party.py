"""The directory: leases, numbers that only go up, pages, and a restart with those who were known."""

from __future__ import annotations

from typing import Any

import pytest

from ramp.errors import RemoteProtocolError
from ramp.model import contents as c
from ramp.model.instant import MINUTE, SECOND
from ramp.model.seal import Role
from ramp.protocol.directory.party import KnownAgent
from ramp.protocol.timing import Timing

LEASE = 15 * SECOND
SERVICE = "resource-trader"


def test_a_heartbeat_renews_the_lease(directory: Any) -> None:
    directory.register("res", 1)
    directory.register("res", 2, now=10 * SECOND)
    assert directory.names(LEASE + 9 * SECOND).names == ("res",)
    directory.party.tick(LEASE + 10 * SECOND)
    assert directory.party.registered == ()


@pytest.mark.parametrize("number", [5, 4, -1])
def test_a_captured_registration_keeps_nobody_listed(directory: Any, number: int) -> None:
    directory.register("res", 5)
    assert directory.register("res", number, now=10 * SECOND) == c.Registered(SERVICE, 5)
    assert directory.names(LEASE).names == ()


@pytest.mark.parametrize("number", [5, 4])
def test_a_captured_withdrawal_strikes_nobody_out(directory: Any, number: int) -> None:
    directory.register("res", 5)
    directory.deregister("res", number)
    assert directory.names().names == ("res",)
    directory.deregister("res", 6)
    assert directory.names().names == ()


def test_after_a_withdrawal_a_captured_registration_lists_nobody(directory: Any) -> None:
    directory.register("res", 5)
    directory.deregister("res", 6)
    assert directory.register("res", 5) == c.Registered(SERVICE, 6)
    assert directory.names().names == ()
    directory.register("res", 7)
    assert directory.names().names == ("res",)


@pytest.mark.parametrize("role", sorted(set(Role) - {Role.RESOURCE}))
def test_only_resources_register(directory: Any, role: Role) -> None:
    with pytest.raises(RemoteProtocolError, match="must come from a resource"):
        directory.hear("res", c.Registration(SERVICE, LEASE, 1), role=role)


def test_services_are_a_fixed_list(directory: Any) -> None:
    with pytest.raises(
        RemoteProtocolError, match="unknown service 'printer', expected resource-draining, resource-trader"
    ):
        directory.hear("res", c.Registration("printer", LEASE, 1), role=Role.RESOURCE)
    (listing,) = [each.message.content for each in directory.hear("alice", c.DirectoryQuery("q", "printer"))]
    assert listing.names == ()


def test_a_directory_that_comes_back_from_its_journal_begins_with_those_it_knew(directory_with: Any) -> None:
    again = directory_with([KnownAgent(SERVICE, "a", 9)])
    assert again.party.recover((), MINUTE) == []
    assert again.names(MINUTE + Timing().lease - 1).names == ("a",)
    assert again.names(MINUTE + Timing().lease).names == ()
