"""A party of a simulated market with everything of it that survives a crash."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from ramp.model.instant import Duration, Instant
from ramp.protocol import events as ev
from ramp.protocol.party import Party
from ramp.protocol.resource.party import ResourceParty
from ramp.protocol.resource.seller import Seller
from ramp.protocol.rules.rule_book import RuleBook
from ramp.protocol.timing import Timing
from ramp.protocol.user.party import UserParty
from ramp.runtime.auction_rules import RULES
from ramp.runtime.host import Host, Journal, Ports
from simulation.market.counted_ids import CountedIds
from simulation.market.party_clock import PartyClock
from simulation.market.specs import ResourceSpec, UserSpec

BANK = "bank"
DIRECTORY = "directory"
KEEPER = "keeper"


class Crashed(Exception):
    """A party crashes.

    Args:
        down_for: how long until it restarts; None: until it is told to.
    """

    def __init__(self, down_for: Duration | None) -> None:
        self.down_for = down_for
        super().__init__()


@dataclass(slots=True)
class Actor:
    """A party, up or down.

    Attributes:
        name: the party's name.
        build: makes its protocol anew.
        ports: makes its host's ports anew.
        clock: what it takes for the time.
        journal: its durable memory, if it has one.
        host: what runs it; None while it is down.
        ticket: of the tick that is scheduled.
        armed_for: the deadline, by its clock, for which that is.
        doom: it crashes after the effect that it is carrying out; the pause until its restart.
        unheeded: commands that it has not noted yet.
    """

    name: str
    build: Callable[[], Party]
    ports: Callable[[], Ports]
    clock: PartyClock
    journal: Journal | None = None
    host: Host | None = None
    ticket: int | None = None
    armed_for: Instant | None = None
    doom: Duration | None = None
    unheeded: list[ev.Command] = field(default_factory=list)


def resource_builder(spec: ResourceSpec, timing: Timing) -> Callable[[], Party]:
    """What makes a resource's protocol at every start; its identifiers go on counting."""
    ids = CountedIds(spec.name)

    def build() -> Party:
        seller = Seller(
            spec.name,
            terms=spec.terms,
            prices=spec.prices,
            source=spec.machine.source,
            ids=ids,
            timing=timing,
            launching=spec.launching,
        )
        return ResourceParty(
            spec.name, directory=DIRECTORY, bank=BANK, seller=seller, timing=timing, launching=spec.launching
        )

    return build


def user_builder(spec: UserSpec, timing: Timing) -> Callable[[], Party]:
    """What makes a user's protocol at every start; its identifiers go on counting."""
    ids = CountedIds(spec.name)

    def build() -> Party:
        rules = RuleBook(RULES.find, spec.rule)
        return UserParty(spec.name, bank=BANK, directory=DIRECTORY, ids=ids, timing=timing, rules=rules)

    return build
