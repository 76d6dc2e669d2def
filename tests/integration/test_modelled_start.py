"""A live machine is opened on a computer that has never compiled its loops; then it answers without compiling."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from simulation.lab import AS_WRITTEN

OPEN_AND_ASK = """
import sys
from numba.core import event
from ramp.model.instant import DAY, HOUR, MINUTE, from_iso
from ramp.model.request import RequestUnit, TorusTerms, TotalCores
from ramp.model.slot import Slot
from ramp.plugins.interface import PluginSettings
from simulation.resource.modelled import open_plugin

machine, cores = sys.argv[1], int(sys.argv[2])
now = from_iso("2026-11-21T08:00:00Z")
with event.install_recorder("numba:compile") as opening:
    plugin = open_plugin(PluginSettings("one", cores, 2, now, {"machine": machine, "base_time_s": 86400}, None))
with event.install_recorder("numba:compile") as asking:
    plugin.snapshot(now, DAY)
    for hour, terms in enumerate((None, TorusTerms(connection="torus"), TorusTerms(connection="mesh"))):
        at = now + hour * HOUR  # jobs have come and gone meanwhile
        wanted = RequestUnit(1, 70, at + 3 * DAY, TotalCores(cores // 4), at + MINUTE, HOUR, torus=terms)
        slot = plugin.quote(wanted, at)
        assert isinstance(slot, Slot), slot
        plugin.hold(str(hour), wanted, slot, at + MINUTE, at)
        plugin.confirm(str(hour), at)
print(len(opening.buffer), len(asking.buffer))
"""


@pytest.mark.slow
@pytest.mark.parametrize(("machine", "cores"), [("bgl", 131_072), ("angara-4x4x2", 512)])
def test_nobody_waits_for_the_compiler_once_a_machine_is_open(machine: str, cores: int, tmp_path: Path) -> None:
    empty_cache = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), AS_WRITTEN: "0"}
    done = subprocess.run(
        [sys.executable, "-c", OPEN_AND_ASK, machine, str(cores)],
        env=empty_cache,
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    opening, asking = map(int, done.stdout.split())
    assert opening > 0
    assert asking == 0
