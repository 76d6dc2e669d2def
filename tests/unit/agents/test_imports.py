"""Each process of a market imports only what it needs: imports are most of the time and memory of a launch."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    ("module", "needless"),
    [
        ("ramp.agents.supervise", {"spade", "sqlalchemy", "numpy", "ramp.agents.party_agent", "ramp.protocol.bank"}),
        ("ramp.agents.process", {"pyjabber", "aiohttp", "numpy", "matplotlib"}),
        (
            "ramp.servers.embedded_process",
            {"pyjabber", "sqlalchemy", "aiohttp", "spade", "slixmpp", "lxml", "ramp.protocol"},
        ),
        ("ramp.client.swarm", {"spade", "slixmpp", "sqlalchemy", "lxml", "numpy"}),
    ],
)
def test_a_process_imports_no_more_than_it_needs(module: str, needless: set[str]) -> None:
    program = f"import sys, {module}; print(*sorted({needless!r} & sys.modules.keys()))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=True)
    assert done.stdout.split() == []
