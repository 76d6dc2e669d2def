"""What it costs that guests have processes of their own: rounds of an auction with twenty resources over XMPP.

"Before" is the last version in which every plug-in ran in its agent's process; it is taken out of the repository's
history and run in the same minutes. Where the history is not there, only the others are measured.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.bench.purchase import old_tree
from tests.integration.guests.guest_package import MoodyPackage

TAKES_MINUTES = "it launches eight markets of twenty processes"
BEFORE = "32228a2104d1b71b6ec844af8f869a2dd46fb3bf"
RESOURCES = 20
REPEATS = 10
ROUNDS_OF_MEASURING = 2
ANSWER_S = 0.2
ROOT = Path(__file__).parents[2]
PROBE = Path(__file__).parent / "_guest_probe.py"


def run() -> list[tuple[str, float, str]]:
    """Measure: median and longest round, the better of two series, the versions taking turns."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        slow = MoodyPackage(folder / "site")
        slow.be(quote=f"slow {ANSWER_S}")
        slowly = f"in a process each, {ANSWER_S * 1000:.0f} ms an answer"
        variants = {
            "in the agents' processes": (ROOT, _config(folder / "within.toml", "steady")),
            "in a process each": (ROOT, _config(folder / "apart.toml", "steady", 'isolation = "process"')),
            slowly: (ROOT, _config(folder / "slow.toml", "moody")),
        }
        old = old_tree(BEFORE, folder / "before")
        if old is not None:
            variants = {"before": (old, _config(folder / "before.toml", "steady")), **variants}
        best: dict[str, dict[str, float]] = {}
        for _ in range(ROUNDS_OF_MEASURING):
            for variant, (tree, config) in variants.items():
                found = _probe(tree, config, slow)
                best[variant] = {key: min(value, best.get(variant, found)[key]) for key, value in found.items()}
    rows = []
    label = f"round with {RESOURCES} resources"
    first = next(iter(variants))
    for variant, found in best.items():
        rows.append((f"{label}, median: {variant}", found["median"] * 1000, "ms"))
        rows.append((f"{label}, longest of {3 * REPEATS}: {variant}", found["longest"] * 1000, "ms"))
        rows.append((f"memory of the whole market's own: {variant}", found["memory"] / 1e6, "MB"))
        if variant != first:
            rows.append((f"{label}, median: {variant} / {first}", found["median"] / best[first]["median"], "x"))
    longer = best[slowly]["longest"] - best["in the agents' processes"]["longest"]
    rows.append((f"{label}, longest: {ANSWER_S * 1000:.0f} ms an answer makes it longer by", longer * 1000, "ms"))
    return rows


def _config(path: Path, plugin: str, more: str = "") -> Path:
    lines = ["[[users]]", 'name = "user1"', "deposit = 1000000", "[machines.small]", "cores = 64"]
    if plugin == "moody":
        lines += ["[guests]", 'environment = ["MOODY_MOODS"]']
    for number in range(RESOURCES):
        lines += ["[[resources]]", f'name = "machine{number:02}"', 'machine = "small"', f'plugin = "{plugin}"', more]
        lines += [f"start_price = {60 + number}", f"minimum_price = {20 + number}"]
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path


def _probe(tree: Path, config: Path, package: MoodyPackage) -> dict[str, float]:
    environment = {**os.environ, **package.environment}
    environment["PYTHONPATH"] = os.pathsep.join((str(tree), environment["PYTHONPATH"]))
    command = [sys.executable, str(PROBE), str(config), str(REPEATS)]
    said = subprocess.run(command, cwd=tree, env=environment, check=True, capture_output=True, text=True).stdout
    return {key: float(value) for key, value in json.loads(said).items()}
