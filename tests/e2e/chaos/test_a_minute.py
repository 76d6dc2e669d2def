"""A minute of chaos on a market in processes: nothing is lost, and purchases go on after every blow."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.timeout(900)]

LIMIT_S = 850


def test_a_minute_of_chaos_loses_nothing(tmp_path):
    command = [sys.executable, "-c", "from simulation.cli.chaos import chaos; chaos()", "--minutes", "1", "--json"]
    done = subprocess.run([*command, "--keep", str(tmp_path)], capture_output=True, text=True, timeout=LIMIT_S)
    assert done.stdout, done.stderr
    report = json.loads(done.stdout)
    assert report["holds"], (report["checks"], done.stderr)
    assert done.returncode == 0
    assert report["requests"]["committed"] > 0
    assert report["blows"]
    assert all(blow["up_again_s"] is not None and blow["next_purchase_s"] is not None for blow in report["blows"])
