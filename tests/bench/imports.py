"""How long importing the front doors takes, in a fresh interpreter, against numpy, their lightest heavy part."""

from __future__ import annotations

import statistics
import subprocess
import sys

REPEATS = 7
CODE = "import time; began = time.perf_counter(); import {}; print(time.perf_counter() - began)"


def run() -> list[tuple[str, float, str]]:
    """Median seconds of an import; the goal of `simulation` and `ramp` is 0.3 s."""
    rows = [
        (f"import {name}", _seconds(name), "s") for name in ("ramp", "simulation", "simulation.simulated_run", "numpy")
    ]
    every = _seconds("ramp; [getattr(ramp, name) for name in ramp.__all__]")
    rows.append(("import ramp, and every public name of it", every, "s"))
    return [*rows, ("numpy against import simulation", rows[3][1] / rows[1][1], "times")]


def _seconds(module: str) -> float:
    command = [sys.executable, "-c", CODE.format(module)]
    return statistics.median(
        float(subprocess.run(command, capture_output=True, check=True).stdout) for _ in range(REPEATS)
    )
