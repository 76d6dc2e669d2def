"""Runs the project's benchmarks: `python -m tests.bench [TOPIC...] [--quick] [--json]`.

Every topic prints rows of name, value and unit, the ratio to a naive or peer reference of the same run among them.
`--quick` leaves out the topics that take minutes: their modules say so by a constant TAKES_MINUTES with the reason.
Machines are shared and noisy: compare ratios, and numbers of one run only.
"""

import argparse
import importlib
import json
import sys
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table


def topics() -> list[str]:
    """Names of the modules beside this one that have benchmarks."""
    return sorted(path.stem for path in Path(__file__).parent.glob("[a-z]*.py"))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument(
        "topics", nargs="*", metavar="TOPIC", help=f"one of {', '.join(topics())}; all if none is given"
    )
    parser.add_argument("--quick", action="store_true", help="leave out the topics that take minutes")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of tables")
    parser.add_argument("--minutes", type=float, help="how long topics go on that otherwise take their MINUTES")
    options = parser.parse_args()
    unknown = sorted(set(options.topics) - set(topics()))
    if unknown:
        parser.error(f"unknown topic {unknown[0]}: expected one of {', '.join(topics())}")
    results: dict[str, list[tuple[str, float, str]]] = {}
    for topic in options.topics or topics():
        module = importlib.import_module(f"tests.bench.{topic}")
        if options.quick and hasattr(module, "TAKES_MINUTES"):
            sys.stderr.write(f"{topic} is left out: {module.TAKES_MINUTES}\n")
            continue
        sys.stderr.write(f"{topic} ...\n")
        started = time.perf_counter()
        results[topic] = module.run(options.minutes) if options.minutes and hasattr(module, "MINUTES") else module.run()
        sys.stderr.write(f"{topic} took {time.perf_counter() - started:.1f} s\n")
    if options.json:
        rows = {
            topic: [dict(zip(("name", "value", "unit"), row, strict=True)) for row in found]
            for topic, found in results.items()
        }
        print(json.dumps(rows, indent=1))
        return 0
    console = Console()
    for topic, found in results.items():
        table = Table(title=topic, title_justify="left")
        table.add_column("what")
        table.add_column("value", justify="right")
        table.add_column("unit")
        for name, value, unit in found:
            table.add_row(name, f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.0f}", unit)
        console.print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
