"""Owners who make what they have bought smaller or larger, as a seed draws it."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING, Final

from ramp.model.instant import MINUTE, SECOND, Duration, Instant
from ramp.protocol.events import AgreementCancelled, AgreementResized
from simulation.market.actors import BANK
from simulation.market.faults.plan import FaultPlan
from simulation.market.random_streams import stream

if TYPE_CHECKING:
    from simulation.market.world import World

SHARE: Final = 0.35
"""Share of the seeds whose owners change their purchases."""

LATER: Final = 3 * MINUTE
"""Some changes come so much later at most, so that they meet those before, cancellations and crashes."""

LONGER: Final = 4 * MINUTE
"""So much longer faults go on where slots are changed, as they are bought first."""

GROWTH: Final = 0.6
"""Share, among the seeds with changes, of those in which slots also grow."""

BLOWS: Final = 12
"""Most parties that crash during changes of slots: a change takes seconds and is rarely hit by chance."""


def draw_changes(seed: int, *, resized: bool | None) -> Random | None:
    """Return the stream for the owners' changes, or None for no changes; `resized` None lets the seed decide."""
    random = stream(seed, "changes")
    drawn = random.random() < SHARE
    return random if (drawn if resized is None else resized) else None


def with_time_for_changes(faults: FaultPlan, changes: Random | None) -> FaultPlan:
    """Return faults that last long enough to strike changes of purchases, if the plan has faults."""
    return faults if changes is None else replace(faults, heal_after=faults.heal_after + LONGER)


def draw_growths(seed: int, changes: Random | None) -> Random | None:
    """Return the stream for the owners' growths, or None for no growths; `changes` is that of their other changes."""
    random = stream(seed, "growths")
    return random if changes is not None and random.random() < GROWTH else None


def grow_some(world: World, random: Random | None) -> None:
    """Let owners add cores or time to some of their slots, now or soon; without a stream to none."""
    if random is None:
        return
    for name, user in world.users.items():
        for agreement_id, agreement in sorted(user.agreements.items()):
            for _ in range(random.choice((0, 1, 2, 3))):
                offer = agreement.offer
                cores = offer.cores + random.randint(1, max(offer.cores, 2)) if random.random() < 0.7 else None
                until: Instant | None = None
                if cores is None or random.random() < 0.3:
                    until = offer.end + random.randint(1, 60) * MINUTE
                price = random.choice((None, 30, 100, 100, 200))
                most = random.choice((None, None, None, 50_000))
                at = world.now + int(random.random() * LATER / SECOND) * SECOND
                others = [each for each in user.agreements if each != agreement_id]
                together = tuple(random.sample(others, min(len(others), 2))) if random.random() < 0.25 else ()
                wish = AgreementResized(agreement_id, cores, until, price=price, max_cost=most, together=together)
                world.command(name, wish, at)
                if random.random() < 0.1:  # given back while it grows
                    world.command(name, AgreementCancelled(agreement_id, "meanwhile"), at + random.randrange(SECOND))


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


def run_on(world: World, random: Random | None, limit: Duration) -> None:
    """Let a market run on for a while; where slots are changed, parties crash at any moment of it."""
    ends = world.now + limit
    names = sorted({*world.users, *world.resources, BANK})
    blows = sorted(ends - int(random.random() * limit) for _ in range(random.randint(0, BLOWS))) if random else ()
    for at in blows:
        world.run(limit=at - world.now)
        assert random is not None
        world.crash(random.choice(names), 1 + int(random.random() * MINUTE / 2))
    world.run(limit=ends - world.now)
