"""A placement policy of one's own for KOALA: the fullest cluster that has room, so that large gaps stay for large jobs.

ramp simulate --machine das3 --log wpm --approach pwa --placement examples/own_placement.py:BestFit
"""

import simulation
from simulation import Assignment, PlacementPolicy


class BestFit(PlacementPolicy):
    """Best-Fit: each component goes to the cluster that has the fewest idle processors left after it."""

    def place(self, components, idle, replicas):
        left, placed = dict(idle), []
        for component in components:
            suitable = [name for name in left if left[name] >= component.processors]
            if not suitable:
                return None
            cluster = min(suitable, key=left.get)
            left[cluster] -= component.processors
            placed.append(Assignment(cluster, component.processors, component.files))
        return tuple(placed)


def main() -> None:
    """Compare with two policies of KOALA: a synthetic month, each rigid job in two components."""
    for policy in ("wf", "cm", BestFit()):
        run = simulation.koala("synthetic", machine="das3", placement=policy, components=2, max_jobs=1000)
        name = policy if isinstance(policy, str) else "best fit"
        co_allocated = run.measures["co_allocated_jobs"]
        print(f"{name}: mean wait {run.metrics.mean_wait_s:.0f} s, {co_allocated} jobs on several clusters")


if __name__ == "__main__":
    main()
