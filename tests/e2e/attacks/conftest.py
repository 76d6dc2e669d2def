"""Rogue clients, and markets to set them on; the modules beside this one are found by their names."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

SWARM = Path(__file__).parents[1] / "swarm"
FAULTS = Path(__file__).parents[2] / "integration" / "faults"
sys.path[:0] = [str(Path(__file__).parent), str(SWARM), str(FAULTS)]

import rogue  # noqa: E402 (beside this file)

_spec = importlib.util.spec_from_file_location("swarm_fixtures", SWARM / "conftest.py")
_fixtures = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_fixtures)
kind, new_market, module_market = _fixtures.kind, _fixtures.new_market, _fixtures.module_market


@pytest.fixture
async def rogues():
    """`await rogues(server, account)` logs a rogue in; all are gone after the test."""
    inside = []

    async def let_in(server, account, password=None):
        inside.append(await rogue.connect(server, account, password))
        return inside[-1]

    yield let_in
    for one in inside:
        await one.close()
