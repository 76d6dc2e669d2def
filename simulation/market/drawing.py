"""Drawn units and machines of the swarm: sizes that the seller chooses, whole parts, queues to join, and resizes."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING, ClassVar, Final

from ramp.model.instant import MINUTE, SECOND, Duration, Instant
from ramp.model.offer import Refusal
from ramp.model.request import MoldableTerms, RequestUnit, TotalCores
from ramp.model.slot import Slot
from ramp.protocol.events import AgreementCancelled, AgreementResized
from simulation.market.actors import BANK
from simulation.market.faults.late_guests import ForgetfulMachine
from simulation.market.faults.plan import FaultPlan
from simulation.market.random_streams import stream
from simulation.market.specs import ResourceSpec
from simulation.resource.waiting.drawn_starts import DrawnStarts

if TYPE_CHECKING:
    from simulation.market.world import World

LAWS: Final = ("amdahl:0", "amdahl:0.05", "amdahl:0.5", "table:1=100,16=20,64=12,128=12")
"""Speed-up laws of moldable units."""


def draw_sizes(seed: int) -> Random | None:
    """Return the stream for units whose size sellers may choose, in two of three markets; else None."""
    random = stream(seed, "sizes")
    return random if random.random() < 2 / 3 else None


def of_any_size(unit: RequestUnit, sizes: Random) -> RequestUnit:
    """Return the unit with a range of cores around its own in two of three cases; a job in a queue has one size."""
    if sizes.random() < 1 / 3 or unit.start_probability is not None:
        return unit
    cores = unit.cores.total
    least = max(1, cores // sizes.choice((1, 2, 4)))
    return replace(unit, moldable=MoldableTerms(least, cores * sizes.choice((1, 2, 4, 8)), sizes.choice(LAWS)))


def draw_starts(seed: int) -> Random | None:
    """Return the stream for probable starts, in a quarter of the markets; else None."""
    random = stream(seed, "starts")
    return random if random.random() < 0.25 else None


def without_reserving(spec: ResourceSpec, random: Random, seed: int) -> ResourceSpec:
    """Return a machine that sells a place in its queue only."""
    probability = random.choice((0.4, 0.8, 0.95, 1.0))
    return replace(spec, machine=DrawnStarts(spec.machine, probability, seed))


class WholeParts(ForgetfulMachine):
    """A machine that sells parts of 8 cores, and charges for all of them."""

    PART: ClassVar[int] = 8

    def quote(self, unit: RequestUnit, now: Instant) -> Slot | Refusal:
        parts = -(-unit.cores.total // self.PART)
        return super().quote(replace(unit, cores=TotalCores(parts * self.PART)), now)


def joining_a_queue(unit: RequestUnit, at: Instant, random: Random) -> RequestUnit:
    """Return the unit as a job that may join a queue, and has to start within minutes."""
    wall = unit.length_from(at)
    deadline = at + random.randint(4, 20) * MINUTE + wall
    asked = random.choice((0.3, 0.7, 0.9))
    return replace(unit, number=1, not_before=None, wall_time=wall, deadline=deadline, start_probability=asked)


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
