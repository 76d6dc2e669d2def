"""Owners who make what they have bought smaller, as a seed draws it."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Final

from ramp.model.instant import MINUTE, SECOND, Instant
from ramp.protocol.amending.asking import AgreementResized
from simulation.market.random_streams import stream

if TYPE_CHECKING:
    from simulation.market.world import World

LATER: Final = 3 * MINUTE
"""Some changes come so much later at most, so that they meet those before, cancellations and crashes."""


def draw_changes(seed: int, *, resized: bool) -> Random | None:
    """The stream of all that a seed's owners change; None where they change nothing."""
    return stream(seed, "changes") if resized else None


def change_some(world: World, random: Random | None) -> None:
    """Let owners make some of their slots smaller, now or soon, some of them twice; without a stream none."""
    if random is None:
        return
    for name, user in world.users.items():
        for agreement_id, agreement in sorted(user.agreements.items()):
            for _ in range(random.choice((0, 1, 1, 2))):
                offer = agreement.offer
                cores = random.randint(1, offer.cores) if random.random() < 0.8 else None
                until: Instant | None = None
                if cores is None or random.random() < 0.3:
                    until = offer.end - random.randint(1, max((offer.end - offer.start) // MINUTE // 2, 1)) * MINUTE
                at = world.now + int(random.random() * LATER / SECOND) * SECOND
                world.command(name, AgreementResized(agreement_id, cores, until), at)
