"""The example of a purchase runs as it stands, simulated and over XMPP, and says what it should."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize(
    "transport", [pytest.param("simulated", marks=pytest.mark.slow), pytest.param("embedded", marks=pytest.mark.e2e)]
)
def test_a_purchase(transport: str, tmp_path: Path) -> None:
    example = EXAMPLES / "purchase.py"
    assert len(example.read_text("utf-8").splitlines()) < 40
    done = subprocess.run(
        [sys.executable, example, transport], capture_output=True, text=True, cwd=tmp_path, timeout=500, check=False
    )
    assert done.returncode == 0, done.stderr
    quoted, bought, reserved, left, back = done.stdout.splitlines()
    assert re.fullmatch(r"3 rounds; the best offer costs [\d ]+\.\d\d credits", quoted)
    resource = re.fullmatch(r"bought 64 cores on (\w+) from (.*):(.*) to (.*)", bought)[1]
    assert reserved.startswith("active: ")
    assert f"--reservation={resource}-" in reserved
    paid = re.fullmatch(r"given back: ([\d ]+\.\d\d) credits", back)[1]
    assert float(paid.replace(" ", "")) > 0
    assert left.endswith("credits are left")
    assert not list(tmp_path.iterdir())
