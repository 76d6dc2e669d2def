"""The digest that binds an offer to what it was called for."""

import hashlib
from base64 import urlsafe_b64encode
from dataclasses import replace
from typing import Any

import pytest

from ramp.model.called_terms import terms_digest
from ramp.model.instant import HOUR
from ramp.model.request import NodeDiskSpace, Nodes, RequestUnit, TorusTerms, TotalCores, TotalDiskSpace

UNIT = RequestUnit(2, 70, 3 * HOUR, Nodes(4, 16), disk=TotalDiskSpace(9), torus=TorusTerms((2, 2)))

WRITTEN = (
    '{"rule":"second-price","unit":{"cores":{"cores_per_node":16,"count":4,"is":"Nodes"},"deadline":10800000000,'
    '"disk":{"gigabytes":9,"is":"TotalDiskSpace"},"number":2,'
    '"torus":{"connection":"any","geometry":[2,2],"is":"TorusTerms","node_use":"","rotate":true}}}'
)
"""The text written by hand, as the wire page says it."""


def test_the_digest_is_that_of_the_text_that_the_wire_page_describes() -> None:
    expected = urlsafe_b64encode(hashlib.sha256(WRITTEN.encode()).digest()).decode().rstrip("=")
    assert terms_digest(UNIT, "second-price") == expected
    assert terms_digest(replace(UNIT, cpu_hour_cost=1), "second-price") == expected


@pytest.mark.parametrize(
    "other",
    [
        {"number": 3},
        {"deadline": 4 * HOUR},
        {"cores": TotalCores(4)},
        {"cores": Nodes(16, 4)},
        {"not_before": 0},
        {"wall_time": HOUR},
        {"operating_system": "LINUX"},
        {"os_version": "1"},
        {"architecture": "x86_64"},
        {"cpu_speed_mhz": 1},
        {"inter_node_bandwidth_mbps": 1},
        {"ram_per_core_mb": 1},
        {"gpus_per_node": 1},
        {"gpu_model": "a100"},
        {"gpu_memory_mb": 1},
        {"disk": NodeDiskSpace(9)},
        {"disk": None},
        {"torus": None},
        {"torus": TorusTerms((2, 2), rotate=False)},
    ],
)
def test_no_term_can_be_changed_unseen(other: dict[str, Any]) -> None:
    assert terms_digest(replace(UNIT, **other), "second-price") != terms_digest(UNIT, "second-price")


def test_another_rule_is_another_call() -> None:
    assert terms_digest(UNIT, "second-price") != terms_digest(UNIT, "another")
