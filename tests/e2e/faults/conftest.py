"""Markets in processes whose state folder fails them; the market is that of the tests of whole swarms."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "swarm"))

from stepped_clock import SteppedClock
from swarm_market import Market, write_config


@pytest.fixture
def new_market(tmp_path: Path) -> Iterator:
    """`new_market(folder, **configuration)` makes a market with its state in a folder; all are ended after the test."""
    markets = []

    def make(folder: Path, **configuration) -> Market:
        config = write_config(tmp_path / "swarm.toml", **configuration)
        markets.append(Market(config, folder / "state"))
        return markets[-1]

    yield make
    for market in markets:
        market.end()


@pytest.fixture
def stepped_clock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SteppedClock:
    """Clocks that a test sets, of all processes that it starts; needs a C compiler."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler for the stepped clock")
    library = tmp_path / "stepped_clock.so"
    source = Path(__file__).with_name("stepped_clock.c")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", str(library), str(source), "-ldl"], check=True)
    monkeypatch.setenv("LD_PRELOAD", str(library))
    monkeypatch.setenv("CLOCK_OFFSET_FILE", str(tmp_path / "offset"))
    return SteppedClock(tmp_path / "offset")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system in memory of 24 MB; root only."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if os.geteuid() != 0:
        pytest.skip("only root can mount a small file system to fill")
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=24m,mode=0700", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip(f"no file system can be mounted here: {mounted.stderr.decode().strip()}")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=False)
