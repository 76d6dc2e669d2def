"""A minute of chaos on a market in processes: nothing is lost, and purchases go on after every blow."""

import json
import subprocess
import sys

import pytest

from ramp.servers.prosody import prosody_executable

pytestmark = [pytest.mark.e2e, pytest.mark.full, pytest.mark.timeout(1500)]

LIMIT_S = 1_400
WITHOUT_PROSODY = pytest.mark.skipif(prosody_executable() is None, reason="Prosody is not installed")


@pytest.mark.parametrize(
    "options", [(), pytest.param(("--federated",), marks=WITHOUT_PROSODY)], ids=["one server", "two sites"]
)
def test_a_minute_of_chaos_loses_nothing(options, tmp_path):
    command = [sys.executable, "-m", "tests.chaos", "--minutes", "1", "--json", "--keep", str(tmp_path), *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S)
    assert done.stdout, done.stderr
    report = json.loads(done.stdout)
    assert report["holds"], (report["checks"], done.stderr)
    assert done.returncode == 0
    assert report["requests"]["committed"] > 0
    assert report["blows"]
    assert all(blow["up_again_s"] is not None and blow["next_purchase_s"] is not None for blow in report["blows"])
