"""Table 2's machines at times at which they are loaded: a reading of its base times.

The paper starts every machine at least 50 000 s into its log, "to allow the load on the machine to reach a production
level" (caption of Table 2). The archive's cleaned logs begin later than the paper's, so that some machines stand empty
at its base times. Here a machine begins at the first hour from its base time on after which it is at least half full,
on average over the ages at which markets open, and at which no other machine of the same log begins.

ramp experiment run examples/studies/loaded_machines.py:STUDY --out results --quick
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from ramp.model.instant import HOUR, SECOND
from ramp.runtime.configuration.values import ResourceConfig
from simulation.experiments.market.frame import OLDEST_HOURS
from simulation.experiments.market.workloads import study_on
from simulation.experiments.trials.plan import table2_resources
from simulation.workload.replay import ReplayLog
from simulation.workload.replay_source import open_replay

PRODUCTION: Final = 0.5
"""Share of a machine's cores that are taken at a production level."""


def loaded(resources: Sequence[ResourceConfig]) -> tuple[ResourceConfig, ...]:
    """Return resources that replay logs, each at the base time at which its machine is loaded."""
    found, taken = [], defaultdict[str, list[int]](list)
    for each in resources:
        log = str(each.options["log"])
        first = -(-int(each.options["base_time_s"]) * SECOND // HOUR)
        hour = loaded_hour(open_replay(log, each.terms.cores).replay, first, taken[log])
        taken[log].append(hour)
        found.append(replace(each, options={**each.options, "base_time_s": hour * HOUR // SECOND}))
    return tuple(found)


def loaded_hour(replay: ReplayLog, first: int, taken: Sequence[int] = ()) -> int:
    """Return the first hour of a log that begins a loaded period; the most loaded one if none does.

    Args:
        replay: of the log.
        first: from this hour on.
        taken: hours to which it must have a distance of the longest age.
    """
    hours = np.arange(int(replay.ended.max()) // HOUR + 1) * HOUR
    busy = np.zeros(hours.size)  # core-microseconds that have been used by the beginning of each hour
    for edges, sign in ((replay.started, 1), (replay.ended, -1)):
        order = np.argsort(edges, kind="stable")
        times, cores = edges[order].astype(float), np.cumsum(replay.cores[order].astype(float))
        moments = np.cumsum(replay.cores[order] * times)
        seen = np.searchsorted(times, hours, side="right") - 1
        past = seen >= 0
        busy[past] += sign * (cores[seen[past]] * hours[past] - moments[seen[past]])
    use = (busy[OLDEST_HOURS:] - busy[:-OLDEST_HOURS]) / (OLDEST_HOURS * HOUR * replay.capacity)
    use[:first] = -1
    for hour in taken:
        use[max(hour - OLDEST_HOURS + 1, 0) : hour + OLDEST_HOURS] = -1
    enough = np.flatnonzero(use >= PRODUCTION)
    return int(enough[0] if enough.size else np.argmax(use))


STUDY = study_on("workloads-loaded", ", each loaded", lambda: loaded(table2_resources()))
