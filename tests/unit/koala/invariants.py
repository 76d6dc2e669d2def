"""What must always hold of a KOALA simulation; looked at after every event in tests."""

from ramp.errors import InvariantViolated
from simulation.koala.runner import Change, State
from simulation.koala.scheduler import Koala

_GROWING = {State.ALLOCATING, State.SUSPENDED}


def check(koala: Koala) -> None:
    """No processor in two jobs, none lost, sizes within their bounds, nothing in the threshold.

    Raises:
        InvariantViolated: with what does not hold.
    """
    for cluster in koala.clusters.values():
        managed = sum(cluster.held.values())
        if cluster.managed != managed or min(cluster.held.values(), default=1) < 1:
            raise InvariantViolated("processors", f"{cluster.name} counts {cluster.managed}, its jobs hold {managed}")
        if cluster.local + managed > cluster.processors:
            raise InvariantViolated("processors", f"{cluster.name} has {cluster.processors} and gives out more")
        if managed > max(0, cluster.processors - cluster.threshold):
            raise InvariantViolated("threshold", f"{managed} of {cluster.name} are managed")
    for number, runner in koala.runners.items():
        held = sum(runner.held_in(name) for name in runner.clusters())
        if held != runner.size + _beyond(runner.change):
            raise InvariantViolated("processors", f"job {number} computes with {runner.size} and holds {held}")
        sizes = runner.job.malleability.sizes
        starting = runner.change is not None and runner.change.state is State.RECLAIMING
        if not sizes.minimum <= runner.size <= sizes.maximum or not (starting or runner.size in sizes):
            raise InvariantViolated("sizes", f"job {number} has {runner.size}; it may have {sizes}")
        if not runner.job.malleable and runner.change is not None:
            raise InvariantViolated("sizes", f"job {number} is rigid and changes")


def _beyond(change: Change | None) -> int:
    """Processors that a job in a change holds and does not compute with."""
    if change is None or change.state not in {*_GROWING, State.RELEASING}:
        return 0
    return change.processors
