"""Static terms: whatever is asked for must be there, and the refusal says what would pass (sections 5.2, 6.2.1)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ramp.model.machine_terms.static_terms import check_static_terms
from ramp.model.offer import RefusalCode
from ramp.model.request import NodeDiskSpace, Nodes, RequestUnit, TorusTerms, TotalCores, TotalDiskSpace
from ramp.model.slot import StaticTerms

UNIT = RequestUnit(7, 70, 10**12, TotalCores(16))
MACHINE = StaticTerms(64, 8, "LINUX", "5.10", "x86_64", 2400, 10_000, 2048, 500, 40)


@pytest.mark.parametrize(
    ("wanted", "code", "nearest"),
    [
        ({"cores": TotalCores(65)}, RefusalCode.MACHINE_TOO_SMALL, "64 cores"),
        ({"cores": Nodes(2, 9)}, RefusalCode.NODE_CORES, "8 cores a node"),
        ({"cores": Nodes(9, 1)}, RefusalCode.MACHINE_TOO_SMALL, "8 nodes"),
        ({"operating_system": "AIX"}, RefusalCode.OPERATING_SYSTEM, "LINUX"),
        ({"os_version": "6.1"}, RefusalCode.OS_VERSION, "5.10"),
        ({"architecture": "powerpc"}, RefusalCode.ARCHITECTURE, "x86_64"),
        ({"cpu_speed_mhz": 2401}, RefusalCode.CPU_SPEED, "2400 MHz"),
        ({"inter_node_bandwidth_mbps": 10_001}, RefusalCode.BANDWIDTH, "10000 Mbit/s"),
        ({"ram_per_core_mb": 2049}, RefusalCode.MEMORY, "2048 MB a core"),
        ({"disk": TotalDiskSpace(501)}, RefusalCode.DISK, "500 GB in all"),
        ({"disk": NodeDiskSpace(41)}, RefusalCode.DISK, "40 GB on each node"),
        ({"torus": TorusTerms((4, 4, 4))}, RefusalCode.TORUS, "no torus terms"),
    ],
)
def test_refused_with_the_nearest(wanted: dict[str, Any], code: RefusalCode, nearest: str) -> None:
    refusal = check_static_terms(replace(UNIT, **wanted), MACHINE)
    assert refusal is not None
    assert (refusal.unit, refusal.code, refusal.nearest) == (7, code, nearest)


@pytest.mark.parametrize(
    "wanted",
    [
        {},
        {"cores": TotalCores(64)},
        {"cores": Nodes(8, 8)},
        {"operating_system": "LINUX", "os_version": "5.10", "architecture": "x86_64"},
        {"cpu_speed_mhz": 2400, "inter_node_bandwidth_mbps": 10_000, "ram_per_core_mb": 2048},
        {"disk": TotalDiskSpace(500)},
        {"disk": NodeDiskSpace(40)},
    ],
)
def test_exactly_enough_passes(wanted: dict[str, Any]) -> None:
    assert check_static_terms(replace(UNIT, **wanted), MACHINE) is None


def test_what_the_machine_does_not_state_cannot_be_satisfied() -> None:
    bare = StaticTerms(64)
    for wanted in (
        {"operating_system": "LINUX"},
        {"cpu_speed_mhz": 1},
        {"disk": TotalDiskSpace(1)},
        {"disk": NodeDiskSpace(1)},
    ):
        refusal = check_static_terms(replace(UNIT, **wanted), bare)
        assert refusal is not None
        assert refusal.nearest == ""
        assert "none stated" in refusal.detail


def test_a_machine_with_a_torus_takes_torus_terms() -> None:
    assert check_static_terms(replace(UNIT, torus=TorusTerms()), replace(MACHINE, torus=True)) is None


def test_one_is_told_in_the_singular() -> None:
    plain = replace(MACHINE, cores=1, cores_per_node=1)
    for wanted in (TotalCores(2), Nodes(1, 2), Nodes(2, 1)):
        refusal = check_static_terms(replace(UNIT, cores=wanted), plain)
        assert refusal is not None
        assert not {"cores", "nodes"} & set(f"{refusal.nearest} {refusal.detail}".split())
    refusal = check_static_terms(replace(UNIT, cores=Nodes(2, 1)), replace(MACHINE, cores=8))
    assert refusal is not None
    assert (refusal.nearest, refusal.detail) == ("1 node", "the machine has 1 node")
