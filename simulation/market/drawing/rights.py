"""Rights to take cores back: units that grant them, and sellers that use them, in markets of the swarm."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING, Final

from ramp.model.instant import MINUTE, SECOND, Duration
from ramp.model.request import ReclaimTerms, RequestUnit
from ramp.protocol.reclaiming.asking import Precedence, ReclaimOrdered
from ramp.protocol.resource.reclaiming.policy import ReclaimPolicy
from ramp.protocol.tables import ParticipantState
from simulation.market.random_streams import stream
from simulation.market.specs import ResourceSpec

if TYPE_CHECKING:
    from simulation.market.world import World

SHARE: Final = 0.3
"""Of so many seeds buyers grant the right."""

WORTH: Final = ((0, 200), (0, 30), (10, 200), (50, None))
"""Discounts for rights, and the most that is paid on top of a refund: all that is asked, some, or the minimum price."""

AWAY: Final[Duration] = 4 * SECOND
"""So long a liar's buyer is down: less than the shortest notice, so that it hears of what is posted."""

LATER: Final[Duration] = 3 * MINUTE
"""Some orders come so much later at most, so that they meet those before, amendments, cancellations and crashes."""


def draw_rights(seed: int) -> Random | None:
    """The stream of all that is granted and taken in a seed; None where nothing is."""
    random = stream(seed, "rights")
    return random if random.random() < SHARE else None


def granting(unit: RequestUnit, random: Random | None) -> RequestUnit:
    """The unit with a right to take cores back in four of five cases; without a stream as it is."""
    if random is None or unit.start_probability is not None or random.random() < 0.2:
        return unit
    most = unit.cores.total if unit.moldable is None else unit.moldable.least
    if most < 2:
        return unit
    notice = random.choice((5, 10, 20, 60)) * SECOND
    terms = ReclaimTerms(random.randint(1, max(1, most // 2)), notice, random.choice((0, 7, 30, 200)))
    return replace(unit, reclaim=terms)


def taking_back(spec: ResourceSpec, random: Random | None) -> ResourceSpec:
    """The resource with what its administrator has set about rights."""
    if random is None:
        return spec
    policy = ReclaimPolicy(random.choice(tuple(Precedence)), *random.choice(WORTH))
    return replace(spec, reclaiming=policy)


def take_some(world: World, random: Random | None) -> None:
    """Let administrators take cores of sold slots back, now or soon, of some twice; without a stream none.

    A liar takes something of all, and its buyers are down when the bank tells them of it: afterwards what is taken is
    told by the liar alone, or by nobody.
    """
    if random is None:
        return
    for name, party in sorted(world.resources.items()):
        for offer_id, participant in sorted(party.participants.items()):
            if participant.state is not ParticipantState.SOLD:
                continue
            lies = name in world.liars
            for _ in range(random.choice((0, 1, 2, 3)) or lies):
                cores = (
                    None if random.random() < 0.4 or lies else random.randint(1, max(1, participant.offer.cores // 3))
                )
                at = world.now + int(random.random() * LATER / SECOND) * SECOND
                world.command(name, ReclaimOrdered(offer_id, cores), at)
                if lies:
                    world.let_fail(participant.user, at, AWAY)
