"""Starting a market of 24 agents on the embedded server: the time until all are ready, and the memory of its processes.

The reference is one Python process that imports the agents' modules and ends, in the same run.
"""

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

from ramp.client import swarm
from ramp.runtime.state_folder import StateFolder
from tests.bench.market_sizes import Size, configuration

MARKET = Size(20, 1, "embedded", 1)
REPEATS = 5


def _launch(config: Path, state: StateFolder) -> tuple[float, float]:
    """Return seconds until ready, and bytes of all processes with shared pages divided among them (PSS)."""
    begin = time.perf_counter()
    status = swarm.start_detached(config, state)
    seconds = time.perf_counter() - begin
    try:
        everybody = [psutil.Process(status.pid), *psutil.Process(status.pid).children(recursive=True)]
        return seconds, sum(each.memory_full_info().pss for each in everybody)
    finally:
        swarm.stop(state)


def _import_seconds() -> float:
    begin = time.perf_counter()
    subprocess.run([sys.executable, "-c", "import ramp.agents.process"], check=True)
    return time.perf_counter() - begin


def run() -> list[tuple[str, float, str]]:
    """Start a new market, and start it again with its keys."""
    first, again, memory, imports = [], [], [], []
    for _ in range(REPEATS):
        with tempfile.TemporaryDirectory(prefix="ramp-launch-") as folder:
            config = Path(folder) / "swarm.toml"
            config.write_text(configuration(MARKET, per_process=20), "utf-8")
            state = StateFolder(Path(folder) / "state")
            imports.append(_import_seconds())
            first.append(_launch(config, state)[0])
            seconds, size = _launch(config, state)
            again.append(seconds)
            memory.append(size)
    reference = statistics.median(imports)
    return [
        ("launch: 24 agents, new state folder", statistics.median(first), "s"),
        ("launch: 24 agents, existing state folder", statistics.median(again), "s"),
        (
            "launch: 24 agents, existing state folder / import of an agent's modules",
            statistics.median(again) / reference,
            "x",
        ),
        ("launch: memory of all processes (PSS)", statistics.median(memory) / 1e6, "MB"),
    ]
