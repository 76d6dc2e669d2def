"""What tests that sell slots of a Grid Engine have in common."""

import time

from ramp.model.instant import HOUR, MINUTE
from ramp.model.request import RequestUnit, TotalCores
from tests.e2e.gridengine.gridengine_cell import LIBRARY

SLOTS = 64


def options_of(cluster):
    """The plug-in's options by which its commands find a cluster."""
    environment = {key: value for key, value in cluster.environment.items() if key.endswith("_PORT")}
    return {"root": str(cluster.root), "commands": str(LIBRARY), "environment": environment}


def now():
    """The time now, in microseconds."""
    return time.time_ns() // 1000


def unit(cores, after=0, run=HOUR, slack=10 * HOUR):
    """A request for cores that begins at the earliest so much later than now."""
    begin = now() + after
    return RequestUnit(
        1, 70, begin + run + slack, TotalCores(cores), not_before=begin if after else None, wall_time=run
    )


def held(machine, key, cores=8, after=HOUR, run=HOUR):
    """A slot quoted and held."""
    request = unit(cores, after, run)
    slot = machine.quote(request, now())
    return machine.hold(key, request, slot, now() + 10 * MINUTE, now())
