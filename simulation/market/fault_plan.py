"""What goes wrong in one simulated market, drawn from its seed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from ramp.model.instant import MILLISECOND, MINUTE, SECOND, Duration
from simulation.market.network import HEALTHY, Isolation, NetworkFaults
from simulation.market.random_streams import stream


@dataclass(frozen=True, slots=True)
class FaultPlan:
    """All faults of one run; they end at `heal_after`, from where on the market must come to rest.

    Attributes:
        network: how bad the network is.
        crash: probability that a party crashes before carrying out an effect.
        restart_mean: mean of the exponential time a crashed party stays down.
        heal_after: when the faults end, counted from the run's start.
        isolations: who is cut off when, counted from the run's start.
    """

    network: NetworkFaults = HEALTHY
    crash: float = 0.0
    restart_mean: Duration = 5 * SECOND
    heal_after: Duration = 2 * MINUTE
    isolations: tuple[Isolation, ...] = ()


NO_FAULTS = FaultPlan(heal_after=0)


def draw_fault_plan(seed: int, parties: Sequence[str] = ()) -> FaultPlan:
    """Draw a plan: from a quiet run to one that loses every fifth message and crashes at every fiftieth effect.

    Args:
        seed: the run's seed.
        parties: who may be cut off for a while.
    """
    random = stream(seed, "fault plan")
    bad = random.random()
    heal_after = random.randint(1, 4) * MINUTE
    return FaultPlan(
        network=NetworkFaults(
            loss=random.choice((0.0, 0.02, 0.1, 0.2)) * bad,
            duplication=random.choice((0.0, 0.1, 0.3)) * bad,
            delay_floor=random.randint(1, 40) * MILLISECOND,
            delay_mean=random.choice((0, 5, 50, 800)) * MILLISECOND,
        ),
        crash=random.choice((0.0, 0.0, 0.004, 0.02)),
        restart_mean=random.choice((100 * MILLISECOND, 2 * SECOND, 20 * SECOND)),
        heal_after=heal_after,
        isolations=_draw_isolations(random, parties, heal_after),
    )


def _draw_isolations(random: Random, parties: Sequence[str], heal_after: Duration) -> tuple[Isolation, ...]:
    """Up to three lines cut for a second to as long as it takes; all are whole again at the healing."""
    isolations = []
    for _ in range(random.choice((0, 0, 1, 1, 2, 3)) if parties else 0):
        since = random.randrange(heal_after)
        lasts = random.choice((1, 5, 20, 90)) * SECOND
        isolations.append(Isolation(random.choice(parties), since, min(since + lasts, heal_after)))
    return tuple(isolations)
