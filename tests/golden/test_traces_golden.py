"""Traces of small logs, written by hand from the rules and from the machine's cable list."""

import json
from pathlib import Path

from click.testing import CliRunner

from simulation.cli.simulate import simulate

TRACES = Path(__file__).parent / "traces"


def test_first_fit_on_blue_gene(tmp_path: Path) -> None:
    """Slim tori, aggressive first-fit.

    A whole x-line as a torus takes the eight cables of the main ring; a pair of midplanes its two opposite cables, the
    cheapest place being an x-pair; one midplane is a torus without cables; the whole machine waits until all others are
    done while the single midplane overtakes it. Origins go by x, then y, then z.
    """
    trace = tmp_path / "trace.jsonl"
    arguments = ["--machine", "bgl", "--log", TRACES / "bgl-first-fit.swf", "--scheduler", "first-fit"]
    arguments += ["--shape", "slim", "--torus-probability", 1, "--trace", trace, "--json"]
    result = CliRunner().invoke(simulate, [str(argument) for argument in arguments], catch_exceptions=False)
    assert result.exit_code == 0
    expected = (TRACES / "bgl-first-fit.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in trace.read_text().splitlines()] == [json.loads(line) for line in expected]
