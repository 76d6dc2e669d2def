"""`ramp web demo` ends with all that it has begun, whenever it is told to and however."""

import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.e2e.waiting import LIMIT_S, until
from tests.e2e.web.conftest import RAMP, free_port
from tests.tiny_market import tiny_market

pytestmark = pytest.mark.e2e


def begin(place):
    """A demonstration that keeps its state under a folder; the process, and the port of its pages."""
    config = place / "tiny.toml"
    config.write_text(tiny_market({"alice": 1_000_000, "bob": 1_000_000}, cores=512))
    port = free_port()
    return subprocess.Popen(
        [*RAMP, "web", "demo", "--config", str(config), "--port", str(port)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(place)},
    ), port


def running(place):
    """Command lines of all processes that know the folder."""
    found = []
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = each.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue  # it has just ended
        if str(place) in words:
            found.append(words)
    return found


def test_a_demonstration_comes_up_moves_and_leaves_nothing(tmp_path):
    process, port = begin(tmp_path)
    with process:
        line = process.stdout.readline()
        assert line.startswith(f"alice: http://127.0.0.1:{port}/login?token=")
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=LIMIT_S)[1]
    assert (process.returncode, "internal error" in said, "The market is up: 2 resources" in said) == (0, False, True)
    assert running(tmp_path) == []
    assert [each.name for each in tmp_path.iterdir()] == ["tiny.toml"]


@pytest.mark.full
def test_a_market_does_not_outlive_a_demonstration_that_is_killed(tmp_path):
    process, _ = begin(tmp_path)
    with process:
        until(lambda: list(tmp_path.glob("ramp-web-demo-*/state/run/web-address")), "the pages are served")
        process.kill()
        process.communicate(timeout=LIMIT_S)
    until(lambda: running(tmp_path) == [], "the market has ended")
