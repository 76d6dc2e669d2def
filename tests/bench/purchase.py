"""What it costs that the bank votes and everything is sealed: a purchase over XMPP before, now, and with signed offers.

"Before" is the last version in which the bank only paid and its answers were believed by sender name; it is taken out
of the repository's history and run in the same minute. Where the history is not there, only the others are measured.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

TAKES_MINUTES = "it launches six markets, among them an old version"
BEFORE = "069b7d278f496897cc306db9a8f8e8a53afd0cbd"
REPEATS = 15
ROUNDS_OF_MEASURING = 2
ROOT = Path(__file__).parents[2]
PROBE = Path(__file__).parent / "_purchase_probe.py"
TABLE2 = ROOT / "agents_config" / "swarms" / "table2.toml"


def run() -> list[tuple[str, float, str]]:
    """Measure: medians of some purchases, the better of two series, the versions taking turns.

    Processor time is told beside time: it hardly depends on what else the machine does.
    """
    with tempfile.TemporaryDirectory() as folder:
        signed = Path(folder) / "signed.toml"
        signed.write_text(TABLE2.read_text("utf-8").replace("[market]", "[market]\nsigned_offers = true", 1), "utf-8")
        variants = {"now": (ROOT, TABLE2), "now, with signed offers": (ROOT, signed)}
        old = old_tree(BEFORE, Path(folder) / "before")
        if old is not None:
            variants = {"before": (old, old / "agents_config" / "swarms" / "table2.toml"), **variants}
        best: dict[tuple[str, int], tuple[float, float]] = {}
        for _ in range(ROUNDS_OF_MEASURING):
            for name, (tree, config) in variants.items():
                for rounds, (seconds, used) in _probe(tree, config).items():
                    fastest, least = best.get((name, rounds), (seconds, used))
                    best[name, rounds] = min(seconds, fastest), min(used, least)
    rows = []
    for rounds in (1, 10):
        label = f"purchase of one unit, 20 resources, {rounds} round{'s' if rounds > 1 else ''}"
        for index, (what, unit) in enumerate((("time", "ms"), ("processor time of the whole market", "ms"))):
            for name in variants:
                rows.append((f"{label}, {what}: {name}", best[name, rounds][index] * 1000, unit))
                if old is not None and name != "before":
                    ratio = best[name, rounds][index] / best["before", rounds][index]
                    rows.append((f"{label}, {what}: {name} / before", ratio, "x"))
    return rows


def old_tree(commit: str, folder: Path) -> Path | None:
    """Take a version out of the repository's history; None where it is not there.

    Args:
        commit: the version.
        folder: where it is put.
    """
    try:
        packed = subprocess.run(["git", "archive", commit], cwd=ROOT, check=True, capture_output=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return None
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        archive.extractall(folder, filter="data")
    return folder


def _probe(tree: Path, config: Path) -> dict[int, tuple[float, float]]:
    environment = {**os.environ, "PYTHONPATH": str(tree)}
    command = [sys.executable, str(PROBE), str(config), str(REPEATS)]
    said = subprocess.run(command, cwd=tree, env=environment, check=True, capture_output=True, text=True).stdout
    return {int(rounds): (float(seconds), float(used)) for rounds, (seconds, used) in json.loads(said).items()}
