"""`ramp up real` and the commands of docs/slurm.md, "Configuration", on a real cluster."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.slurm.cluster_fixture import CORES, reservation_names, running_cluster

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1200)]

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "slurm.md").read_text()
NODES = 4


def test_the_page_sells_the_cluster_of_the_environment(tmp_path: Path) -> None:
    (commands,) = re.findall(r"```console\n(\$ ramp up real.*?)```", PAGE, re.DOTALL)
    with running_cluster("ct", nodes=NODES) as cluster:
        environment = {**os.environ, "SLURM_CONF": str(cluster.conf), "RAMP_STATE": str(tmp_path / "state")}
        told = ""

        def run(*words: str) -> str:
            argv = [sys.executable, "-m", "ramp.cli.main", *words]
            done = subprocess.run(argv, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=300)
            assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
            return done.stdout

        try:
            for line in commands.splitlines():
                words = shlex.split(line.removeprefix("$ ramp "))
                if words[0] == "down":
                    (sold,) = reservation_names(cluster)
                    machine = json.loads(run("qstat", "mycluster", "--json"))
                    assert (machine["cores"], machine["architecture"]) == (NODES * CORES, "x86_64")
                told += run(*words)
        finally:
            subprocess.run([sys.executable, "-m", "ramp.cli.main", "down"], env=environment, check=False, timeout=300)
        assert sold.startswith("ramp_mycluster.")
        assert sold in told
        assert "No problems found" in told


def test_the_lines_of_the_page_are_a_part_of_the_market_that_comes_with_it() -> None:
    import tomllib

    lines = tomllib.loads(re.findall(r"```toml\n(\[machines.mycluster\]\nplugin.*?)```", PAGE, re.DOTALL)[0])
    shipped = tomllib.loads((ROOT / "agents_config" / "swarms" / "real.toml").read_text())
    assert lines["resources"] == shipped["resources"]
    assert lines["guests"] == shipped["guests"]
    assert lines["machines"]["mycluster"]["plugin"] == shipped["machines"]["mycluster"]["plugin"]
