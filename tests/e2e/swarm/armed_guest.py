"""`ramp.agents.guests.worker` with traps at what a plug-in has a batch system do: `armed_guest.py STATE AGENT ...`.

The acts are `system make`, `system hand_over` and `system remove`, as `armed_group` has them.
"""

import functools
import sys
from pathlib import Path
from typing import Any

from armed_group import Traps

from ramp.agents.guests import worker
from ramp.batch.gridengine.system import GridEngine
from ramp.batch.slurm.system import SlurmSystem


def _armed(traps: Traps, verb: str, change: Any) -> Any:
    @functools.wraps(change)
    def armed_change(*arguments: Any) -> Any:
        traps.meet(f"system {verb}", "before")
        done = change(*arguments)
        traps.meet(f"system {verb}", "after")
        return done

    return armed_change


if __name__ == "__main__":
    state, agent, *arguments = sys.argv[1:]
    parent = int(arguments[arguments.index("--parent") + 1])
    traps = Traps(Path(state) / "traps", agent, "resource", parent)
    for system in (SlurmSystem, GridEngine):
        for verb in ("make", "hand_over", "remove"):
            setattr(system, verb, _armed(traps, verb, getattr(system, verb)))
    sys.exit(worker.main(arguments))
